"""The catalogue records that a harvest gets when it is deposited: that of its site and its own, each with a
URN.

If a sender or a partner described the harvest, its working folder has `catalogue.json`, and those records are
used. Otherwise the record of the site is taken from the catalogue, or created, and filled from the start page
of the site; the record of the harvest (a slice) is created below it. The records become part of the package,
and a rebuild restores them from it. `services.catalogue.records` reads and edits records.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.container import kinds
from webdepot.depot import package, package_content
from webdepot.depot.package_content import ContainerSource, PackageFacts
from webdepot.depot.tombstone import Tombstone
from webdepot.errors import CorruptData
from webdepot.exchange import catalogue, transfer_zip, urn
from webdepot.exchange.catalogue import Access, CatalogueRecord, RecordLevel, Source
from webdepot.exchange.transfer_zip import Transfer, TransferFile, TransferForm
from webdepot.model import Harvest, Target, TargetId
from webdepot.ports.object_store import ObjectStore
from webdepot.provenance import append, difference
from webdepot.services.depot import object_rules, site_metadata
from webdepot.services.depot.site_metadata import Values
from webdepot.times import to_iso
from webdepot.url import host_of


class PackageOrigin(StrEnum):
    """Where a package comes from."""

    NEW = "new"
    """Built just now."""
    RESTORED = "restored"
    """It was in our depot."""
    FOREIGN = "foreign"
    """Another Webdepot built it, and a person submitted it."""
    RECEIVED = "received"
    """It was in our depot; another Webdepot built it, and a person submitted it then."""

    @property
    def is_ours(self) -> bool:
        return self in (PackageOrigin.NEW, PackageOrigin.RESTORED)


FILE = "catalogue.json"
IN_PACKAGE = f"metadata/{FILE}"
_ON_THE_WEB = ("http://", "https://")


def site_key(target: Target) -> str:
    """The key of a site's record: readable, and always the same for the same seeds."""
    seeds = sorted(map(str, target.seeds))
    slug = re.sub(r"[^a-z0-9]+", "-", host_of(target.seeds[0]).lower()).strip("-")[:40] if seeds else ""
    return f"site-{slug or 'import'}-{hashlib.sha256(' '.join(seeds).encode()).hexdigest()[:8]}"


def key_of_urn(name: str) -> str:
    """The key of a record that came with its URN."""
    return f"p-{hashlib.sha256(name.encode()).hexdigest()[:20]}"


def new_site(archive: Archive, target: Target, now: datetime) -> CatalogueRecord:
    """A first record for a site; a person or the site's own metadata complete it later."""
    key = site_key(target)
    return CatalogueRecord(
        key=key,
        level=RecordLevel.SITE,
        urn=urn.mint(archive.config.exchange.urn_namespace, key),
        title=target.name,
        genre="Website",
        addresses=tuple(str(seed) for seed in target.seeds if str(seed).startswith(_ON_THE_WEB)),
        collection=target.collection,
        target=target.id,
        created_at=now,
        changed_at=now,
    )


def new_slice(archive: Archive, site: CatalogueRecord, harvest: Harvest, now: datetime) -> CatalogueRecord:
    """The record of one harvest, below that of its site."""
    day = to_iso(harvest.started_at)[:10]
    return CatalogueRecord(
        key=harvest.id,
        level=RecordLevel.SLICE,
        parent=site.key,
        urn=urn.mint(archive.config.exchange.urn_namespace, harvest.id),
        title=site.title,
        genre="Website",
        languages=site.languages,
        date=day,
        part=day,
        addresses=tuple(str(seed) for seed in harvest.seeds if str(seed).startswith(_ON_THE_WEB)),
        access=site.access,
        collection=harvest.collection,
        target=harvest.target,
        harvest=harvest.id,
        package=package_content.id_of(harvest.id),
        is_object=True,
        created_at=now,
        changed_at=now,
    )


