"""ZIP and tar files from others, recognised, checked and unpacked in a guarded process.

The process sees only the packed file and the folder to unpack to, and has limits of time, memory and bytes:
half a megabyte can unpack to gigabytes, or have a member whose name is gigabytes long. The limits count while
it unpacks; what a file says about its own size is not believed.

    question   {"place", "folder", "largest_bytes", "most_members", "unpack"}
    answer     {"kind": "zip", "tar" or "", "members": {path: size}, "times": {path: seconds}, "reasons"}
"""

import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from webdepot.config.sections.storage import MOST_MEMBERS
from webdepot.depot.bundle import tarred, zipped
from webdepot.depot.store.zip_directory import has_more_members
from webdepot.guard import child
from webdepot.guard.batch import Batch, PayloadSlice
from webdepot.guard.child import Message, Work
from webdepot.guard.process import Guard, GuardFailure, GuardReason, Limits
from webdepot.guard.walls import View

HIGHEST_RATIO = 100
"""A file that unpacks to more than this many times its size, and more than `SMALL_BYTES`, is refused."""
SMALL_BYTES = 64 << 20
MOST_REASONS = 1000
MEMORY_BYTES = 512 << 20
_OUTPUT_BYTES = 64 << 20
_START_S = 60
_BYTES_IN_SECOND = 5 << 20
"""The slowest decompression (xz, bzip2) that is expected, with a margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFile:
    """What a process found in a file."""

    kind: str
    """`zip`, `tar`, or nothing if it is neither."""
    members: dict[str, int] = field(default_factory=dict)
    """Path and declared size of its files."""
    times: dict[str, int] = field(default_factory=dict)
    """Path of a file to when it was written, in seconds since 1970."""
    reasons: tuple[str, ...] = ()
    """Why it may not be unpacked."""


def look(path: Path, folder: Path, *, most_members: int = MOST_MEMBERS) -> PackedFile:
    """Recognise a file and check its members; nothing is written."""
    return _ask(path, folder, most_members, unpack=False)


def unpack(path: Path, folder: Path, *, most_members: int = MOST_MEMBERS) -> PackedFile:
    """Check a file and unpack it to the folder, which is incomplete if there are reasons."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = _ask(path, folder, most_members, unpack=True)
    for name, seconds in packed.times.items() if not packed.reasons else ():
        with suppress(OSError, OverflowError):  # a time that this system cannot write
            os.utime(folder / name, (seconds, seconds), follow_symlinks=False)
    return packed


def _ask(path: Path, folder: Path, most_members: int, *, unpack: bool) -> PackedFile:
    free_bytes = shutil.disk_usage(folder if folder.exists() else folder.parent).free
    largest_bytes = min(max(path.stat().st_size * HIGHEST_RATIO, SMALL_BYTES), free_bytes)
    time_s = _START_S + largest_bytes / _BYTES_IN_SECOND
    limits = Limits(
        time_s=time_s, longest_s=3 * time_s, memory_bytes=MEMORY_BYTES, output_bytes=_OUTPUT_BYTES
    )
    view = View(writable=[folder.resolve()] if unpack else [], largest_file_bytes=largest_bytes)
    question = {
        "folder": str(folder.resolve()),
        "largest_bytes": largest_bytes,
        "most_members": most_members,
        "unpack": unpack,
    }
    with Batch([path]) as batch, Guard(__name__, limits=limits, view=view) as guard:
        (answer,) = guard.ask_many([question | {"place": batch.places[0]}], batch.descriptor)
    if isinstance(answer, GuardFailure):
        return PackedFile(kind="zip" if zipped.is_zip(path) else "tar", reasons=(_reason(answer),))
    return PackedFile(
        kind=answer["kind"],
        members=answer["members"],
        times=answer["times"],
        reasons=tuple(answer["reasons"]),
    )


def _reason(failure: GuardFailure) -> str:
    match failure.reason:
        case GuardReason.TIME:
            return f"it takes more than {failure.detail} seconds to unpack"
        case GuardReason.MEMORY:
            return f"it needs more than {MEMORY_BYTES >> 20} MB of memory to unpack"
        case GuardReason.DIED:
            return f"the process that unpacks it died: {failure.detail}"


# --- in the child ---


def _begin(arguments: list[str]) -> tuple[Work, Message]:
    memory_bytes = int(arguments[0])

    def work(questions: list[Message], descriptor: int, _: bool) -> Iterator[Message]:
        child.limit_memory(memory_bytes)
        for each in questions:
            offset, size_bytes = each["place"]
            with PayloadSlice(descriptor=descriptor, offset=offset, size_bytes=size_bytes).opened() as stream:
                yield _answer(stream, each)

    return work, {}


def _answer(stream: BinaryIO, question: Message) -> Message:
    members: dict[str, int] = {}
    times: dict[str, int] = {}
    reasons: list[str] = []
    kind = ""
    try:
        # Files that only start like a WARC also come here: first the cheap question.
        if zipped.is_zip(stream):
            kind = "zip"
            _of_zip(stream, question, members, times, reasons)
        elif _is_tar(stream):
            kind = "tar"
            _of_tar(stream, question, members, times, reasons)
    except (*zipped.BROKEN, *tarred.BROKEN, OSError) as error:
        reasons.append(f"the {kind or 'packed'} file cannot be unpacked: {str(error)[:300]}")
    except MemoryError:
        members.clear()
        times.clear()
        reasons = [f"it needs more than {MEMORY_BYTES >> 20} MB of memory to unpack"]
        kind = kind or "tar"
    return {"kind": kind, "members": members, "times": times, "reasons": reasons}


def _of_zip(
    stream: BinaryIO, question: Message, members: dict[str, int], times: dict[str, int], reasons: list[str]
) -> None:
    if has_more_members(stream, question["most_members"]):
        reasons.append(zipped.TOO_MANY.format(question["most_members"]))
        return
    with zipfile.ZipFile(stream) as archive:
        wrong = zipped.check_members(archive, question["largest_bytes"], question["most_members"])
        reasons += islice(wrong, MOST_REASONS)
        if reasons:
            return
        files = [member for member in archive.infolist() if not member.is_dir()]
        members.update((member.filename, member.file_size) for member in files)
        times.update((member.filename, zipped.seconds_of(member)) for member in files)
        if question["unpack"]:
            zipped.unpack(archive, Path(question["folder"]), question["largest_bytes"])


def _is_tar(stream: BinaryIO) -> bool:
    stream.seek(0)
    try:
        return tarfile.is_tarfile(stream)
    except (*tarred.BROKEN, OSError):
        return False


def _of_tar(
    stream: BinaryIO, question: Message, members: dict[str, int], times: dict[str, int], reasons: list[str]
) -> None:
    stream.seek(0)
    with tarfile.open(fileobj=stream) as archive:
        largest_bytes, most_members = question["largest_bytes"], question["most_members"]
        wrong = tarred.check_members(archive, largest_bytes, most_members, members, times)
        reasons += islice(wrong, MOST_REASONS)
    if not reasons and question["unpack"]:
        stream.seek(0)
        with tarfile.open(fileobj=stream) as archive:
            tarred.unpack(archive, Path(question["folder"]), question["largest_bytes"])


if __name__ == "__main__":
    child.serve(sys.argv[1:], _begin)
