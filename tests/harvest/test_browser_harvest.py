"""Pages opened in a real Chromium: what scripts request is fetched by us, kept, and judged by the same rules;
nothing else leaves the machine.

One crawl over one site of many kinds of pages; each test looks at one of them. Addresses that scripts use are
put together there, so that nothing but a browser finds them.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from harvest_crawl import FileKeeper, kept, lines, run
from harvest_site import Answer, Asked, Site, running_site, whole

from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.fetch.fetch_mode import Fetching, Screenshots
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.report import last_pictures
from webdepot.harvest.report.result import CrawlResult, HostSettings
from webdepot.harvest.scope.membership import ScopeKind

pytestmark = pytest.mark.browser
CHROMIUM = Path("/usr/bin/chromium")
HOST = "http://www.site.example"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000" "1f15c4890000000d49444154789c63f8cfc0f01f0005000"
    "1ff89993d1d0000000049454e44ae426082"
)  # fmt: skip
OTHER = "http://other.site.example"
MANY = (
    "document.body.insertAdjacentHTML('beforeend', `<a href=/fr${'om'}-script>x</a><img src=/pi${'c.p'}ng>`)",
    "fetch('/da' + 'ta.json').then(r => r.json()).then(j => link('fr' + 'om-' + j.a))",
    "fetch('http://api.example/da' + 'ta', {headers: {'X-Asked-By': 'a script'}}).then(r => r.text()).then(t => link('fr' + 'om-' + t))",
    "fetch('/po' + 'sted', {method: 'POST', body: 'x'})",
    "fetch('http://api.example/po' + 'sted', {method: 'PUT', body: 'x'})",
    "navigator.sendBeacon('/bea' + 'con', 'x')",
    "fetch('/pri' + 'vate/x')",
    "fetch('http://127.0.0.1:{port}/in' + 'tranet')",
    "new Image().src = 'http://10.1.2.3/in' + 'tranet'",
    "new WebSocket('ws://' + location.host + '/so' + 'cket')",
    "new EventSource('/str' + 'eam')",
    "new Worker('/wor' + 'ker.js')",
    "document.body.insertAdjacentHTML('beforeend', `<iframe src=/fra${'me.h'}tml></iframe>`)",
    "document.body.appendChild(document.createElement('div')).attachShadow({mode: 'open'}).innerHTML = `<a href=/in-sha${'dow'}>a</a>`",
    "new Image().src = '/re' + 'direct.png'",
    "alert('stop'); link('after-al' + 'ert')",
)
PAGES = {
    "/": "<h1>Site</h1>",
    "/many": "<body><script>function link(to) { document.body.insertAdjacentHTML('beforeend', `<a href=/${to}>x</a>`) }</script>"
    + "".join(f"<script>{one}</script>" for one in MANY),
    "/tall": "<p style='height:4000px'>tall</p><img id=i loading=lazy><script>i.src = '/la' + 'zy.png';"
    " onscroll = () => fetch('/on-scr' + 'oll')</script>",
    "/prefetches": "<a href=/prefetched>x</a><script>fetch('/prefet' + 'ched')</script>",
    "/moves": "<script>location = '/mo' + 'ved'</script>",
    "/opens": "<b id=b></b><script>window.open('/op' + 'ened'); b.onclick = () => location = ['', 'cli', 'cked'].join('/')</script>",
}
FOUND = (
    "/from-script",
    "/from-data",
    "/from-elsewhere",
    "/moved",
    "/opened",
    "/in-frame",
    "/cli/cked",
    "/in-shadow",
    "/after-alert",
    "/from-menu.html",
)
LONG = "/long.png?v=" + "x" * 600
LATIN_1 = (
    f"<img src={LONG}><a href='/Größe?ö=1'>x</a><script>document.body.insertAdjacentHTML("
    "'beforeend', `<select><option value=/from-me${'nu.h'}tml></select>`)</script>"
)
OTHER_PAGES = {
    "/endless": "<script>let n = 0; setInterval(() => fetch('/ti' + 'ck?' + n++), 30)</script>",
    "/reloads": "<p>Again</p><script>location.reload()</script>",
}


@dataclass
class Harvested:
    site: Site
    folder: Path
    result: CrawlResult
    attached: dict[str, bytes]
    outlinks: dict[str, list[tuple[str, str]]]

    def asked(self, path: str) -> int:
        return sum(asked.target == path for asked in self.site.log)

    def line(self, path: str) -> dict[str, object]:
        url = path if path.startswith("http") else f"{HOST}{path}"
        (found,) = [line for line in lines(self.folder) if line["url"] == url]
        return found


def _fill(site: Site) -> None:
    links = "".join(f"<a href={path}>x</a>" for path in (*PAGES, "/latin-1", "/saved")) + "".join(
        f"<a href={OTHER}{path}>x</a>" for path in OTHER_PAGES
    )
    for path, body in {**PAGES, **OTHER_PAGES}.items():
        html = f"<link rel=stylesheet href=/all.css>{body.replace('{port}', str(site.port))}"
        site.page(path, html + links if path == "/" else html)
    site.page("/robots.txt", "User-agent: *\nDisallow: /private/\n", mime="text/plain")
    site.page("/all.css", "h1 {color: green}", mime="text/css")
    site.page("/prefetched", "<script>fetch('/of-prefet' + 'ched.json')</script>")
    site.page("/data.json", '{"a": "data"}', mime="application/json")
    site.page("/worker.js", "fetch('/of-wor' + 'ker.json')", mime="text/javascript")
    site.page(
        "/frame.html", "<body><script>document.body.innerHTML = `<a href=/in-fr${'ame'}>a</a>`</script>"
    )
    site.page("/latin-1", LATIN_1.encode("latin-1"), mime="text/html; charset=iso-8859-1")
    site.page("/saved", "<p>A file</p>", Content_Disposition="attachment; filename=x.html")
    site.page("/redirect.png", "", status="302 Found", Location="/arrived.png")
    for path in ("/pic.png", "/lazy.png", "/arrived.png", "/long.png"):
        site.page(path, PNG, mime="image/png")
    for path in FOUND:
        site.page(path, path, mime="text/plain")
    for path in ("/on-scroll", "/of-worker.json", "/of-prefetched.json", "/posted", "/beacon", "/intranet"):
        site.page(path, "{}", mime="application/json")
    site.page("api.example/data", "elsewhere", mime="text/plain", Access_Control_Allow_Origin="*")
    site.page("api.example/robots.txt", "", mime="text/plain")
    site.page(
        "app.example/",
        "<div id=root></div><script>document.body.append('Full of words'); fetch('/of-a' + 'pp')</script>",
    )
    site.page("app.example/of-app", "{}", mime="application/json")
    site.page("plain.example/", "<p>Plain</p><script>fetch('/of-pl' + 'ain')</script>")
    site.page("full.example/", f"<p>{'Many words. ' * 60}</p><script>fetch('/of-fu' + 'll')</script>")
    site.page("auto.example/", f"<p>{'Many words. ' * 60}</p>")

    site.fallback = lambda asked: (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" if asked.path == "/tick" else None
    )


def _renderers() -> list[int]:
    """Processes of tabs that this very process has started, by way of a supervisor."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                commands[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:
                continue
    ours, grown = {os.getpid()}, 0
    while grown != len(ours):
        grown = len(ours)
        ours |= {number for number, parent in parents.items() if parent in ours}
    return [number for number in ours if b"--type=renderer" in commands.get(number, b"")]