def levels_for(
    archive: Archive,
    target: Target,
    harvest: Harvest,
    folder: Path,
    containers: Sequence[ContainerSource],
    *,
    site_values: Values,
) -> tuple[tuple[CatalogueRecord, ...], Transfer | None]:
    """The records of a harvest that is about to be deposited, from the top down, and its transfer object.

    Writes nothing. A harvest without containers has no transfer object. `site_values` are the site's own
    metadata in this harvest; they fill its record, except fields that a person or a partner filled.
    """
    now = archive.clock()
    document = folder / FILE
    if document.exists():
        records, facts = catalogue.from_document(document.read_bytes(), where=str(document))
        transfer_object = transfer_zip.from_document(facts) if facts else _of_containers(harvest, containers)
    else:
        records = _own_levels(archive, target, harvest, now, site_values)
        transfer_object = _of_containers(harvest, containers)
    visible = catalogue.stamp(now, size_bytes=transfer_object.size_bytes if transfer_object else 0)
    with archive.database.reading() as connection:
        known = catalogue.many(connection, [record.key for record in records])
    lowest = replace(
        records[-1],
        harvest=harvest.id,
        target=target.id,
        package=package_content.id_of(harvest.id),
        is_object=transfer_object is not None,
    )
    above = [
        replace(each, target=target.id) if each.level is RecordLevel.SITE else each for each in records[:-1]
    ]
    stamped = [
        before
        if (before := known.get(each.key)) is not None and (document.exists() or each == before)
        else replace(each, changed_at=visible)
        for each in above
    ]
    return (*stamped, replace(lowest, changed_at=visible)), transfer_object


def restore(
    archive: Archive,
    connection: Connection,
    store: ObjectStore,
    facts: PackageFacts,
    target: TargetId,
    origin: PackageOrigin,
) -> None:
    """Write the records and the transfer object of a package to the catalogue; newer records there stay, and
    a package of another archive changes none.
    """
    if IN_PACKAGE not in facts.inventory.files():
        return
    with package.open_file(store, facts, IN_PACKAGE) as stream:
        records, transfer_facts = catalogue.from_document(
            stream.read(), where=f"{facts.package.id} {IN_PACKAGE}"
        )
    if origin is PackageOrigin.FOREIGN:
        _refuse_taken(connection, facts, records)
    for record in records:
        _restore_record(archive, connection, record, facts, target, origin)
    if transfer_facts:
        transfer = transfer_zip.from_document(transfer_facts)
        transfer_zip.record(connection, records[-1].key, transfer, now=facts.package.stored_at)
        own = catalogue.find(connection, records[-1].key)
        # A rebuild restores the rules as they were; staff may have ended this one.
        if (
            own is not None
            and own.access is Access.RESTRICTED
            and origin in (PackageOrigin.NEW, PackageOrigin.FOREIGN)
        ):
            object_rules.follow(archive, connection, own)


def _restore_record(
    archive: Archive,
    connection: Connection,
    record: CatalogueRecord,
    facts: PackageFacts,
    target: TargetId,
    origin: PackageOrigin,
) -> None:
    """Write one record of a package to the catalogue, unless the one there must stay."""
    before = catalogue.find(connection, record.key)
    if before is not None and (
        origin is PackageOrigin.FOREIGN
        or before.changed_at > record.changed_at
        or before.withdrawn_at is not None
    ):
        return
    is_ours = record.level is RecordLevel.SITE or record.harvest == facts.harvest.id
    is_new = origin is PackageOrigin.NEW
    now = archive.clock()
    # If writing the package took longer than its datestamp allowed for, a new one is needed: partners
    # must not see a datestamp from before this commit.
    is_late = is_new and before is None and record.changed_at < now
    above = catalogue.find(connection, record.parent) if record.parent else None
    changed_at = (
        catalogue.stamp(now)
        if is_late
        else max(record.changed_at, above.changed_at if above else record.changed_at)
    )
    title = catalogue.inherited_title(record, above) if record.withdrawn_at is None else ""
    shown = replace(record, title=title, target=target if is_ours else None, changed_at=changed_at)
    put = catalogue.put(connection, shown if origin.is_ours else _as_foreign(shown, above))
    if is_new and record.level is RecordLevel.SITE:
        _record_site_values(archive, connection, before, put)
    if before is None or put != before:  # otherwise those below have its datestamp and title already
        catalogue.touch_below(connection, put.key, put.changed_at)


