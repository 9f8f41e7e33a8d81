"""The records of a search result: as one WARC file, or as WACZ 1.1.1 for replay tools
(https://specs.webrecorder.net/wacz/1.1.1/).

Every capture once, byte for byte, one gzip member each, but without session cookies of logins; for a revisit
also the original, and for a page its images, style sheets, scripts and frames as captured nearest to it
(`parts.py`), so that it can be replayed. A record of an ARC file becomes a WARC response with the same
bytes. Records that cannot be read are left out: `webdepot doctor` reports them.

    WACZ   archive/data.warc.gz      pages/pages.jsonl     datapackage-digest.json
           indexes/index.cdx         datapackage.json

The ZIP is streamed: sizes follow each member. `java.util.zip.ZipInputStream` refuses stored members whose
size follows (`ZipFile` does not), but containers must be stored, so that players can seek in them.
"""

import hashlib
import io
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain

from webdepot.archive import Archive, ScratchPurpose
from webdepot.container import new_records
from webdepot.container.conversion.rewrite import member_of
from webdepot.container.members import gzip_member
from webdepot.container.new_records import NewRecord
from webdepot.container.reader import read_record
from webdepot.container.record import LONGEST_HEAD_BYTES, Record, head_end
from webdepot.container.streams import iter_pieces
from webdepot.depot.bundle import zipped
from webdepot.depot.bundle.zipped import NewZipMember
from webdepot.digest import sha1
from webdepot.errors import CorruptData, NotFound
from webdepot.harvest.fetch.cookies import hide_values
from webdepot.model import Capture, RecordKind
from webdepot.ports.search import State, TextQuery
from webdepot.services.access.export.parts import Parts
from webdepot.services.access.export.wacz_index import ExportedRecord, WaczIndex
from webdepot.services.access.replay import session_cookies
from webdepot.times import Period, from_timestamp
from webdepot.version import VERSION

MOST_REMEMBERED = 500_000


def as_warc(archive: Archive, query: TextQuery, states: Iterator[State]) -> Iterator[bytes]:
    """The records as one WARC file."""
    for member in _members(archive, query, states):
        yield from member.pieces


def as_wacz(archive: Archive, query: TextQuery, states: Iterator[State]) -> Iterator[bytes]:
    """The records as a WACZ file."""
    with (
        archive.scratch_folder(ScratchPurpose.EXPORT) as folder,
        closing(WaczIndex(folder)) as index,
    ):
        package = _Zip()
        for member in index.containers("data", _members(archive, query, states)):
            yield from package.add(member)
        for member in index.members():
            yield from package.add(member)
        title = f"{archive.config.archive.name}: search"
        described = zipped.describe(
            package.members, title=title, created=archive.clock(), software=f"webdepot {VERSION}"
        )
        for name, data in described.items():
            yield from package.add(
                NewZipMember(name=name, size_bytes=len(data), chunks=iter([data]), is_packed=True)
            )
        yield package.end()


def captures_of(archive: Archive, state: State) -> Iterator[Capture]:
    """The captures of a state."""
    for timestamp in dict.fromkeys(state.timestamps):
        moment = from_timestamp(timestamp)
        yield from archive.captures.versions(
            state.key, period=Period(moment, moment), collection=state.collection
        )


def _members(archive: Archive, query: TextQuery, states: Iterator[State]) -> Iterator[ExportedRecord]:
    """Every capture with the parts that it needs, each record once."""
    sent: set[int] = set()
    parts = Parts(archive, query)
    for state in states:
        for capture in captures_of(archive, state):
            needed = chain([capture], parts.of(capture, collection=state.collection))
            for part in _with_originals(parts, needed):
                place = hash((part.location.container, part.location.offset))
                if place in sent or not parts.is_open(part):
                    continue
                if len(sent) < MOST_REMEMBERED:
                    sent.add(place)
                yield from iter_record(archive, part, (state.title or part.url) if part is capture else "")


