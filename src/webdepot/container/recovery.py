"""Recovery after a crash: every `.open` file is cut back to its acknowledged records, and sealed.

With marks (from the last checkpoint, see `writer.sync`) a file is cut to its mark; a file without a mark was
begun after the checkpoint and is removed. Without marks it is cut after its last whole record. Sealed files
are not touched: they never contain more than a checkpoint covers. Recovery can be repeated: it cuts, syncs
and renames, and a crash in between leaves the file `.open`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from webdepot import digest
from webdepot.container.members import MemberReader
from webdepot.container.writer import OPEN_SUFFIX, Sealed, seal
from webdepot.durable import sync_folder
from webdepot.errors import CorruptData


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """The result for one `.open` file."""

    name: str
    """Without `.open`."""
    kept_bytes: int
    cut_bytes: int
    records: int
    """Kept, including its warcinfo."""
    message: str
    sealed: Sealed | None
    """None if the file had nothing to keep and was removed."""


def recover(folder: Path, marks: Mapping[str, int] | None) -> list[Recovered]:
    """Cut and seal every open container of the folder, in the order of names. No other process may be writing
    there.
    """
    return [_recover(path, marks) for path in sorted(folder.glob(f"*.warc.gz{OPEN_SUFFIX}"))]


def _recover(path: Path, marks: Mapping[str, int] | None) -> Recovered:
    size = path.stat().st_size
    mark = size if marks is None else marks.get(path.name, 0)
    kept, count = whole_records(path, mark)
    name = path.name.removesuffix(OPEN_SUFFIX)
    if count <= 1:
        path.unlink()
        sync_folder(path.parent)
        message = f"{name} had no complete record; its {size} bytes were removed."
        return Recovered(name=name, kept_bytes=0, cut_bytes=size, records=0, message=message, sealed=None)
    with path.open("r+b") as stream:
        stream.truncate(kept)
        os.fsync(stream.fileno())
    sealed = seal(path, sha256=digest.of_file(path).value.hex(), size_bytes=kept, count=count)
    message = _message(name, size, mark if marks is not None else None, kept, count)
    return Recovered(
        name=name, kept_bytes=kept, cut_bytes=size - kept, records=count, message=message, sealed=sealed
    )


def whole_records(path: Path, limit_bytes: int) -> tuple[int, int]:
    """Bytes and number of the whole gzip members at the beginning of a file, up to a limit."""
    at, count = 0, 0
    with path.open("rb") as stream:
        reader = MemberReader(stream)
        while at < limit_bytes:
            end = _member_end(reader, at)
            if end is None or end > limit_bytes:
                break
            at, count = end, count + 1
    return at, count


def _member_end(reader: MemberReader, at: int) -> int | None:
    member = reader.read(at)
    if member.torn:
        return None
    if member.end >= 0:
        return member.end
    end: list[int] = []
    try:
        for _ in reader.iter_unpacked(at, end):
            pass
    except CorruptData:
        return None
    return end[0]


def _message(name: str, size: int, mark: int | None, kept: int, count: int) -> str:
    if mark is not None and kept < mark:
        return (
            f"{name} was cut to its last whole record, byte {kept} of {size}, although {mark} bytes had been "
            f"saved: the disk lost {mark - kept} bytes. {count} records are kept. Harvest the site "
            "again, and check the disk."
        )
    if size == kept:
        return f"{name} was complete; it is sealed with {count} records."
    return (
        f"{name} was cut by {size - kept} bytes that had not been saved completely; "
        f"it is sealed with {count} records."
    )
