"""Read, list and edit catalogue records. A change is written to the depot first, then to the database:

1. `write` checks the fields, records who filled them (a program never overwrites what a person wrote), and
   gives the change its datestamp.
2. The records are written to the newest package of the work, as a new version, so that a rebuild restores
   them.
3. In one transaction: the record, the datestamps of all records below it, the event.

`services.depot.deposit_records` creates the records of a harvest when it is deposited.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.depot import holdings, package_content
from webdepot.errors import InputError
from webdepot.exchange import catalogue, catalogue_search, catalogue_words, transfer_zip, urn
from webdepot.exchange.catalogue import EDITABLE, Access, CatalogueRecord, RecordLevel, Source
from webdepot.exchange.metadata import dublin_core, markup
from webdepot.exchange.transfer_zip import Transfer
from webdepot.model import Package, Target, TargetId
from webdepot.provenance import append, difference
from webdepot.selection import targets
from webdepot.services.depot import deposit_records, object_rules, versions
from webdepot.text.search_words import fold

LONGEST_TEXT = 20_000
MOST_VALUES = 200
_LISTED = frozenset({"creators", "contributors", "keywords", "ddc", "languages", "identifiers", "addresses"})
_LONGEST = {"country": 2, "run_from": 10, "run_to": 10, "date": 20, "genre": 100}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """A record with the records above and below it, and its package."""

    record: CatalogueRecord
    levels: Sequence[CatalogueRecord]
    """From the top down to the record itself."""
    children: Sequence[CatalogueRecord]
    package: Package | None


def get(archive: Archive, key: str) -> CatalogueRecord:
    """The record with this key or URN; NotFound if there is none."""
    with archive.database.reading() as connection:
        return catalogue.get(connection, key)


def view(archive: Archive, key: str) -> RecordView:
    with archive.database.reading() as connection:
        record = catalogue.get(connection, key)
        return RecordView(
            record=record,
            levels=catalogue.levels(connection, record),
            children=catalogue.children(connection, record.key),
            package=holdings.find(connection, record.package) if record.package else None,
        )


def find_transfer(archive: Archive, key: str) -> Transfer | None:
    """The transfer object of a record: what partners can fetch."""
    with archive.database.reading() as connection:
        return transfer_zip.find(connection, key)


def find_tree(archive: Archive, key: str) -> Transfer | None:
    """The same object as unpacked files, if it was unpacked."""
    with archive.database.reading() as connection:
        return transfer_zip.find_tree(connection, key)


def find_of_target(archive: Archive, target: TargetId) -> CatalogueRecord | None:
    """The record of a site; None if it has none yet."""
    with archive.database.reading() as connection:
        records = catalogue.of_target(connection, target)
    return next((record for record in records if record.withdrawn_at is None), None)


def find_of_harvest(archive: Archive, harvest: str) -> CatalogueRecord | None:
    with archive.database.reading() as connection:
        return catalogue.find_of_harvest(connection, harvest)


def site_record(archive: Archive, target: Target, *, by: str = "") -> CatalogueRecord:
    """The record of a site, created now if it has none: a site can be described before it is harvested."""
    record = find_of_target(archive, target.id)
    if record is not None:
        return record
    now = archive.clock()
    with archive.database.transaction() as connection:
        new = replace(
            deposit_records.new_site(archive, targets.get(connection, target.id), now),
            changed_at=catalogue.stamp(now),
        )
        detail = difference({}, {"title": new.title, "genre": new.genre, "urn": new.urn})
        event = archive.event("described", "title", new.key, message=new.title, detail=detail, by=by)
        append(connection, event)
        return catalogue.put(connection, new)


def list_records(
    archive: Archive,
    *,
    words: str = "",
    levels: Sequence[RecordLevel] = catalogue.WORKS,
    creator: str = "",
    genre: str = "",
    keyword: str = "",
    subject: str = "",
    initial: str = "",
    collection: str = "",
    limit: int = 100,
    after: str = "",
) -> list[CatalogueRecord]:
    """Records sorted by title, only works unless `levels` says otherwise; `after` is the last key of the page
    before, `initial` the first letter of the title.
    """
    with archive.database.reading() as connection:
        return catalogue_search.find_works(
            connection,
            words=words.split(),
            levels=levels,
            creator=creator,
            genre=genre,
            keyword=keyword,
            subject=subject,
            initial=initial,
            collection=collection,
            limit=limit,
            after=after,
        )


def list_subjects(archive: Archive, *, initial: str = "", limit: int) -> list[tuple[str, int]]:
    """Subjects of works with the number of works, those that begin with a letter or all; sorted without
    regard to case.
    """
    with archive.database.reading() as connection:
        subjects = catalogue_words.subjects(connection, initial=initial, limit=limit)
    return sorted(subjects, key=lambda subject: (fold(subject[0]), subject[0]))


def write(
    archive: Archive,
    key: str,
    changes: Mapping[str, Any],
    *,
    source: Source = Source.PERSON,
    by: str = "",
    foreign: tuple[Mapping[str, str], ...] | None = None,
    origin: Mapping[str, str] | None = None,
) -> CatalogueRecord:
    """Change fields of a record (names of `catalogue.EDITABLE`); a program does not change what a person
    filled.

    `foreign` and `origin` are the newest ones of a partner. InputError if a value is not valid. Nothing is
    written if nothing changes.
    """
    with archive.database.reading() as connection:
        before = catalogue.get(connection, key)
    if before.withdrawn_at is not None:
        raise InputError(
            f"{before.key} was withdrawn on {before.withdrawn_at:%Y-%m-%d}, so it cannot be described."
        )
    wanted = {name: checked(name, value) for name, value in changes.items()}
    wanted = {
        name: value
        for name, value in wanted.items()
        if _may_fill(before, name, source) and getattr(before, name) != value
    }
    foreign = before.foreign if foreign is None else foreign
    if not wanted and foreign == before.foreign:
        return before
    now = archive.clock()
    sources = {**before.sources, **dict.fromkeys(wanted, source.value)}
    changed_at = max(catalogue.stamp(now), before.changed_at)
    after = replace(
        before,
        **wanted,
        foreign=foreign,
        origin=origin or before.origin,
        sources=sources,
        changed_at=changed_at,
    )
    if not after.title:
        raise InputError("A record must have a title. Give one.")
    _keep(archive, after)
    with archive.database.transaction() as connection:
        written = catalogue.put(connection, after)
        catalogue.touch_below(connection, written.key, written.changed_at)
        if "access" in wanted:
            object_rules.follow(archive, connection, written)
        changed = difference({name: getattr(before, name) for name in wanted}, wanted)
        detail = {**changed, "source": source.value}
        message = ", ".join(sorted(wanted))
        append(
            connection,
            archive.event("described", "title", written.key, message=message, detail=detail, by=by),
        )
    return written


def checked(name: str, value: Any) -> Any:
    """A value in the form of its field; InputError if it is not valid."""
    if name not in EDITABLE:
        raise InputError(
            f"{name[:60]!r} is not a field that can be changed. These can: {', '.join(EDITABLE)}"
        )
    if name == "access":
        if value not in tuple(Access):
            raise InputError(f"Access must be {' or '.join(Access)}, not {str(value)[:60]!r}.")
        return Access(value)
    if name in _LISTED:
        values = [value] if isinstance(value, str) else list(value)
        texts = [text for each in values if (text := _text(name, each))]
        if len(texts) > MOST_VALUES:
            raise InputError(f"{name} has more than {MOST_VALUES} values. Shorten the list.")
        return tuple(dict.fromkeys(texts))
    return _text(name, value)


def valid_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The partner's values that are valid in our fields; the others remain in the partner's own XML."""
    valid = {}
    for name, value in fields.items():
        try:
            valid[name] = checked(name, value)
        except InputError:
            continue
    return valid


