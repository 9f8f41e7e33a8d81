"""Payloads for a guarded child: one open file descriptor that contains them one after the other, and the
offset and size of each.

Small payloads are joined in a file in memory; a file on disk is passed as it is. A child reads at an offset
and never moves the position of the descriptor, which parent and child share.
"""

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

_IN_MEMORY_BYTES = 8 << 20


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
        self.descriptor = os.memfd_create("payloads", os.MFD_CLOEXEC)
        with os.fdopen(self.descriptor, "wb", closefd=False) as file:
            for payload in payloads:
                data = payload if isinstance(payload, bytes) else payload.read_bytes()
                self.places.append((file.tell(), len(data)))
                file.write(data)

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
        """The payload as a stream: a large file on disk is opened, any other payload is read into memory."""
        if self.size_bytes > _IN_MEMORY_BYTES and self.is_all:
            return Path(f"/proc/self/fd/{self.descriptor}").open("rb")
        return io.BytesIO(self.read(self.size_bytes))