def _as_foreign(record: CatalogueRecord, above: CatalogueRecord | None) -> CatalogueRecord:
    """A record of another archive: it may restrict access, but cannot open what is restricted here, and its
    partners are not ours.
    """
    is_restricted = above is not None and above.access is Access.RESTRICTED
    return replace(
        record,
        access=Access.RESTRICTED if is_restricted else record.access,
        origin={name: value for name, value in record.origin.items() if name != "partner"},
    )


def _refuse_taken(connection: Connection, facts: PackageFacts, records: Sequence[CatalogueRecord]) -> None:
    """CorruptData if a package of another archive describes something that is not its own."""
    own = records[-1] if records else None
    if own is None or own.harvest != facts.harvest.id or catalogue.find(connection, own.key) is not None:
        raise CorruptData(
            f"The last record in {IN_PACKAGE} does not describe harvest {facts.harvest.id} alone.",
            where=facts.package.id,
        )
    for record in records:
        known = catalogue.find_urn(connection, record.urn) if record.urn else None
        if known is not None and known.key != record.key:
            raise CorruptData(
                f"{IN_PACKAGE} uses {record.urn[:200]}, which is the URN of {known.key}.",
                where=facts.package.id,
            )


def _record_site_values(
    archive: Archive, connection: Connection, before: CatalogueRecord | None, after: CatalogueRecord
) -> None:
    """Write the event about fields filled from the site's own metadata, with their earlier values."""
    names = [name for name, source in after.sources.items() if source == Source.SITE]
    detail = difference(
        {name: getattr(before, name) for name in names} if before else {},
        {name: getattr(after, name) for name in names},
    )
    if names and detail["after"]:
        event = archive.event(
            "described",
            "title",
            after.key,
            message=", ".join(sorted(detail["after"])),
            detail={**detail, "source": Source.SITE.value},
        )
        append(connection, event)


def levels_withdrawn(connection: Connection, stone: Tombstone) -> tuple[CatalogueRecord, ...]:
    """The records that remain of a withdrawn package: of its own only key, URN and sets; the levels above
    unchanged.
    """
    own = catalogue.find_of_harvest(connection, stone.harvest)
    if own is None:
        return ()
    return (
        *catalogue.levels(connection, own)[:-1],
        catalogue.withdrawn(own, at=stone.withdrawn_at, reason=stone.reason),
    )


def restore_withdrawn(connection: Connection, remaining: Sequence[CatalogueRecord]) -> None:
    """Write the records of a withdrawn package; levels above that exist stay as they are."""
    for record in remaining[:-1]:
        if catalogue.find(connection, record.key) is None:
            catalogue.put(connection, record)
    for record in remaining[-1:]:
        catalogue.put(connection, record)
        transfer_zip.forget(connection, record.key)


def _own_levels(
    archive: Archive, target: Target, harvest: Harvest, now: datetime, site_values: Values
) -> tuple[CatalogueRecord, ...]:
    with archive.database.reading() as connection:
        own = catalogue.find_of_harvest(connection, harvest.id)
        if own is not None:
            return catalogue.levels(connection, own)
        sites = catalogue.of_target(connection, target.id)
    site = next((each for each in sites if each.withdrawn_at is None), None) or new_site(archive, target, now)
    site = site_metadata.fill(site, site_values)
    return site, new_slice(archive, site, harvest, now)


def _of_containers(harvest: Harvest, containers: Sequence[ContainerSource]) -> Transfer | None:
    if not containers:
        return None
    by_name = {each.name: each.path for each in containers}
    at = to_iso(harvest.ended_at or harvest.started_at)
    files = []
    for each in containers:
        kind = kinds.of_file(each.path)
        files.append(
            TransferFile(
                path="/",
                name=each.name,
                size_bytes=each.size_bytes,
                sha256=each.sha256,
                mime=kind.mime,
                format=kind.label,
                puid=kind.puid,
                at=at,
                container=each.name,
            )
        )
    return transfer_zip.measure(
        TransferForm.CONTAINERS, files, files[0].member, lambda name: by_name[name].open("rb")
    )
