"""Commits of the Tantivy index: which segments are in it, and which of their documents have been replaced.

Tantivy's own writer belongs to one process. Here several processes build segments at the same time, each in a
folder of its own (`tantivy_draft.py`), and `publish` makes them part of the index:

1. the files of new segments are renamed into the folder of the index;
2. a new file of living documents is written for each segment of which documents have been replaced;
3. `meta.json` is replaced. Readers see the commit before or the commit after, and so does the next process
   after a crash;
4. files that no segment needs are removed.

The files, as Tantivy defines them (https://github.com/quickwit-oss/tantivy, `src/index/index_meta.rs`,
`src/fastfield/alive_bitset.rs`, `src/directory/footer.rs`):

    meta.json        settings, segments (id, documents, deletes), schema, opstamp, payload
    ID.*             a segment: terms, postings, positions, fast fields, field norms, stored documents
    ID.OPSTAMP.del   its living documents: their number as u32, a bit for each in u64 words, footer
    footer           JSON with the version of the format and the CRC-32 of what precedes, its length as u32,
                     1337 as u32; all numbers little-endian

The payload of a commit is a list of digests: see `tantivy_index.py`.
"""

import json
import re
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from webdepot import durable
from webdepot.errors import CorruptData

META = "meta.json"
_READERS_LOCK = ".tantivy-meta.lock"
"""Held by Tantivy while it opens the files of a commit."""
_FOOTER_END = struct.Struct("<II")
_MAGIC = 1337
_SEGMENT_FILE = re.compile(r"([0-9a-f]{32})\.(?:([0-9]+)\.del|[a-z.]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    id: str
    documents: int
    """The number of documents, including those that have been replaced."""
    dead: int = 0
    dead_opstamp: int = 0
    """Part of the name of the file of living documents; without meaning if none has been replaced."""

    @property
    def name(self) -> str:
        return self.id.replace("-", "")

    @property
    def living(self) -> int:
        return self.documents - self.dead


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    segments: tuple[Segment, ...]
    """In the order of Tantivy's searcher."""
    opstamp: int
    payload: tuple[str, ...]
    head: Mapping[str, Any]
    """Settings and schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentChange:
    """New segments in a folder of their own, and documents of the index that they replace."""

    folder: Path
    segments: tuple[Segment, ...] = ()
    dead: Mapping[str, Collection[int]] = field(default_factory=dict)
    """Numbers of documents by segment."""


def read(folder: Path) -> Commit:
    return parse((folder / META).read_bytes())


def parse(meta: bytes) -> Commit:
    commit = json.loads(meta)
    segments = []
    for segment in commit["segments"]:
        deletes = segment.get("deletes") or {"num_deleted_docs": 0, "opstamp": 0}
        segments.append(
            Segment(
                id=segment["segment_id"],
                documents=segment["max_doc"],
                dead=deletes["num_deleted_docs"],
                dead_opstamp=deletes["opstamp"],
            )
        )
    return Commit(
        segments=tuple(segments),
        opstamp=commit["opstamp"],
        payload=tuple(json.loads(commit.get("payload") or "[]")),
        head={name: commit[name] for name in ("index_settings", "schema")},
    )


def write(folder: Path, commit: Commit) -> None:
    """Make this the commit of a folder that has its segments."""
    meta = {
        **commit.head,
        "segments": [
            {
                "segment_id": segment.id,
                "max_doc": segment.documents,
                "deletes": {"num_deleted_docs": segment.dead, "opstamp": segment.dead_opstamp}
                if segment.dead
                else None,
            }
            for segment in commit.segments
        ],
        "opstamp": commit.opstamp,
    }
    if commit.payload:
        meta["payload"] = json.dumps(commit.payload)
    durable.write_whole(folder / META, json.dumps(meta).encode())


def publish(
    folder: Path,
    changes: Sequence[SegmentChange],
    *,
    without: Collection[str] = (),
    payload: Sequence[str] = (),
) -> None:
    """Add changes to the index, and remove the segments `without`, in one commit. One process at a time."""
    commit = read(folder)
    opstamp = commit.opstamp + 1
    kept = [segment for segment in commit.segments if segment.id not in without]
    for change in changes:
        for segment in change.segments:
            for path in _files(change.folder, segment):
                path.rename(folder / path.name)
            kept.append(segment)
    dead: dict[str, set[int]] = {}
    for change in changes:
        for name, documents in change.dead.items():
            dead.setdefault(name, set()).update(documents)
    segments = [
        _bury(folder, segment, dead[segment.id], opstamp) if dead.get(segment.id) else segment
        for segment in kept
    ]
    durable.sync_folder(folder)
    # The largest first, as Tantivy does it.
    left = sorted((segment for segment in segments if segment.living), key=lambda one: -one.documents)
    commit = replace(commit, segments=tuple(left), opstamp=opstamp, payload=tuple(payload))
    write(folder, commit)
    _remove_unused(folder, commit)


@contextmanager
def held(folder: Path) -> Iterator[Commit]:
    """The current commit, whose files are not removed during the block."""
    with durable.locked(folder / _READERS_LOCK):
        yield read(folder)


def dead_documents(folder: Path, segment: Segment) -> set[int]:
    """Numbers of the documents of a segment that have been replaced."""
    if not segment.dead:
        return set()
    bits = _living_bits(folder, segment)
    return {number for number in range(segment.documents) if not bits[number >> 3] >> (number & 7) & 1}


def link(segments: Iterable[Segment], folder: Path, into: Path) -> None:
    """Hard-link the files of these segments into another folder on the same disk."""
    for segment in segments:
        for path in _files(folder, segment):
            (into / path.name).hardlink_to(path)


def _files(folder: Path, segment: Segment) -> list[Path]:
    return [path for path in folder.glob(f"{segment.name}.*") if _belongs(path.name, segment)]


def _belongs(name: str, segment: Segment) -> bool:
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None or match[1] != segment.name:
        return False
    return match[2] is None or (segment.dead > 0 and int(match[2]) == segment.dead_opstamp)


def _bury(folder: Path, segment: Segment, documents: Collection[int], opstamp: int) -> Segment:
    """Mark documents of a segment as replaced, in a new file of its living documents."""
    bits = _living_bits(folder, segment)
    for number in documents:
        bits[number >> 3] &= ~(1 << (number & 7))
    body = struct.pack("<I", segment.documents) + bits
    with (folder / f"{segment.name}.{opstamp}.del").open("wb") as file:
        file.write(body + _footer(folder / f"{segment.name}.store", body))
        durable.sync_file(file)
    living = int.from_bytes(bits, "little").bit_count()
    return replace(segment, dead=segment.documents - living, dead_opstamp=opstamp)


def _living_bits(folder: Path, segment: Segment) -> bytearray:
    size = (segment.documents + 63) // 64 * 8
    if not segment.dead:
        return bytearray(((1 << segment.documents) - 1).to_bytes(size, "little"))
    path = folder / f"{segment.name}.{segment.dead_opstamp}.del"
    bits = bytearray(path.read_bytes()[4 : 4 + size])
    if len(bits) != size:
        raise CorruptData(f"{path} is damaged. Run: webdepot index rebuild", where=str(path))
    return bits


def _footer(example: Path, body: bytes) -> bytes:
    """A footer with the same version as that of another file."""
    with example.open("rb") as file:
        file.seek(-_FOOTER_END.size, 2)
        length, magic = _FOOTER_END.unpack(file.read())
        if magic != _MAGIC:
            raise CorruptData(f"{example} is damaged. Run: webdepot index rebuild", where=str(example))
        file.seek(-_FOOTER_END.size - length, 2)
        footer = json.loads(file.read(length))
    written = json.dumps({**footer, "crc": zlib.crc32(body)}, separators=(",", ":")).encode()
    return written + _FOOTER_END.pack(len(written), _MAGIC)


def _remove_unused(folder: Path, commit: Commit) -> None:
    """Remove files of segments that are not in this commit. Readers that have them open keep them."""
    segments = {segment.name: segment for segment in commit.segments}
    unused = [
        path
        for path in folder.iterdir()
        if (match := _SEGMENT_FILE.fullmatch(path.name))
        and not (match[1] in segments and _belongs(path.name, segments[match[1]]))
    ]
    if unused:
        with durable.locked(folder / _READERS_LOCK):
            for path in unused:
                path.unlink(missing_ok=True)
