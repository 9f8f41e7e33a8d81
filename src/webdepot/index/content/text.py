"""The searchable text of a capture: title, headings, main text, language.

1. Select: responses with status 200 and resources that are HTML, plain text, PDF or an office document, and
   articles in JATS that came as files. The server's type counts if it is one of these; if it is vague, the
   first bytes decide. A response 404 or 410 has no text, but ends the validity of the page before it.
2. Decode (WHATWG order): byte-order mark, HTTP header, meta tag, UTF-8 if it is valid, then the encoding that
   Resiliparse detects.
3. Extract: `html.py`, `documents.py`, `jats.py`. A page that was opened in a browser has a record
   `urn:text:ADDRESS` in its container, with the text and the title that were shown (`shown_texts.py`): lines
   that scripts have added are included, and the title replaces that of the HTML.
4. Language: `language.py`. Similarity hash: `near_duplicates.py`.

A revisit has no text. If its original is earlier in the same container, the text is read there; otherwise the
page `repeats`, and the text index takes the text of the capture with that digest. At most `limit_bytes` of a
document are read.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

from webdepot import digest
from webdepot.cdxj import REVISIT_MIME
from webdepot.container.damage import OnFinding
from webdepot.container.http import HttpHead, content_decoded
from webdepot.container.reader import iter_records, read_record
from webdepot.container.record import Record
from webdepot.errors import CorruptData
from webdepot.index import capture_from_record
from webdepot.index.content import shown_texts
from webdepot.index.content.documents import DocumentReader, DocumentText
from webdepot.index.content.html import HtmlWords, shown_by_scripts, words_of_html
from webdepot.index.content.jats import XML_MIMES, words_of_jats
from webdepot.index.content.language import SAMPLE_CHARS, language_of
from webdepot.index.content.office import OFFICE_MIMES, Unread
from webdepot.index.content.shown_texts import LateTexts, ShownText
from webdepot.index.text.near_duplicates import likeness
from webdepot.model import Capture, Finding, Location, RecordKind, Severity
from webdepot.ports.search import PageText

HTML_MIMES = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
PLAIN_MIMES = frozenset({"text/plain", "text/markdown"})
PDF_MIMES = frozenset({"application/pdf", "application/x-pdf"})
_DOCUMENT_MIMES = PDF_MIMES | OFFICE_MIMES
_WORDY_MIMES = HTML_MIMES | PLAIN_MIMES | _DOCUMENT_MIMES
_VAGUE_MIMES = frozenset(
    {
        capture_from_record.UNKNOWN_MIME,
        "application/octet-stream",
        "application/x-unknown",
        "binary/octet-stream",
    }
)
# A truncated document usually cannot be read at all, so more of it is read than of a page.
_DOCUMENT_FACTOR = 8
_GONE = (404, 410)
LONGEST_TITLE, _LONGEST_HEADINGS = 500, 5000
_MOST_REMEMBERED = 50_000
_BATCH_RECORDS, _BATCH_BYTES = 48, 2 << 20

_META_CHARSET = re.compile(rb"<meta\s[^<>]*?charset\s*+=\s*+[\"']?\s*+([^\s\"'/>;]+)", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?([^\s;\"']+)", re.IGNORECASE)
_CONTROL = re.compile(r"[\0-\x08\x0b\x0e-\x1f\x7f]")
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def read_container(
    path: Path,
    name: str,
    collection: str,
    languages: tuple[str, ...],
    limit_bytes: int,
    *,
    on_finding: OnFinding,
    on_damage: OnFinding | None = None,
    on_records: Callable[[Sequence[Record]], None] | None = None,
    late: LateTexts | None = None,
) -> Iterator[tuple[Capture, PageText | None]]:
    """Every capture of a container, and its text if it has one: one pass for both indexes.

    `on_records` is called first with all records, in batches, so that other data can be derived from them;
    `on_damage` gets the findings about damage of the container, which otherwise go to `on_finding`. `late`
    collects the shown texts that come after their page; if there are any, a second call with it uses them.
    """
    damage: list[Finding] = []
    with path.open("rb") as stream, path.open("rb") as again, DocumentReader() as documents:
        reader = _Reader(
            collection=collection,
            languages=languages,
            limit_bytes=limit_bytes,
            documents=documents,
            on_finding=on_finding,
            container=again,
            late=late or LateTexts(),
        )
        every = iter_records(stream, name, on_finding=damage.append)
        batches = _batches(every, damage, on_damage or on_finding)
        records = reader.watch_shown_texts(batches, on_records)
        yield from capture_from_record.paired(records, reader.read, on_finding=on_finding)


def _batches(
    records: Iterable[Record], damage: list[Finding], on_damage: OnFinding
) -> Iterator[Sequence[Record]]:
    """The records in batches, and the findings in `damage` between them, in the order of the container. A
    record that is not held in memory can only be read before the next one, so it ends its batch.

    One step for all records of a batch, then the next step, takes a tenth to a fifth less processor time than
    all steps for one record after another, probably because of the processor's caches.
    """
    batch: list[Record] = []
    size_bytes = 0
    for record in records:
        if damage:
            yield batch
            batch, size_bytes = [], 0
            while damage:
                on_damage(damage.pop(0))
        batch.append(record)
        size_bytes += record.size_bytes
        if len(batch) >= _BATCH_RECORDS or size_bytes > _BATCH_BYTES or not record.is_held:
            yield batch
            batch, size_bytes = [], 0
    yield batch
    while damage:
        on_damage(damage.pop(0))


class _Reader:
    """State of one pass over a container: limits, the process for documents, locations of payloads with
    text.
    """

    def __init__(
        self,
        *,
        collection: str,
        languages: tuple[str, ...],
        limit_bytes: int,
        documents: DocumentReader,
        on_finding: OnFinding,
        container: BinaryIO,
        late: LateTexts,
    ) -> None:
        self._collection = collection
        self._languages = languages
        self._limit_bytes = limit_bytes
        self._documents = documents
        self._on_finding = on_finding
        self._container = container
        self._seen: dict[str, Location] = {}
        self._last: PageText | None = None
        """The page that was read last, unless the text that a browser showed is known."""
        self._shown = ShownText()
        self._known, self._late = (late, LateTexts()) if late.locations else (LateTexts(), late)
        """Late texts of an earlier pass, and those of this one."""

    def watch_shown_texts(
        self, batches: Iterable[Sequence[Record]], on_records: Callable[[Sequence[Record]], None] | None
    ) -> Iterator[Record]:
        """Yield all records, and remember the texts that a browser showed."""
        for batch in batches:
            if on_records is not None:
                on_records(batch)
            for record in batch:
                if shown_texts.is_shown_text(record):
                    self._shown = shown_texts.read(record, self._limit_bytes)
                    self._late.note_text(self._shown.url, record.location)
                yield record

    def read(self, record: Record) -> tuple[Capture, PageText | None]:
        if self._known.locations and self._shown.url != record.url:
            late = self._known.find(record.url, record.location, self._container, self._limit_bytes)
            self._shown = late or self._shown
        is_revisit = record.kind is RecordKind.REVISIT
        if is_revisit or _may_have_words(record):
            self._late.note_page(record.url, is_shown=self._shown.url == record.url)
        if is_revisit:
            capture = capture_from_record.of_record(record)
            return capture, self._of_revisit(capture)
        if not _may_have_words(record):
            capture = capture_from_record.of_record(record)
            return capture, self._make_page(
                capture, _NOTHING, size_bytes=0, gone=True
            ) if capture.status in _GONE and not capture.url.endswith("/robots.txt") else None
        data, payload_digest = self._content(record)
        capture = capture_from_record.of_record(record, payload_digest=payload_digest)
        page = self._page(capture, record.head, data)
        self._last = page if self._shown.url != capture.url else None
        if page is not None and len(self._seen) < _MOST_REMEMBERED:
            self._seen[capture.digest] = capture.location
        return capture, page

    def _content(self, record: Record) -> tuple[bytes, str]:
        """The payload up to the limit, without content coding, and its digest: stated, or computed over all
        of it.
        """
        limit = self._limit_bytes * (
            _DOCUMENT_FACTOR if capture_from_record.mime_of(record) in _DOCUMENT_MIMES | XML_MIMES else 1
        )
        stated = capture_from_record.stated_digest(record)
        if stated:
            return record.content(limit).read(limit), stated
        head = record.head
        kept, payload = BytesIO(), record.payload()
        computed = digest.of_stream(_Copying(payload, kept, limit), "sha1")[0]  # type: ignore[arg-type]
        kept.seek(0)
        return (content_decoded(kept, head, limit_bytes=limit) if head else kept).read(limit), str(computed)

    def _of_revisit(self, capture: Capture) -> PageText | None:
        if capture.status not in (0, 200, 304) or not capture.digest:
            return None
        shown, last = self._shown, self._last
        if (
            last is not None
            and (last.digest, last.url) == (capture.digest, capture.url)
            and shown.url != capture.url
        ):
            return replace(last, timestamp=capture.timestamp)  # nothing else differs
        original = self._seen.get(capture.digest)
        if original is None and shown.text and shown.url == capture.url:
            # The same HTML, but scripts may have shown something else. If it had no title there, the title of
            # the HTML is not available; the first line is.
            title = shown.title or shown.text.strip().partition("\n")[0]
            return self._make_page(
                capture, HtmlWords(title=title, headings="", text=shown.text), size_bytes=len(shown.text)
            )
        if original is None:
            is_other = capture.mime not in _WORDY_MIMES and capture.mime != REVISIT_MIME
            return None if is_other else self._make_page(capture, _NOTHING, size_bytes=0, repeats=True)
        try:
            record = read_record(self._container, original)
        except CorruptData:
            return self._make_page(capture, _NOTHING, size_bytes=0, repeats=True)
        data, _ = self._content(record)
        return self._page(capture, record.head, data, mime=capture_from_record.mime_of(record))

    def _page(self, capture: Capture, head: HttpHead | None, data: bytes, mime: str = "") -> PageText | None:
        mime = _kind_of(mime or capture.mime, data)
        try:
            words = self._words(capture, head, data, mime)
        except Unread as error:
            self._on_finding(_unread(capture, str(error)))
            return None
        shown = self._shown
        if words is not None and shown.url == capture.url and mime in HTML_MIMES:
            added = shown_by_scripts(decode(data, charset_of(head), is_html=True), shown.text)
            words = replace(words, text=f"{words.text}\n{added}") if added else words
            words = replace(words, title=shown.title) if shown.title else words
        return (
            self._make_page(
                capture, words, mime="application/pdf" if mime in PDF_MIMES else mime, size_bytes=len(data)
            )
            if words
            else None
        )

    def _words(self, capture: Capture, head: HttpHead | None, data: bytes, mime: str) -> HtmlWords | None:
        if mime in PDF_MIMES:
            return _words_of_document(self._documents.read_pdf(data, limit_chars=self._limit_bytes))
        if mime in OFFICE_MIMES:
            return _words_of_document(self._documents.read_office(data, limit_chars=self._limit_bytes))
        if mime in XML_MIMES:
            return words_of_jats(data)
        if mime not in HTML_MIMES and mime not in PLAIN_MIMES:
            return None
        text = decode(data, charset_of(head), is_html=mime in HTML_MIMES)
        return (
            words_of_html(text, capture.url)
            if mime in HTML_MIMES
            else HtmlWords(title="", headings="", text=text)
        )

    def _make_page(
        self,
        capture: Capture,
        words: HtmlWords,
        *,
        size_bytes: int,
        mime: str = "",
        repeats: bool = False,
        gone: bool = False,
    ) -> PageText:
        text = tidy(words.text)
        has_words = not (repeats or gone)
        return PageText(
            key=capture.key,
            url=capture.url,
            timestamp=capture.timestamp,
            mime=mime or capture.mime,
            size_bytes=size_bytes,
            collection=self._collection,
            title=tidy(words.title).replace("\n", " ")[:LONGEST_TITLE],
            headings=tidy(words.headings)[:_LONGEST_HEADINGS],
            text=text,
            language=language_of(f"{words.title} {text[:SAMPLE_CHARS]}", self._languages)
            if has_words
            else "",
            digest=capture.digest,
            repeats=repeats,
            gone=gone,
            likeness=likeness(text) if has_words else 0,
            images=tidy(words.images),
            links=words.links,
        )


class _Copying:
    """A stream that keeps a copy of the first bytes that are read through it."""

    def __init__(self, source: BinaryIO, copy: BytesIO, limit_bytes: int) -> None:
        self._source, self._copy, self._left = source, copy, limit_bytes

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        if self._left > 0:
            self._left -= self._copy.write(data[: self._left])
        return data


def decode(data: bytes, charset: str = "", *, is_html: bool) -> str:
    """The text of bytes whose encoding is stated by the header, by the bytes themselves, or not at all. Never
    raises.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    meta = _META_CHARSET.search(data, 0, 4096) if is_html else None
    for stated in (charset, meta[1].decode("latin-1") if meta else "", "utf-8"):
        text = _strictly(data, stated) if stated else None
        if text is not None:
            return text
    return data.decode(_codec(detect_encoding(data[:65536])) or "windows-1252", "replace")


