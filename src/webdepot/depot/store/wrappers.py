"""Wrappers around streams and stores: count and slow down reads, verify a checksum, seek in remote files."""

import hashlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from webdepot.errors import CorruptData
from webdepot.ports.object_store import ObjectStore

FIRST_WINDOW_BYTES = 256 << 10
LARGEST_WINDOW_BYTES = 8 << 20
BUFFER_BYTES = 64 << 10


class ReadableStore(Protocol):
    """The part of an `ObjectStore` that reading files needs."""

    def open(self, key: str, *, offset: int = 0, length: int | None = None) -> BinaryIO: ...

    def size(self, key: str) -> int | None: ...


class Meter:
    """Counts the bytes of all streams that share it and limits their total rate. Thread-safe."""

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

    def count(self, size: int) -> None:
        """Add bytes that were read; sleep if they came faster than the rate allows."""
        with self._lock:
            self.size_bytes += size
            ahead_s = self.size_bytes / self._rate - (self._now_s() - self._began_s) if self._rate else 0.0
        if ahead_s > 0:
            self._sleep(ahead_s)


class MeteredStore:
    """An `ObjectStore` whose reads go through a meter."""

    def __init__(self, store: ObjectStore, meter: Meter) -> None:
        self._store = store
        self._meter = meter

    def put(self, key: str, source: BinaryIO, *, overwrite: bool = False) -> int:
        return self._store.put(key, source, overwrite=overwrite)

    def open(self, key: str, *, offset: int = 0, length: int | None = None) -> BinaryIO:
        stream = self._store.open(key, offset=offset, length=length)
        return observe(stream, lambda data: self._meter.count(len(data)))

    def size(self, key: str) -> int | None:
        return self._store.size(key)

    def keys(self, prefix: str = "") -> Iterator[str]:
        return self._store.keys(prefix)

    def delete(self, key: str) -> None:
        self._store.delete(key)

    def local_path(self, key: str) -> Path | None:
        return self._store.local_path(key)


def observe(
    stream: BinaryIO, on_data: Callable[[bytes], object], on_end: Callable[[], object] = lambda: None
) -> BinaryIO:
    """The same stream; `on_data` gets each piece that is read, `on_end` is called when all has been read.

    Closing it closes `stream`.
    """
    return cast(BinaryIO, _Observed(stream, on_data, on_end))


def expect_sha256(stream: BinaryIO, sha256: str, where: str) -> BinaryIO:
    """The same stream, which raises CorruptData at its end if its bytes have another SHA-256.

    A store that is writing such a stream then keeps nothing of it.
    """
    hasher = hashlib.sha256()

    def compare() -> None:
        actual = hasher.hexdigest()
        if actual != sha256:
            raise CorruptData(f"{where} is damaged: expected sha256 {sha256}, found {actual}.", where=where)

    return observe(stream, hasher.update, compare)


class _Observed(io.RawIOBase):
    def __init__(
        self, stream: BinaryIO, on_data: Callable[[bytes], object], on_end: Callable[[], object]
    ) -> None:
        self._stream = stream
        self._on_data = on_data
        self._on_end = on_end

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._on_data(data)
        if not data or size < 0:
            self._on_end()
        return data

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_seekable(store: ReadableStore, key: str, size_bytes: int) -> BinaryIO:
    """A seekable stream of a file in a store that has no local paths."""
    return cast(BinaryIO, io.BufferedReader(_Windowed(store, key, size_bytes), BUFFER_BYTES))


class _Windowed(io.RawIOBase):
    """Reads a file in windows: small after a seek, doubling while it is read sequentially."""

    def __init__(self, store: ReadableStore, key: str, size_bytes: int) -> None:
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
        is_sequential = self._at == self._window_at + len(self._window) and bool(self._window)
        self._window_bytes = (
            min(self._window_bytes * 2, LARGEST_WINDOW_BYTES) if is_sequential else FIRST_WINDOW_BYTES
        )
        self._window_at = self._at
        self._window = b""
        if self._at < self._size:
            length = min(self._window_bytes, self._size - self._at)  # more may follow, inside a WACZ
            with self._store.open(self._key, offset=self._at, length=length) as stream:
                self._window = stream.read()