@pytest.fixture(scope="module")
def harvested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harvested]:
    folder = tmp_path_factory.mktemp("browser")
    keepers: list[FileKeeper] = []

    def keeper(where: Path, marks: dict[str, int]) -> FileKeeper:
        keepers.append(FileKeeper(where, marks))
        return keepers[0]

    ways = {
        "plain.example": Fetching.PLAIN,
        "app.example": Fetching.WHEN_EMPTY,
        "full.example": Fetching.WHEN_EMPTY,
        "auto.example": Fetching.AUTO,
    }
    with running_site() as site:
        _fill(site)
        hosts = ["www.site.example", "other.site.example", "api.example", *ways]
        result = run(
            folder,
            [f"{HOST}/", *(f"http://{host}/" for host in ways)],
            connect_to=dict.fromkeys(hosts, f"127.0.0.1:{site.port}"),
            allow_private=False,
            keeper_of=keeper,
            browser=lambda: Browser(CHROMIUM, sandbox=False, tabs=2, agent="Webdepot/1 (test)"),
            fetch=Fetching.BROWSER,
            screenshots=Screenshots.SEEDS,
            behaviours=frozenset({"scroll", "play", "click"}),
            page_time_s=4.0,
            scope=ScopeKind.DOMAIN,
            of_host=lambda host: HostSettings(fetch=ways.get(host)),
        )
        yield Harvested(site, folder, result, keepers[0].attached, keepers[0].outlinks)