def assign_urn(archive: Archive, key: str, name: str, *, by: str = "") -> CatalogueRecord:
    """Give a record the URN that its publisher assigned, instead of ours.

    InputError if the record is already in the depot under its URN.
    """
    lower = name.strip().lower()
    if not urn.is_nbn(lower):
        raise InputError(f"{name[:100]!r} is not a URN:NBN. Write it like urn:nbn:de:example-1")
    with archive.database.transaction() as connection:
        record = catalogue.get(connection, key)
        other = catalogue.find_urn(connection, lower)
        if other is not None and other.key != record.key:
            raise InputError(f"{lower} already belongs to {other.key}.")
        if record.urn == lower:
            return record
        if record.is_object or catalogue.children(connection, record.key, limit=1):
            raise InputError(
                f"{record.key} is in the depot under {record.urn}, which can no longer be changed."
            )
        detail = difference({"urn": record.urn}, {"urn": lower})
        append(connection, archive.event("named", "title", record.key, message=lower, detail=detail, by=by))
        return catalogue.put(
            connection, replace(record, urn=lower, changed_at=catalogue.stamp(archive.clock()))
        )


def restrict(archive: Archive, key: str, access: str, *, by: str = "") -> CatalogueRecord:
    """Set who may fetch a work and everything below it: everyone whom the rules allow, or only partners with
    a token. The files of restricted objects are closed to the public (`object_rules`).
    """
    record = write(archive, key, {"access": access}, by=by)
    with archive.database.reading() as connection:
        below = [child.key for child in catalogue.children(connection, key) if child.withdrawn_at is None]
    for child in below:
        restrict(archive, child, access, by=by)
    return record


