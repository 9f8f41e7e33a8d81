"""The workflow for a page that scripts build: harvested twice with a browser, reviewed, compared, and opened again
as the browser saw it.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from warcio.archiveiterator import ArchiveIterator

from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.errors import ConfigError, NotFound
from webdepot.services.access import search
from webdepot.services.admin import setup
from webdepot.services.admin.doctor import doctor
from webdepot.services.harvest import harvests as harvests_service
from webdepot.services.harvest import runner
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.review import replay_pictures, review_view, reviews

SCRIPT = """<div id=root></div><script>
fetch('/ti' + 'des.json').then(answer => answer.json()).then(tides => {
  document.title = `Water at ${tides.harbour}`;
  const inner = document.body.appendChild(document.createElement('p')).attachShadow({mode: 'open'});
  inner.innerHTML = `<style>b { color: red }</style><b>Sluice of ${tides.harbour}</b><i><i>Level</i></i>`;
  root.innerHTML = `<h1>Tides of ${tides.harbour}</h1><a href="/hig${'h'}">High water</a><img src="/fla${'g.p'}ng">`;
});
</script>"""
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc000000301010018dd8db00000000049454e44ae426082"
)


def tell(site, harbour: str) -> None:
    site.page("/", "Harbour", SCRIPT)
    site.pages["/tides.json"] = (
        200,
        {"Content-Type": "application/json"},
        json.dumps({"harbour": harbour}).encode(),
    )
    site.pages["/flag.png"] = (200, {"Content-Type": "image/png"}, PNG)
    site.page("/high", "High water", "<p>At noon.</p>")


@pytest.mark.browser
def test_what_scripts_show_is_harvested_reviewed_compared_and_replayed(
    site, webdepot, serving, chromium: Browser, tmp_path: Path
):
    home = tmp_path / "home"
    setup.create(home, settings="[harvest]\nbrowser_sandbox = false\n")
    for harbour in ("Harlingen", "Delfzijl"):
        tell(site, harbour)
        options = ["--browser", "--allow-private", "--delay", "0", "--json"]
        report = json.loads(webdepot("archive", site.url, *options).stdout)
        assert report["state"] == "kept"
    assert site.requests["/tides.json"] == site.requests["/high"] == 2, "once for each harvest"

    found = [record for path in sorted(home.rglob("*.warc.gz")) for record in _records(path)]
    assert found.count(("resource", f"urn:view:{site.url}/", "image/png")) == 2
    assert found.count(("resource", f"urn:text:{site.url}/", "text/plain; charset=utf-8")) == 2

    with Archive.open(home) as archive:
        for words in ("Harlingen", "Delfzijl"):
            (hit,) = search.search(archive, f"tides {words}", reader=ANYONE).hits
            assert (hit.url, hit.title) == (f"{site.url}/", f"Water at {words}")
            (hit,) = search.search(archive, f"sluice {words} level", reader=ANYONE).hits
            assert hit.url == f"{site.url}/"
        assert not search.search(archive, "color", reader=ANYONE).hits
        harvests = harvests_service.latest(archive, 2)
        assert [harvest.counts["screenshots"] for harvest in harvests] == [1, 1]
        ((before, now),) = reviews.screenshot_pairs(archive, reviews.dossier(archive, harvests[0].id))
        assert before is not None and before.url == now.url == f"{site.url}/"
        mime, picture = reviews.read_screenshot(archive, now.id)
        assert mime == "image/png" and picture.startswith(b"\x89PNG")

    site.close()
    at = serving()
    page = chromium.new_page()
    page.goto(f"{at['portal']}/compare?url={site.url}/&at=99991231")
    read = "async (image) => [...new Uint8Array(await (await fetch(image.src)).arrayBuffer())]"
    assert bytes(page.locator("img.over").evaluate(read)) == picture

    page.goto(f"{at['portal']}/all/99991231/{site.url}/")
    inside = page.frame_locator("iframe")
    expect(inside.get_by_role("heading", name="Tides of Delfzijl")).to_be_visible(timeout=30_000)
    expect(inside.get_by_role("link", name="High water")).to_be_visible()
    assert inside.locator("img").evaluate("image => image.complete && image.naturalWidth") == 1
    page.close()


@pytest.mark.browser
def test_the_reviewer_sees_harvest_and_replay_side_by_side(site, webdepot, tmp_path: Path):
    home = tmp_path / "home"
    setup.create(home, settings="[harvest]\nbrowser_sandbox = false\n")
    tell(site, "Harlingen")
    options = ["--browser", "--allow-private", "--delay", "0", "--no-deposit", "--json"]
    report = json.loads(webdepot("archive", site.url, *options).stdout)
    site.close()
    with Archive.open(home) as archive:
        harvest = harvests_service.get(archive, report["harvest"])
        with ThreadPoolExecutor(1) as thread:  # the browser of other tests has an event loop in this one
            assert thread.submit(replay_pictures.take, archive, harvest).result() == 1
        (page,) = [each for each in review_view.view(archive, harvest.id).pages if each.now]
        assert page.url == f"{site.url}/" and page.replayed and page.now is not None
        replayed = replay_pictures.read(archive, harvest.id, page.replayed)
        assert replayed == reviews.read_screenshot(archive, page.now.id), "nothing is missing in replay"
        with pytest.raises(NotFound):
            replay_pictures.read(archive, harvest.id, "../lock")


APP = """<nav><a href=/ships/1>Alpha</a> <a href=/ships/2>Beta</a> <button>About</button> <a href="/#/map">Map</a></nav>
<main id=view></main><script>
const read = (answer) => answer.json();
const ask = (query, n) => fetch('/graph' + 'ql', {method: 'POST', headers: {'Content-Type': 'application/json'},
  body: JSON.stringify({query, variables: {n}})}).then(read);
