"""Withdrawal: legal deletion of a package. It needs two people and a reason, and leaves a tombstone; the
bytes are then deleted in every place.

1. Check that nothing forbids it: no legal hold, no retention period, and the person who approves is not the
   person who requests it.
2. Write the tombstone to the main place: who, why, when, which checksums. From here on the withdrawal can
   only be completed, not undone.
3. In one transaction: package, copies and containers leave the database, the places that still have the bytes
   are recorded, and the event. The catalogue keeps key and URN, so that partners learn of the withdrawal by
   OAI-PMH and readers see that the package was withdrawn.
4. Remove the captures from both indexes, with their text, even where captures elsewhere only repeat it.
5. Delete the bytes place by place. For a place that cannot be reached, the next audit does it; in a
   write-once place only the holder of its keys can, and the place stays on the list until the bytes are gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot import copies, holdings, holds, migration_tools, places, replication, tombstone
from webdepot.depot.holds import Hold, HoldKind, HoldScope
from webdepot.depot.ocfl import objects
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.places import MAIN
from webdepot.depot.tombstone import Tombstone
from webdepot.errors import CorruptData, InputError, NotFound, NotPermitted, WebdepotError
from webdepot.exchange import catalogue, transfer_zip
from webdepot.exchange.catalogue import CatalogueRecord
from webdepot.formats import results
from webdepot.harvest import harvest_rows
from webdepot.model import HarvestState, PackageId
from webdepot.provenance import Outcome, append, difference
from webdepot.quality import finding_rows, screenshots
from webdepot.reasons import said
from webdepot.services.depot import deposit_records, storage_places
from webdepot.services.index import derived_files, indexer
from webdepot.services.progress import Watch, unwatched


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    stone: Tombstone
    waiting: tuple[str, ...]
    """Places that still have the bytes."""


def withdraw(
    archive: Archive, identifier: str, *, reason: str, approved_by: str, watch: Watch = unwatched
) -> Withdrawal:
    """Delete a package permanently; an interrupted withdrawal is completed by the same call.

    NotPermitted while a hold is in force, or if no other person approved it.
    """
    with archive.database.reading() as connection:
        before = tombstone.find(connection, identifier)
    if before is not None:
        return _finish(archive, before, watch)
    if not reason.strip():
        raise InputError("The reason of the withdrawal is missing. Give one; it is kept in the tombstone.")
    person = archive.agent.partition(" (")[0]
    if not approved_by.strip() or approved_by.strip().casefold() == person.casefold():
        raise NotPermitted(
            f"A withdrawal must be approved by someone other than {person}. "
            "Name that person: --approved-by NAME"
        )
    stone = _new_tombstone(archive, identifier, reason=reason.strip(), approved_by=approved_by.strip())
    with archive.database.reading() as connection:
        remaining = deposit_records.levels_withdrawn(connection, stone)
    tombstone.put(archive.store, stone, catalogued=catalogue.to_document(remaining) if remaining else b"")
    _leave_database(archive, stone, remaining)
    return _finish(archive, stone, watch)


def finish_waiting(archive: Archive) -> int:
    """Delete the bytes of withdrawn packages in places that were away; return the number of places that still
    have some.
    """
    with archive.database.reading() as connection:
        waiting = tombstone.still_waiting(connection)
    return sum(len(_remove_bytes(archive, stone)) for stone, _ in waiting)


def place_hold(
    archive: Archive,
    kind: HoldKind,
    scope: HoldScope,
    subject: str,
    *,
    reason: str,
    until: datetime | None = None,
    years: int | None = None,
) -> Hold:
    """Forbid the withdrawal of a package or a collection."""
    if not reason.strip():
        raise InputError(
            "The reason of the hold is missing. Give one, so that the hold can be reviewed later."
        )
    if (kind is HoldKind.RETENTION) is not (years is not None):
        raise InputError("Retention needs a number of years; a legal hold does not have one.")
    with archive.database.transaction() as connection:
        if scope is HoldScope.PACKAGE:
            subject = holdings.get(connection, subject).id
        now = archive.clock()
        hold = Hold(
            kind=kind,
            scope=scope,
            subject=subject,
            reason=reason,
            agent=archive.agent,
            placed_at=now,
            until=until,
            years=years,
        )
        placed = holds.place(connection, hold)
        message = f"{kind.value} hold {placed.id}: {reason}"
        detail = difference({}, _to_detail(placed))
        append(connection, archive.event("held", scope.value, subject, message=message, detail=detail))
    return placed


def release_hold(archive: Archive, number: int) -> Hold:
    with archive.database.transaction() as connection:
        hold = holds.release(connection, number, agent=archive.agent, now=archive.clock())
        message = f"{hold.kind.value} hold {hold.id}"
        detail = difference(_to_detail(hold), {})
        append(
            connection,
            archive.event("released", hold.scope.value, hold.subject, message=message, detail=detail),
        )
    return hold


def _to_detail(hold: Hold) -> dict[str, object]:
    return {
        "hold": hold.id,
        "kind": hold.kind.value,
        "reason": hold.reason,
        "until": str(hold.until or ""),
        "years": hold.years,
    }


def list_holds(archive: Archive) -> list[Hold]:
    with archive.database.reading() as connection:
        return holds.every(connection)


def _new_tombstone(archive: Archive, identifier: str, *, reason: str, approved_by: str) -> Tombstone:
    """The tombstone of a package; NotPermitted while a hold is in force."""
    with archive.database.reading() as connection:
        held = holdings.get(connection, identifier)
        harvest = harvest_rows.get(connection, held.harvest)
        now = archive.clock()
        active = holds.active(
            connection, package=held.id, collection=harvest.collection, stored_at=held.stored_at, now=now
        )
    if active:
        reasons = "; ".join(
            f"{hold.kind.value} hold {hold.id} of {hold.placed_at:%Y-%m-%d}: {hold.reason}" for hold in active
        )
        raise NotPermitted(f"{held.id} may not be withdrawn: {reasons}.")
    inventory = replication.choose_inventory(archive.stores(), held.id)
    if inventory is None:
        raise CorruptData(
            f"No place has a valid inventory of {held.id}. Run: webdepot depot audit --package {held.id}",
            where=held.id,
        )
    return Tombstone(
        package=held.id,
        harvest=held.harvest,
        urn=held.urn,
        title=held.title,
        withdrawn_at=archive.clock(),
        agent=archive.agent,
        approved_by=approved_by,
        reason=reason,
        files=inventory.files(),
    )


def _leave_database(archive: Archive, stone: Tombstone, remaining: Sequence[CatalogueRecord]) -> None:
    with archive.database.transaction() as connection:
        everywhere = (MAIN, *(place.name for place in places.every(connection)))
        tombstone.record(connection, stone, waiting=everywhere)
        for name in everywhere:
            copies.forget(connection, name, stone.package)
        held = holdings.find(connection, stone.package)
        if held is not None:
            holdings.forget(connection, held)
        migration_tools.forget(connection, stone.package)
        for container in locations.of_harvest(connection, stone.harvest):
            transfer_zip.forget_trees_with(connection, container.name)
        locations.remove_of_harvest(connection, stone.harvest)
        finding_rows.replace(connection, stone.harvest, ())
        results.forget(connection, stone.harvest)
        screenshots.clear(connection, stone.harvest)
        harvest_rows.move(connection, stone.harvest, HarvestState.KEPT, reason=said("withdrawn", "withdrawn"))
        deposit_records.restore_withdrawn(connection, remaining)
        identifier = PackageId(tombstone.id_of(stone.package))
        copies.expect(connection, identifier, version=1, size_bytes=0, now=archive.clock())
        message = f"{stone.reason} (approved by {stone.approved_by})"
        append(
            connection,
            archive.event(
                "withdrawn",
                "package",
                stone.package,
                message=message,
                detail={"urn": stone.urn, "files": dict(stone.files)},
            ),
        )


def _finish(archive: Archive, stone: Tombstone, watch: Watch) -> Withdrawal:
    derived_files.forget_harvest(archive, stone.harvest)
    indexer.update(archive, watch=watch)
    storage_places.copy_out(archive, PackageId(tombstone.id_of(stone.package)))
    waiting = _remove_bytes(archive, stone)
    storage_places.write_register(archive)
    return Withdrawal(stone=stone, waiting=waiting)


def _remove_bytes(archive: Archive, stone: Tombstone) -> tuple[str, ...]:
    """Delete the bytes in every place; the places that still have some are recorded with the tombstone."""
    with archive.database.reading() as connection:
        write_once = {place.name for place in places.every(connection) if place.write_once}
    waiting: list[str] = []
    errors: list[str] = []
    for name, store in archive.stores().items():
        try:
            places.require_present(name, store)
            if name not in write_once:
                replication.remove(store, stone.package, _find_inventory(archive, name, stone.package))
            elif objects.find_inventory(store, stone.package) is not None:
                raise NotPermitted("it is write-once; the holder of its keys must delete the bytes there")
        except (WebdepotError, OSError) as error:
            waiting.append(name)
            errors.append(f"{name}: {error}")
    _record_removal(archive, stone, waiting, errors)
    return tuple(waiting)


def _find_inventory(archive: Archive, name: str, package: PackageId) -> Inventory | None:
    try:
        return objects.find_inventory(archive.stores()[name], package)
    except (CorruptData, NotFound):  # without it, every key that can be listed is deleted
        return None


def _record_removal(
    archive: Archive, stone: Tombstone, waiting: Sequence[str], errors: Sequence[str]
) -> None:
    with archive.database.transaction() as connection:
        tombstone.record(connection, stone, waiting=tuple(waiting))
        message = "bytes deleted in every place" if not waiting else "bytes are left in " + "; ".join(errors)
        outcome = Outcome.WARNING if waiting else Outcome.SUCCESS
        append(
            connection, archive.event("removed", "package", stone.package, message=message, outcome=outcome)
        )
