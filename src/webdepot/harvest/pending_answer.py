"""An answer between the fetcher and the log, and the interface that stores it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from webdepot.container.http import HttpHead
from webdepot.container.new_records import NewRecord
from webdepot.harvest.links.extract import Extracted
from webdepot.harvest.politeness import pauses
from webdepot.model import Failure, Verdict, Visit

_TEMPORARY = frozenset({Failure.DNS, Failure.CONNECT, Failure.TIMEOUT, Failure.DISCONNECT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The result of `Keeper.keep` for one visit."""

    digest: str
    """Labelled payload digest."""
    duplicate: bool
    records: Sequence[NewRecord] = ()
    """Its prepared records, which `Keeper.write` writes together with those of links and attachments."""


NO_HEAD = HttpHead(version="", status=0, reason="", headers=())
_NOT_KEPT = Kept(digest="", duplicate=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """A record derived from a page and stored with it: its screenshot or its text."""

    url: str
    """Its name: `urn:view:URL`."""
    mime: str
    data: bytes
    title: str = ""
    """The title of the page, as the browser showed it."""


class Keeper(Protocol):
    """Stores visits; the service implements it with a container writer. NoSpace ends the crawl."""

    def keep(self, visits: Sequence[Visit]) -> Sequence[Kept]:
        """Compare the payloads with those kept before, and prepare the records of each visit."""

    def write(
        self,
        visit: Visit,
        kept: Kept,
        *,
        outlinks: Sequence[tuple[str, str]] = (),
        attached: Sequence[Attached] = (),
    ) -> None:
        """Store a visit with the links found in it (URL, hop) and the records derived from it."""

    def checkpoint(self) -> Mapping[str, int]:
        """Make everything written durable; return file name -> acknowledged size."""


@dataclass(slots=True, kw_only=True)
class PendingAnswer:
    """An answer or a failure that has not been settled yet, and what is known about it."""

    visit: Visit
    origin: str
    """Scheme, host and port of its address."""
    asked_by: Verdict
    extracted: Extracted | None
    head: HttpHead = NO_HEAD
    mime: str = ""
    kept: Kept = _NOT_KEPT
    is_part: bool = False
    """Requested by a page in the browser: the frontier did not hand it out."""
    attached: Sequence[Attached] = ()
    shown: str = ""
    """The text of the page in the browser, if it was opened there."""
    note: str = ""
    """An additional annotation for the log."""


def is_temporary(visit: Visit) -> bool:
    """Whether a visit failed temporarily, so that a retry may succeed."""
    if visit.failure:
        return visit.failure in _TEMPORARY and not visit.permanent
    return visit.status in pauses.TRANSIENT


def mime_of(head: HttpHead) -> str:
    """The media type of an answer without parameters; `no-type` if it has none."""
    return (head.get("content-type") or "").partition(";")[0].strip().lower() or "no-type"