const load = (name) => fetch(`/da${'ta'}/${name}.json`).then(read);
const show = async () => {
  const ship = location.pathname.split('/ships/')[1], name = location.hash.slice(2) || location.pathname.slice(1);
  document.title = `App ${location.pathname}`;
  view.textContent = '';
  const told = ship ? (await ask('query Ship($n: Int) { ship(n: $n) }', ship)).data.ship
    : name ? (await load(name)).told : 'Choose';
  view.innerHTML = `<h2>${told}</h2>` + (ship ? `<button onclick="go('/crew/${ship}')">Crew</button>` : '');
};
const go = (address) => { history.pushState({}, '', address); show(); };
document.querySelector('button').onclick = () => go('/about');
document.querySelector('nav').onclick = (event) => {
  if (!event.target.matches('a[href^="/ships"]')) return;
  event.preventDefault();
  go(event.target.getAttribute('href'));
};
onpopstate = show;
show();
ask('mutation Count($n: Int) { count(n: $n) }', 1).catch(() => {});
</script>"""
ROUTES = {
    "/ships/1": "The Alpha of Harlingen",
    "/ships/2": "The Beta of Delfzijl",
    "/about": "About our ships",
    "/crew/1": "Crew of the Alpha",
    "/crew/2": "Crew of the Beta",
    "/#/map": "Map of the harbour",
}


def _app(site) -> None:
    """A single-page app: ships come by GraphQL, by a POST with the same address for all of them."""
    as_json = {"Content-Type": "application/json"}
    site.page("/", "App", APP)
    for route, told in ROUTES.items():
        name = route.lstrip("/#")
        site.pages.setdefault(route, site.pages["/"])
        if name.startswith("ships/"):
            query = {"query": "query Ship($n: Int) { ship(n: $n) }", "variables": {"n": name[-1]}}
            asked = f"POST /graphql {json.dumps(query, separators=(',', ':'))}"
            site.pages[asked] = (200, as_json, json.dumps({"data": {"ship": told}}).encode())
        else:
            site.pages[f"/data/{name}.json"] = (200, as_json, json.dumps({"told": told}).encode())


@pytest.mark.browser
def test_every_route_of_an_app_is_replayed_by_address_and_by_click(
    site, webdepot, serving, chromium: Browser, tmp_path: Path
):
    home = tmp_path / "home"
    setup.create(home, settings="[harvest]\nbrowser_sandbox = false\n")
    _app(site)
    webdepot("archive", site.url, "--browser", "--allow-private", "--delay", "0")
    assert not any("mutation" in request for request in site.requests), "it only reads"
    with Archive.open(home) as archive:
        for route, told in ROUTES.items():
            (hit,) = search.search(archive, f'"{told}"', reader=ANYONE).hits
            path = route.partition("#")[0]
            assert (hit.url, hit.title) == (f"{site.url}{path}", f"App {path}")

    site.close()
    start = f"{serving()['portal']}/all/99991231/{site.url}"
    page = chromium.new_page()
    page.set_default_timeout(60_000)
    shown = page.frame_locator("iframe").locator("h2")
    for route, told in ROUTES.items():
        page.goto(f"{start}{route}")
        expect(shown).to_have_text(told, timeout=60_000)
    page.goto(f"{start}/")
    expect(shown).to_have_text("Choose", timeout=60_000)
    inside = page.frame_locator("iframe")
    for ship in ("Alpha", "Beta"):
        inside.get_by_role("link", name=ship).click()
        expect(shown).to_contain_text(f"The {ship} of", timeout=60_000)
        inside.get_by_role("button", name="Crew").click()
        expect(shown).to_have_text(f"Crew of the {ship}", timeout=60_000)
    inside.get_by_role("button", name="About").click()
    expect(shown).to_have_text(ROUTES["/about"], timeout=60_000)
    page.goto(f"{start}/")
    inside.get_by_role("link", name="Map").click()
    expect(shown).to_have_text(ROUTES["/#/map"], timeout=60_000)
    page.close()


def _records(path: Path) -> list[tuple[str, str, str]]:
    with path.open("rb") as stream:
        return [
            (
                record.rec_type,
                record.rec_headers["WARC-Target-URI"] or "",
                record.rec_headers["Content-Type"] or "",
            )
            for record in ArchiveIterator(stream)
        ]


def test_a_harvest_that_wants_a_browser_where_there_is_none_does_not_begin(home: Path):
    (home / "webdepot.toml").write_text('[harvest]\nbrowser = "no-such-browser"\nfetch = "when-empty"\n')
    with Archive.open(home) as archive:
        with pytest.raises(ConfigError, match=r"no-such-browser.*apt install chromium"):
            runner.start_or_resume(
                archive, ["http://127.0.0.1:9/"], HarvestOptions.from_config(archive.config)
            )
        assert harvests_service.latest(archive, 5) == []
    (found,) = [check for check in doctor.examine(home) if check.name == "browser"]
    assert found.state == "error" and "apt install chromium" in found.remedy
    (home / "webdepot.toml").write_text('[harvest]\nbrowser = "no-such-browser"\n')
    (found,) = [check for check in doctor.examine(home) if check.name == "browser"]
    assert found.state == "ok", "nothing asks for one"
    assert "apt install chromium" in found.remedy
