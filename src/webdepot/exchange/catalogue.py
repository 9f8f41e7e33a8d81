"""The catalogue: what a library knows of a work, one record on each of its levels (site and slice; journal,
issue and article; thesis).

A site is described once, like a journal; each harvest of it is a slice below, like an issue. Every record has
a key that never changes (in OAI identifiers and catalogue numbers) and a URN of its own. The words of a
record are neutral: MAB, MARC and Dublin Core are written from it and read into it (`exchange/metadata/mab.py`,
`marc.py`, `dublin_core.py`).

`changed_at` is the datestamp of OAI-PMH. It never runs backwards, and it counts for the record with all that
is delivered with it: a change of a site changes its slices too. A withdrawn record keeps its key, URN and
sets for ever and loses everything else.

As a document (`catalogue.json` of a package, version 1): `format`, `format_version`, `records` from the
highest level to the lowest, each with the fields of `Record`, moments in ISO 8601; `transfer` (see
`exchange/transfer.py`).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, func, insert, select, update

from webdepot.errors import CorruptData, NotFound
from webdepot.exchange import catalogue_words
from webdepot.exchange.catalogue_words import Wanted
from webdepot.exchange.tables import catalogue, catalogue_sets
from webdepot.model import TargetId
from webdepot.times import from_iso

FORMAT = "webdepot-catalogue"
FORMAT_VERSION = 1
MOST_LEVELS = 8
LOOKED_AT = (200, 3000)
"""So many works are looked at by title where every word is in many works; the second number when the first
did not do.
"""
MARGIN = timedelta(seconds=1)
"""A datestamp may not lie before the moment when others can see the change: it is set so much ahead of the
writing.
"""


class Level(StrEnum):
    SITE = "site"
    SLICE = "slice"
    JOURNAL = "journal"
    ISSUE = "issue"
    ARTICLE = "article"
    MONOGRAPH = "monograph"
    THESIS = "thesis"


WORKS = (Level.SITE, Level.JOURNAL, Level.MONOGRAPH, Level.THESIS)
"""Levels that are works as such; the others are parts of one."""


class Access(StrEnum):
    OPEN = "open"
    RESTRICTED = "restricted"
    """Handed over to partners with a token only."""


class Source(StrEnum):
    """Who filled a field. What a person wrote is not written over by a machine."""

    SITE = "site"
    PARTNER = "partner"
    PERSON = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    key: str
    """Lower-case letters, digits, `-` and `_`; never changes."""
    level: Level
    parent: str = ""
    """Key of the record above; empty at the top."""
    urn: str
    title: str
    subtitle: str = ""
    responsibility: str = ""
    creators: tuple[str, ...] = ()
    contributors: tuple[str, ...] = ()
    publisher: str = ""
    place: str = ""
    country: str = ""
    """Two letters, ISO 3166."""
    genre: str = ""
    keywords: tuple[str, ...] = ()
    ddc: tuple[str, ...] = ()
    abstract: str = ""
    languages: tuple[str, ...] = ()
    """Two or three letters, ISO 639."""
    run_from: str = ""
    """When the work began to appear: a year, or more of a date."""
    run_to: str = ""
    date: str = ""
    """Of this level: the day of a slice or an issue, the year of a thesis; W3C-DTF."""
    part: str = ""
    """How the part is called below its parent: `Zeitschnitt vom 01.03.2005`, `12 (2004), 3`."""
    identifiers: tuple[str, ...] = ()
    """Others than the URN, with their kind before a colon: `doi:10.1000/1`, `issn:1234-5678`."""
    addresses: tuple[str, ...] = ()
    """Where it stood on the web."""
    rights: str = ""
    access: Access = Access.OPEN
    collection: str = ""
    target: TargetId | None = None
    harvest: str = ""
    package: str = ""
    is_object: bool = False
    """Whether there are files that can be handed over."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Field to who filled it; fields that are missing were filled by this program."""
    foreign: tuple[Mapping[str, str], ...] = ()
    """XML as a partner gave it: `kind` and `xml`."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """Where a record of a partner came from: `partner`, `base_url`, `identifier`, `datestamp`, `namespace`,
    `harvested_at`.
    """
    created_at: datetime
    changed_at: datetime
    withdrawn_at: datetime | None = None
    withdrawn_reason: str = ""


_LISTS = ("creators", "contributors", "keywords", "ddc", "languages", "identifiers", "addresses", "foreign")
_MOMENTS = ("created_at", "changed_at", "withdrawn_at")
_OWN = frozenset(
    {"key", "urn", "level", "parent", "target", "harvest", "package", "collection", "created_at"}
)
EDITABLE = tuple(
    name
    for name in (each.name for each in fields(Record))
    if name not in _OWN
    and name
    not in ("is_object", "sources", "foreign", "origin", "changed_at", "withdrawn_at", "withdrawn_reason")
)
"""Fields that a person or a site's own description may fill."""


