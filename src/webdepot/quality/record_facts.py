"""What the check of a harvest needs to know about one record: computed when the container is read, and stored
until the check (`check_database`).

Outlinks come from metadata records, or are extracted from pages if the container does not have them. The body
of a response is compared with the stated digest and length, and examined if it is a page.
"""

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from webdepot import digest
from webdepot.container.http import HttpHead, content_decoded
from webdepot.container.record import Record
from webdepot.http_headers import stated_number
from webdepot.model import RecordKind
from webdepot.quality import false_pages
from webdepot.url import find_canonical, key

LinkFact = tuple[str, str]
"""Address and hop letter of a link."""
Extract = Callable[[str, HttpHead, bytes], Iterable[LinkFact]]
"""From address, head and body of a page to its links."""

MOST_LINKS_BYTES = 64 << 20
MOST_READ_BYTES = 2 << 20
_OUTLINK = re.compile(r"outlink:\s*(\S+)(?:\s+([A-Z]))?", re.IGNORECASE)
_HTML = ("text/html", "application/xhtml+xml")
_WITH_LINKS = (*_HTML, "text/css")


@dataclass(frozen=True, slots=True)
class PayloadMeasure:
    """SHA-1 and length of a payload, without transfer coding."""

    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Observation:
    """A response that is truncated, false or does not match its record."""

    code: str
    place: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFacts:
    """A response or revisit; or, without `is_response`, the outlinks of a metadata record."""

    url: str
    links: tuple[LinkFact, ...] = ()
    is_response: bool = False
    status: int | None = None
    """None if the response is not HTTP: nothing but observations is known then."""
    key: str = ""
    digest: str = ""
    is_revisit: bool = False
    observed: tuple[Observation, ...] = ()
    false: Observation | None = None
    """The page is not the expected content; also in `observed`."""


def of_record(
    record: Record, *, extract: Extract | None = None, measure: PayloadMeasure | None = None
) -> RecordFacts | None:
    """The facts of a record; None if the check does not need it. `measure` saves reading the payload to its
    end, if it is known.
    """
    if record.kind in (RecordKind.RESPONSE, RecordKind.REVISIT):
        return _of_response(record, extract, measure)
    content_type = (record.fields.get("content-type") or "").lower()
    if record.kind is RecordKind.METADATA and content_type.startswith("application/warc-fields"):
        return RecordFacts(url=record.url, links=tuple(_iter_outlinks(record)))
    return None


def _iter_outlinks(record: Record) -> Iterator[LinkFact]:
    text = record.payload().read(MOST_LINKS_BYTES).decode("utf-8", "replace")
    for line in text.splitlines():
        link = _OUTLINK.match(line)
        # Heritrix writes addresses as the page has them; ours are canonical already.
        if link and (url := find_canonical(link.group(1))):
            yield url, (link.group(2) or "L").upper()


def _of_response(record: Record, extract: Extract | None, measure: PayloadMeasure | None) -> RecordFacts:
    place = f"{record.location.container} byte {record.location.offset}"
    reason = record.fields.get("warc-truncated")
    observed = [Observation("body-truncated", place, reason)] if reason else []
    head = record.head
    if head is None or not record.url.startswith(("http:", "https:")):
        return RecordFacts(url=record.url, is_response=True, observed=tuple(observed))
    links: list[LinkFact] = []
    location = head.get("location") if 300 <= head.status < 400 else None
    if location and (target := find_canonical(location, record.url)):
        links.append((target, "R"))
    payload_digest, false = record.payload_digest, None
    is_revisit = record.kind is RecordKind.REVISIT
    if not is_revisit:
        mime = (head.get("content-type") or "").partition(";")[0].strip().lower()
        measure, begin = _read(record, measure, is_page=mime in _WITH_LINKS)
        payload_digest = measure.digest
        observed += _compare(record, head, measure, place)
        content = _decoded(begin, head)
        if content and extract is not None:
            links += extract(record.url, head, content)
        if content and mime in _HTML and head.status == 200:
            page = false_pages.find_false(record.url, content)
            false = Observation(page.code, "", page.evidence) if page else None
    elif payload_digest:
        stated = digest.parse(payload_digest)
        payload_digest = str(stated) if stated is not None else payload_digest
    return RecordFacts(
        url=record.url,
        links=tuple(links),
        is_response=True,
        status=head.status,
        key=key(record.url),
        digest=payload_digest,
        is_revisit=is_revisit,
        observed=tuple(observed + ([false] if false else [])),
        false=false,
    )


def _read(record: Record, measure: PayloadMeasure | None, *, is_page: bool) -> tuple[PayloadMeasure, bytes]:
    """The measure of the payload, and its beginning if it is a page; nothing is read twice."""
    if measure is not None:
        return measure, record.payload().read(MOST_READ_BYTES) if is_page else b""
    hasher, begin, size_bytes = hashlib.sha1(usedforsecurity=False), b"", 0
    stream = record.payload()
    while piece := stream.read(digest.CHUNK_BYTES):
        hasher.update(piece)
        size_bytes += len(piece)
        begin += piece[: MOST_READ_BYTES - len(begin)] if is_page else b""
    return PayloadMeasure(digest.sha1_label(hasher.digest()), size_bytes), begin


def _compare(record: Record, head: HttpHead, measure: PayloadMeasure, place: str) -> Iterator[Observation]:
    """Whether the body matches its stated digest and length."""
    is_chunked = bool(head.get("transfer-encoding"))
    if is_chunked:  # some writers hash the encoded body, and some the decoded one
        return
    stated = digest.parse(record.payload_digest) if record.payload_digest else None
    if stated is not None and stated.algorithm == "sha1" and str(stated) != measure.digest:
        yield Observation("digest-differs", place, f"expected {stated}, found {measure.digest}")
    stated_bytes = stated_number(head.get("content-length"))
    is_marked = bool(record.fields.get("warc-truncated"))
    if (
        stated_bytes is not None
        and measure.size_bytes < stated_bytes
        and not is_marked
        and head.status != 304
    ):
        detail = f"{measure.size_bytes} of {stated_bytes} bytes received"
        yield Observation("body-truncated", place, detail)


def _decoded(begin: bytes, head: HttpHead) -> bytes:
    """The bytes without their content coding; unchanged if they cannot be decoded."""
    if not (head.get("content-encoding") or "").strip():
        return begin
    return content_decoded(io.BytesIO(begin), head, limit_bytes=MOST_READ_BYTES).read() or begin
