"""The catalogue: bibliographic records of works, one for each level (site and slice; journal, issue and
article; thesis).

A site is described once, like a journal; each harvest of it is a slice below it, like an issue. Every record
has a key that never changes (in OAI identifiers and catalogue numbers) and its own URN. The fields of a
record are neutral: MAB, MARC and Dublin Core are written from it and read into it
(`exchange/metadata/mab.py`, `marc.py`, `dublin_core.py`).

`changed_at` is the datestamp of OAI-PMH. It never decreases, and it covers everything that is delivered with
the record: a change of a site changes its slices too. A withdrawn record keeps its key, URN and sets
permanently, and loses everything else.

As a document (`catalogue.json` of a package, version 1): `format`, `format_version`, `records` from the
highest level to the lowest, each with the fields of `Record`, moments in ISO 8601; `transfer` (see
`exchange/transfer_zip.py`).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, case, delete, insert, literal, select, update

from webdepot.database import Moment
from webdepot.errors import CorruptData, NotFound
from webdepot.exchange import catalogue_words
from webdepot.exchange.tables import catalogue, catalogue_sets
from webdepot.model import TargetId
from webdepot.reasons import said
from webdepot.times import from_iso

FORMAT = "webdepot-catalogue"
FORMAT_VERSION = 1
MOST_LEVELS = 8
MARGIN = timedelta(seconds=1)
"""A datestamp must not be earlier than the moment when others can see the change: it is set this much ahead
of the time of writing.
"""


class RecordLevel(StrEnum):
    SITE = "site"
    SLICE = "slice"
    JOURNAL = "journal"
    ISSUE = "issue"
    ARTICLE = "article"
    MONOGRAPH = "monograph"
    THESIS = "thesis"


WORKS = (RecordLevel.SITE, RecordLevel.JOURNAL, RecordLevel.MONOGRAPH, RecordLevel.THESIS)
"""Levels that are works; the others are parts of a work."""
SEARCHED = (*WORKS, RecordLevel.ARTICLE)
"""Levels that a search finds by their words."""


class Access(StrEnum):
    OPEN = "open"
    RESTRICTED = "restricted"
    """Delivered only to partners with a token."""


class Source(StrEnum):
    """Who filled a field. The program does not overwrite what a person wrote."""

    SITE = "site"
    PARTNER = "partner"
    PERSON = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueRecord:
    key: str
    """Lower-case letters, digits, `-` and `_`; never changes."""
    level: RecordLevel
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
    """When publication began: a year, or a year with month and day."""
    run_to: str = ""
    date: str = ""
    """The date of this level: the day of a slice or an issue, the year of a thesis; W3C-DTF."""
    part: str = ""
    """The name of the part within its parent: `Zeitschnitt vom 01.03.2005`, `12 (2004), 3`."""
    identifiers: tuple[str, ...] = ()
    """Identifiers other than the URN, as `kind:value`: `doi:10.1000/1`, `issn:1234-5678`."""
    addresses: tuple[str, ...] = ()
    """Its original web addresses."""
    rights: str = ""
    access: Access = Access.OPEN
    collection: str = ""
    target: TargetId | None = None
    harvest: str = ""
    package: str = ""
    is_object: bool = False
    """Whether there are files that can be delivered."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Who filled each field (see `Source`); fields not listed were filled by this program."""
    foreign: tuple[Mapping[str, str], ...] = ()
    """XML as a partner sent it: `kind` and `xml`."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """The source of a partner's record: `partner`, `base_url`, `identifier`, `datestamp`, `namespace`,
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
    for name in (each.name for each in fields(CatalogueRecord))
    if name not in _OWN
    and name
    not in ("is_object", "sources", "foreign", "origin", "changed_at", "withdrawn_at", "withdrawn_reason")
)
"""Fields that a person or a site's own description may fill."""


def put(connection: Connection, record: CatalogueRecord) -> CatalogueRecord:
    """Write a new or changed record in the caller's transaction. Its datestamp never decreases."""
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
    """Update the datestamps of all records below a changed record; returns how many. Withdrawn records stay
    as they are.

    A slice takes the title of its site, unless it was given its own title. All children are updated at once:
    a site may have ten thousand.
    """
    above = get(connection, key)
    columns = catalogue.c
    is_below = (columns.parent == key) & columns.withdrawn_at.is_(None)
    has_old_title = (
        (columns.level == RecordLevel.SLICE.value)
        & columns.sources["title"].as_string().is_(None)
        & (columns.title != above.title)
    )
    at = literal(changed_at, Moment)
    newer = case((columns.changed_at < at, at), else_=columns.changed_at)
    is_behind = is_below & ((columns.changed_at < at) | has_old_title)
    title = case((has_old_title, above.title), else_=columns.title)
    count = connection.execute(
        update(catalogue).where(is_behind).values(changed_at=newer, title=title)
    ).rowcount
    connection.execute(
        update(catalogue_sets)
        .where(
            catalogue_sets.c.key.in_(select(columns.key).where(is_below)), catalogue_sets.c.changed_at < at
        )
        .values(changed_at=at)
    )
    child = catalogue.alias()
    parents = select(columns.parent).join(child, child.c.key == columns.parent).where(child.c.parent == key)
    for parent in connection.execute(parents.distinct().order_by(columns.parent)).scalars().all():
        count += touch_below(connection, parent, changed_at)
    return count