def close(archive: Archive, key: str, *, reason: str) -> CatalogueRecord:
    """Close a record whose object was withdrawn by its partner; key and URN stay, and our partners are
    informed.

    The package stays in the depot.
    """
    with archive.database.reading() as connection:
        before = catalogue.get(connection, key)
    if before.withdrawn_at is not None:
        return before
    now = archive.clock()
    after = replace(catalogue.withdrawn(before, at=now, reason=reason), package=before.package)
    _keep(archive, after)
    detail = difference(
        {"title": before.title, "withdrawn_at": ""}, {"title": after.title, "withdrawn_at": now.isoformat()}
    )
    with archive.database.transaction() as connection:
        written = catalogue.put(connection, after)
        transfer_zip.forget(connection, after.key)
        append(connection, archive.event("closed", "title", after.key, message=reason, detail=detail))
    return written


def _may_fill(record: CatalogueRecord, name: str, source: Source) -> bool:
    return source is Source.PERSON or record.sources.get(name) != Source.PERSON.value


def _text(name: str, value: object) -> str:
    text = str(value).strip()
    if len(text) > LONGEST_TEXT:
        raise InputError(f"{name} is longer than {LONGEST_TEXT} characters. Shorten it.")
    if len(text) > _LONGEST.get(name, LONGEST_TEXT):
        raise InputError(f"{name} may have at most {_LONGEST[name]} characters.")
    return markup.plain(text)


def _keep(archive: Archive, record: CatalogueRecord) -> None:
    """Write a record to the newest package of its work. The register keeps the records of works without
    packages.
    """
    with archive.database.reading() as connection:
        held = _newest(connection, record)
        if held is None:
            return
        own = catalogue.find_of_harvest(connection, held.harvest) or record
        levels = [record if each.key == record.key else each for each in catalogue.levels(connection, own)]
        levels[-1] = replace(levels[-1], changed_at=max(levels[-1].changed_at, record.changed_at))
        transfer_object = transfer_zip.find(connection, own.key) if levels[-1].withdrawn_at is None else None
    event = archive.event("described", "package", held.id, message=record.key)
    transfer_document = transfer_zip.to_document(transfer_object) if transfer_object else None
    files = {
        deposit_records.IN_PACKAGE: catalogue.to_document(levels, transfer_document),
        package_content.DUBLIN_CORE: dublin_core.to_xml(
            dublin_core.of_levels(levels, identifiers=(held.id,))
        ),
    }
    with versions.newest(archive, held.id) as facts:
        versions.add(archive, facts, files, event=event, message="Description")


def _newest(connection: Connection, record: CatalogueRecord) -> Package | None:
    """The record's own package, or the newest one below it."""
    if record.package:
        return holdings.find(connection, record.package)
    for child in reversed(catalogue.children(connection, record.key)):
        newest = None if child.withdrawn_at else _newest(connection, child)
        if newest is not None:
            return newest
    return None