def put(connection: Connection, record: Record) -> Record:
    """Write a record, new or changed, in the caller's transaction. Its datestamp never runs backwards."""
    before = find(connection, record.key)
    if before is not None and before.changed_at > record.changed_at:
        record = replace(record, changed_at=before.changed_at)
    values = _values(record)
    if before is None:
        connection.execute(insert(catalogue).values(**values))
    else:
        connection.execute(update(catalogue).where(catalogue.c.key == record.key).values(**values))
    _put_sets(connection, record)
    _put_words(connection, record)
    return record


def touch_below(connection: Connection, key: str, changed_at: datetime) -> int:
    """What is delivered with a record has changed: so have all below it; how many. Withdrawn ones tell
    nothing and stay as they are.

    A slice is called like its site, unless somebody gave it a title of its own.
    """
    count = 0
    above = get(connection, key)
    for child in children(connection, key):
        title = inherited_title(child, above)
        if child.withdrawn_at is None and (child.changed_at < changed_at or child.title != title):
            put(connection, replace(child, title=title, changed_at=max(changed_at, child.changed_at)))
            count += 1
        count += touch_below(connection, child.key, changed_at)
    return count


def inherited_title(record: Record, above: Record | None) -> str:
    """The title that a record has below another one."""
    is_own = record.level is not Level.SLICE or "title" in record.sources or above is None
    return record.title if is_own or above is None else above.title


def withdrawn(record: Record, *, at: datetime, reason: str = "") -> Record:
    """What stays of a record whose object was withdrawn: key, URN, level and sets; no description."""
    stays = (
        "key",
        "level",
        "parent",
        "urn",
        "collection",
        "target",
        "harvest",
        "ddc",
        "access",
        "is_object",
        "origin",
        "created_at",
    )
    return Record(
        title="",
        changed_at=max(at + MARGIN, record.changed_at),
        withdrawn_at=at,
        withdrawn_reason=reason,
        **{name: getattr(record, name) for name in stays},
    )


def find(connection: Connection, key: str) -> Record | None:
    row = connection.execute(select(catalogue).where(catalogue.c.key == key)).mappings().one_or_none()
    return from_row(row) if row else None


def get(connection: Connection, key: str) -> Record:
    """By key or URN; NotFound when there is none."""
    found = find(connection, key) or find_urn(connection, key)
    if found is None:
        raise NotFound(f"There is no record {key[:200]} in the catalogue.")
    return found


def find_urn(connection: Connection, urn: str) -> Record | None:
    """By URN, in whatever case it is written."""
    row = connection.execute(select(catalogue).where(catalogue.c.urn == urn.lower())).mappings().one_or_none()
    return from_row(row) if row else None


def find_of_harvest(connection: Connection, harvest: str) -> Record | None:
    row = (
        connection.execute(select(catalogue).where(catalogue.c.harvest == harvest).limit(1))
        .mappings()
        .one_or_none()
    )
    return from_row(row) if row else None


def of_target(connection: Connection, target: TargetId) -> list[Record]:
    """The records of a site as such, the oldest first; more than one when partners describe the same site."""
    chosen = select(catalogue).where(catalogue.c.target == target, catalogue.c.level == Level.SITE.value)
    return [
        from_row(row)
        for row in connection.execute(chosen.order_by(catalogue.c.created_at, catalogue.c.key)).mappings()
    ]


def children(connection: Connection, key: str, *, limit: int = 100_000) -> list[Record]:
    """The records directly below, by their date."""
    chosen = (
        select(catalogue)
        .where(catalogue.c.parent == key)
        .order_by(catalogue.c.date, catalogue.c.key)
        .limit(limit)
    )
    return [from_row(row) for row in connection.execute(chosen).mappings()]


def levels(connection: Connection, record: Record) -> tuple[Record, ...]:
    """The record with all above it, from the top; it is the last."""
    found = [record]
    while found[0].parent and len(found) < MOST_LEVELS:
        above = find(connection, found[0].parent)
        if above is None or above in found:
            break
        found.insert(0, above)
    return tuple(found)


def many(connection: Connection, keys: Sequence[str]) -> dict[str, Record]:
    """Records by key; those that are not there are left out."""
    rows = connection.execute(select(catalogue).where(catalogue.c.key.in_(sorted(set(keys))))).mappings()
    return {row["key"]: from_row(row) for row in rows}


