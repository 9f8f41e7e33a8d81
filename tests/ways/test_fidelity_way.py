"""A small part of the fidelity benchmark: sites of several kinds are harvested at once, go offline, and look
and work in replay as they did live.

One harvest with the default settings: the app, whose pages are empty without scripts, is opened in the browser,
the others are not. `bench.fidelity` measures more pages, more software, and other programs.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.request import urlopen

import pytest
from bench import fidelity_software as software
from bench import fidelity_views as views
from bench.fidelity_archives import begin_harvest, serve, wait_for, webdepot_served
from bench.fidelity_sites import SQUARE, Site, write_encodings, write_frames
from bench.fidelity_views import LivePage, PageScore, Viewer, compare, view_live

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
VENDOR = ROOT / "tests" / "web" / "vendor"
DOKUWIKI = ROOT / "bench" / "results" / "software" / "dokuwiki"
SCRIPTS = ("react.js", "react-dom.js", "router.js", "react-router.js", "react-router-dom.js")
PATIENCE_S = 60
"""How long a replayed page may take on a busy machine; one that is right takes a second."""

REACT = """
const { createElement: h, useEffect, useState } = React;
const { BrowserRouter, Link, Route, Routes, useNavigate, useParams } = ReactRouterDOM;
function useData(path) {
  const [data, setData] = useState(null);
  useEffect(() => { setData(null); fetch(path).then((answer) => answer.json()).then(setData); }, [path]);
  return data;
}
function Home() {
  const ships = useData("/data/ships.json"), go = useNavigate();
  if (!ships) return h("p", null, "Loading");
  return h("div", null, h(Link, { to: "/ship/0" }, ships[0]),
    h("button", { onClick: () => go("/sh" + "ip/1") }, ships[1]));
}
function Ship() {
  const ship = useData("/data/" + useParams().number + ".json");
  return ship ? h("h1", null, ship.name) : h("p", null, "Loading");
}
const routes = [["/", Home], ["/ship/:number", Ship]];
ReactDOM.createRoot(document.getElementById("root")).render(h(BrowserRouter, null,
  h("nav", null, h(Link, { to: "/" }, "Ships"), h("img", { src: "/ship.svg" })),
  h(Routes, null, routes.map(([path, element]) => h(Route, { key: path, path, element: h(element) })))));
"""


def write_react(folder: Path) -> Site:
    """A single-page app of React and React Router, as published: data fetched by scripts, a route that only a
    button leads to.
    """
    if absent := [name for name in SCRIPTS if not (VENDOR / name).exists()]:
        raise software.NotInstalled(f"{', '.join(absent)} missing: python scripts/vendor.py --tests")
    (folder / "data").mkdir(parents=True)
    for name in SCRIPTS:
        shutil.copy(VENDOR / name, folder / name)
    scripts = "".join(f"<script src=/{name}></script>" for name in (*SCRIPTS, "app.js"))
    files = {
        "index.html": f"<!doctype html><title>Ships</title><div id=root></div>{scripts}",
        "app.js": REACT,
        "ship.svg": SQUARE.format("purple"),
        "data/ships.json": '["Ballast", "Corvina"]',
        "data/0.json": '{"name": "Ballast, 400 tons"}',
        "data/1.json": '{"name": "Corvina, 435 tons"}',
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return Site(name="React", pages=("/",), folder=folder, fallback="/index.html")


def write_dokuwiki(folder: Path) -> Site:
    """The wiki as the benchmark installs it; a test connects to no other machine."""
    if not DOKUWIKI.exists():
        raise software.NotInstalled(f"{DOKUWIKI} missing: python -m bench.fidelity --install dokuwiki")
    return software.build_dokuwiki(DOKUWIKI.parent)


PARTS = {
    "frameset": (write_frames, ("/",), "/about.html"),
    "encodings": (write_encodings, ("/utf-16-bom.html", "/names-latin.html"), "/Schl%C3%BCssel.html"),
    "React": (write_react, ("/ship/1",), "/"),
    "DokuWiki": (write_dokuwiki, ("/doku.php",), "/doku.php?id=elbe"),
}
"""Each with the pages that are compared, and the one that a click must show."""


@dataclass(frozen=True)
class Seen:
    """How the pages of each site are shown in the archive, and what went wrong on the way."""

    scores: dict[str, list[PageScore]]
    missing: set[str]
    left: list[str]
    not_built: dict[str, str]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("fidelity")
    sites: dict[str, Site] = {}
    reasons: dict[str, str] = {}
    for name, (write, *_) in PARTS.items():
        try:
            sites[name] = write(folder / name)
        except software.NotInstalled as reason:
            reasons[name] = str(reason)
    with views.launched() as browser, pytest.MonkeyPatch.context() as patch:
        patch.setattr(views, "MOST_CLICKS", 1)
        live: dict[str, list[LivePage]] = {}
        with ExitStack() as served:
            bases = {name: served.enter_context(serve(site)) for name, site in sites.items()}
            seeds = [base + sites[name].pages[0] for name, base in bases.items()]
            for name, base in bases.items():  # a wiki completes a page after it was read for the first time
                for path in (*PARTS[name][1], PARTS[name][2]):
                    urlopen(base + path).close()
            # The live pages are looked at meanwhile.
            harvest = begin_harvest(folder / "home", seeds, "auto")
            ports = tuple(int(base.rpartition(":")[2]) for base in bases.values())
            with Viewer.open(ports, browser=browser) as viewer:
                for name, base in bases.items():
                    live[name] = view_live(viewer, base, PARTS[name][1], (PARTS[name][2],))
            wait_for(harvest, good=(0, 1))
        with (
            webdepot_served(folder / "home") as replay,
            Viewer.open(replay.ports, replay, browser=browser) as viewer,
        ):
            scores = {
                name: [compare(viewer, replace(page, patience_s=PATIENCE_S), folder / name) for page in pages]
                for name, pages in live.items()
            }
            yield Seen(scores=scores, missing=viewer.missing, left=list(viewer.left), not_built=reasons)


@pytest.mark.parametrize("site", PARTS)
def test_archived_pages_look_and_work_like_the_live_ones(seen: Seen, site: str):
    if reason := seen.not_built.get(site):
        pytest.skip(reason)
    scores = seen.scores[site]
    assert [page for page in scores if min(page.text, page.picture) < 0.99] == []
    assert [page for page in scores if page.failed_links] == []
    assert sum(page.links_working for page in scores) > 0


def test_nothing_is_missing_and_nothing_left_the_archive(seen: Seen):
    # DokuWiki's picture that starts its housekeeping is not content; it is left out on purpose.
    assert [url for url in seen.missing if "/taskrunner.php?" not in url] == []
    assert seen.left == []