PARTS = (
    "/pic.png",
    "/data.json",
    "/lazy.png",
    "/on-scroll",
    "/worker.js",
    "/of-worker.json",
    "/frame.html",
    "/redirect.png",
    "/arrived.png",
    LONG,
)


@pytest.mark.parametrize("path", [*FOUND, *PARTS])
def test_what_only_a_browser_finds_is_asked_once_and_kept(harvested: Harvested, path: str):
    assert harvested.asked(path) == 1
    assert kept(harvested.folder).count(f"{HOST}{path}") == 1


def test_what_servers_saw_is_what_was_kept(harvested: Harvested):
    """Nothing reaches a server unrecorded; but for the one question for a page that cannot be there."""
    probes = {line["url"] for line in lines(harvested.folder) if "soft404Probe" in str(line["note"])}
    seen = {f"http://{asked.host}{asked.target}" for asked in harvested.site.log}
    assert seen - probes == set(kept(harvested.folder))


def test_a_part_of_all_pages_is_asked_once(harvested: Harvested):
    assert harvested.asked("/all.css") == 2, "once at each host"
    assert (
        len(
            [
                asked
                for asked in harvested.site.log
                if asked.target == "/robots.txt" and asked.host == "www.site.example"
            ]
        )
        == 1
    )


def test_addresses_are_in_the_encoding_of_their_page(harvested: Harvested):
    assert [asked.target for asked in harvested.site.log if asked.target.startswith("/Gr")] == [
        "/Gr%C3%B6%C3%9Fe?%F6=1"
    ]


def test_parts_are_parts_of_their_page(harvested: Harvested):
    data = harvested.line("/data.json")
    assert (data["via"], data["path"], data["note"]) == (f"{HOST}/many", "LE", "browser")
    assert (
        harvested.line("/arrived.png")["path"] == "LER"
        and harvested.line("/arrived.png")["via"] == f"{HOST}/redirect.png"
    )
    assert harvested.line("/moved")["path"] == "LR"
    assert (f"{HOST}/data.json", "E") in harvested.outlinks[f"{HOST}/many"]


def test_nothing_is_sent(harvested: Harvested):
    assert harvested.asked("/posted") == harvested.asked("/beacon") == 0
    for address, method in ((f"{HOST}/posted", "POST"), ("http://api.example/posted", "PUT")):
        line = harvested.line(address)
        assert (line["status"], line["rule"]) == (-5000, "browser") and str(line["reason"]).startswith(
            f"{method} is not sent"
        )


def test_robots_txt_is_obeyed(harvested: Harvested):
    assert harvested.asked("/private/x") == 0
    assert harvested.line("/private/x")["status"] == -9998


def test_no_private_address_is_reached(harvested: Harvested):
    assert harvested.asked("/intranet") == 0
    assert harvested.line(f"http://127.0.0.1:{harvested.site.port}/intranet")["status"] == -5001
    assert harvested.line("http://10.1.2.3/intranet")["status"] == -5001


def test_lines_that_stay_open_are_refused_and_counted(harvested: Harvested):
    assert harvested.asked("/socket") == harvested.asked("/stream") == 0
    assert harvested.line("/socket")["rule"] == harvested.line("/stream")["rule"] == "browser"


