"""Catalogue results of a search: works and articles by title, author, genre and keyword, each with its slices
in the archive.

A work is shown only to a reader who can open some of it: a version of a site, or a file of an object.
`author:`, `genre:` and `keyword:` restrict the search for words to the sites of the matching works.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from sqlalchemy import Connection

from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.exchange import catalogue, catalogue_search, object_files, transfer_zip
from webdepot.exchange.catalogue import WORKS, CatalogueRecord, RecordLevel
from webdepot.index.text.words import tokens
from webdepot.model import EVERYTHING
from webdepot.ports.search import TextQuery
from webdepot.services.access import gate
from webdepot.url import host_of
from webdepot.url import key as key_of

MOST_SLICES = 12
_MOST_READ, _MOST_SITES = 200, 500
_FIRST_READ = 20
_MOST_FILES = 20
"""Access rules close objects as a whole, so a few files of one are enough."""
_MOST_PARTS = 20
_NOWHERE = "nothing.invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionCount:
    """How many versions of a page there are, and the timestamps of the first and the last."""

    count: int
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEntry:
    """A work of the catalogue."""

    record: CatalogueRecord
    address: str
    """The first of its addresses that the reader can open; empty for an object (its page lists files)."""
    versions: int
    """Of the page at that address; for an object, the number of files of the part that can be opened."""
    slices: Sequence[CatalogueRecord]
    """The newest first, at most MOST_SLICES."""


def find_entries(archive: Archive, query: TextQuery, *, reader: Reader, limit: int = 5) -> list[WorkEntry]:
    """Works whose catalogue record has all words of the query, by title, then such articles."""
    wanted = [word for text in (*query.words, *query.phrases) for word in tokens(text)]
    if not wanted and not query.catalogue:
        return []
    entries: list[WorkEntry] = []
    examined: set[str] = set()
    # Usually the first records can be opened; more are read only if these are closed or do not match.
    for levels, most in product((WORKS, (RecordLevel.ARTICLE,)), (_FIRST_READ, _MOST_READ)):
        for record in _matching(archive, wanted, query.catalogue, levels=levels, limit=most):
            entry = _find_entry(archive, record, reader) if record.key not in examined else None
            examined.add(record.key)
            if entry is not None:
                entries.append(entry)
            if len(entries) >= limit:
                return entries
    return entries


def restrict_sites(archive: Archive, query: TextQuery) -> TextQuery:
    """The query with its catalogue terms replaced by the sites of the matching works. If no work matches, the
    query finds nothing.
    """
    if not query.catalogue:
        return query
    matching = _matching(archive, (), query.catalogue, limit=_MOST_SITES)
    hosts = {
        host_of(address).partition(":")[0].lower() for record in matching for address in record.addresses
    }
    if query.sites:
        hosts = {
            host for host in hosts if any(host == site or host.endswith(f".{site}") for site in query.sites)
        }
    return replace(query, sites=tuple(sorted(hosts)) or (_NOWHERE,))


def count_versions(archive: Archive, key: str, collection: str, reader: Reader) -> VersionCount:
    """The versions of a page that the reader can open, counted in the capture index like the list of
    versions.
    """
    spans = gate.of_key(archive, key, reader).spans
    tallies = archive.captures.tally(key, digits=0, collection=collection, spans=spans)
    return VersionCount(
        count=sum(tally.count for tally in tallies),
        first=min((tally.first for tally in tallies), default=""),
        last=max((tally.last for tally in tallies), default=""),
    )


def _matching(
    archive: Archive,
    words: Sequence[str],
    terms: Sequence[tuple[str, str]],
    *,
    levels: Sequence[RecordLevel] = WORKS,
    limit: int = _MOST_READ,
) -> list[CatalogueRecord]:
    """Records with these words and catalogue terms. The database finds parts of words; here they must be
    whole words.
    """
    parts = [word for _, text in terms for word in tokens(text)]
    with archive.database.reading() as connection:
        records = catalogue_search.find_works(connection, words=[*words, *parts], levels=levels, limit=limit)
    return [record for record in records if _matches(record, words, terms)]


def _matches(record: CatalogueRecord, words: Sequence[str], terms: Sequence[tuple[str, str]]) -> bool:
    fields = {
        "author": (*record.creators, *record.contributors, record.responsibility, record.publisher),
        "genre": (record.genre,),
        "keyword": record.keywords,
    }
    everything = {word for texts in fields.values() for text in texts for word in tokens(text)}
    everything |= {
        word
        for text in (record.title, record.subtitle, record.abstract, *record.addresses)
        for word in tokens(text)
    }
    if not everything >= set(words):
        return False
    return all(
        {word for value in fields[field] for word in tokens(value)} >= set(tokens(text))
        for field, text in terms
    )


def _find_object(archive: Archive, record: CatalogueRecord, reader: Reader) -> WorkEntry | None:
    """The entry of an object, or of a journal with objects, of which the reader can open a file."""
    if record.level is RecordLevel.SITE:
        return None
    with archive.database.reading() as connection:
        places = [
            (address, len(files))
            for each in islice(_iter_below(connection, record), _MOST_PARTS)
            for files in [_files_of(connection, each)]
            for address in files[:_MOST_FILES]
        ]
    for address, count in places:
        if count_versions(archive, key_of(address), EVERYTHING, reader).count:
            return WorkEntry(record=record, address="", versions=count, slices=())
    return None


def _iter_below(connection: Connection, record: CatalogueRecord) -> Iterator[CatalogueRecord]:
    """The record and those below it: of a journal its issues and articles."""
    yield record
    for child in catalogue.children(connection, record.key, limit=_MOST_PARTS):
        yield from _iter_below(connection, child)


def _files_of(connection: Connection, record: CatalogueRecord) -> list[str]:
    """The addresses of the files of an object; empty if it has none."""
    transfer = transfer_zip.find(connection, record.key)
    if transfer is None:
        return []
    places = object_files.shown_at(catalogue.levels(connection, record), transfer)
    return [address for address, _ in places.values()]


def _find_entry(archive: Archive, record: CatalogueRecord, reader: Reader) -> WorkEntry | None:
    for address in record.addresses:
        count = count_versions(archive, key_of(address), EVERYTHING, reader).count
        if count:
            with archive.database.reading() as connection:
                children = catalogue.children(connection, record.key, limit=1000)
            dated = [child for child in children if child.withdrawn_at is None and child.date]
            newest = sorted(dated, key=lambda child: child.date, reverse=True)
            return WorkEntry(record=record, address=address, versions=count, slices=newest[:MOST_SLICES])
    return _find_object(archive, record, reader)
