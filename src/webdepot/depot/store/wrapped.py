"""Streams and stores with one more duty: counting and slowing down, expecting a digest, reading in pieces
from afar.
"""

import hashlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from webdepot.errors import CorruptData
from webdepot.ports import ObjectStore

FIRST_WINDOW_BYTES = 256 << 10
LARGEST_WINDOW_BYTES = 8 << 20


class Meter:
    """Counts the bytes of all streams that share it, and keeps them together below a rate. Threads may share
    it.
    """

    def __init__(
        self,
        rate_bytes_s: float = 0,
        *,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.size_bytes = 0
        self._rate = rate_bytes_s
        self._now_s = now_s
        self._sleep = sleep
        self._began_s = now_s()
        self._lock = threading.Lock()

    def pass_by(self, size: int) -> None:
        with self._lock:
            self.size_bytes += size
            ahead_s = self.size_bytes / self._rate - (self._now_s() - self._began_s) if self._rate else 0.0
        if ahead_s > 0:
            self._sleep(ahead_s)


class Metered:
    """An `ObjectStore` whose reads go through a meter."""

    def __init__(self, store: ObjectStore, meter: Meter) -> None:
        self._store = store
        self._meter = meter

    def put(self, key: str, source: BinaryIO, *, overwrite: bool = False) -> int:
        return self._store.put(key, source, overwrite=overwrite)

    def open(self, key: str, *, offset: int = 0, length: int | None = None) -> BinaryIO:
        return cast(
            BinaryIO, _Passing(self._store.open(key, offset=offset, length=length), self._meter.pass_by)
        )

    def size(self, key: str) -> int | None:
        return self._store.size(key)

    def keys(self, prefix: str = "") -> Iterator[str]:
        return self._store.keys(prefix)

    def delete(self, key: str) -> None:
        self._store.delete(key)

    def local_path(self, key: str) -> Path | None:
        return self._store.local_path(key)


class _Passing(io.RawIOBase):
    def __init__(self, stream: BinaryIO, told: Callable[[int], None]) -> None:
        self._stream = stream
        self._told = told

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._told(len(data))
        return data

    def close(self) -> None:
        self._stream.close()
        super().close()


class Expecting(io.RawIOBase):
    """Hands a stream through and raises CorruptData at its end when it was not what it should be: a put of it
    then leaves nothing.
    """

    def __init__(self, stream: BinaryIO, sha256: str, where: str) -> None:
        self._stream = stream
        self._expected = sha256
        self._where = where
        self._hasher = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._hasher.update(data)
        if (not data or size < 0) and (found := self._hasher.hexdigest()) != self._expected:
            raise CorruptData(
                f"{self._where} is damaged: expected sha256 {self._expected}, found {found}.",
                where=self._where,
            )
        return data

    def close(self) -> None:
        self._stream.close()
        super().close()


class Seekable(io.RawIOBase):
    """A file of a store that has no paths, read in windows: small after a seek, larger while it is read on."""

    def __init__(self, store: ObjectStore, key: str, size_bytes: int) -> None:
        self._store = store
        self._key = key
        self._size = size_bytes
        self._at = 0
        self._window = b""
        self._window_at = 0
        self._window_bytes = FIRST_WINDOW_BYTES

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        inside = self._at - self._window_at
        if not 0 <= inside < len(self._window):
            self._fetch()
            inside = 0
        data = self._window[inside : inside + len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _fetch(self) -> None:
        goes_on = self._at == self._window_at + len(self._window) and bool(self._window)
        self._window_bytes = (
            min(self._window_bytes * 2, LARGEST_WINDOW_BYTES) if goes_on else FIRST_WINDOW_BYTES
        )
        self._window_at = self._at
        self._window = b""
        if self._at < self._size:
            with self._store.open(self._key, offset=self._at, length=self._window_bytes) as stream:
                self._window = stream.read()