def test_a_page_that_never_stops_ends(harvested: Harvested):
    assert 0 < sum(asked.path == "/tick" for asked in harvested.site.log) <= 100
    assert "browserFailed" not in str(harvested.line(f"{OTHER}/endless")["note"])


def test_a_page_that_always_loads_itself_again_is_read(harvested: Harvested):
    assert harvested.line(f"{OTHER}/reloads")["note"] == "browser"


def test_a_page_that_browsers_save_as_a_file_is_not_opened(harvested: Harvested):
    assert harvested.line("/saved")["note"] == ""


def test_a_page_that_another_one_fetched_is_opened_itself(harvested: Harvested):
    assert harvested.asked("/prefetched") == 2 and harvested.asked("/of-prefetched.json") == 1


def _signals(site: Site, number: signal.Signals) -> Answer:
    async def answer(writer: asyncio.StreamWriter, asked: Asked) -> None:
        # Once: what gets no answer is asked again, perhaps when the next page is open.
        if sum(each.path == asked.path for each in site.log) == 1:
            for process in _renderers():
                os.kill(process, number)
        writer.close()

    return answer


def test_a_tab_that_crashes_after_a_click_costs_only_the_clicks(site: Site, tmp_path: Path):
    site.page(
        "/",
        "<p id=text></p><button onclick=\"fetch('/cra' + 'sh')\">More</button><script>text.append('Tides')</script>",
    )
    site.answers["/crash"] = _signals(site, signal.SIGKILL)
    result = run(
        tmp_path,
        [f"{site.url}/"],
        browser=lambda: Browser(CHROMIUM, sandbox=False, tabs=1, agent="Webdepot/1"),
        fetch=Fetching.BROWSER,
        screenshots=Screenshots.NONE,
        page_time_s=20.0,
    )
    notes = {str(line["url"]).removeprefix(site.url): str(line["note"]) for line in lines(tmp_path)}
    assert notes["/"] == "browser,clicksFailed:its tab crashed"
    assert (result.counts["opened"], result.counts.get("unopened", 0)) == (1, 0)


def test_a_page_is_opened_again_if_a_tab_crashes_that_showed_other_pages(site: Site, tmp_path: Path):
    site.page("/", "<a href=/later>x</a>")
    site.page(
        "/later", "<p id=text></p><script>fetch('/cra' + 'sh').catch(() => text.append('Tides'))</script>"
    )
    site.answers["/crash"] = _signals(site, signal.SIGKILL)
    result = run(
        tmp_path,
        [f"{site.url}/"],
        browser=lambda: Browser(CHROMIUM, sandbox=False, tabs=1, agent="Webdepot/1"),
        fetch=Fetching.BROWSER,
        screenshots=Screenshots.NONE,
        page_time_s=20.0,
    )
    assert (result.counts["opened"], result.counts.get("unopened", 0)) == (2, 0)


def test_a_tab_that_crashes_or_hangs_costs_only_its_sight_and_limits_hold(site: Site, tmp_path: Path):
    site.page("/", "<a href=/hangs>x</a><a href=/after>x</a><script>fetch('/cra' + 'sh')</script>")
    site.page("/hangs", "<img src=/part-of-hangs.png><script>fetch('/ha' + 'ng')</script>")
    site.page("/after", "<script>for (let n = 0; n < 9; n++) fetch('/da' + 'ta?' + n)</script>")
    site.page("/part-of-hangs.png", PNG, mime="image/png")
    site.fallback = lambda asked: (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" if asked.path == "/data" else None
    )

    site.answers |= {"/crash": _signals(site, signal.SIGKILL), "/hang": _signals(site, signal.SIGSTOP)}
    result = run(
        tmp_path,
        [f"{site.url}/"],
        browser=lambda: Browser(CHROMIUM, sandbox=False, tabs=1, agent="Webdepot/1", call_s=4.0),
        fetch=Fetching.BROWSER,
        screenshots=Screenshots.NONE,
        page_time_s=2.0,
        limit_documents=7,
    )
    notes = {str(line["url"]).removeprefix(site.url): str(line["note"]) for line in lines(tmp_path)}
    assert notes["/"] == "browserFailed:its tab crashed"
    assert notes["/hangs"].startswith("browserFailed:it stopped responding")
    assert notes["/after"] == "browser" and f"{site.url}/part-of-hangs.png" in kept(tmp_path)
    assert (result.end, result.counts["fetched"], result.counts["unopened"], result.counts["opened"]) == (
        "limit of documents",
        7,
        2,
        1,
    )


