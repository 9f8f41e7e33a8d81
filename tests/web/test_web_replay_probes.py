"""Fidelity and leaks: a site of probes is harvested by our harvester, goes offline, and is replayed in a
real browser.

Each group is one page. `BEYOND_THE_WORKER` lists what the replay worker (wabac.js) itself cannot do, with the
reason; the test fails as well when one of those begins to work, so that the list stays true. Everything that
the browser sends elsewhere than to loopback meets a proxy that notes and refuses it, and what it sends by UDP
meets a socket that does the same.
"""

import re
import socket
import threading
from collections.abc import Iterator

import pytest
from leaks import Leaks, launched
from museum import Served, serving
from playwright.sync_api import Browser, FrameLocator, Page, expect
from probe_site import GROUPS, HOST, OTHER, harvested

pytestmark = pytest.mark.browser
BEYOND_THE_WORKER = {
    "script: Function": "code made by `new Function` is not rewritten: its `location` is the browser's own",
    "worker: address": "workers see the address they are replayed under",
    "storage: caches": "what a page puts into a cache of its own is not found again",
}


class Datagrams:
    """A UDP socket that records its callers: peer connections and QUIC do not use a proxy."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.2)
        self.port: int = self.socket.getsockname()[1]
        self.came: list[bytes] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._listen)

    def _listen(self) -> None:
        while not self.stop.is_set():
            try:
                self.came.append(self.socket.recv(2000)[:20])
            except TimeoutError:
                continue

    def __enter__(self) -> "Datagrams":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()
        self.socket.close()


@pytest.fixture(scope="module")
def datagrams() -> Iterator[Datagrams]:
    with Datagrams() as listening:
        yield listening


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory, datagrams: Datagrams) -> Iterator[Served]:
    home = harvested(tmp_path_factory.mktemp("probe") / "home", udp_port=datagrams.port)
    with serving(home) as running:
        yield running


@pytest.fixture(scope="module")
def leaks() -> Iterator[Leaks]:
    with Leaks.listening() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def browser(leaks: Leaks, probed: Served) -> Iterator[Browser]:
    """After the harvest: while a browser is controlled, its event loop runs in this thread, and there can be
    no other.
    """
    with launched(leaks) as made:
        yield made


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    made = context.new_page()
    refused: list[str] = []
    made.on("console", lambda said: refused.append(said.text) if "Unrecognized" in said.text else None)
    yield made
    context.close()
    assert refused == [], "the browser does not know a part of our policy"


def open_group(page: Page, served: Served, group: str) -> dict[str, str]:
    """Replay the page of a group to its end; returns the results of its probes."""
    page.goto(f"{served.portal}/all/2100/http://{HOST}/{group}.html")
    expect(page.frame_locator("#frame").locator("html[data-done]")).to_be_attached(timeout=40_000)
    told: dict[str, str] = page.frames[1].evaluate("told")
    return told


@pytest.mark.parametrize("group", GROUPS)
def test_mechanisms_of_the_web_work_in_replay(page: Page, probed: Served, leaks: Leaks, group: str):
    told = open_group(page, probed, group)
    failed = {name: words for name, words in told.items() if words != "ok"}
    beyond = {name for name in BEYOND_THE_WORKER if name in told}
    assert set(failed) == beyond, failed
    assert len(told) >= GROUPS[group]
    assert not [line for line in leaks.asked if ".example" in line], leaks.asked


def test_no_way_out_of_an_archived_page(page: Page, probed: Served, leaks: Leaks, datagrams: Datagrams):
    open_group(page, probed, "escapes")
    archived = page.frames[1]
    made = archived.evaluate("made")
    assert len(made) >= 28
    # Most attempts were turned into requests to the archive; the banner counts the others.
    expect(page.locator(".blocked")).to_be_visible()
    assert "session" not in archived.evaluate("document.cookie")
    archived.evaluate("leave()")
    expect(page.get_by_role("heading", level=1)).to_have_text("This address is not in the archive")
    assert page.url.startswith(probed.frame), "the top frame was moved"
    assert len(page.context.pages) == 1
    assert not [line for line in leaks.asked if "live.example" in line or OTHER in line or HOST in line], (
        leaks.asked
    )
    assert datagrams.came == [], "something left by UDP"


def open_page(page: Page, served: Served, path: str) -> FrameLocator:
    page.goto(f"{served.portal}/all/2100/http://{HOST}{path}")
    return page.frame_locator("#frame")


def expect_page(shown: FrameLocator, heading: str, query: str = "") -> None:
    """A page of the old site, asked for with this query."""
    expect(shown.locator("h1")).to_have_text(heading, timeout=40_000)
    expect(shown.locator("#asked")).to_have_text(query)


def test_links_between_frames_lead_to_the_frame_they_name(page: Page, probed: Served, leaks: Leaks):
    inside = open_page(page, probed, "/old/index.html")
    menu, main = (inside.frame_locator(f"frame[name={name}]") for name in ("menu", "main"))
    expect_page(main, "start")
    menu.locator("#named").click()
    expect_page(main, "one")
    menu.locator("#ask").click()
    expect_page(main, "found", "?q=clock&b=go")
    menu.locator("select").select_option("bell")
    expect_page(main, "found", "?q=bell")
    page.evaluate("history.back()")
    expect_page(main, "found", "?q=clock&b=go")
    menu.locator("#open").click()
    expect_page(main, "one", "?opened")
    menu.locator("#set").click()
    expect_page(main, "one", "?set")
    menu.locator("#nested").click()
    upper, lower = (main.frame_locator(f"frame[name={name}]") for name in ("upper", "lower"))
    expect_page(lower, "start", "?lower")
    upper.locator("#sibling").click()
    expect_page(lower, "one", "?lower")
    upper.locator("#menu").click()
    menu.locator("#based").click()
    expect_page(main, "one", "?based")
    menu.locator("#self").click()
    menu.locator("#nested").click()
    expect_page(lower, "start", "?lower")
    upper.locator("#up").click()
    expect_page(main, "one", "?up")
    expect(page.locator(".page-address")).to_have_text(f"http://{HOST}/old/index.html")
    assert not [line for line in leaks.asked if ".example" in line], leaks.asked


def test_links_out_of_a_frameset_open_in_the_frame_of_the_archive(page: Page, probed: Served):
    for link, query in (("whole", ""), ("around", "?parent"), ("window", "?window"), ("fresh", "?blank")):
        inside = open_page(page, probed, "/old/index.html")
        inside.frame_locator("frame[name=menu]").locator(f"#{link}").click()
        expect_page(inside, "two", query)
        expect(page.locator(".page-address")).to_have_text(f"http://{HOST}/old/two.html{query}")
    assert len(page.context.pages) == 1


def test_the_banner_follows_navigation_inside_the_page(browser: Browser, probed: Served):
    """An address that scripts write without loading a page moves banner, address and citation."""
    page = browser.new_page(device_scale_factor=1.5)
    inside = open_page(page, probed, "/app/")
    address, link = page.locator(".page-address"), page.get_by_label("Link to this version")
    expect(inside.locator("h1")).to_have_text("ships", timeout=40_000)
    archived = page.frames[1]
    assert archived.evaluate("devicePixelRatio") == 1.5
    archived.evaluate("window.isTheSame = true")

    def expect_route(path: str, title: str) -> None:
        expect(address).to_have_text(f"http://{HOST}{path}")
        expect(page.locator(".page-title")).to_have_text(title)
        expect(link).to_have_value(f"{probed.portal}/all/{page.url.partition('/all/')[2]}")
        assert page.url.endswith(f"/http://{HOST}{path}")

    inside.locator("#ballast").click()
    expect_route("/app/ballast", "Ship ballast")
    expect(page.locator(".unkept")).to_be_hidden()
    inside.locator("#unkept").click()
    # An error, or nothing at all, was captured there: the banner stays that of a page that can be cited.
    expect(page.locator(".unkept")).to_contain_text(f"http://{HOST}/app/never-kept")
    expect_route("/app/ballast", "Ship never-kept")
    page.evaluate("history.back()")
    expect(page.locator(".unkept")).to_be_hidden()
    expect_route("/app/ballast", "Ship ballast")
    page.evaluate("history.back()")
    expect_route("/app/", "Ship ships")
    page.evaluate("history.forward()")
    expect_route("/app/ballast", "Ship ballast")
    assert archived.evaluate("isTheSame"), "the page was loaded again"
    page.reload()
    expect(inside.locator("h1")).to_have_text("ballast", timeout=40_000)
    page.context.close()


def test_feeds_and_xml_can_be_read(page: Page, probed: Served):
    for path, title, words, leads_to in (
        ("/feed.rss", "News & clocks", "Words of it all", "one"),
        ("/feed.atom", "Atoms", "Second entry", "two"),
        ("/tree.xml", "shelf", '<book id="a">Clocks</book>', "one"),
    ):
        inside = open_page(page, probed, path)
        expect(inside.locator("body")).to_contain_text(words, timeout=40_000)
        expect(page.locator(".page-title")).to_have_text(title)
        inside.locator(f"a[href$='/old/{leads_to}.html']").click()
        expect_page(inside, leads_to)


def test_a_page_that_was_archived_without_a_query_is_offered(page: Page, probed: Served):
    """Its own scripts read the query, as on a search page in the browser."""
    inside = open_page(page, probed, "/searching.html")
    inside.locator("input").fill("clock & bell")
    inside.locator("button").click()
    expect(inside.locator("h1")).to_have_text("Not in the archive", timeout=40_000)
    inside.get_by_role("link", name=f"Open http://{HOST}/searching.html").click()
    expect(inside.locator("#result")).to_have_text("Found 3 times: clock & bell")
    expect(page.locator(".page-address")).to_have_text(f"http://{HOST}/searching.html")
    page.goto(f"{probed.portal}/all/2100/http://{HOST}/searching.html?q=tower")
    page.get_by_role("link", name=f"Open http://{HOST}/searching.html").click()
    expect(inside.locator("#result")).to_have_text("Found 3 times: tower", timeout=40_000)
    page.goto(f"{probed.portal}/all/2100/http://{HOST}/nowhere.html?q=tower")
    expect(page.get_by_role("link", name="Open http")).to_have_count(0)
    page.goto(f"{probed.portal}/all/2100/http://{HOST}/framed.html?q=clock&page=2")
    offered = page.get_by_role("link", name=f"Open http://{HOST}/framed.html?q=clock", exact=True)
    expect(offered).to_have_attribute("href", re.compile(r"/framed\.html\?q=clock\Z"))
