"""What the steps of a crawl hand each other: an answer that has arrived, what its keeper says of it, and what
is counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from webdepot.container.http import HttpHead
from webdepot.harvest.links.extract import Extracted
from webdepot.model import Verdict, Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the keeper says of a visit it has stored."""

    digest: str
    """Labelled payload digest."""
    size_bytes: int
    duplicate: bool
    repeated: bool = False
    """This very harvest has kept the same payload before, of the same host."""


_NO_HEAD = HttpHead(version="", status=0, reason="", headers=())
_NOT_KEPT = Kept(digest="", size_bytes=0, duplicate=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """Something made of a page by us, to be kept beside it: a picture, its text."""

    url: str
    """Its name: `urn:view:ADDRESS`."""
    mime: str
    data: bytes


class Keeper(Protocol):
    """Stores visits; the service has it on a container writer. NoSpace ends the crawl."""

    def keep(self, visit: Visit) -> Kept: ...

    def attach(self, visit: Visit, attached: Sequence[Attached]) -> None:
        """What belongs to a visit that was kept and is not annotated yet."""

    def annotate(self, visit: Visit, outlinks: Sequence[tuple[str, str]]) -> None:
        """What was found in a visit that was kept: addresses with their hop."""

    def checkpoint(self) -> Mapping[str, int]:
        """Make everything kept durable; file name -> acknowledged size."""


@dataclass(slots=True, kw_only=True)
class Arrived:
    """An answer or a failure that waits to be settled, and what is known of it by then."""

    visit: Visit
    origin: str
    """Scheme, host and port of its address."""
    asked_by: Verdict
    found: Extracted | None
    head: HttpHead = _NO_HEAD
    mime: str = ""
    kept: Kept = _NOT_KEPT
    is_part: bool = False
    """Asked for by a page in the browser: the frontier did not hand it out."""
    attached: Sequence[Attached] = ()
    note: str = ""
    """A further annotation for the log."""


@dataclass(slots=True)
class Totals:
    """Counted over all runs of a harvest; kept with the frontier."""

    fetched: int = 0
    good: int = 0
    """Pages with 2xx and a body."""
    bytes: int = 0
    errors: int = 0
    robots_refused: int = 0
    duplicates: int = 0
    elapsed_s: float = 0.0
    opened: int = 0
    """Pages opened in the browser."""
    unopened: int = 0
    """Pages of which the browser saw nothing, or not all."""
    screenshots: int = 0
