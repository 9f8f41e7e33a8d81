"""Records to be written, made from a visit as WARC 1.1 requires
(https://iipc.github.io/warc-specifications/).

    from_visit     request, then response (or revisit, if the same payload is stored already)
    about_visit    metadata: referring page, duration, outlinks
    warcinfo       first in every file: who made it, and how

The block is exactly what came over the wire, chunks included. `WARC-Payload-Digest` is over the body without
transfer coding, as the standard says (6.3.2) and as deduplication needs: chunk borders differ between
responses. (`warcio check` compares it with the chunked bytes and so reports chunked responses as wrong:
https://github.com/webrecorder/warcio/issues/75.)
"""

import hashlib
import ipaddress
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from io import BytesIO
from random import Random
from typing import BinaryIO

from webdepot import digest, times
from webdepot.container.http import parse_head, transfer_decoded
from webdepot.model import Capture, RecordKind, Visit

FieldPairs = tuple[tuple[str, str], ...]

SAME_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
FIELDS_TYPE = "application/warc-fields"
PAGE_TITLE = "Webdepot-Page-Title"
"""Further field of `urn:text:URL`: the title of the page, as the browser showed it."""
_REQUEST_TYPE = "application/http; msgtype=request"
_RESPONSE_TYPE = "application/http; msgtype=response"
_LINE_BREAKS = re.compile(r"[\r\n\0]+")
_random = Random()  # for names, not for secrets
os.register_at_fork(after_in_child=_random.seed)


