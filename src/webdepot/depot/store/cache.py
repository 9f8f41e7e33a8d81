"""Containers of a place without paths, fetched to this machine for programs that need a file: indexing,
format identification.

Files are whole and checked before they have their name. The cache stays below its limit by removing what was
used longest ago; what somebody used in the last `KEPT_S` seconds stays, since it may be open.
"""

import os
import secrets
import time
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, cast

from webdepot.depot.store.wrapped import Expecting
from webdepot.digest import CHUNK_BYTES
from webdepot.ports import ObjectStore

KEPT_S = 900


def name_of(name: str, sha256: str) -> str:
    """What a container is called in the cache."""
    return f"{sha256[:16]}-{name}"


def fetch(
    folder: Path,
    store: ObjectStore,
    key: str,
    *,
    name: str,
    sha256: str,
    limit_bytes: int,
    length: int | None = None,
) -> Path:
    """The file with exactly these bytes (so many, where more may follow them); CorruptData when the store's
    are not those.
    """
    path = folder / name_of(name, sha256)
    if path.exists():
        os.utime(path)
        return path
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".part-{secrets.token_hex(8)}"
    try:
        with (
            closing(Expecting(store.open(key, length=length), sha256, key or name)) as source,
            partial.open("wb") as sink,
        ):
            while chunk := cast(BinaryIO, source).read(CHUNK_BYTES):
                sink.write(chunk)
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
