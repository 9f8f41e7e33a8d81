"""The capture of a record: one line of the capture index.

Responses, revisits, resources and conversions are indexed. Requests, metadata, warcinfo, DNS lookups (`dns:`)
and records derived from a page when it was harvested (`ABOUT_PAGES`) are not versions of an address. The
response to a request with a body has its own key (`post_requests.py`). The payload digest is taken from the
record if it states a readable one; otherwise it is computed.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import urljoin

from webdepot import digest, times
from webdepot.cdxj import REVISIT_MIME
from webdepot.container.damage import OnFinding
from webdepot.container.fields import Fields
from webdepot.container.http import parse_head
from webdepot.container.reader import iter_records
from webdepot.container.record import ABOUT_PAGES, Record
from webdepot.index import post_requests
from webdepot.model import Capture, Finding, RecordKind, Severity
from webdepot.url import find_canonical
from webdepot.url import key as key_of

INDEXED = frozenset({RecordKind.RESPONSE, RecordKind.REVISIT, RecordKind.RESOURCE, RecordKind.CONVERSION})
UNKNOWN_MIME = "unk"
_LONGEST_MIME = 100
_NO_VERSIONS = ("dns:", *ABOUT_PAGES)
Thing = TypeVar("Thing")


def of_container(path: Path, name: str, *, on_finding: OnFinding) -> Iterator[Capture]:
    """The captures of a container in the order of its records; damage is reported to `on_finding` and
    skipped.
    """
    with path.open("rb") as stream:
        records = iter_records(stream, name, on_finding=on_finding)
        for capture, _ in paired(records, _capture_alone, on_finding=on_finding):
            yield capture


def _capture_alone(record: Record) -> tuple[Capture, None]:
    return of_record(record), None


def paired(
    records: Iterable[Record],
    read: Callable[[Record], tuple[Capture, Thing | None]],
    *,
    on_finding: OnFinding,
) -> Iterator[tuple[Capture, Thing | None]]:
    """The capture of each indexed record, with the second value that `read` returns for it. The response to a
    request with a body gets the key of that request, and None as the second value.

    Some tools write the request before its response, some after it: a capture is held back until the next
    record is seen.
    """
    request: _BodyRequest | None = None
    waiting: tuple[Capture, Thing | None] | None = None
    fields: Fields | None = None  # of the waiting capture; not its record, which holds the block
    for record in records:
        if record.kind is RecordKind.REQUEST:
            new_request = _find_body_request(record)
            if new_request is None:
                continue
            if waiting is not None and new_request.is_for(fields, waiting[0].url):
                waiting = (replace(waiting[0], key=new_request.key), None)
            else:
                request = new_request
        elif is_indexed(record, on_finding):
            if waiting is not None:
                yield waiting
            waiting, fields = read(record), record.fields
            if request is not None:
                if request.is_for(fields, record.url) or request.id in fields.get_all("WARC-Concurrent-To"):
                    waiting = (replace(waiting[0], key=request.key), None)
                request = None
    if waiting is not None:
        yield waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class _BodyRequest:
    """A request with a method other than GET and HEAD."""

    id: str
    concurrent: tuple[str, ...]
    url: str
    key: str

    def is_for(self, fields: Fields | None, url: str) -> bool:
        """Whether the record with these fields and this address is its response."""
        if not self.concurrent:
            return self.url == url
        return ((fields.get("WARC-Record-ID") if fields else None) or "") in self.concurrent


def _find_body_request(record: Record) -> _BodyRequest | None:
    block = record.block().read(post_requests.MOST_BODY_BYTES)
    method = block[:10].partition(b" ")[0].decode("latin-1")
    if method in ("GET", "HEAD", "") or not method.isalpha():
        return None
    head_bytes, _, body = block.partition(b"\r\n\r\n")
    content_type = parse_head(head_bytes + b"\r\n\r\n").get("Content-Type") or ""
    return _BodyRequest(
        id=record.fields.get("WARC-Record-ID") or "",
        concurrent=tuple(record.fields.get_all("WARC-Concurrent-To")),
        url=record.url,
        key=key_of(post_requests.folded(record.url, method, content_type, body)),
    )


def is_indexed(record: Record, on_finding: OnFinding) -> bool:
    """Whether the record is a version of an address that can be opened later."""
    if record.kind not in INDEXED or record.url.startswith(_NO_VERSIONS):
        return False
    if record.kind is RecordKind.CONVERSION and record.fields.get("WARC-Refers-To"):
        # A migrated form of an indexed record; replay finds it by the payload digest of the original.
        return False
    if not record.url:
        on_finding(_without_address(record))
        return False
    # Length 0: the record shares a gzip member with others and cannot be opened; the reader has reported it.
    return record.location.length > 0


def of_record(record: Record, *, payload_digest: str | None = None) -> Capture:
    """The capture of an indexed record. Reads the payload if its digest is neither stated nor given."""
    is_revisit = record.kind is RecordKind.REVISIT
    usual = record.find_status_and_type() if record.kind is RecordKind.RESPONSE else None
    if usual is not None and not 300 <= usual[0] < 400:
        status, mime, redirect = usual[0], _mime(usual[1]), ""
    else:
        head = record.head
        status, mime = head.status if head else 0, mime_of(record)
        redirect = _target(record.url, head.get("Location") or "") if head and 300 <= status < 400 else ""
    return Capture(
        key=key_of(record.url),
        timestamp=times.to_timestamp(record.date),
        url=record.url,
        kind=record.kind,
        status=status,
        mime=mime,
        digest=payload_digest if payload_digest is not None else digest_of(record),
        location=record.location,
        redirect=redirect,
        refers_to_url=(record.fields.get("WARC-Refers-To-Target-URI") or "").strip("<> ")
        if is_revisit
        else "",
        refers_to_timestamp=_refers_to_timestamp(record) if is_revisit else "",
    )


def stated_digest(record: Record) -> str:
    """The payload digest that the record states, in the normal spelling; empty if missing or invalid."""
    return digest.normal(record.payload_digest)


def digest_of(record: Record) -> str:
    """The stated digest, otherwise that of the payload; empty for a revisit that states none."""
    stated = stated_digest(record)
    if stated or record.kind is RecordKind.REVISIT:
        return stated
    return str(digest.of_stream(record.payload(), "sha1")[0])


def mime_of(record: Record) -> str:
    """The media type that the server stated, in lower case, without parameters."""
    content_type = record.content_type
    if record.kind is RecordKind.REVISIT and (
        record.head is None or not content_type.partition(";")[0].strip()
    ):
        return REVISIT_MIME
    return _mime(content_type)


@lru_cache(maxsize=1024)
def _mime(content_type: str) -> str:
    mime = content_type.partition(";")[0].strip().lower()
    is_valid = (
        len(mime) <= _LONGEST_MIME
        and mime.count("/") == 1
        and mime.isascii()
        and mime.isprintable()
        and " " not in mime
    )
    return mime if is_valid else UNKNOWN_MIME


def _target(url: str, location: str) -> str:
    if not location:
        return ""
    # Header bytes are read as Latin-1; browsers take them as UTF-8 if they are valid UTF-8.
    with contextlib.suppress(UnicodeError):
        location = location.encode("latin-1").decode("utf-8")
    target = find_canonical(location, url)
    if target is not None:
        return target
    try:
        return urljoin(url, location.strip())
    except ValueError:
        return ""


def _refers_to_timestamp(record: Record) -> str:
    date = record.fields.get("WARC-Refers-To-Date")
    try:
        return times.to_timestamp(times.from_iso(date)) if date else ""
    except ValueError:
        return ""


def _without_address(record: Record) -> Finding:
    return Finding(
        code="record-without-address",
        severity=Severity.WARNING,
        subject=record.location.container,
        message=f"A {record.kind} record has no address and is not indexed.",
        place=f"byte {record.location.offset}",
    )