def tidy(text: str) -> str:
    """The text with single spaces, without blank lines and control characters: as stored and shown."""
    text = text.strip().replace("\n\n", "\n")
    flat = text.replace("\n", " ")
    if flat.isprintable():
        # Only spaces and line ends could be surplus, and extracted text mostly has none.
        if "  " not in flat:
            return text
    else:
        text = _CONTROL.sub(" ", text)
    # Without Python code for each line: all indexed text passes here.
    return "\n".join(filter(None, map(" ".join, map(str.split, text.split("\n")))))


_NOTHING = HtmlWords(title="", headings="", text="")


def _may_have_words(record: Record) -> bool:
    head = record.head
    if record.kind is RecordKind.CONVERSION or (head is not None and head.status != 200):
        return False
    mime = capture_from_record.mime_of(record)
    is_article = mime in XML_MIMES and record.kind is RecordKind.RESOURCE
    # robots.txt is plain text, but not a page.
    return (mime in _WORDY_MIMES or mime in _VAGUE_MIMES or is_article) and not record.url.endswith(
        "/robots.txt"
    )


def _kind_of(mime: str, data: bytes) -> str:
    """The server's type, unless the bytes clearly contradict it."""
    begin = data[:1024].lstrip()
    if begin.startswith(b"%PDF-"):
        return "application/pdf"
    is_binary = b"\0" in begin and not begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if mime in _VAGUE_MIMES and not is_binary:
        return (
            "text/html" if re.match(rb"<(?:!doctype html|html|head|body)\b", begin, re.IGNORECASE) else mime
        )
    return "" if is_binary and mime not in _DOCUMENT_MIMES else mime


