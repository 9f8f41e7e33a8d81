"""The catalogue for people and pages: read, describe, list. What is written goes into the depot first, then
into the database.

1. `write` checks the fields, keeps who filled them (a machine never writes over what a person wrote), and
   gives the change its datestamp.
2. The records go into the newest package of the work, as a further version of it: a rebuild brings them back.
3. One transaction: the record, the datestamps of all below it, the event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.depot import holdings, package
from webdepot.errors import InputError
from webdepot.exchange import catalogue, catalogue_search, incoming, transfer, urn
from webdepot.exchange.catalogue import EDITABLE, Access, Level, Record, Source
from webdepot.exchange.metadata import dublin_core
from webdepot.exchange.transfer import Transfer, TransferForm
from webdepot.model import Package, Target, TargetId
from webdepot.provenance import Event, append, difference
from webdepot.selection import targets
from webdepot.services.depot import audit, deposit, titles
from webdepot.times import from_iso, to_timestamp

LONGEST_TEXT = 20_000
MOST_VALUES = 200
_LISTED = frozenset({"creators", "contributors", "keywords", "ddc", "languages", "identifiers", "addresses"})
_LONGEST = {"country": 2, "run_from": 10, "run_to": 10, "date": 20, "genre": 100}


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A record with what stands around it."""

    record: Record
    levels: Sequence[Record]
    """From the top down to the record itself."""
    children: Sequence[Record]
    package: Package | None


def get(archive: Archive, key: str) -> Record:
    """By key or URN; NotFound when there is none."""
    with archive.database.reading() as connection:
        return catalogue.get(connection, key)


def view(archive: Archive, key: str) -> Described:
    with archive.database.reading() as connection:
        record = catalogue.get(connection, key)
        return Described(
            record=record,
            levels=catalogue.levels(connection, record),
            children=catalogue.children(connection, record.key),
            package=holdings.find(connection, record.package) if record.package else None,
        )


def find_transfer(archive: Archive, key: str) -> Transfer | None:
    """What can be fetched for a record."""
    with archive.database.reading() as connection:
        return transfer.find(connection, key)


def find_tree(archive: Archive, key: str) -> Transfer | None:
    """The same object as files, where it was unpacked."""
    with archive.database.reading() as connection:
        return transfer.find_tree(connection, key)


def shown_at(levels: Sequence[Record], made: Transfer) -> dict[str, tuple[str, str]]:
    """Files of an object that is no web site: where each can be opened in the archive, by member, as address
    and timestamp.
    """
    own = levels[-1]
    if made.form is not TransferForm.FILES or levels[0].level is Level.SITE:
        return {}
    addresses = [
        each
        for level in reversed(levels)
        for each in level.addresses
        if each.startswith(("http://", "https://"))
    ]
    return {
        file.member: (
            file.url or incoming.address_without_site(own.urn, file.member, addresses, count=len(made.files)),
            to_timestamp(from_iso(file.at)),
        )
        for file in made.files
    }


def find_of_target(archive: Archive, target: TargetId) -> Record | None:
    """The record of a site; None while it has none."""
    with archive.database.reading() as connection:
        found = catalogue.of_target(connection, target)
    return next((record for record in found if record.withdrawn_at is None), None)


def find_of_harvest(archive: Archive, harvest: str) -> Record | None:
    with archive.database.reading() as connection:
        return catalogue.find_of_harvest(connection, harvest)


def site_record(archive: Archive, target: Target) -> Record:
    """The record of a site, made now if it has none: a site can be described before it is harvested."""
    found = find_of_target(archive, target.id)
    if found is not None:
        return found
    now = archive.clock()
    with archive.database.transaction() as connection:
        made = replace(
            titles.new_site(archive, targets.get(connection, target.id), now),
            changed_at=catalogue.stamp(now),
        )
        detail = difference({}, {"title": made.title, "genre": made.genre, "urn": made.urn})
        event = Event(
            at=now,
            agent=archive.agent,
            action="described",
            subject_kind="title",
            subject=made.key,
            message=made.title,
            detail=detail,
        )
        append(connection, event)
        return catalogue.put(connection, made)


def listed(
    archive: Archive,
    *,
    words: str = "",
    levels: Sequence[Level] = catalogue.WORKS,
    creator: str = "",
    genre: str = "",
    keyword: str = "",
    collection: str = "",
    limit: int = 100,
    after: str = "",
) -> list[Record]:
    """Records by title, works as such unless other levels are asked for; `after` is the key of the last one
    of the page before.
    """
    with archive.database.reading() as connection:
        return catalogue_search.find_works(
            connection,
            words=words.split(),
            levels=levels,
            creator=creator,
            genre=genre,
            keyword=keyword,
            collection=collection,
            limit=limit,
            after=after,
        )


