"""The text of PDF files by PDFium, in a separate process with limits on memory and time.

A PDF can be a decompression bomb (a page of a few kilobytes that unpacks to gigabytes) and PDFium is C++: a
crash affects only its own process, which is restarted for the next file. The process serves many files, since
starting it takes longer than most files.

    request    size of the file (8 bytes), most characters wanted (8 bytes), the file
    response   its size (8 bytes), JSON {title, text} or {error}
"""

import contextlib
import json
import os
import resource
import select
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from types import TracebackType
from typing import IO, BinaryIO

MEMORY_BYTES = 1 << 30
TIME_S = 20.0
_HEAD = struct.Struct(">QQ")
_SIZE = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class PdfText:
    title: str
    text: str
    error: str = ""
    """Why there is no text."""


class PdfReader:
    """Reads one PDF after another. Not thread-safe."""

    def __init__(self, *, time_s: float = TIME_S) -> None:
        self._time_s = time_s
        self._child: subprocess.Popen[bytes] | None = None

    def read(self, data: bytes, *, limit_chars: int) -> PdfText:
        """Title and text, at most `limit_chars`, or an error if PDFium cannot read it within its limits."""
        try:
            child = self._started()
            response = _exchange(
                child, _HEAD.pack(len(data), limit_chars) + data, time.monotonic() + self._time_s
            )
        except (OSError, EOFError):
            self.close()
            return PdfText("", "", "the file needs more memory than is allowed, or breaks the reader")
        except TimeoutError:
            self.close()
            return PdfText("", "", f"the file needs more than {self._time_s:g} seconds")
        facts = json.loads(response)
        return PdfText(facts.get("title", ""), facts.get("text", ""), facts.get("error", ""))

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()

    def __enter__(self) -> "PdfReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._child is None or self._child.poll() is not None:
            self.close()
            command = [sys.executable, "-m", "webdepot.index.content.pdf"]
            self._child = subprocess.Popen(  # noqa: S603
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        return self._child


def _exchange(child: "subprocess.Popen[bytes]", request: bytes, deadline_s: float) -> bytes:
    """Write the request, read the response, both by the deadline; OSError or EOFError if the child died."""
    if child.stdin is None or child.stdout is None:
        raise EOFError
    os.set_blocking(child.stdin.fileno(), False)
    view = memoryview(request)
    while view:
        _wait([], [child.stdin], deadline_s)
        view = view[os.write(child.stdin.fileno(), view[: 1 << 16]) :]
    size: int = _SIZE.unpack(_read(child.stdout, _SIZE.size, deadline_s))[0]
    return _read(child.stdout, size, deadline_s)


def _read(stream: IO[bytes], size: int, deadline_s: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        _wait([stream], [], deadline_s)
        piece = os.read(stream.fileno(), size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def _wait(readable: list[IO[bytes]], writable: list[IO[bytes]], deadline_s: float) -> None:
    ready = select.select(readable, writable, [], max(deadline_s - time.monotonic(), 0))
    if not any(ready):
        raise TimeoutError


# --- in the child ---


def serve(requests: BinaryIO, responses: BinaryIO) -> None:
    """Respond until the requests end."""
    while len(head := requests.read(_HEAD.size)) == _HEAD.size:
        size, limit_chars = _HEAD.unpack(head)
        response = json.dumps(_words(requests.read(size), limit_chars)).encode("ascii")
        responses.write(_SIZE.pack(len(response)) + response)
        responses.flush()


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


def _page_words(document: object, number: int, limit_chars: int) -> str:
    page = document[number]  # type: ignore[index]  # pypdfium2 has no types
    with contextlib.closing(page), contextlib.closing(page.get_textpage()) as words:
        return str(words.get_text_range(count=min(words.count_chars(), limit_chars)))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    serve(sys.stdin.buffer, sys.stdout.buffer)
