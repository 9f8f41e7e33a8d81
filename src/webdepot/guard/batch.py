"""Payloads for a guarded child: one open file descriptor that contains them one after the other, and the
offset and size of each.

Small payloads are joined in a file in memory; a file on disk is passed as it is. A child reads at an offset
and never moves the position of the descriptor, which parent and child share.
"""

import fcntl
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_IN_MEMORY_BYTES = 8 << 20
_BUFFER_BYTES = 1 << 16


class Batch:
    """Payloads to pass to a child. Close it, or use it in a `with`."""

    def __init__(self, payloads: Sequence[bytes | Path]) -> None:
        """A single file on disk is passed as it is; all other payloads are copied into memory."""
        self.places: list[tuple[int, int]] = []
        """Offset and size of each payload in the descriptor."""
        if len(payloads) == 1 and isinstance(payloads[0], Path):
            self.descriptor = os.open(payloads[0], os.O_RDONLY | os.O_CLOEXEC)
            self.places.append((0, os.fstat(self.descriptor).st_size))
            return
        self.descriptor = os.memfd_create("payloads", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        with os.fdopen(self.descriptor, "wb", closefd=False) as file:
            for payload in payloads:
                data = payload if isinstance(payload, bytes) else payload.read_bytes()
                self.places.append((file.tell(), len(data)))
                file.write(data)
        # Nobody may change it: if a child dies, the next one is asked about the same bytes.
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_WRITE)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> "Batch":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadSlice:
    """One payload of a batch, in the child."""

    descriptor: int
    offset: int
    size_bytes: int

    @property
    def is_all(self) -> bool:
        """Whether the descriptor contains nothing else."""
        return self.offset == 0 and os.fstat(self.descriptor).st_size == self.size_bytes

    def read(self, size_bytes: int, at: int = 0) -> bytes:
        return os.pread(self.descriptor, max(0, min(size_bytes, self.size_bytes - at)), self.offset + at)

    def opened(self) -> BinaryIO:
        """The payload as a stream: a large file on disk is read in parts, any other into memory."""
        if self.size_bytes > _IN_MEMORY_BYTES and self.is_all:
            return io.BufferedReader(_RawSlice(self), _BUFFER_BYTES)
        return io.BytesIO(self.read(self.size_bytes))


class _RawSlice(io.RawIOBase):
    """Reads a payload at offsets. A child cannot open the file again: its walls hide it."""

    def __init__(self, piece: PayloadSlice) -> None:
        self._piece = piece
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._piece.size_bytes}[whence]
        if start + offset < 0:
            raise ValueError(f"negative position {start + offset}")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer)
        data = self._piece.read(view.nbytes, self._at)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)
