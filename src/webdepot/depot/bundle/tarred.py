"""Tar files of others (plain, gzip, bzip2, xz), checked before any of their files is written. UOF packages
come as ZIP or as tar.

Only regular files and folders are allowed: with a link, a device or a path that leads out, the whole file is
refused.
"""

import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from webdepot.depot.bundle.zipped import HIGHEST_RATIO, SMALL_BYTES
from webdepot.depot.store.keys import is_key
from webdepot.digest import CHUNK_BYTES

BROKEN = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, MemoryError)
"""Errors of damaged and hostile files; xz may ask for a dictionary of gigabytes."""


def is_tar(path: Path) -> bool:
    try:
        return tarfile.is_tarfile(path)
    except (*BROKEN, OSError):
        return False


def check_members(path: Path) -> Iterator[str]:
    """One message for each reason not to unpack the file. A tar bomb is not read to its end."""
    largest_bytes = max(path.stat().st_size * HIGHEST_RATIO, SMALL_BYTES)
    names: set[str] = set()
    total_bytes = 0
    with tarfile.open(path) as archive:
        for member in archive:
            name = _name(member)
            if not is_key(name) and not (member.isdir() and name in ("", ".")):
                yield f"{member.name[:200]!r} is not a path inside the file"
            if not (member.isreg() or member.isdir()):
                yield f"{name[:200]} is not a regular file"
            if name in names and not member.isdir():
                yield f"{name[:200]} is in it twice"
            names.add(name)
            total_bytes += member.size
            if total_bytes > largest_bytes:
                yield f"it would unpack to more than {largest_bytes} bytes"
                return


def unpack(path: Path, folder: Path) -> None:
    """Unpack members that `check_members` passed."""
    with tarfile.open(path) as archive:
        for member in archive:
            source = archive.extractfile(member) if member.isreg() else None
            if source is None:
                continue
            target = folder / _name(member)
            target.parent.mkdir(parents=True, exist_ok=True)
            with source, target.open("wb") as sink:
                while chunk := source.read(CHUNK_BYTES):
                    sink.write(chunk)


def _name(member: tarfile.TarInfo) -> str:
    """The path of a member; many tools write `./a` for `a`."""
    return member.name.removeprefix("./").removesuffix("/")
