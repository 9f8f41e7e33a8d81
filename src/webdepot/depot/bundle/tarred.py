"""Tar files from others (plain, gzip, bzip2, xz), checked before any of their files is written. UOF packages
come as ZIP or as tar.

Only regular files and folders are allowed: with a link, a device or a path that leads out, the whole file is
refused. Called in a guarded process only (`unpacking`): the standard library reads a name of any length.
"""

import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from webdepot.depot.bundle.zipped import TOO_MANY, copy_member
from webdepot.depot.store.keys import add_with_folders, is_key

BROKEN = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, RecursionError)


def check_members(
    archive: tarfile.TarFile,
    largest_bytes: int,
    most_members: int,
    members: dict[str, int],
    times: dict[str, int],
) -> Iterator[str]:
    """One message for each reason not to unpack the file; its files are added to `members`, and to `times`
    when they were written. Each path can have 200 folders that no member names: they count as members. A tar
    bomb is not read to its end.
    """
    names: set[str] = set()
    total_bytes = 0
    paths: set[str] = set()
    for number, member in enumerate(archive, start=1):
        name = _name(member)
        if is_key(name):
            add_with_folders(name, paths)
        elif not (member.isdir() and name in ("", ".")):
            yield f"{member.name[:200]!r} is not a path inside the file"
        if not (member.isreg() or member.isdir()):
            yield f"{name[:200]} is not a regular file"
        if name in names and not member.isdir():
            yield f"{name[:200]} is in it twice"
        names.add(name)
        if number > most_members or len(paths) > most_members:
            yield TOO_MANY.format(most_members)
            return
        total_bytes += member.size
        if total_bytes > largest_bytes:
            yield f"it would unpack to more than {largest_bytes} bytes"
            return
        if member.isreg():
            members[name] = member.size
            times[name] = int(member.mtime)


def unpack(archive: tarfile.TarFile, folder: Path, largest_bytes: int) -> None:
    """Unpack members that `check_members` passed, at most this many bytes; ValueError if there are more."""
    left_bytes = largest_bytes
    for member in archive:
        source = archive.extractfile(member) if member.isreg() else None
        if source is not None:
            with source:
                left_bytes -= copy_member(source, folder / _name(member), left_bytes)


def _name(member: tarfile.TarInfo) -> str:
    """The path of a member; many tools write `./a` for `a`."""
    return member.name.removeprefix("./").removesuffix("/")