def new_id() -> str:
    """A random record identifier (UUID version 4, RFC 9562, 5.4).

    Written out here because `uuid.uuid4` takes five times as long, and each page has three records.
    """
    digits = f"{_random.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"<urn:uuid:{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to be written. Its block is `head` followed by the first `body_bytes` bytes of the seekable
    `body`.
    """

    kind: RecordKind
    url: str = ""
    date: datetime
    content_type: str
    fields: tuple[tuple[str, str], ...] = ()
    """Further named fields, in their order."""
    head: bytes = b""
    body: BinaryIO | None = None
    body_bytes: int = 0
    id: str = field(default_factory=new_id)

    @property
    def size_bytes(self) -> int:
        """The size of the block: its Content-Length."""
        return len(self.head) + self.body_bytes


def payload_digest(visit: Visit) -> str:
    """The labelled SHA-1 of the body without transfer coding, computed piece by piece."""
    payload = _payload(visit)
    chunk = payload.read(digest.CHUNK_BYTES)
    hasher = hashlib.sha1(chunk, usedforsecurity=False)
    while len(chunk) == digest.CHUNK_BYTES:
        chunk = payload.read(digest.CHUNK_BYTES)
        hasher.update(chunk)
    return digest.sha1_label(hasher.digest())


def from_visit(visit: Visit, *, payload_digest: str, revisit_of: Capture | None = None) -> list[NewRecord]:
    """Request and response of a visit, to be written together; nothing for a visit without a response."""
    if not visit.head:
        return []
    server = _address(visit)
    answer = (
        _revisit(visit, payload_digest, server, revisit_of)
        if revisit_of
        else _response(visit, payload_digest, server)
    )
    if not visit.request:
        return [answer]
    request = NewRecord(
        kind=RecordKind.REQUEST,
        url=visit.candidate.url,
        date=visit.at,
        content_type=_REQUEST_TYPE,
        fields=(("WARC-Concurrent-To", answer.id), *server, *_removed(visit, "Authorization", "Cookie")),
        head=visit.request,
    )
    return [request, answer]


def _removed(visit: Visit, *names: str) -> FieldPairs:
    """A field of our own that names the headers whose values are not stored (secrets of a login)."""
    removed = [name for name in names if name in visit.removed] if visit.removed else []
    return (("Webdepot-Removed", ", ".join(removed)),) if removed else ()


def about_visit(visit: Visit, outlinks: Sequence[tuple[str, str]], *, concurrent_to: str = "") -> NewRecord:
    """Metadata of a visit. Outlinks are canonical addresses with their hop, `concurrent_to` is the id of the
    response.
    """
    candidate = visit.candidate
    lines = [f"via: {_one_line(candidate.via)}\r\n"] if candidate.via else []
    if candidate.path:
        lines.append(f"hopsFromSeed: {candidate.path}\r\n")
    lines.append(f"fetchTimeMs: {round(visit.duration_s * 1000)}\r\n")
    lines += [f"outlink: {url} {hop}\r\n" for url, hop in outlinks]
    return NewRecord(
        kind=RecordKind.METADATA,
        url=candidate.url,
        date=visit.at,
        content_type=FIELDS_TYPE,
        fields=(("WARC-Concurrent-To", concurrent_to),) if concurrent_to else (),
        head="".join(lines).encode("utf-8", "replace"),
    )


def warcinfo(name: str, info: Mapping[str, str], date: datetime) -> NewRecord:
    """The first record of the container of that name."""
    return NewRecord(
        kind=RecordKind.WARCINFO,
        date=date,
        content_type=FIELDS_TYPE,
        fields=(("WARC-Filename", name),),
        head=_named_fields({"format": "WARC File Format 1.1", **info}.items()),
    )


def resource(
    url: str, date: datetime, content_type: str, body: BinaryIO, body_bytes: int, *, title: str = ""
) -> NewRecord:
    """A file that did not come over HTTP: made by Webdepot, or from a partner's folder. `title` is that of
    the page from which it was made.
    """
    body.seek(0)
    payload_digest = str(digest.of_stream(body, "sha1")[0])
    return NewRecord(
        kind=RecordKind.RESOURCE,
        url=url,
        date=date,
        content_type=content_type,
        fields=(("WARC-Payload-Digest", payload_digest), *(((PAGE_TITLE, title),) if title else ())),
        body=body,
        body_bytes=body_bytes,
    )


def header(record: NewRecord, block_digest: str) -> bytes:
    """The header of a record, with the empty line that ends it."""
    url = f"WARC-Target-URI: {_one_line(record.url)}\r\n" if record.url else ""
    more = "".join(
        [f"{name}: {value if value.isprintable() else _one_line(value)}\r\n" for name, value in record.fields]
    )
    return (
        f"WARC/1.1\r\nWARC-Type: {record.kind.value}\r\nWARC-Record-ID: {record.id}\r\n"
        f"WARC-Date: {times.to_iso(record.date)}\r\n{url}{more}"
        f"WARC-Block-Digest: {block_digest}\r\nContent-Type: {record.content_type}\r\n"
        f"Content-Length: {len(record.head) + record.body_bytes}\r\n\r\n"
    ).encode("utf-8", "replace")


def _response(visit: Visit, payload_digest: str, server: FieldPairs) -> NewRecord:
    truncated = (("WARC-Truncated", visit.truncated),) if visit.truncated else ()
    return NewRecord(
        kind=RecordKind.RESPONSE,
        url=visit.candidate.url,
        date=visit.at,
        content_type=_RESPONSE_TYPE,
        fields=(
            *server,
            *truncated,
            *_removed(visit, "Set-Cookie"),
            ("WARC-Payload-Digest", payload_digest),
        ),
        head=visit.head,
        body=visit.body,
        body_bytes=visit.body_bytes,
    )


def _revisit(visit: Visit, payload_digest: str, server: FieldPairs, earlier: Capture) -> NewRecord:
    """The revisit record of a payload that is stored already: the head only (6.7.2)."""
    referred = (
        ("WARC-Profile", SAME_PAYLOAD),
        ("WARC-Refers-To-Target-URI", earlier.url),
        ("WARC-Refers-To-Date", times.to_iso(times.from_timestamp(earlier.timestamp))),
    )
    return NewRecord(
        kind=RecordKind.REVISIT,
        url=visit.candidate.url,
        date=visit.at,
        content_type=_RESPONSE_TYPE,
        fields=(
            *server,
            *referred,
            *_removed(visit, "Set-Cookie"),
            ("WARC-Payload-Digest", payload_digest),
        ),
        head=visit.head,
    )


def _address(visit: Visit) -> FieldPairs:
    return _server_fields(visit.server_address, visit.protocol)


# A harvest asks few servers many times.
@lru_cache(maxsize=1024)
def _server_fields(stated: str, protocol: str) -> FieldPairs:
    """Address and protocol. The field allows only an IP address; a proxy may have left a name instead."""
    try:
        address: FieldPairs = (("WARC-IP-Address", str(ipaddress.ip_address(stated))),)
    except ValueError:
        address = ()
    return (*address, ("WARC-Protocol", protocol)) if protocol else address


def _payload(visit: Visit) -> BinaryIO:
    if not visit.body_bytes:
        return BytesIO()
    visit.body.seek(0)
    if b"transfer-" not in visit.head.lower():  # most heads have no transfer coding and need no parsing
        return visit.body
    return transfer_decoded(visit.body, parse_head(visit.head))


def _named_fields(pairs: Iterable[tuple[str, str]]) -> bytes:
    return "".join(f"{name}: {_one_line(value)}\r\n" for name, value in pairs).encode("utf-8", "replace")


def _one_line(value: str) -> str:
    return value if value.isprintable() else _LINE_BREAKS.sub(" ", value).strip()
