"""The text of PDF files (by PDFium) and of office documents (`office`), in a guarded process.

Both can be decompression bombs (a page of a few kilobytes that unpacks to gigabytes), and PDFium is C++: a
crash affects only its own process, which is restarted for the next file. The process serves many files, since
starting it takes longer than most files.

    question   {"place", "kind": "pdf" or "office", "limit_chars"}
    answer     {title, text} or {error}
"""

import contextlib
import sys
from dataclasses import dataclass
from types import TracebackType

from webdepot.guard import child
from webdepot.guard.batch import Batch, PayloadSlice
from webdepot.guard.child import Message, Work
from webdepot.guard.process import Guard, GuardFailure, GuardReason, Limits
from webdepot.index.content import office

MEMORY_BYTES = 1 << 30
OUTPUT_BYTES = 128 << 20
TIME_S = 20.0


@dataclass(frozen=True, slots=True)
class DocumentText:
    title: str
    text: str
    error: str = ""
    """Why there is no text."""


class DocumentReader:
    """Reads one document after another. Not thread-safe."""

    def __init__(self, *, time_s: float = TIME_S) -> None:
        limits = Limits(
            time_s=time_s, longest_s=2 * time_s, memory_bytes=MEMORY_BYTES, output_bytes=OUTPUT_BYTES
        )
        self._guard = Guard(__name__, limits=limits)

    def read_pdf(self, data: bytes, *, limit_chars: int) -> DocumentText:
        """Title and text, at most `limit_chars`, or an error if it cannot be read within the limits."""
        return self._read(data, "pdf", limit_chars)

    def read_office(self, data: bytes, *, limit_chars: int) -> DocumentText:
        """As `read_pdf`, for OOXML and OpenDocument."""
        return self._read(data, "office", limit_chars)

    def _read(self, data: bytes, kind: str, limit_chars: int) -> DocumentText:
        with Batch([data]) as batch:
            question = {"place": batch.places[0], "kind": kind, "limit_chars": limit_chars}
            (answer,) = self._guard.ask_many([question], batch.descriptor)
        if isinstance(answer, GuardFailure):
            return DocumentText("", "", _error(answer))
        return DocumentText(answer.get("title", ""), answer.get("text", ""), answer.get("error", ""))

    def close(self) -> None:
        self._guard.close()

    def __enter__(self) -> "DocumentReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _error(failure: GuardFailure) -> str:
    if failure.reason is GuardReason.TIME:
        return f"the file needs more than {failure.detail} seconds"
    return "the file needs more memory than is allowed, or breaks the reader"


# --- in the child ---


def _begin(arguments: list[str]) -> tuple[Work, Message]:
    import pypdfium2  # noqa: F401 - loaded before the limit of memory, which is for the files only

    return child.within_memory(int(arguments[0]), _answer), {}


def _answer(question: Message, piece: PayloadSlice) -> Message:
    read = _words_of_office if question["kind"] == "office" else _words
    return read(piece.read(piece.size_bytes), question["limit_chars"])


def _words(data: bytes, limit_chars: int) -> dict[str, str]:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        return {"error": str(error)}
    with contextlib.closing(document):
        texts: list[str] = []
        for number in range(len(document)):
            try:
                texts.append(_page_words(document, number, limit_chars))
            except pypdfium2.PdfiumError:
                continue
            limit_chars -= len(texts[-1])
            if limit_chars <= 0:
                break
        return {"title": document.get_metadata_dict().get("Title", ""), "text": "\n".join(texts)}


def _words_of_office(data: bytes, limit_chars: int) -> dict[str, str]:
    try:
        title, text = office.words_of_office(data, limit_chars=limit_chars)
    except office.Unread as error:
        return {"error": str(error)}
    return {"title": title, "text": text}


def _page_words(document: object, number: int, limit_chars: int) -> str:
    page = document[number]  # type: ignore[index]  # pypdfium2 has no types
    with contextlib.closing(page), contextlib.closing(page.get_textpage()) as text_page:
        return str(text_page.get_text_range(count=min(text_page.count_chars(), limit_chars)))


if __name__ == "__main__":
    child.serve(sys.argv[1:], _begin)