def listed(
    connection: Connection,
    *,
    words: Sequence[str] = (),
    levels: Sequence[Level] = WORKS,
    creator: str = "",
    genre: str = "",
    keyword: str = "",
    collection: str = "",
    limit: int = 100,
    after: str = "",
) -> list[Record]:
    """Works that are not withdrawn, by title; a page goes on behind the key of its last record. Words are
    found by their beginnings.
    """
    asked = catalogue_words.wanted(words=words, creator=creator, genre=genre, keyword=keyword)
    start = find(connection, after) if after else None
    where: list[ColumnElement[bool]] = [catalogue.c.withdrawn_at.is_(None)]
    if collection:
        where.append(catalogue.c.collection == collection)
    if start is not None:
        where += [
            catalogue.c.title >= start.title,
            (catalogue.c.title > start.title) | (catalogue.c.key > start.key),
        ]
    if not asked:
        return _along_titles(connection, levels, where, limit)
    keys = catalogue_words.few(connection, asked)
    if keys is None:
        for count in LOOKED_AT:
            found = _looked_at(connection, asked, levels, where, limit, count)
            if found is not None:
                return found
        keys = catalogue_words.having_all(connection, asked)
    return _first_of(connection, keys, levels, where, limit)


def _along_titles(
    connection: Connection, levels: Sequence[Level], where: Sequence[ColumnElement[bool]], limit: int
) -> list[Record]:
    found: list[Record] = []
    for level in levels:
        # One level after the other: each goes along the index of its titles.
        chosen = (
            select(catalogue)
            .where(catalogue.c.level == level.value, *where)
            .order_by(catalogue.c.title, catalogue.c.key)
            .limit(limit)
        )
        found += [from_row(row) for row in connection.execute(chosen).mappings()]
    return sorted(found, key=lambda record: (record.title, record.key))[:limit]


def _looked_at(
    connection: Connection,
    asked: Sequence[Wanted],
    levels: Sequence[Level],
    where: Sequence[ColumnElement[bool]],
    limit: int,
    count: int,
) -> list[Record] | None:
    """Those of the first `count` works by title that have all words; None where too few of them have."""
    keys: list[tuple[str, str]] = []
    for level in levels:
        first = select(catalogue.c.title, catalogue.c.key).where(catalogue.c.level == level.value, *where)
        looked = first.order_by(catalogue.c.title, catalogue.c.key).limit(count).subquery()
        chosen = select(looked.c.title, looked.c.key).where(
            *(catalogue_words.has(one, looked.c.key) for one in asked)
        )
        found = [
            (row.title, row.key)
            for row in connection.execute(chosen.order_by(looked.c.title, looked.c.key).limit(limit))
        ]
        if (
            len(found) < limit
            and connection.execute(select(func.count()).select_from(looked)).scalar_one() == count
        ):
            return None
        keys += found
    return _read(connection, sorted(keys)[:limit])


def _first_of(
    connection: Connection,
    keys: Sequence[str],
    levels: Sequence[Level],
    where: Sequence[ColumnElement[bool]],
    limit: int,
) -> list[Record]:
    """The first by title among these; only those that are shown are read whole."""
    wanted, found = {level.value for level in levels}, list[tuple[str, str]]()
    for start in range(0, len(keys), 500):
        # By key and nothing else that has an index: the database would go along the titles of a level
        # instead, and those are many.
        chosen = select(catalogue.c.title, catalogue.c.key, catalogue.c.level).where(
            catalogue.c.key.in_(keys[start : start + 500]), *where
        )
        found += [(row.title, row.key) for row in connection.execute(chosen) if row.level in wanted]
    return _read(connection, sorted(found)[:limit])


def _read(connection: Connection, chosen: Sequence[tuple[str, str]]) -> list[Record]:
    found = many(connection, [key for _, key in chosen])
    return [found[key] for _, key in chosen]


def iter_all(connection: Connection, *, changed_since: datetime | None = None) -> Iterator[Record]:
    """Every record, withdrawn ones too, in the order of their changes; streams."""
    chosen = select(catalogue).order_by(catalogue.c.changed_at, catalogue.c.key)
    if changed_since is not None:
        chosen = chosen.where(catalogue.c.changed_at >= changed_since)
    return map(from_row, connection.execute(chosen.execution_options(yield_per=500)).mappings())


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(catalogue)).scalar_one()


