"""Pages that never come to an end in a real Chromium: each costs little, is read as far as that is possible, and
the crawl ends by itself. See `test_browser_harvest` for endless requests, reloads, crashes and hangs.
"""

import asyncio
import itertools
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from harvest_crawl import FileKeeper, lines, run
from harvest_site import Site, whole

from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.browser.devtools import CALL_S
from webdepot.harvest.browser.endless import MOST_DIALOGS, MOST_ROUTES, MOST_WINDOWS
from webdepot.harvest.browser.page_opener import MOST_ASKED
from webdepot.harvest.fetch.fetch_mode import Fetching, Screenshots
from webdepot.harvest.report.result import CrawlProgress, CrawlResult, End
from webdepot.harvest.scope import mazes, software_rules

pytestmark = pytest.mark.browser
CHROMIUM = Path("/usr/bin/chromium")
ALERTS = "<p>Before<script>while (true) alert('again')</script><p>After"
TIMED_ALERTS = "<p>Before<script>setInterval(() => confirm('again'), 1)</script><p>After"
ROUTES = """<h1>Ships</h1><button onclick="fetch('/cli' + 'cked')">More</button><script>
setInterval(() => history.pushState({}, '', '/ship/' + Math.random().toString(36).slice(2)), 20)</script>"""
SLOW_ROUTES = """<h1>Ships</h1><script>const name = Math.random().toString(36).slice(2);
history.pushState({}, '', '/ship/' + name); document.body.append('The ship ' + name)</script>"""
WINDOWS = "<p>Before<script>setInterval(() => open('/window/' + Math.random()), 1)</script>"
EMPTY_WINDOWS = """<p>Before<script>setInterval(() => {
const other = open(''); if (other) other.document.write('<scri' + 'pt>setInterval(() => open(""), 20)</scri' + 'pt>')
}, 20)</script>"""

LEAVING = """<p>Before<script>
setInterval(() => { location = '/room/' + Math.random().toString(36).slice(2) }, 300)</script>"""
FRAMES = "<p>Before<iframe src='/frame/left-NUMBER'></iframe><iframe src='/frame/right-NUMBER'></iframe>"
BUSY = "<p>Before<script>fetch('/begun'); setTimeout(() => { while (true); }, 200)</script>"
GREEDY = """<p>Before<script>const held = [];
try { while (held.length < 80) held.push(new Uint8Array(1e8)) } catch { document.body.append(' full') }</script>"""


@dataclass
class Crawled:
    result: CrawlResult
    notes: dict[str, str]
    texts: dict[str, str]


def crawl(site: Site, folder: Path, page: str) -> Crawled:
    """Crawl a site whose addresses all show the same page, without any limit; NUMBER is another one each
    time.
    """
    numbers = itertools.count(1000)
    site.page("/robots.txt", "", mime="text/plain")
    site.fallback = lambda asked: whole(page.replace("NUMBER", str(next(numbers))))
    keepers: list[FileKeeper] = []

    def keeper(where: Path, marks: dict[str, int]) -> FileKeeper:
        keepers.append(FileKeeper(where, marks))
        return keepers[-1]

    result = run(
        folder,
        [f"{site.url}/"],
        browser=lambda: Browser(CHROMIUM, sandbox=False, tabs=2, agent="Webdepot/1"),
        fetch=Fetching.BROWSER,
        screenshots=Screenshots.NONE,
        page_time_s=4.0,
        software=software_rules.of_package(),
        keeper_of=keeper,
    )
    notes = {str(line["url"]).removeprefix(site.url): str(line["note"]) for line in lines(folder)}
    texts = {
        name.removeprefix(f"urn:text:{site.url}"): data.decode() for name, data in keepers[0].attached.items()
    }
    return Crawled(result=result, notes=notes, texts=texts)


@pytest.mark.parametrize("page", [ALERTS, TIMED_ALERTS])
def test_dialogs_without_end_cost_the_scripts_but_not_the_page(site: Site, tmp_path: Path, page: str):
    crawled = crawl(site, tmp_path, page)
    assert crawled.notes["/"] == f"browser,clicksFailed:its scripts were stopped after {MOST_DIALOGS} dialogs"
    assert crawled.texts["/"].split() == ["Before", "After"]
    assert crawled.result.end is End.FINISHED and not crawled.result.waiting


def test_addresses_that_a_page_sets_on_a_timer_are_not_pages(site: Site, tmp_path: Path):
    crawled = crawl(site, tmp_path, ROUTES)
    assert f"{MOST_ROUTES} without a click" in crawled.notes["/"]
    assert crawled.texts["/"].startswith("Ships")
    assert [asked.path for asked in site.log] == ["/robots.txt", "/"]
    assert crawled.result.end is End.FINISHED and not crawled.result.waiting


@pytest.mark.parametrize("page", [SLOW_ROUTES, LEAVING, FRAMES])
def test_a_site_whose_pages_lead_to_ever_new_addresses_is_a_maze(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
):
    """Each page sets an address for itself, tries to leave, or has new frames. Fewer pages than usual are enough
    here.
    """
    monkeypatch.setattr(mazes, "SUSPECTED", 8)
    monkeypatch.setattr(mazes, "ALIKE", 4)
    monkeypatch.setattr(mazes, "MOST_SAMPLES", 0)
    crawled = crawl(site, tmp_path, page)
    assert crawled.result.counts["left_out_mazes"] > 0
    assert 8 < crawled.result.counts["fetched"] < MOST_ASKED + 100
    assert crawled.result.end is End.FINISHED and not crawled.result.waiting


@pytest.mark.parametrize("page", [WINDOWS, EMPTY_WINDOWS])
def test_windows_without_end_are_closed(site: Site, tmp_path: Path, page: str):
    crawled = crawl(site, tmp_path, page)
    assert crawled.texts["/"].startswith("Before")
    assert crawled.notes["/"] == f"browser,clicksFailed:it opened {MOST_WINDOWS} windows"
    assert [asked.path for asked in site.log] == ["/robots.txt", "/"]


def test_a_page_that_wants_eight_gigabytes_does_not_get_them(site: Site, tmp_path: Path):
    crawled = crawl(site, tmp_path, GREEDY)
    assert crawled.texts["/"].split() == ["Before", "full"] and crawled.notes["/"] == "browser"


def test_a_stop_does_not_wait_for_a_page_whose_script_never_ends(site: Site, tmp_path: Path):
    """The browser does not answer calls about such a page: closing its tab took as long as a call may take."""
    site.page("/", BUSY)
    site.page("/begun", "", mime="text/plain")
    stopped_s: list[float] = []

    def stop_when_busy(progress: CrawlProgress, stop: asyncio.Event) -> None:
        if progress.opened and any(asked.path == "/begun" for asked in site.log) and not stopped_s:
            asyncio.get_running_loop().call_later(1.0, stop.set)
            stopped_s.append(time.monotonic() + 1.0)

    browser = partial(Browser, CHROMIUM, sandbox=False, tabs=2, agent="Webdepot/1")
    settings = {"fetch": Fetching.BROWSER, "screenshots": Screenshots.NONE, "progress_s": 0.1}
    result = run(tmp_path, [f"{site.url}/"], browser=browser, on_progress=stop_when_busy, **settings)
    assert time.monotonic() - stopped_s[0] < CALL_S / 2
    assert result.end is End.STOPPED and result.counts["waiting"] == 1
    site.page("/", "<p>Before")
    resumed = run(tmp_path, [f"{site.url}/"], browser=browser, **settings)
    assert resumed.end is End.FINISHED and resumed.counts["opened"] == 1