def write(
    archive: Archive,
    key: str,
    changes: Mapping[str, Any],
    *,
    source: Source = Source.PERSON,
    by: str = "",
    foreign: tuple[Mapping[str, str], ...] | None = None,
    origin: Mapping[str, str] | None = None,
) -> Record:
    """Change fields of a record (names of `catalogue.EDITABLE`). Fields that a person filled are left alone
    by machines.

    `foreign` and `origin` are what a partner told anew. InputError when a field cannot be changed so; no
    change, no write.
    """
    with archive.database.reading() as connection:
        before = catalogue.get(connection, key)
    if before.withdrawn_at is not None:
        raise InputError(
            f"{before.key} was withdrawn on {before.withdrawn_at:%Y-%m-%d}: there is nothing left to describe."
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
        raise InputError("A record needs a title.")
    _keep(archive, after)
    with archive.database.transaction() as connection:
        written = catalogue.put(connection, after)
        catalogue.touch_below(connection, written.key, written.changed_at)
        event = Event(
            at=now,
            agent=by or archive.agent,
            action="described",
            subject_kind="title",
            subject=written.key,
            message=", ".join(sorted(wanted)),
            detail={
                **difference({name: getattr(before, name) for name in wanted}, wanted),
                "source": source.value,
            },
        )
        append(connection, event)
    return written


def checked(name: str, value: Any) -> Any:
    """A value as its field has it; InputError when it does not fit."""
    if name not in EDITABLE:
        raise InputError(f"{name[:60]!r} cannot be changed. Fields that can: {', '.join(EDITABLE)}")
    if name == "access":
        if value not in tuple(Access):
            raise InputError(f"Access is {' or '.join(Access)}, not {str(value)[:60]!r}.")
        return Access(value)
    if name in _LISTED:
        values = [value] if isinstance(value, str) else list(value)
        texts = [text for each in values if (text := _text(name, each))]
        if len(texts) > MOST_VALUES:
            raise InputError(f"{name} has more than {MOST_VALUES} values.")
        return tuple(dict.fromkeys(texts))
    return _text(name, value)


def fitting(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a partner as our fields hold them; what does not fit is left to the partner's own XML."""
    fits = {}
    for name, value in fields.items():
        try:
            fits[name] = checked(name, value)
        except InputError:
            continue
    return fits


def own_urn(archive: Archive, key: str, given: str, *, by: str = "") -> Record:
    """Give a record the URN that its publisher assigned, instead of ours. Refused once the record has been
    handed out.
    """
    lower = given.strip().lower()
    if not urn.is_nbn(lower):
        raise InputError(
            f"{given[:100]!r} is no URN of a national bibliography. Write it like urn:nbn:de:example-1"
        )
    with archive.database.transaction() as connection:
        record = catalogue.get(connection, key)
        other = catalogue.find_urn(connection, lower)
        if other is not None and other.key != record.key:
            raise InputError(f"{lower} belongs to {other.key} already.")
        if record.urn == lower:
            return record
        if record.is_object or catalogue.children(connection, record.key, limit=1):
            raise InputError(f"{record.key} is in the depot under {record.urn}, and stays so.")
        detail = difference({"urn": record.urn}, {"urn": lower})
        append(connection, archive.event("named", "title", record.key, message=lower, detail=detail, by=by))
        return catalogue.put(
            connection, replace(record, urn=lower, changed_at=catalogue.stamp(archive.clock()))
        )


def restrict(archive: Archive, key: str, access: str, *, by: str = "") -> Record:
    """Who may fetch a work and everything below it: everybody whom the rules allow, or partners with a token
    only.
    """
    record = write(archive, key, {"access": access}, by=by)
    with archive.database.reading() as connection:
        below = [child.key for child in catalogue.children(connection, key) if child.withdrawn_at is None]
    for child in below:
        restrict(archive, child, access, by=by)
    return record


def close(archive: Archive, key: str, *, reason: str) -> Record:
    """A record whose partner withdrew the object: key and URN stay, partners of ours learn of it. The package
    stays where it is.
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
    event = Event(
        at=now,
        agent=archive.agent,
        action="closed",
        subject_kind="title",
        subject=after.key,
        message=reason,
        detail=detail,
    )
    with archive.database.transaction() as connection:
        written = catalogue.put(connection, after)
        transfer.forget(connection, after.key)
        append(connection, event)
    return written


def _may_fill(record: Record, name: str, source: Source) -> bool:
    return source is Source.PERSON or record.sources.get(name) != Source.PERSON.value


def _text(name: str, value: object) -> str:
    text = str(value).strip()
    if len(text) > LONGEST_TEXT:
        raise InputError(f"{name} is longer than {LONGEST_TEXT} characters.")
    if len(text) > _LONGEST.get(name, LONGEST_TEXT):
        raise InputError(f"{name} has at most {_LONGEST[name]} characters.")
    return dublin_core.without_forbidden(text)


def _keep(archive: Archive, record: Record) -> None:
    """Into the newest package of the work, so that a rebuild brings it back; a work without packages is kept
    by the register.
    """
    with archive.database.reading() as connection:
        held = _newest(connection, record)
        if held is None:
            return
        own = catalogue.find_of_harvest(connection, held.harvest) or record
        levels = [record if each.key == record.key else each for each in catalogue.levels(connection, own)]
        levels[-1] = replace(levels[-1], changed_at=max(levels[-1].changed_at, record.changed_at))
        made = transfer.find(connection, own.key) if levels[-1].withdrawn_at is None else None
    event = Event(
        at=archive.clock(),
        agent=archive.agent,
        action="described",
        subject_kind="package",
        subject=held.id,
        message=f"{record.key}",
    )
    facts = package.extend(
        archive.store,
        held.id,
        {
            titles.IN_PACKAGE: catalogue.to_document(levels, transfer.to_document(made) if made else None),
            package.DUBLIN_CORE: dublin_core.to_xml(dublin_core.of_levels(levels, identifiers=(held.id,))),
        },
        events=(event,),
        message="Description",
        agent=archive.agent,
        created=archive.clock(),
        address=archive.config.archive.contact,
    )
    deposit.record_version(archive, facts, event)
    audit.copy_out(archive, facts.package.id)


def _newest(connection: Connection, record: Record) -> Package | None:
    """The record's own package, or the newest one below it."""
    if record.package:
        return holdings.find(connection, record.package)
    for child in reversed(catalogue.children(connection, record.key)):
        found = None if child.withdrawn_at else _newest(connection, child)
        if found is not None:
            return found
    return None
