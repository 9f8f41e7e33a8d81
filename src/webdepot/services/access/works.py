"""The catalogue in the search box: works by title, author, genre and keyword, each with the slices that lead
into the archive.

A work is shown only to a reader who can open something of it. `author:`, `genre:` and `keyword:` narrow the
search for words to the sites of the works that the catalogue describes so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from webdepot.access import closed, rules
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.exchange import catalogue, catalogue_search
from webdepot.exchange.catalogue import Record
from webdepot.index.text.words import tokens
from webdepot.model import EVERYTHING
from webdepot.ports import TextQuery
from webdepot.url import host_of
from webdepot.url import key as key_of

MOST_SLICES = 12
_MOST_READ, _MOST_SITES = 200, 500
_FIRST_READ = 20
_NOWHERE = "nothing.invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """How many there are, and the timestamps of the first and the last."""

    count: int
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A work of the catalogue."""

    record: Record
    address: str
    """Where it stands in the archive: the first of its addresses that the reader can open."""
    versions: int
    slices: Sequence[Record]
    """The newest first, not all of them."""


def entries(archive: Archive, asked: TextQuery, *, reader: Reader, limit: int = 5) -> list[Entry]:
    """Works of which the catalogue has all the words of the query, by title."""
    wanted = [word for text in (*asked.words, *asked.phrases) for word in tokens(text)]
    if not wanted and not asked.catalogue:
        return []
    found: list[Entry] = []
    looked_at: set[str] = set()
    # Mostly the first of them can be opened; only where they are closed, or have other words, more are read.
    for most in (_FIRST_READ, _MOST_READ):
        for record in _matching(archive, wanted, asked.catalogue, limit=most):
            entry = _entry(archive, record, reader) if record.key not in looked_at else None
            looked_at.add(record.key)
            if entry is not None:
                found.append(entry)
            if len(found) >= limit:
                return found
    return found


def narrowed(archive: Archive, asked: TextQuery) -> TextQuery:
    """The query with what the catalogue must say turned into sites; one that no work answers finds nothing."""
    if not asked.catalogue:
        return asked
    described = _matching(archive, (), asked.catalogue, limit=_MOST_SITES)
    hosts = {
        host_of(address).partition(":")[0].lower() for record in described for address in record.addresses
    }
    if asked.sites:
        hosts = {
            host for host in hosts if any(host == site or host.endswith(f".{site}") for site in asked.sites)
        }
    return replace(asked, sites=tuple(sorted(hosts)) or (_NOWHERE,))


def versions(archive: Archive, key: str, collection: str, reader: Reader) -> Versions:
    """The versions of a page that the reader can open: from the captures index, so that this and the list of
    versions agree.
    """
    speaking = archive.database.remembered("access rules", rules.by_prefix).speaking_about(key)
    spans = closed.open_spans(speaking, key, reader, archive.clock().date())
    found = archive.captures.tally(key, digits=0, collection=collection, spans=spans)
    return Versions(
        count=sum(tally.count for tally in found),
        first=min((tally.first for tally in found), default=""),
        last=max((tally.last for tally in found), default=""),
    )


def _matching(
    archive: Archive, words: Sequence[str], told: Sequence[tuple[str, str]], limit: int = _MOST_READ
) -> list[Record]:
    """The database finds letters anywhere; here they must be whole words."""
    parts = [word for _, text in told for word in tokens(text)]
    with archive.database.reading() as connection:
        read = catalogue_search.find_works(connection, words=[*words, *parts], limit=limit)
    return [record for record in read if _says(record, words, told)]


def _says(record: Record, words: Sequence[str], told: Sequence[tuple[str, str]]) -> bool:
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
        {word for one in fields[field] for word in tokens(one)} >= set(tokens(text)) for field, text in told
    )


def _entry(archive: Archive, record: Record, reader: Reader) -> Entry | None:
    for address in record.addresses:
        count = versions(archive, key_of(address), EVERYTHING, reader).count
        if count:
            with archive.database.reading() as connection:
                below = [
                    each
                    for each in catalogue.children(connection, record.key, limit=1000)
                    if each.withdrawn_at is None
                ]
            newest = sorted((each for each in below if each.date), key=lambda each: each.date, reverse=True)[
                :MOST_SLICES
            ]
            return Entry(record=record, address=address, versions=count, slices=newest)
    return None
