"""How a page is opened in the browser, and what is read from it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from webdepot.harvest.browser.devtools import (
    CALL_S,
)
from webdepot.harvest.browser.exploration import (
    ClickMemory,
)
from webdepot.harvest.fetch.fetch_mode import BEHAVIOURS
from webdepot.url import LONGEST_URL

MOST_NOTED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """How to open a page."""

    url: str
    referrer: str = ""
    page_time_s: float = 60.0
    longest_s: float = 600.0
    """Time limit including the time to answer its requests."""
    call_s: float = CALL_S
    behaviours: frozenset[str] = frozenset(BEHAVIOURS)
    memory: ClickMemory = field(default_factory=ClickMemory)
    """What clicks have shown on earlier pages of the crawl."""
    may_follow: Callable[[str], bool] = lambda address: True
    """Whether the crawl would follow a link to an address; other links are not clicked."""
    picture: bool = False
    agent: str = ""
    in_new_tab: bool = False
    """Whether to use a new tab, not one that has shown other pages."""


@dataclass(slots=True)
class PageSnapshot:
    """The content of a page, as the browser has it."""

    frames: dict[str, str] = field(default_factory=dict)
    """HTML by address; the page itself is first."""
    encodings: dict[str, str] = field(default_factory=dict)
    """Encodings of the frames by address: browsers use them to encode links."""
    text: str = ""
    title: str = ""
    picture: bytes = b""
    picture_mime: str = ""
    moves: list[str] = field(default_factory=list)
    """Addresses to which the page tried to navigate."""
    windows: list[str] = field(default_factory=list)
    """Addresses that it tried to open in a window, or after a click."""
    routes: list[str] = field(default_factory=list)
    """Addresses that it set for itself, without a request (history API)."""
    sockets: list[str] = field(default_factory=list)
    """Addresses of WebSockets and the like, which are not connected."""
    failure: str = ""
    """Why the page could not be opened or read completely; empty if there was no failure."""
    click_failure: str = ""
    """Why clicking ended early; the page itself was read before."""
    must_restart: bool = False
    """The browser is no longer reliable."""
    must_repeat: bool = False
    """Its tab crashed, but had shown other pages before: Chromium sometimes crashes at a later one."""


def note_address(noted: list[str], url: str) -> None:
    if url and len(url) <= LONGEST_URL and len(noted) < MOST_NOTED and url not in noted:
        noted.append(url)
