"""Thumbnails on disk: `cache/thumbnails`, by a name that says what they show (`name_of`, `page_pictures`). An
empty file means that no thumbnail can be made.

It is a cache: nothing is flushed to the disk, and everything may be deleted at any time.
"""

import hashlib
import shutil
import threading
from pathlib import Path

from webdepot.archive import Archive
from webdepot.model import Capture

_CACHE_BYTES = 256 << 20
_SWEPT_EVERY = 200


def name_of(capture: Capture) -> str:
    """The name of the thumbnail of an archived image."""
    return capture.digest or f"{capture.key} {capture.timestamp}"


def find(archive: Archive, name: str) -> bytes | None:
    """A cached thumbnail; empty if none can be made, None if that is not known yet."""
    try:
        return _path(archive, name).read_bytes()
    except FileNotFoundError:
        return None


def keep(archive: Archive, name: str, data: bytes) -> None:
    """Store a thumbnail, or empty bytes if none can be made."""
    path = _path(archive, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not `durable.write_whole`: several threads may write the same thumbnail at the same time.
    new = path.with_name(f"{path.name}.{threading.get_ident()}.new")
    new.write_bytes(data)
    new.replace(path)
    if path.name.startswith("00") or int(path.stem[:4], 16) % _SWEPT_EVERY == 0:
        _sweep(_folder(archive))


def clear(archive: Archive) -> None:
    """Delete all thumbnails: those of withdrawn images must not stay."""
    shutil.rmtree(_folder(archive), ignore_errors=True)


def _folder(archive: Archive) -> Path:
    return archive.home / "cache" / "thumbnails"


def _path(archive: Archive, name: str) -> Path:
    hashed = hashlib.sha256(name.encode()).hexdigest()
    return _folder(archive) / hashed[:2] / f"{hashed[2:]}.jpg"


def _sweep(folder: Path) -> None:
    """Delete the oldest thumbnails if the cache is too large."""
    files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.rglob("*.jpg"))
    total = sum(size_bytes for _, size_bytes, _ in files)
    for _, size_bytes, path in files:
        if total <= _CACHE_BYTES:
            return
        path.unlink(missing_ok=True)
        total -= size_bytes
