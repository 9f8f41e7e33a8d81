"""The formats of collections by year, the registry of formats, and the watch list: the formats at risk that
the archive has, with where, how much and since when.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import Select, String, Text, cast, func, select, true

from webdepot.archive import Archive
from webdepot.formats import registry, report
from webdepot.formats.registry import Flag, Registry, RegistryEntry, Risk, Software
from webdepot.formats.report import FormatShare, HarvestTable
from webdepot.formats.tables import format_counts, identifications, surveys
from webdepot.harvest.tables import harvests
from webdepot.model import EVERYTHING
from webdepot.provenance import append, difference
from webdepot.url import key as key_of

SAMPLES = 3
MOST_EXAMINED = 20_000
"""How many identifications are read to find those of one collection."""
MOST_UNKNOWN = 200
ENCRYPTED = "formats.encrypted"


@dataclass(frozen=True, slots=True, kw_only=True)
class YearShare:
    """The share of one format in the harvests of one year."""

    year: int
    puid: str
    mime: str
    name: str
    version: str
    uris: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionFormats:
    """The formats of a collection, or of the whole archive."""

    name: str
    table: HarvestTable
    shares: Sequence[FormatShare]
    years: Sequence[YearShare]
    mismatches: Sequence[tuple[str, str, int, str]]
    """Media type by the server, actual media type, number of distinct files, one address."""
    unknown: Sequence[tuple[str, str, int]]
    """Address, media type by the server and size of files that were not recognised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedFormat:
    """A format in the archive that is at risk or to be watched."""

    puid: str
    name: str
    mime: str
    flag: Flag
    uris: int
    size_bytes: int
    harvests: int
    collections: Sequence[str]
    since: datetime
    samples: Sequence[str]


def collection(archive: Archive, name: str = EVERYTHING) -> CollectionFormats:
    """Everything that is known about the formats of a collection."""
    wanted = None if name == EVERYTHING else select(harvests.c.id).where(harvests.c.collection == name)
    with archive.database.reading() as connection:
        shares = report.shares(connection, wanted)
        table = report.of_harvests(connection, wanted)
    return CollectionFormats(
        name=name,
        table=table,
        shares=shares,
        years=_years(archive, name),
        mismatches=_mismatches(archive, name),
        unknown=_unknown(archive, name),
    )


def watch_list(archive: Archive, name: str = EVERYTHING) -> list[WatchedFormat]:
    """The formats of a collection that are at risk or to be watched: those at risk first, then by size."""
    counts = format_counts.c
    chosen = (
        select(
            counts.puid,
            counts.mime,
            func.max(counts.name).label("name"),
            func.sum(counts.uris).label("uris"),
            func.sum(counts.size_bytes).label("size_bytes"),
            func.count(harvests.c.id.distinct()).label("harvests"),
            func.min(harvests.c.started_at).label("since"),
        )
        .join(surveys, surveys.c.container == counts.container)
        .join(harvests, harvests.c.id == surveys.c.harvest)
        .where(true() if name == EVERYTHING else harvests.c.collection == name)
        .group_by(counts.puid, counts.mime)
    )
    with archive.database.reading() as connection:
        known = registry.load(connection)
        rows = connection.execute(chosen).all()
    watched = [
        WatchedFormat(
            puid=row.puid,
            name=row.name,
            mime=row.mime,
            flag=flag,
            uris=int(row.uris),
            size_bytes=int(row.size_bytes),
            harvests=int(row.harvests),
            collections=_collections(archive, row.puid, row.mime),
            since=row.since,
            samples=_samples(archive, row.puid, row.mime, name),
        )
        for row in rows
        if (flag := known.flag(row.puid, row.mime)).risk is not Risk.NONE
    ]
    encrypted = _encrypted(archive, name)
    return sorted(
        [*watched, *encrypted], key=lambda each: (each.flag.risk is not Risk.AT_RISK, -each.size_bytes)
    )


def load_registry(archive: Archive) -> Registry:
    with archive.database.reading() as connection:
        return registry.load(connection)


def registry_json(archive: Archive) -> str:
    """The registry as a JSON document."""
    return json.dumps(registry_document(archive), ensure_ascii=False, indent=1)


def flags_of(archive: Archive, shares: Sequence[FormatShare]) -> dict[tuple[str, str], Flag]:
    """The risk of each format, by PRONOM identifier and media type."""
    known = load_registry(archive)
    return {(share.puid, share.mime): known.flag(share.puid, share.mime) for share in shares}


def save_registry(archive: Archive, new: Registry, *, by: str) -> None:
    before = _to_detail(load_registry(archive))
    with archive.database.transaction() as connection:
        registry.save(connection, new, by=by, at=archive.clock())
        event = archive.event(
            "registry",
            "archive",
            "registry of formats",
            message=f"{len(new.entries)} formats, {len(new.software)} programs",
            detail=difference(before, _to_detail(new)),
            by=by,
        )
        append(connection, event)


def registry_document(archive: Archive) -> dict[str, object]:
    """The registry as a JSON document."""
    return registry.to_document(load_registry(archive))


def save_document(archive: Archive, document: Any, *, by: str) -> Registry:
    """Replace the registry by one from a JSON document; InputError if it is not a registry."""
    taken = registry.from_document(document)
    save_registry(archive, taken, by=by)
    return taken


def _to_detail(known: Registry) -> dict[str, object]:
    """Entries and programs as plain values, by their identifiers."""
    entries = {name: asdict(entry) for name, entry in known.entries.items()}
    software = {name: asdict(program) for name, program in known.software.items()}
    return dict(json.loads(json.dumps(entries | software, default=str)))