def charset_of(head: HttpHead | None) -> str:
    """The charset that the header states; empty if none."""
    match = _CHARSET.search(head.get("content-type") or "") if head else None
    return match[1] if match else ""


def _codec(name: str | None) -> str:
    """Python's name of an encoding by the web's rules (`latin1` means windows-1252); empty if unknown."""
    mapped = map_encoding_to_html5(name or "", fallback_utf8=False) or ""
    try:
        return codecs.lookup(mapped).name if mapped else ""
    except LookupError:
        return ""


def _strictly(data: bytes, name: str) -> str | None:
    """The decoded text if all bytes are valid, except for a character cut at the limit; otherwise None."""
    codec = _codec(name)
    if not codec:
        return None
    try:
        return codecs.getincrementaldecoder(codec)("strict").decode(data, final=False)
    except UnicodeError:
        return None


def _unread(capture: Capture, reason: str) -> Finding:
    return Finding(
        code="text-unread",
        severity=Severity.NOTE,
        subject=capture.url,
        message=f"Its text could not be read: {reason}.",
        place=f"{capture.location.container} byte {capture.location.offset}",
    )


def _words_of_document(document: DocumentText) -> HtmlWords:
    if document.error:
        raise Unread(document.error)
    return HtmlWords(title=document.title, headings="", text=document.text)
