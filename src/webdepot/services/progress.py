"""Progress of long-running work: one value, given to a callable. Interfaces draw it; services never print."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """The steps of a harvest on its way into the archive, in order; then those of keeping it."""

    HARVEST = "harvest"
    IMPORT = "import"
    CHECK = "check"
    IDENTIFY = "identify"
    KEEP = "keep"
    INDEX = "index"
    COPY = "copy"
    AUDIT = "audit"
    MIGRATE = "migrate"
    DISCOVER = "discover"
    EXPORT = "export"
    PICTURE = "picture"
    FETCH = "fetch"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeProgress:
    """How far work in several parts is as a whole, where `Progress` is about one step of one part."""

    done_bytes: int
    total_bytes: int
    bytes_per_s: float
    """Average since the start, over all steps."""
    left_s: float | None
    """Estimated time left; None if it is not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    phase: Phase
    done: int
    total: int | None = None
    """None if it is not known yet."""
    size_bytes: int = 0
    rate: float = 0.0
    """Recent rate, in things per second."""
    waiting: int = 0
    errors: int = 0
    note: str = ""
    """What is being worked on now."""
    pages: int = 0
    """In a harvest: the HTML pages among what is done."""
    failed_parts: int = 0
    """In a harvest: the parts of pages among the errors."""
    whole: WholeProgress | None = None


Watch = Callable[[Progress], None]


def unwatched(progress: Progress) -> None:
    """Ignore progress: for callers who do not show it."""