def to_document(records: Sequence[Record], transfer: Mapping[str, object] | None = None) -> bytes:
    """The records of one object, from the top level down, as they are kept in its package; without the number
    of the target.
    """
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "records": [
            {
                each.name: _plain(getattr(record, each.name))
                for each in fields(Record)
                if each.name != "target"
            }
            for record in records
        ],
        "transfer": transfer,
    }
    return (json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode(
        errors="replace"
    )


def from_document(data: bytes, *, where: str) -> tuple[tuple[Record, ...], dict[str, Any] | None]:
    """The records and the facts of the transfer object; CorruptData when it is not such a document."""
    try:
        document = json.loads(data)
        if document["format"] != FORMAT or document["format_version"] > FORMAT_VERSION:
            raise ValueError(f"it is {document['format']} {document['format_version']}")
        return tuple(_record(each) for each in document["records"]), document.get("transfer")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CorruptData(
            f"The catalogue record {where} cannot be used: {error}. Restore it from another copy.",
            where=where,
        ) from error


def sets_of(record: Record) -> tuple[str, ...]:
    """The sets of OAI-PMH that a record is in, parents included: collection, site, partner, and those of the
    DINI certificate.
    """
    specs = [f"doc-type:{_DOC_TYPES[record.level]}", "status-type:publishedVersion"]
    if record.collection:
        specs.append(f"collection:{as_spec(record.collection)}")
    if record.level in (Level.SITE, Level.SLICE):
        specs.append(f"site:{as_spec(record.parent or record.key)}")
    if record.access is Access.OPEN:
        specs.append("open_access")
    if partner := record.origin.get("partner"):
        specs.append(f"partner:{as_spec(partner)}")
    specs += [f"ddc:{notation[:3]}" for notation in record.ddc if re.match(r"[0-9]{3}", notation, re.ASCII)]
    parents = {spec.partition(":")[0] for spec in specs}
    return tuple(sorted({*specs, *parents}))


_DOC_TYPES = {
    Level.SITE: "Website",
    Level.SLICE: "Website",
    Level.JOURNAL: "Periodical",
    Level.ISSUE: "PeriodicalPart",
    Level.ARTICLE: "article",
    Level.MONOGRAPH: "book",
    Level.THESIS: "doctoralThesis",
}


def as_spec(text: str) -> str:
    """Text as one step of a setSpec, which has few characters."""
    return re.sub(r"[^A-Za-z0-9\-_.!~*'()]", "_", text) or "_"


def stamp(now: datetime, *, size_bytes: int = 0) -> datetime:
    """The datestamp for a change that is written now and can be seen later: not before it can be seen, to the
    second.

    Writing a package takes as long as its bytes; fifty million a second is slower than any disk that a depot
    has.
    """
    ahead = now.astimezone(UTC) + MARGIN + timedelta(seconds=size_bytes / 50e6)
    return ahead.replace(microsecond=0)


def restore_derived(connection: Connection) -> None:
    """The sets and words of every record again, from the records."""
    connection.execute(delete(catalogue_sets))
    for record in list(iter_all(connection)):
        _put_sets(connection, record)
        _put_words(connection, record)


def _put_words(connection: Connection, record: Record) -> None:
    if record.level in WORKS:
        shown = (
            {} if record.withdrawn_at else {each.name: getattr(record, each.name) for each in fields(Record)}
        )
        catalogue_words.put(connection, record.key, shown)


def _put_sets(connection: Connection, record: Record) -> None:
    connection.execute(delete(catalogue_sets).where(catalogue_sets.c.key == record.key))
    rows = [{"spec": spec, "changed_at": record.changed_at, "key": record.key} for spec in sets_of(record)]
    connection.execute(insert(catalogue_sets), rows)


def _values(record: Record) -> dict[str, Any]:
    values = {each.name: getattr(record, each.name) for each in fields(Record)}
    values |= {name: list(values[name]) for name in _LISTS if name != "foreign"}
    values |= {
        "foreign": [dict(each) for each in record.foreign],
        "sources": dict(record.sources),
        "origin": dict(record.origin),
    }
    values |= {"level": record.level.value, "access": record.access.value, "urn": record.urn.lower()}
    return values


def from_row(row: RowMapping) -> Record:
    values = {each.name: row[each.name] for each in fields(Record)}
    values |= {name: tuple(values[name]) for name in _LISTS}
    return Record(**values | {"level": Level(row["level"]), "access": Access(row["access"])})


def _record(facts: Mapping[str, Any]) -> Record:
    known = {each.name for each in fields(Record)}
    values = {name: value for name, value in facts.items() if name in known}
    values |= {name: tuple(values.get(name) or ()) for name in _LISTS}
    values |= {name: from_iso(values[name]) if values.get(name) else None for name in _MOMENTS}
    values |= {"level": Level(values["level"]), "access": Access(values.get("access", Access.OPEN))}
    return Record(**values)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return list(value) if isinstance(value, tuple) else value
