"""Link annotations of a PDF (ISO 32000-1, 12.6.4.7), read by qpdf in a guarded process: a file of two
kilobytes can unpack to gigabytes, and qpdf cannot be interrupted.

The processes are kept for the next PDF, since starting one takes longer than most files.

    question   {"place", "links": most addresses wanted}
    answer     {"links": addresses} or {"error": its name}
"""

import atexit
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from webdepot.guard import child
from webdepot.guard.batch import Batch, PayloadSlice
from webdepot.guard.child import Message, Work
from webdepot.guard.process import Guard, GuardFailure, Limits
from webdepot.harvest.links.reference import Reference
from webdepot.model import Hop

LIMITS = Limits(time_s=3.0, longest_s=10.0, memory_bytes=256 << 20, output_bytes=16 << 20)
MOST_PAGES = 5_000
MOST_CHARS = 2 << 20
"""Most characters of all addresses together."""
LONGEST_CHARS = 4_096
_idle: list[Guard] = []
_idle_lock = threading.Lock()


class UnreadPdf(Exception):
    """The file is damaged, or needs more time or memory than allowed."""


def references(data: bytes, *, most: int) -> list[Reference]:
    """The addresses of link annotations, at most this many. UnreadPdf if the file cannot be read."""
    with Batch([data]) as batch, _borrowed() as guard:
        (answer,) = guard.ask_many([{"place": batch.places[0], "links": most}], batch.descriptor)
    if isinstance(answer, GuardFailure):
        raise UnreadPdf(answer.detail)
    if "error" in answer:
        raise UnreadPdf(answer["error"])
    return [(str(address), Hop.LINK) for address in answer["links"][:most]]


@contextmanager
def _borrowed() -> Iterator[Guard]:
    """A guard that no other thread uses until it is returned."""
    with _idle_lock:
        guard = _idle.pop() if _idle else None
    if guard is None:
        guard = Guard(__name__, limits=LIMITS)
        atexit.register(guard.close)
    try:
        yield guard
    finally:
        with _idle_lock:
            _idle.append(guard)


# --- in the child ---


def _begin(arguments: list[str]) -> tuple[Work, Message]:
    import pikepdf  # noqa: F401 - loaded before the limit of memory, which is for the files only

    return child.within_memory(int(arguments[0]), _answer), {}


def _answer(question: Message, piece: PayloadSlice) -> Message:
    most: int = question["links"]
    links: list[str] = []
    chars = 0
    try:
        for address in _addresses(piece):
            chars += len(address)
            if len(links) >= most or chars > MOST_CHARS:
                break
            links.append(address)
    except Exception as error:
        # Any exception of the library on hostile bytes; links found before it are kept.
        return {"links": links} if links else {"error": type(error).__name__}
    return {"links": links}


def _addresses(piece: PayloadSlice) -> Iterator[str]:
    import pikepdf

    with piece.opened() as stream, pikepdf.open(stream) as document:
        for number, page in enumerate(document.pages):
            if number >= MOST_PAGES:
                return
            for annotation in page.obj.get("/Annots", []):
                action = annotation.get("/A") if isinstance(annotation, pikepdf.Dictionary) else None
                address = action.get("/URI") if isinstance(action, pikepdf.Dictionary) else None
                if address is not None and len(text := str(address)) <= LONGEST_CHARS:
                    yield text


if __name__ == "__main__":
    child.serve(sys.argv[1:], _begin)
