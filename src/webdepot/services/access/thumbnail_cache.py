"""Thumbnails on disk: `cache/thumbnails`, by the digest of the image. An empty file means that no thumbnail
can be made.

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


def find(archive: Archive, capture: Capture) -> bytes | None:
    """The cached thumbnail of an image; empty if none can be made, None if that is not known yet."""
    try:
        return _path(archive, capture).read_bytes()
    except FileNotFoundError:
        return None


def keep(archive: Archive, capture: Capture, data: bytes) -> None:
    """Store a thumbnail, or empty bytes if none can be made."""
    path = _path(archive, capture)
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


def _path(archive: Archive, capture: Capture) -> Path:
    name = hashlib.sha256((capture.digest or f"{capture.key} {capture.timestamp}").encode()).hexdigest()
    return _folder(archive) / name[:2] / f"{name[2:]}.jpg"


def _sweep(folder: Path) -> None:
    """Delete the oldest thumbnails if the cache is too large."""
    files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.rglob("*.jpg"))
    total = sum(size_bytes for _, size_bytes, _ in files)
    for _, size_bytes, path in files:
        if total <= _CACHE_BYTES:
            return
        path.unlink(missing_ok=True)
        total -= size_bytes
