"""Fidelity and leaks: a site of probes is harvested by our harvester, goes off line, and is replayed in a
real browser.

Each group is one page. `BEYOND_THE_WORKER` lists what the replay worker (wabac.js) itself cannot do, with the
reason; the test fails as well when one of those begins to work, so that the list stays true. Everything that
the browser sends elsewhere than to loopback meets a proxy that notes and refuses it, and what it sends by UDP
meets a socket that does the same.
"""

import socket
import threading
from collections.abc import Iterator

import pytest
from leaks import Leaks, launched
from museum import Served, serving
from playwright.sync_api import Browser, Page, expect
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
    yield context.new_page()
    context.close()


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