def change_entry(archive: Archive, entry: RegistryEntry, *, by: str) -> None:
    """Add an entry, or replace the one with the same identifier."""
    known = load_registry(archive)
    save_registry(archive, replace(known, entries={**known.entries, entry.puid: entry}), by=by)


def change_software(archive: Archive, software: Software, *, by: str) -> None:
    known = load_registry(archive)
    save_registry(archive, replace(known, software={**known.software, software.id: software}), by=by)


def _years(archive: Archive, name: str) -> list[YearShare]:
    """The shares by the year in which a harvest started: moments are stored as text that begins with it."""
    counts = format_counts.c
    year = func.substr(harvests.c.started_at, 1, 4, type_=String)
    size_bytes = func.sum(counts.size_bytes)
    chosen = (
        select(
            year.label("year"),
            counts.puid,
            counts.mime,
            func.max(counts.name).label("name"),
            func.max(counts.version).label("version"),
            func.sum(counts.uris).label("uris"),
            size_bytes.label("size_bytes"),
        )
        .join(surveys, surveys.c.container == counts.container)
        .join(harvests, harvests.c.id == surveys.c.harvest)
        .where(true() if name == EVERYTHING else harvests.c.collection == name)
        .group_by(year, counts.puid, counts.mime)
        .order_by(year, size_bytes.desc(), counts.puid, counts.mime)
    )
    with archive.database.reading() as connection:
        return [
            YearShare(
                year=int(row.year),
                puid=row.puid,
                mime=row.mime,
                name=row.name,
                version=row.version,
                uris=int(row.uris),
                size_bytes=int(row.size_bytes),
            )
            for row in connection.execute(chosen)
        ]


def _mismatches(archive: Archive, name: str) -> list[tuple[str, str, int, str]]:
    """Files whose media type by the server differs from the identified one, counted by these two types.

    For one collection only the first `MOST_EXAMINED` are examined: identifications belong to payloads, which
    several collections may share.
    """
    seen = identifications.c
    chosen = select(seen.server_mime, seen.mime, seen.url).where(seen.warning.like("%the server said%"))
    if name == EVERYTHING:
        grouped = (
            select(seen.server_mime, seen.mime, func.count().label("files"), func.min(seen.url).label("url"))
            .where(seen.warning.like("%the server said%"))
            .group_by(seen.server_mime, seen.mime)
            .order_by(func.count().desc())
            .limit(MOST_UNKNOWN)
        )
        with archive.database.reading() as connection:
            return [
                (row.server_mime, row.mime, int(row.files), row.url) for row in connection.execute(grouped)
            ]
    pairs: dict[tuple[str, str], tuple[int, str]] = {}
    for row in _in_collection(archive, chosen, name):
        files, url = pairs.get((row.server_mime, row.mime), (0, row.url))
        pairs[row.server_mime, row.mime] = (files + 1, min(url, row.url))
    rows = [(server_mime, mime, files, url) for (server_mime, mime), (files, url) in pairs.items()]
    return sorted(rows, key=lambda each: -each[2])[:MOST_UNKNOWN]


def _unknown(archive: Archive, name: str) -> list[tuple[str, str, int]]:
    seen = identifications.c
    chosen = (
        select(seen.url, seen.server_mime, seen.size_bytes)
        .where(seen.verdict == "not recognised")
        .order_by(seen.size_bytes.desc(), seen.url)
    )
    rows = islice(_in_collection(archive, chosen, name), MOST_UNKNOWN)
    return [(row.url, row.server_mime, int(row.size_bytes)) for row in rows]


def _in_collection(archive: Archive, chosen: Select[Any], name: str) -> Iterator[Any]:
    """The rows whose address is in the collection, among the first `MOST_EXAMINED`."""
    with archive.database.reading() as connection:
        rows = connection.execute(chosen.limit(MOST_EXAMINED)).all()
    for row in rows:
        if (
            name == EVERYTHING
            or next(archive.captures.versions(key_of(row.url), collection=name, limit=1), None) is not None
        ):
            yield row


def _encrypted(archive: Archive, name: str) -> list[WatchedFormat]:
    """One entry for all files that cannot be opened without a password, whatever their format."""
    seen = identifications.c
    chosen = select(seen.digest, seen.url, seen.size_bytes, seen.identified_at).where(
        cast(seen.findings, Text).like(f"%{ENCRYPTED}%")
    )
    files = {row.digest: row for row in _in_collection(archive, chosen, name)}
    if not files:
        return []
    flag = Flag(risk=Risk.AT_RISK, reason="They are encrypted and cannot be read without a password.")
    return [
        WatchedFormat(
            puid="",
            name="Encrypted files",
            mime="",
            flag=flag,
            uris=len(files),
            size_bytes=sum(int(row.size_bytes) for row in files.values()),
            harvests=0,
            collections=() if name == EVERYTHING else (name,),
            since=min(row.identified_at for row in files.values()),
            samples=[row.url for row in islice(files.values(), SAMPLES)],
        )
    ]


def _collections(archive: Archive, puid: str, mime: str) -> list[str]:
    chosen = (
        select(harvests.c.collection)
        .join(surveys, surveys.c.harvest == harvests.c.id)
        .join(format_counts, format_counts.c.container == surveys.c.container)
        .where(format_counts.c.puid == puid, format_counts.c.mime == mime)
        .distinct()
        .order_by(harvests.c.collection)
    )
    with archive.database.reading() as connection:
        return list(connection.execute(chosen).scalars())


def _samples(archive: Archive, puid: str, mime: str, name: str) -> list[str]:
    seen = identifications.c
    chosen = select(seen.url).where(seen.puid == puid, seen.mime == mime).order_by(seen.size_bytes.desc())
    return [row.url for row in islice(_in_collection(archive, chosen, name), SAMPLES)]