def inherited_title(record: CatalogueRecord, above: CatalogueRecord | None) -> str:
    """The title of a record below `above`: a slice without its own title takes that of its site."""
    is_own = record.level is not RecordLevel.SLICE or "title" in record.sources or above is None
    return record.title if is_own or above is None else above.title


def withdrawn(record: CatalogueRecord, *, at: datetime, reason: str = "") -> CatalogueRecord:
    """The rest of a record whose object was withdrawn: key, URN, level and sets, without a description."""
    kept = (
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
    return CatalogueRecord(
        title="",
        changed_at=max(at + MARGIN, record.changed_at),
        withdrawn_at=at,
        withdrawn_reason=reason,
        **{name: getattr(record, name) for name in kept},
    )


def find(connection: Connection, key: str) -> CatalogueRecord | None:
    row = connection.execute(select(catalogue).where(catalogue.c.key == key)).mappings().one_or_none()
    return from_row(row) if row else None


def get(connection: Connection, key: str) -> CatalogueRecord:
    """The record with this key or URN; NotFound if there is none."""
    record = find(connection, key) or find_urn(connection, key)
    if record is None:
        raise NotFound(
            said("missing_record", "There is no record {record} in the catalogue.", record=key[:200])
        )
    return record


def find_urn(connection: Connection, urn: str) -> CatalogueRecord | None:
    """The record with this URN, in upper or lower case."""
    row = connection.execute(select(catalogue).where(catalogue.c.urn == urn.lower())).mappings().one_or_none()
    return from_row(row) if row else None


def find_of_harvest(connection: Connection, harvest: str) -> CatalogueRecord | None:
    row = (
        connection.execute(select(catalogue).where(catalogue.c.harvest == harvest).limit(1))
        .mappings()
        .one_or_none()
    )
    return from_row(row) if row else None


def of_target(connection: Connection, target: TargetId) -> list[CatalogueRecord]:
    """The site-level records of a target, oldest first; more than one if partners describe the same site."""
    chosen = select(catalogue).where(
        catalogue.c.target == target, catalogue.c.level == RecordLevel.SITE.value
    )
    return [
        from_row(row)
        for row in connection.execute(chosen.order_by(catalogue.c.created_at, catalogue.c.key)).mappings()
    ]


def children(connection: Connection, key: str, *, limit: int = 100_000) -> list[CatalogueRecord]:
    """The records directly below, by date."""
    chosen = (
        select(catalogue)
        .where(catalogue.c.parent == key)
        .order_by(catalogue.c.date, catalogue.c.key)
        .limit(limit)
    )
    return [from_row(row) for row in connection.execute(chosen).mappings()]


def levels(connection: Connection, record: CatalogueRecord) -> tuple[CatalogueRecord, ...]:
    """The record and all records above it, from the top down."""
    chain = [record]
    while chain[0].parent and len(chain) < MOST_LEVELS:
        above = find(connection, chain[0].parent)
        if above is None or above in chain:
            break
        chain.insert(0, above)
    return tuple(chain)


def many(connection: Connection, keys: Sequence[str]) -> dict[str, CatalogueRecord]:
    """Records by key; unknown keys are left out."""
    rows = connection.execute(select(catalogue).where(catalogue.c.key.in_(sorted(set(keys))))).mappings()
    return {row["key"]: from_row(row) for row in rows}


def to_document(records: Sequence[CatalogueRecord], transfer: Mapping[str, object] | None = None) -> bytes:
    """The records of one object, from the top level down, as JSON for its package; without the target id."""
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "records": [
            {
                each.name: _plain(getattr(record, each.name))
                for each in fields(CatalogueRecord)
                if each.name != "target"
            }
            for record in records
        ],
        "transfer": transfer,
    }
    return (json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode(
        errors="replace"
    )


def from_document(data: bytes, *, where: str) -> tuple[tuple[CatalogueRecord, ...], dict[str, Any] | None]:
    """The records and the facts of the transfer object; CorruptData if it is not such a document."""
    try:
        document = json.loads(data)
        if document["format"] != FORMAT or document["format_version"] > FORMAT_VERSION:
            raise ValueError(f"it is {document['format']} {document['format_version']}")
        return tuple(_record(each) for each in document["records"]), document.get("transfer")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise CorruptData(
            f"The catalogue record {where} cannot be used: {error}. Restore it from another copy.",
            where=where,
        ) from error


def sets_of(record: CatalogueRecord) -> tuple[str, ...]:
    """The OAI-PMH sets of a record, including parent sets: collection, site, partner, and those of the DINI
    certificate.
    """
    specs = [f"doc-type:{_DOC_TYPES[record.level]}", "status-type:publishedVersion"]
    if record.collection:
        specs.append(f"collection:{as_spec(record.collection)}")
    if record.level in (RecordLevel.SITE, RecordLevel.SLICE):
        specs.append(f"site:{as_spec(record.parent or record.key)}")
    if record.access is Access.OPEN:
        specs.append("open_access")
    if partner := record.origin.get("partner"):
        specs.append(f"partner:{as_spec(partner)}")
    specs += [f"ddc:{notation[:3]}" for notation in record.ddc if re.match(r"[0-9]{3}", notation, re.ASCII)]
    parents = {spec.partition(":")[0] for spec in specs}
    return tuple(sorted({*specs, *parents}))


_DOC_TYPES = {
    RecordLevel.SITE: "Website",
    RecordLevel.SLICE: "Website",
    RecordLevel.JOURNAL: "Periodical",
    RecordLevel.ISSUE: "PeriodicalPart",
    RecordLevel.ARTICLE: "article",
    RecordLevel.MONOGRAPH: "book",
    RecordLevel.THESIS: "doctoralThesis",
}


def as_spec(text: str) -> str:
    """Text as one segment of a setSpec, which allows few characters."""
    return re.sub(r"[^A-Za-z0-9\-_.!~*'()]", "_", text) or "_"


def stamp(now: datetime, *, size_bytes: int = 0) -> datetime:
    """The datestamp for a change that is written now and visible later: not before it is visible, in whole
    seconds.

    Writing a package takes time in proportion to its size; 50 MB a second is slower than the disks of a
    depot.
    """
    ahead = now.astimezone(UTC) + MARGIN + timedelta(seconds=size_bytes / 50e6)
    return ahead.replace(microsecond=0)


def restore_derived(connection: Connection, *, after: str, limit: int) -> str | None:
    """Rebuild the sets and words of the next records by key; the key of the last one, None at the end."""
    chosen = select(catalogue).where(catalogue.c.key > after).order_by(catalogue.c.key).limit(limit)
    records = [from_row(row) for row in connection.execute(chosen).mappings()]
    for record in records:
        _put_sets(connection, record)
        _put_words(connection, record)
    return records[-1].key if records else None


def _put_words(connection: Connection, record: CatalogueRecord) -> None:
    if record.level in SEARCHED:
        shown = (
            {}
            if record.withdrawn_at
            else {each.name: getattr(record, each.name) for each in fields(CatalogueRecord)}
        )
        catalogue_words.put(connection, record.key, shown, is_work=record.level in WORKS)


def _put_sets(connection: Connection, record: CatalogueRecord) -> None:
    connection.execute(delete(catalogue_sets).where(catalogue_sets.c.key == record.key))
    rows = [{"spec": spec, "changed_at": record.changed_at, "key": record.key} for spec in sets_of(record)]
    connection.execute(insert(catalogue_sets), rows)


def _values(record: CatalogueRecord) -> dict[str, Any]:
    values = {each.name: getattr(record, each.name) for each in fields(CatalogueRecord)}
    values |= {name: list(values[name]) for name in _LISTS if name != "foreign"}
    values |= {
        "foreign": [dict(each) for each in record.foreign],
        "sources": dict(record.sources),
        "origin": dict(record.origin),
    }
    values |= {"level": record.level.value, "access": record.access.value, "urn": record.urn.lower()}
    return values


def from_row(row: RowMapping) -> CatalogueRecord:
    values = {each.name: row[each.name] for each in fields(CatalogueRecord)}
    values |= {name: tuple(values[name]) for name in _LISTS}
    return CatalogueRecord(**values | {"level": RecordLevel(row["level"]), "access": Access(row["access"])})


def _record(facts: Mapping[str, Any]) -> CatalogueRecord:
    known = {each.name for each in fields(CatalogueRecord)}
    values = {name: value for name, value in facts.items() if name in known}
    values |= {name: tuple(values.get(name) or ()) for name in _LISTS}
    values |= {name: from_iso(values[name]) if values.get(name) else None for name in _MOMENTS}
    values |= {"level": RecordLevel(values["level"]), "access": Access(values.get("access", Access.OPEN))}
    values.pop("target", None)
    for name, value in values.items():
        if not _has_its_type(name, value):
            raise TypeError(f"{name} has the wrong type")
    return CatalogueRecord(**values)


def _has_its_type(name: str, value: Any) -> bool:
    if name in _MOMENTS:
        return isinstance(value, datetime) or (value is None and name == "withdrawn_at")
    if name in _LISTS:
        return all(isinstance(each, dict if name == "foreign" else str) for each in value)
    if name in ("sources", "origin"):
        return isinstance(value, dict)
    return isinstance(value, bool if name == "is_object" else str)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return list(value) if isinstance(value, tuple) else value
