"""The payload of a record for a survey: read once, with its digest, and without its content coding (within a
limit).

Small payloads stay in memory, large ones go through temporary files, so that memory use is bounded.
"""

import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from webdepot import digest
from webdepot.container.http import content_decoded
from webdepot.container.record import Record
from webdepot.guard import process

_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyLimits:
    memory_bytes: int = 8 << 20
    """A larger payload goes through a temporary file."""
    content_bytes: int = 512 << 20
    """How much of a payload with a content coding is unpacked."""
    check_s: float = process.TIME_S
    check_memory_bytes: int = process.MEMORY_BYTES


class Payload:
    """Use it in a `with`: entering reads the payload, leaving removes its temporary files, except after
    `release`.
    """

    def __init__(self, record: Record, limits: SurveyLimits, temporary: Path | None) -> None:
        self.limits = limits
        self._record = record
        self._temporary = temporary
        self._files: list[Path] = []
        self.digest = ""
        self.size_bytes = 0

    def __enter__(self) -> "Payload":
        hasher = hashlib.sha1(usedforsecurity=False)
        self._raw = self._spooled(self._record.payload(), hasher.update)
        self.size_bytes = _size_bytes(self._raw)
        self.digest = digest.sha1_label(hasher.digest())
        return self

    def __exit__(self, *_: object) -> None:
        remove(self.release())

    def release(self) -> Sequence[Path]:
        """The temporary files; from now on the caller must remove them."""
        files, self._files = self._files, []
        return files

    def content(self) -> tuple[bytes | Path, bool]:
        """The payload without content coding, and whether it was cut at the limit."""
        head = self._record.head
        if head is None or not (head.get("content-encoding") or "").strip():
            return self._raw, False
        with self._opened() as raw:
            decoded = content_decoded(raw, head, limit_bytes=self.limits.content_bytes)
            content = self._spooled(decoded, lambda _: None)
        size_bytes = _size_bytes(content)
        # If decoding gives nothing, the header was wrong: use the bytes as received.
        return (content, size_bytes >= self.limits.content_bytes) if size_bytes else (self._raw, False)

    def _opened(self) -> BinaryIO:
        return io.BytesIO(self._raw) if isinstance(self._raw, bytes) else self._raw.open("rb")

    def _spooled(self, stream: BinaryIO, seen: Callable[[bytes], None]) -> bytes | Path:
        pieces: list[bytes] = []
        size_bytes = 0
        while size_bytes <= self.limits.memory_bytes:
            piece = stream.read(self.limits.memory_bytes + 1)
            if not piece:
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
            seen(piece)
            pieces.append(piece)
            size_bytes += len(piece)
        handle, name = tempfile.mkstemp(prefix="webdepot-payload-", dir=self._temporary)
        path = Path(name)
        self._files.append(path)
        with os.fdopen(handle, "wb") as file:
            file.writelines(pieces)
            while piece := stream.read(_CHUNK_BYTES):
                seen(piece)
                file.write(piece)
        return path


def remove(files: Iterable[Path]) -> None:
    for path in files:
        path.unlink(missing_ok=True)


def _size_bytes(content: bytes | Path) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size
