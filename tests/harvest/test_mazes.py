"""Crawls of sites that invent addresses and pages without end: they end by themselves, and a site that really has that many pages is harvested completely."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from harvest_crawl import lines, run
from harvest_site import Asked, Site, whole

from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.fetch.fetch_mode import Fetching, Screenshots
from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.report.result import CrawlResult, End, HostSettings
from webdepot.harvest.scope import mazes, software_rules
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.mazes import MAZES, nonsense

CHROMIUM = Path("/usr/bin/chromium")
CATALOGUE = software_rules.of_package()
ENOUGH = 3_000
"""Documents at which a crawl of these tests is stopped: it did not end by itself."""
WORDS = [
    "anchor",
    "ballast",
    "cable",
    "deck",
    "ebb",
    "foremast",
    "galley",
    "hull",
    "inlet",
    "jib",
    "keel",
    "lantern",
    "mast",
    "north",
    "oar",
    "pilot",
    "quay",
    "rope",
]


def crawl(folder: Path, site: Site, **settings: object) -> CrawlResult:
    limits = {"limit_documents": ENOUGH, "scope_limits": ScopeLimits(hops=ENOUGH), "software": CATALOGUE}
    return run(folder, [f"{site.url}/"], **{**limits, **settings})


def refused(folder: Path) -> list[dict[str, object]]:
    return [line for line in lines(folder) if line["rule"] == MAZES]


def _name(rng: random.Random, letters: int = 8) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=letters))


def _text(rng: random.Random) -> str:
    return "".join(f"<p>{' '.join(rng.choices(WORDS, k=9))} {_name(rng)}</p>" for _ in range(4))


def _links(addresses: list[str]) -> str:
    return "".join(f"<a href='{address}'>{address}</a> " for address in addresses)


MAZE_FORMS: dict[str, Callable[[random.Random], str]] = {
    "names": lambda rng: f"/{_name(rng)}",
    "numbers": lambda rng: f"/{rng.randrange(10**9)}",
    "files": lambda rng: f"/archive/{_name(rng)}.html",
    "folders": lambda rng: "/" + "".join(f"{_name(rng, 5)}/" for _ in range(rng.randint(1, 4))),
    "queries": lambda rng: f"/show?page={_name(rng)}&view={_name(rng)}",
}


@pytest.mark.parametrize("links", [1, 3, 40])
@pytest.mark.parametrize("form", MAZE_FORMS)
def test_a_maze_of_random_pages_ends(site: Site, tmp_path: Path, form: str, links: int) -> None:
    rng = random.Random(links)

    def invented(asked: Asked) -> bytes:
        return whole(f"<nav>Home</nav>{_text(rng)}{_links([MAZE_FORMS[form](rng) for _ in range(links)])}")

    site.fallback = lambda asked: None if asked.path in ("/robots.txt", "/sitemap.xml") else invented(asked)
    result = crawl(tmp_path, site)
    assert result.end is End.FINISHED and result.waiting == 0
    assert result.counts["fetched"] < 300
    assert result.counts["left_out_mazes"] == len(refused(tmp_path)) > 0
    assert "invents pages" in str(refused(tmp_path)[0]["reason"])


@pytest.mark.parametrize("form", ["{}{}/", "{}x{}"])
def test_a_maze_whose_addresses_continue_those_of_its_pages_ends(
    site: Site, tmp_path: Path, form: str
) -> None:
    rng = random.Random(11)

    def invented(asked: Asked) -> bytes | None:
        if asked.path in ("/robots.txt", "/sitemap.xml"):
            return None
        return whole(_text(rng) + _links([form.format(asked.path, letter) for letter in _name(rng, 2)]))

    site.fallback = invented
    result = crawl(tmp_path, site)
    assert result.end is End.FINISHED and result.counts["left_out_mazes"] > 0


def test_a_wiki_that_offers_to_write_missing_pages_is_no_maze(site: Site, tmp_path: Path) -> None:
    """Its answer repeats the address in links, and has the navigation of all other pages."""

    def around(path: str) -> str:
        return _links([f"{path}/edit", f"/login?return={path[6:]}"])

    addresses = _tree(site, 300, "/wiki/{name}", lambda path: f"{around(path)}<p>Last change</p>")
    site.fallback = lambda asked: (
        whole(f"<nav>News</nav>{around(asked.path)}") if asked.path.startswith("/wiki/") else None
    )
    crawl(tmp_path, site, rejects=("/edit", "/login"))
    assert set(addresses) <= set(site.paths())
    assert refused(tmp_path) == []


def test_a_maze_that_says_the_same_everywhere_ends(site: Site, tmp_path: Path) -> None:
    """Only the texts of its links differ, so its pages are not those that the host shows for missing pages."""
    rng = random.Random(1)
    site.fallback = lambda asked: (
        None
        if asked.path in ("/robots.txt", "/sitemap.xml")
        else whole(f"<p>Welcome</p>{_links([f'/{_name(rng)}' for _ in range(5)])}")
    )
    result = crawl(tmp_path, site)
    assert result.end is End.FINISHED and result.counts["fetched"] < 300


def test_a_maze_with_dead_ends_that_links_back_to_the_site_ends(site: Site, tmp_path: Path) -> None:
    """In a folder of its own: elsewhere the host answers 404, and the rest of the site is taken whole."""
    rng = random.Random(2)
    wiki = [f"/wiki/{_name(rng)}" for _ in range(300)]
    for number, address in enumerate(wiki):
        others = [wiki[(number * 7 + step) % len(wiki)] for step in (1, 2, 3, 50)]
        site.page(address, f"<a href=/>Home</a>{_text(rng)}{_links(others)}")

    def invented(asked: Asked) -> bytes | None:
        if not asked.path.startswith("/poison/"):
            return None
        links = [f"/poison/{_name(rng)}/{_name(rng)}" for _ in range(rng.choice((0, 2, 3, 4, 5, 6)))]
        return whole(f"<a href=/>Home</a>{_text(rng)}{_links([*links, rng.choice(wiki)])}")

    site.fallback = invented
    site.page("/", _links([wiki[0], "/poison/a/b"]))
    result = crawl(tmp_path, site)
    assert result.end is End.FINISHED
    assert set(wiki) <= set(site.paths())
    assert len([path for path in site.paths() if path.startswith("/poison/")]) < 300
    assert {str(line["reason"]).split("/")[-2] for line in refused(tmp_path)} == {"poison"}


@pytest.mark.parametrize("answers", ["redirects", "errors", "dead ends"])
def test_a_maze_of_which_some_addresses_lead_nowhere_ends(site: Site, tmp_path: Path, answers: str) -> None:
    """An address that cannot exist may be one of them."""
    rng = random.Random(7)

    def invented(asked: Asked) -> bytes | None:
        if asked.path in ("/robots.txt", "/sitemap.xml"):
            return None
        if asked.path != "/" and rng.random() < 0.33:
            return {
                "redirects": whole("", status="302 Found", Location=f"/{_name(rng)}"),
                "errors": None,
                "dead ends": whole(_text(rng)),
            }[answers]
        return whole(_text(rng) + _links([f"/{_name(rng)}" for _ in range(4)]))

    site.fallback = invented
    result = crawl(tmp_path, site)
    assert result.end is End.FINISHED and result.counts["left_out_mazes"] > 0


@pytest.mark.parametrize("kind", ["styles", "scripts", "feeds", "playlists"])
def test_files_that_name_ever_new_files_end(site: Site, tmp_path: Path, kind: str) -> None:
    rng = random.Random(8)
    form, mime = {
        "styles": ("@import '/part/{}.css';", "text/css"),
        "scripts": ("import '/part/{}.js';", "text/javascript"),
        "feeds": ("<link rel='next' href='/part/{}'/>", "application/atom+xml"),
        "playlists": ("#EXT-X-STREAM-INF:BANDWIDTH=1\n/part/{}.m3u8", "application/vnd.apple.mpegurl"),
    }[kind]
    around = {
        "feeds": "<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'>\n{}</feed>",
        "playlists": "#EXTM3U\n{}",
    }

    def invented(asked: Asked) -> bytes | None:
        parts = "\n".join(form.format(_name(rng)) for _ in range(3))
        return whole(around.get(kind, "{}").format(parts), mime=mime) if "/part/" in asked.path else None

    site.fallback = invented
    site.page(
        "/",
        "<link rel=stylesheet href=/part/a.css><script type=module src=/part/a.js></script>"
        "<a href=/part/feed>News</a><video src=/part/a.m3u8></video>",
    )
    result = crawl(tmp_path, site)
    assert result.end is End.FINISHED and len(site.paths()) < 600


def test_frames_in_frames_and_sitemaps_of_sitemaps_end(site: Site, tmp_path: Path) -> None:
    rng = random.Random(3)

    def invented(asked: Asked) -> bytes | None:
        names = [_name(rng) for _ in range(3)]
        if asked.path.startswith("/frames/"):
            return whole("".join(f"<iframe src=/frames/{name}></iframe>" for name in names) + _text(rng))
        if not asked.path.startswith("/maps/"):
            return None
        maps = "".join(f"<sitemap><loc>{site.url}/maps/{name}.xml</loc></sitemap>" for name in names)
        return whole(f"<?xml version='1.0'?><sitemapindex>{maps}</sitemapindex>", mime="application/xml")

    site.fallback = invented
    site.page("/robots.txt", f"Sitemap: {site.url}/maps/first.xml\n", mime="text/plain")
    site.page("/", "<iframe src=/frames/first></iframe>")
    result = crawl(tmp_path, site)
    assert result.end is End.FINISHED and result.counts["fetched"] < 600
    assert {str(line["reason"]).split("/")[-2] for line in refused(tmp_path)} == {"frames", "maps"}


def test_a_maze_is_taken_if_it_is_asked_for(site: Site, tmp_path: Path) -> None:
    rng = random.Random(4)
    site.fallback = lambda asked: whole(_text(rng) + _links([f"/{_name(rng)}", f"/{_name(rng)}"]))
    result = crawl(tmp_path, site, include=(MAZES,), limit_documents=500)
    assert result.end is End.LIMIT_DOCUMENTS
    assert "left_out_mazes" not in result.counts


def _tree(site: Site, pages: int, form: str, more: Callable[[str], str] = lambda address: "") -> list[str]:
    """Pages of which each is linked from one other only, and links to two new ones: as in a maze."""
    rng = random.Random(pages)
    addresses = [form.format(number=number, name=_name(rng)) for number in range(pages)]
    for number, address in enumerate(addresses):
        children = [addresses[child] for child in (2 * number + 1, 2 * number + 2) if child < pages]
        site.page(address, f"<nav>News</nav>{_text(rng)}{more(address)}{_links(children)}")
    site.page("/", _links(addresses[:1]))
    return addresses


@pytest.mark.parametrize("form", ["/news/{name}", "/item/{number}", "/show?id={number}"])
def test_a_large_site_without_cross_links_is_no_maze(site: Site, tmp_path: Path, form: str) -> None:
    addresses = _tree(site, 600, form)
    result = crawl(tmp_path, site)
    assert set(addresses) <= set(site.paths())
    assert refused(tmp_path) == [] and "left_out_mazes" not in result.counts
    probes = [line for line in lines(tmp_path) if line["note"] == "soft404Probe"]
    assert len(probes) < 10


def test_a_site_that_suggests_other_pages_where_there_is_none_is_no_maze(site: Site, tmp_path: Path) -> None:
    """Its page for missing pages links to pages that were never seen before, other ones each time, and has the
    navigation of all other pages.
    """
    addresses, rng = _tree(site, 600, "/news/{name}"), random.Random(5)
    site.fallback = lambda asked: (
        None
        if asked.path in ("/robots.txt", "/sitemap.xml")
        else whole(f"<nav>News</nav><h1>There is no such page</h1>{_links(rng.sample(addresses, 4))}")
    )
    crawl(tmp_path, site)
    assert set(addresses) <= set(site.paths())
    assert refused(tmp_path) == []


def test_a_site_that_shows_a_front_page_for_missing_pages_is_no_maze(site: Site, tmp_path: Path) -> None:
    """Each time with other articles, and without any words of its own: only the articles have such."""
    addresses = _tree(site, 600, "/news/{name}", lambda path: "<p>Print this article</p>")
    rng = random.Random(9)
    site.fallback = lambda asked: (
        None
        if asked.path in ("/robots.txt", "/sitemap.xml")
        else whole(f"<nav>News</nav>{_text(rng)}{_links(rng.sample(addresses, 4))}")
    )
    crawl(tmp_path, site)
    assert set(addresses) <= set(site.paths())
    assert refused(tmp_path) == []


def test_a_wiki_that_redirects_unknown_titles_is_no_maze(site: Site, tmp_path: Path) -> None:
    addresses, rng = _tree(site, 600, "/wiki/{name}"), random.Random(10)

    def elsewhere(asked: Asked) -> bytes | None:
        if not asked.path.startswith("/wiki/"):
            return None
        return whole("", status="302 Found", Location=rng.choice(addresses))

    site.fallback = elsewhere
    crawl(tmp_path, site)
    assert set(addresses) <= set(site.paths())
    assert refused(tmp_path) == []


def test_addresses_that_cannot_exist_are_asked_for_at_the_pace_of_their_host(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mazes, "SUSPECTED", 4)
    _tree(site, 14, "/news/{name}")
    slow = HostSettings(manners=Manners(delay_s=0.2, delay_factor=0.0))
    crawl(tmp_path, site, of_host=lambda host: slow)
    probes = [at for at, asked in enumerate(site.log) if re.search(r"/[0-9a-f]{24}\Z", asked.target)]
    assert len(probes) > 2
    for at in probes:
        assert site.log[at + 1].began_s - site.log[at].ended_s >= 0.19


def test_a_maze_that_turns_out_to_have_pages_is_none_any_more() -> None:
    watch = mazes.MazeWatch()
    rng, made = random.Random(6), iter(range(10**6))

    def page(lines: set[int]) -> mazes.Candidate:
        candidate = mazes.Candidate(url=mazes.Url(f"http://a.example/x{next(made)}"), path="LL")
        links = [(mazes.Url(f"http://a.example/y{rng.random()}"), mazes.Hop.LINK)]
        watch.note(candidate, links, (), lambda: lines)
        return candidate

    def is_rejected() -> bool:
        candidates = (
            mazes.Candidate(url=mazes.Url(f"http://a.example/z{n}"), path="LLL") for n in range(200)
        )
        return any(watch.find_rejection(candidate) is not None for candidate in candidates)

    for _ in range(mazes.SUSPECTED):
        last = page({1})
    for number in range(mazes.PROBES):
        probe = watch.find_probe(last)
        assert probe is not None
        links = [(mazes.Url(f"http://a.example/p{number}"), mazes.Hop.LINK)]
        watch.note_probe(last, probe, links, (), {1, 100 + number})
    assert watch.find_probe(last) is None
    for _ in range(mazes.ALIKE):
        assert not is_rejected()
        page({1, next(made)})
    assert is_rejected()
    for _ in range(3):
        page({2, 3})
    assert not is_rejected()


@pytest.mark.parametrize(
    ("url", "folder", "form"),
    [
        ("http://a.example/b/c", "http://a.example/", r"/[0-9a-f]{24}/[0-9a-f]{24}"),
        ("http://a.example/b/c.html", "http://a.example/b/", r"/b/[0-9a-f]{24}\.html"),
        ("http://a.example/b/17/", "http://a.example/b/", r"/b/\d{18}/"),
        ("http://a.example/b?c=d&e=5", "http://a.example/b?", r"/b\?c=[0-9a-f]{24}&e=\d{18}"),
        ("http://a.example/b?c", "http://a.example/", r"/[0-9a-f]{24}\?[0-9a-f]{24}"),
    ],
)
def test_an_address_that_cannot_exist_has_the_form_of_those_that_do(url: str, folder: str, form: str) -> None:
    made = [str(nonsense(url, folder, number)) for number in range(3)]
    assert all(re.fullmatch(f"http://a\\.example{form}", each) for each in made), made
    assert len(set(made)) == 3


APP = """<nav>Harbour</nav><main id=view></main><script>
const word = () => Math.random().toString(36).slice(2, 9).replace(/\\d/g, 'q');
for (let n = 0; n < 3; n++) history.pushState({}, '', '/' + ['ro', 'ute/'].join('') + word());
view.textContent = TEXT;
</script>"""


@pytest.mark.browser
@pytest.mark.parametrize("text", ["word() + ' ' + word()", "'Welcome to the harbour'"])
def test_random_routes_of_an_app_end(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(mazes, "SUSPECTED", 6)  # pages in the browser take long
    monkeypatch.setattr(mazes, "ALIKE", 4)
    app = whole(APP.replace("TEXT", text))
    site.fallback = lambda asked: app if asked.path.startswith("/route/") else None
    site.raw("/", app, close=False)
    result = crawl(
        tmp_path,
        site,
        limit_documents=100,
        fetch=Fetching.BROWSER,
        screenshots=Screenshots.NONE,
        behaviours=frozenset(),
        browser=lambda: Browser(CHROMIUM, sandbox=False, tabs=2, agent="Webdepot/1 (test)"),
    )
    assert result.end is End.FINISHED
    assert 0 < result.counts["opened"] < 40
    assert "/route/" in str(refused(tmp_path)[0]["reason"])
