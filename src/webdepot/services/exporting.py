"""Results to take along: every capture that answers a query, streamed, in the order of the index.

    csv      a line for each capture
    jsonl    an object for each state of a page, with its capture times
    solr     an object for each capture in the field names of warc-indexer, which SolrWayback reads
             (https://github.com/netarchivesuite/solrwayback)
    warc     the records themselves, byte for byte, one gzip member each; of a revisit the original too

Nothing is held: any size goes out in the memory of one record. What is closed to the reader is left out, as in the search itself. Records
of ARC files are left out of WARC, which they are not.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum

from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.container.reader import read_record
from webdepot.container.rewrite import member_of
from webdepot.errors import CorruptData, NotFound
from webdepot.model import EVERYTHING, Capture, RecordKind
from webdepot.ports import State, TextQuery
from webdepot.services import searching
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.times import Period, from_timestamp, to_iso
from webdepot.url import domain_of, host_of

_EVERY = 1000
"""So many lines are sent at once."""
_CSV_FIELDS = ("url", "timestamp", "title", "mime", "format", "size", "language", "collection", "valid_from", "valid_to", "digest")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Form(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"
    SOLR = "solr"
    WARC = "warc"


MEDIA_TYPES = {
    Form.CSV: "text/csv; charset=utf-8",
    Form.JSONL: "application/x-ndjson",
    Form.SOLR: "application/x-ndjson",
    Form.WARC: "application/warc",
}
SUFFIXES = {Form.CSV: "csv", Form.JSONL: "jsonl", Form.SOLR: "solr.jsonl", Form.WARC: "warc.gz"}


def export(
    archive: Archive, text: str, form: Form, *, reader: Reader, collection: str = EVERYTHING, watch: Watch = unwatched
) -> Iterator[bytes]:
    """Everything that answers a query; InputError at once for a wrong one, then a stream."""
    asked = searching.ask(archive, text, reader=reader, collection=collection)
    pages = archive.texts.find(replace(asked, limit=1, histogram=False)).pages
    return _FORMS[form](archive, asked, _watched(archive.texts.scan(asked), pages, watch))


def _watched(states: Iterable[State], pages: int, watch: Watch) -> Iterator[State]:
    last, done = "", 0
    for state in states:
        if state.key != last:
            done, last = done + 1, state.key
            watch(Progress(phase=Phase.EXPORT, done=done, total=max(pages, done), note=state.url))
        yield state


def _csv(archive: Archive, asked: TextQuery, states: Iterator[State]) -> Iterator[bytes]:
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(_CSV_FIELDS)
    count = 0
    for state in states:
        for timestamp in state.timestamps:
            facts = (state.url, timestamp, state.title, state.mime, state.format, state.size_bytes, state.language, state.collection)
            writer.writerow([_cell(fact) for fact in (*facts, state.valid_from, state.valid_to, state.digest)])
            count += 1
        if count >= _EVERY:
            yield lines.getvalue().encode("utf-8", "replace")
            lines.seek(0)
            lines.truncate()
            count = 0
    yield lines.getvalue().encode("utf-8", "replace")


def _cell(value: object) -> str:
    """A spreadsheet would run what begins like a formula."""
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _jsonl(archive: Archive, asked: TextQuery, states: Iterator[State]) -> Iterator[bytes]:
    for state in states:
        facts = {
            "url": state.url,
            "key": state.key,
            "timestamps": state.timestamps,
            "valid_from": state.valid_from,
            "valid_to": None if state.valid_to == "9" * 14 else state.valid_to,
            "title": state.title,
            "headings": state.headings,
            "text": state.text,
            "mime": state.mime,
            "format": state.format,
            "size": state.size_bytes,
            "language": state.language,
            "collection": state.collection,
            "digest": state.digest,
        }
        yield _line(facts)


def _solr(archive: Archive, asked: TextQuery, states: Iterator[State]) -> Iterator[bytes]:
    for state in states:
        for capture in _captures(archive, state):
            moment = to_iso(from_timestamp(capture.timestamp))
            yield _line(
                {
                    "id": f"{capture.timestamp}/{capture.digest}",
                    "type": "Web Page" if "html" in state.mime else "Document",
                    "record_type": capture.kind.value,
                    "url": capture.url,
                    "url_norm": state.url,
                    "url_type": "slashpage" if state.key.endswith(")/") else "normal",
                    "host": host_of(capture.url),
                    "domain": domain_of(capture.url),
                    "wayback_date": int(capture.timestamp),
                    "crawl_date": moment,
                    "crawl_year": int(capture.timestamp[:4]),
                    "status_code": capture.status,
                    "hash": capture.digest,
                    "source_file_path": capture.location.container,
                    "source_file_offset": capture.location.offset,
                    "content_type": capture.mime,
                    "content_type_norm": "html" if "html" in state.mime else "pdf" if "pdf" in state.mime else "other",
                    "content_type_droid": state.format,
                    "content_language": state.language,
                    "content_length": state.size_bytes,
                    "content_text_length": len(state.text),
                    "title": state.title,
                    "content": state.text,
                    "collection": state.collection,
                }
            )


def _warc(archive: Archive, asked: TextQuery, states: Iterator[State]) -> Iterator[bytes]:
    for state in states:
        for capture in _captures(archive, state):
            yield from _member(archive, capture)
            original = archive.captures.find_digest(capture.digest, url=capture.url) if capture.kind is RecordKind.REVISIT else None
            if original is not None and not any((original.key, original.timestamp) in area for area in asked.closed):
                yield from _member(archive, original)


def _member(archive: Archive, capture: Capture) -> Iterator[bytes]:
    try:
        with archive.open_container(capture.location.container) as stream:
            record = read_record(stream, capture.location)
            if record.header.startswith(b"WARC/"):
                yield from member_of(record)
    except (CorruptData, NotFound):
        # A container that is damaged or away costs its own records; `webdepot doctor` names it.
        return


def _captures(archive: Archive, state: State) -> Iterator[Capture]:
    """The captures behind a state's times."""
    for timestamp in dict.fromkeys(state.timestamps):
        moment = from_timestamp(timestamp)
        yield from archive.captures.versions(state.key, period=Period(moment, moment), collection=state.collection)


def _line(facts: Mapping[str, object]) -> bytes:
    return (json.dumps(facts, ensure_ascii=False) + "\n").encode("utf-8", "replace")


_FORMS: dict[Form, Callable[[Archive, TextQuery, Iterator[State]], Iterator[bytes]]] = {
    Form.CSV: _csv,
    Form.JSONL: _jsonl,
    Form.SOLR: _solr,
    Form.WARC: _warc,
}
