"""Where the depot keeps its bytes."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol


class ObjectStore(Protocol):
    """Bytes by key, for the depot. Keys are relative POSIX paths. An object is stored completely or not at
    all, and is durable when `put` returns.
    """

    def put(self, key: str, source: BinaryIO, *, overwrite: bool = False) -> int:
        """Store an object; returns its size. Conflict if the key exists and `overwrite` is not set."""

    def open(self, key: str, *, offset: int = 0, length: int | None = None) -> BinaryIO:
        """A stream of the bytes; NotFound if there is no such key."""

    def size(self, key: str) -> int | None:
        """Size in bytes; None if there is no such key."""

    def keys(self, prefix: str = "") -> Iterator[str]: ...

    def delete(self, key: str) -> None: ...

    def local_path(self, key: str) -> Path | None:
        """The file of an object if the store is a folder; None otherwise."""