def test_routes_with_one_shell_keep_their_links_and_missing_ones_do_not(site: Site, tmp_path: Path):
    """Every route answers with the same HTML, as does an address that cannot exist: what the browser shows
    decides. The host of classic pages, which the browser changes nothing about, still has its soft 404.
    """
    shell = (
        "<div id=root></div><script>const n = Number(location.pathname.split('/').pop());"
        "document.body.insertAdjacentHTML('beforeend', n ? `<h1>Ship of the fleet</h1>"
        "<a href=/ship/${n + 1}>the next ship</a>` : '<p>Welcome aboard')</script>"
    )
    site.page("app.example/", f"{shell}<script>const first = './ship/1'</script>")
    site.page("classic.example/", "<p>Front page<script>const first = './thing'</script>")
    sorry = "<p>There is nothing here yet, sorry.<a href=more/>more</a>"
    site.fallback = lambda asked: (
        whole(shell if asked.host == "app.example" else sorry)
        if asked.path.count("/") < 3 and not asked.path.endswith(("/4", ".txt"))
        else None
    )
    hosts = ("app.example", "classic.example")
    run(
        tmp_path,
        [f"http://{host}/" for host in hosts],
        connect_to=dict.fromkeys(hosts, f"127.0.0.1:{site.port}"),
        browser=lambda: Browser(CHROMIUM, sandbox=False, tabs=1, agent="Webdepot/1 (test)"),
        fetch=Fetching.BROWSER,
        behaviours=frozenset(),
        page_time_s=4.0,
        links=LinkLimits(guess=True),
    )
    notes = {str(line["url"]): str(line["note"]) for line in lines(tmp_path)}
    assert sum(note == "soft404Probe" for note in notes.values()) == 2
    assert [notes[f"http://app.example/ship/{number}"] for number in (1, 2, 3)] == ["browser"] * 3
    assert "http://app.example/ship/4" in kept(tmp_path)
    assert notes["http://classic.example/thing"] == "soft404,browser"
    assert not any(url.endswith("more/") for url in notes)


def test_scripts_send_their_own_headers_and_our_name(harvested: Harvested):
    (asked,) = [
        asked for asked in harvested.site.log if asked.host == "api.example" and asked.path == "/data"
    ]
    head = asked.raw.decode().lower()
    assert (
        "x-asked-by: a script" in head
        and f"origin: {HOST}" in head
        and "user-agent: webdepot/1 (test)" in head
    )
    assert "cookie:" not in head and "range:" not in head


def test_pictures_and_texts_of_seeds(harvested: Harvested):
    pictures = {name for name in harvested.attached if name.startswith("urn:view:")}
    # Start pages that need no browser are opened for their picture, unless only empty pages are to be opened.
    assert pictures == {f"urn:view:{HOST}/", "urn:view:http://app.example/", "urn:view:http://auto.example/"}
    assert harvested.result.end == "finished" and "unopened" not in harvested.result.counts
    assert all(harvested.attached[name].startswith(b"\x89PNG") for name in pictures)
    last = {f"urn:view:{each.url}": each.number for each in last_pictures.read(harvested.folder)}
    assert last.keys() == pictures, "people who watch see them"
    assert all(last_pictures.find(harvested.folder, last[name]) == harvested.attached[name] for name in last)
    assert harvested.attached["urn:text:http://app.example/"].decode().strip() == "Full of words"


def test_a_host_may_be_plain_or_opened_where_its_pages_are_empty(harvested: Harvested):
    assert harvested.asked("/of-app") == 1
    assert harvested.asked("/of-plain") == harvested.asked("/of-full") == 0


def test_nothing_of_the_browser_is_left(harvested: Harvested):
    assert _renderers() == []
