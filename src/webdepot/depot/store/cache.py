"""The cache of containers that are not on this machine, for work that needs a file: indexing, format
identification.

A file gets its name only when it is complete and its checksum is verified. The cache stays below its limit by
removing the files that were used longest ago; files used in the last `KEPT_S` seconds stay, as they may be
open.
"""

import os
import secrets
import time
from pathlib import Path

from webdepot import durable
from webdepot.depot.store.wrappers import ReadableStore, expect_sha256
from webdepot.digest import CHUNK_BYTES

KEPT_S = 900


def name_of(name: str, sha256: str) -> str:
    """The file name of a container in the cache."""
    return f"{sha256[:16]}-{name}"


def fetch(
    folder: Path,
    store: ReadableStore,
    key: str,
    *,
    name: str,
    sha256: str,
    limit_bytes: int,
    length: int | None = None,
) -> Path:
    """The path of the file in the cache, fetched from the store if need be; CorruptData if its SHA-256
    differs.

    `length` is the number of bytes to read, for a file that is followed by others.
    """
    path = folder / name_of(name, sha256)
    if path.exists():
        os.utime(path)
        return path
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".part-{secrets.token_hex(8)}"
    try:
        with (
            expect_sha256(store.open(key, length=length), sha256, key or name) as source,
            partial.open("wb") as sink,
        ):
            while chunk := source.read(CHUNK_BYTES):
                sink.write(chunk)
            durable.sync_file(sink)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    _trim(folder, limit_bytes, kept=path)
    return path


def _trim(folder: Path, limit_bytes: int, *, kept: Path) -> None:
    entries = sorted(
        (entry.stat().st_mtime, entry.stat().st_size, entry) for entry in folder.iterdir() if entry.is_file()
    )
    size_bytes = sum(size for _, size, _ in entries)
    for used_at, size, entry in entries:
        if size_bytes <= limit_bytes or used_at > time.time() - KEPT_S:
            return
        if entry != kept:
            entry.unlink(missing_ok=True)
            size_bytes -= size