def _with_originals(parts: Parts, captures: Iterable[Capture]) -> Iterator[Capture]:
    """The captures, and for each revisit also the capture that has its bytes."""
    for capture in captures:
        yield capture
        original = parts.original_of(capture)
        if original is not None:
            yield original


def iter_record(archive: Archive, capture: Capture, title: str = "") -> Iterator[ExportedRecord]:
    """The record of a capture, whose pieces must be read before the next is asked for; none if it cannot be
    read.
    """
    try:
        with archive.containers.open(capture.location.container) as stream:
            record = read_record(stream, capture.location)
            pieces = _pieces_of(archive, record)
            # The first piece is read here, so that a damaged record is left out instead of cut off.
            first = next(pieces)
            yield ExportedRecord(capture=capture, title=title, pieces=_after(first, pieces))
    except (CorruptData, NotFound):
        return


def _pieces_of(archive: Archive, record: Record) -> Iterator[bytes]:
    is_hiding = session_cookies.concern(archive, record.url) and session_cookies.has_values(record)
    if not record.header.startswith(b"WARC/"):
        return _as_warc(record, is_hiding=is_hiding)
    return gzip_member(_without_cookies(record)) if is_hiding else member_of(record)


def _without_cookies(record: Record) -> Iterator[bytes]:
    """A WARC record without the values of its cookies, which says so in a field. Its block has another length
    and another digest; its payload stays.
    """
    stream = record.block()
    begin = stream.read(LONGEST_HEAD_BYTES)
    end = head_end(begin, 0, len(begin))
    head = hide_values(begin[:end], lambda _: True)
    length = record.size_bytes - end + len(head)
    version, *lines = record.header.rstrip(b"\r\n").split(b"\r\n")
    kept = [
        line for line in lines if not line.lower().startswith((b"content-length:", b"warc-block-digest:"))
    ]
    fields = [*kept, b"Webdepot-Removed: Set-Cookie", b"Content-Length: %d" % length]
    yield b"\r\n".join([version, *fields, b"", b""])
    yield head
    yield begin[end:]
    yield from iter_pieces(stream)
    yield b"\r\n\r\n"


def _as_warc(record: Record, *, is_hiding: bool) -> Iterator[bytes]:
    """A record of an ARC file with a WARC header before the same block. Its identifier depends only on its
    place.
    """
    block = record.block().read()
    if is_hiding:
        end = head_end(block, 0, len(block))
        block = hide_values(block[:end], lambda _: True) + block[end:]
    place = record.location
    content_type = (
        "application/http; msgtype=response"
        if record.head is not None
        else record.content_type or "application/octet-stream"
    )
    new = NewRecord(
        kind=RecordKind.RESPONSE if record.head is not None else RecordKind.RESOURCE,
        url=record.url,
        date=record.date,
        content_type=content_type,
        id=f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{place.container}#{place.offset}')}>",
        head=block,
    )
    return gzip_member(
        iter([new_records.header(new, str(sha1(new.head))), *iter_pieces(io.BytesIO(new.head)), b"\r\n\r\n"])
    )


def _after(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from pieces


# --- WACZ ---


class _Zip:
    """A ZIP file that is sent while it is written."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._zip = zipfile.ZipFile(self._sink, "w", allowZip64=True)  # type: ignore[call-overload]
        self.members: dict[str, tuple[int, str]] = {}

    def add(self, member: NewZipMember) -> Iterator[bytes]:
        entry, is_large = zipped.entry_of(member)
        hasher, size = hashlib.sha256(), 0
        with self._zip.open(entry, "w", force_zip64=is_large) as sink:
            for piece in member.chunks:
                sink.write(piece)
                hasher.update(piece)
                size += len(piece)
                yield self._sink.take()
        self.members[member.name] = (size, hasher.hexdigest())
        yield self._sink.take()

    def end(self) -> bytes:
        self._zip.close()
        return self._sink.take()


class _Sink:
    """Collects what the ZIP writer writes until it is sent; cannot seek."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._waiting.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing is buffered elsewhere."""

    def take(self) -> bytes:
        data = b"".join(self._waiting)
        self._waiting.clear()
        return data
