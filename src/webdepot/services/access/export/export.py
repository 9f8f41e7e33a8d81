"""Export of search results: every capture that answers a query, streamed, in the order of the index.

    csv      a line for each capture
    jsonl    an object for each state of a page, with its capture times
    solr     an object for each capture in the field names of warc-indexer, which SolrWayback reads
             (https://github.com/netarchivesuite/solrwayback)
    parquet  a row for each capture, with its text (`exchange/parquet.py`)
    warc     the records themselves (`warc_and_wacz.py`)
    wacz     the same with an index and a list of pages, for replay tools

Results of any size need the memory of a few records. What is closed to the reader is left out, as in the
search itself.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import islice

from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.exchange import parquet
from webdepot.exchange.parquet import ColumnKind, Value
from webdepot.model import EVERYTHING
from webdepot.ports.search import State, TextQuery
from webdepot.services.access import search
from webdepot.services.access.export import solr_address, warc_and_wacz
from webdepot.services.access.export.warc_and_wacz import captures_of
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.text.csv_text import written
from webdepot.times import from_timestamp, to_iso
from webdepot.url import domain_of, host_of
from webdepot.version import VERSION

FOREVER = "9" * 14
_EVERY = 1000
"""Lines that are sent at once."""
_CSV_FIELDS = (
    "url",
    "timestamp",
    "title",
    "mime",
    "format",
    "size",
    "language",
    "collection",
    "valid_from",
    "valid_to",
    "digest",
)


class ExportForm(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"
    SOLR = "solr"
    PARQUET = "parquet"
    WARC = "warc"
    WACZ = "wacz"


MEDIA_TYPES = {
    ExportForm.CSV: "text/csv; charset=utf-8",
    ExportForm.JSONL: "application/x-ndjson",
    ExportForm.SOLR: "application/x-ndjson",
    ExportForm.PARQUET: "application/vnd.apache.parquet",
    ExportForm.WARC: "application/warc",
    ExportForm.WACZ: "application/wacz",
}
SUFFIXES = {
    **{form: form.value for form in ExportForm},
    ExportForm.SOLR: "solr.jsonl",
    ExportForm.WARC: "warc.gz",
}


def export(
    archive: Archive,
    text: str,
    form: ExportForm,
    *,
    reader: Reader,
    collection: str = EVERYTHING,
    watch: Watch = unwatched,
) -> Iterator[bytes]:
    """Everything that answers a query, as a stream; InputError before the stream starts if it is wrong."""
    query = search.ask(archive, text, reader=reader, collection=collection)
    pages = archive.texts.find(replace(query, limit=1, histogram=False)).pages
    return _FORMS[form](archive, query, _watched(archive.texts.scan(query), pages, watch))


def _watched(states: Iterable[State], pages: int, watch: Watch) -> Iterator[State]:
    last, done = "", 0
    for state in states:
        if state.key != last:
            done, last = done + 1, state.key
            watch(Progress(phase=Phase.EXPORT, done=done, total=max(pages, done), note=state.url))
        yield state


def _csv(archive: Archive, query: TextQuery, states: Iterator[State]) -> Iterator[bytes]:
    def rows() -> Iterator[Sequence[object]]:
        yield _CSV_FIELDS
        for state in states:
            for timestamp in state.timestamps:
                facts = (
                    state.url,
                    timestamp,
                    state.title,
                    state.mime,
                    state.format,
                    state.size_bytes,
                    state.language,
                    state.collection,
                )
                yield (*facts, state.valid_from, state.valid_to, state.digest)

    lines = written(rows())
    while several := list(islice(lines, _EVERY)):
        yield "".join(several).encode("utf-8", "replace")


def _jsonl(archive: Archive, query: TextQuery, states: Iterator[State]) -> Iterator[bytes]:
    for state in states:
        facts = {
            "url": state.url,
            "key": state.key,
            "timestamps": state.timestamps,
            "valid_from": state.valid_from,
            "valid_to": None if state.valid_to == FOREVER else state.valid_to,
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


def _solr(archive: Archive, query: TextQuery, states: Iterator[State]) -> Iterator[bytes]:
    for state in states:
        for capture in captures_of(archive, state):
            moment = to_iso(from_timestamp(capture.timestamp))
            yield _line(
                {
                    "id": f"{capture.timestamp}/{capture.digest}",
                    "type": "Web Page" if "html" in state.mime else "Document",
                    "record_type": capture.kind.value,
                    "url": capture.url,
                    "url_norm": solr_address.normalised(capture.url),
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
                    "content_type_norm": "html"
                    if "html" in state.mime
                    else "pdf"
                    if "pdf" in state.mime
                    else "other",
                    "content_type_droid": state.format,
                    "content_language": state.language,
                    "content_length": state.size_bytes,
                    "content_text_length": len(state.text),
                    "title": state.title,
                    "content": state.text,
                    "collection": state.collection,
                }
            )


_COLUMNS = (
    ("url", ColumnKind.TEXT),
    ("key", ColumnKind.TEXT),
    ("captured", ColumnKind.MOMENT),
    ("valid_from", ColumnKind.MOMENT),
    ("valid_to", ColumnKind.TEXT),
    ("title", ColumnKind.TEXT),
    ("headings", ColumnKind.TEXT),
    ("text", ColumnKind.TEXT),
    ("mime", ColumnKind.TEXT),
    ("format", ColumnKind.TEXT),
    ("size", ColumnKind.NUMBER),
    ("language", ColumnKind.TEXT),
    ("collection", ColumnKind.TEXT),
    ("digest", ColumnKind.TEXT),
)


def _parquet(archive: Archive, query: TextQuery, states: Iterator[State]) -> Iterator[bytes]:
    return parquet.write(_COLUMNS, _rows(states), software=f"webdepot {VERSION}")


def _rows(states: Iterator[State]) -> Iterator[Sequence[Value]]:
    for state in states:
        until = "" if state.valid_to == FOREVER else to_iso(from_timestamp(state.valid_to))
        common = (
            state.title,
            state.headings,
            state.text,
            state.mime,
            state.format,
            state.size_bytes,
            state.language,
            state.collection,
        )
        for timestamp in state.timestamps:
            yield (
                state.url,
                state.key,
                from_timestamp(timestamp),
                from_timestamp(state.valid_from),
                until,
                *common,
                state.digest,
            )


def _line(facts: Mapping[str, object]) -> bytes:
    return (json.dumps(facts, ensure_ascii=False) + "\n").encode("utf-8", "replace")


_FORMS: dict[ExportForm, Callable[[Archive, TextQuery, Iterator[State]], Iterator[bytes]]] = {
    ExportForm.CSV: _csv,
    ExportForm.JSONL: _jsonl,
    ExportForm.SOLR: _solr,
    ExportForm.PARQUET: _parquet,
    ExportForm.WARC: warc_and_wacz.as_warc,
    ExportForm.WACZ: warc_and_wacz.as_wacz,
}
