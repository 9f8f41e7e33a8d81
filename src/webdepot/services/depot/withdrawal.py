"""Withdrawal: a legal deletion. Two people, a reason, a tombstone; then the bytes go, in every place.

1. Nothing forbids it: no legal hold, no retention, and the one who approves is another person than the one
   who asks.
2. The tombstone is set in the main place: who, why, when, which digests. From here on it can only go forward.
3. One transaction: package, copies and containers leave the database; the places whose bytes are still to go
   are noted; event. The catalogue keeps key and URN, so that partners learn of it over OAI-PMH and readers
   get an answer.
4. The captures leave both indexes, and so do their words, also where captures elsewhere only repeat them.
5. The bytes are removed place by place. A place that is away is done by the next audit; one that is
   write-once is left to whoever holds its keys, and stays on the list until they are gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.depot import copies, copying, holdings, holds, migration, ocfl, places, tombstone
from webdepot.depot.holds import Hold, HoldKind, HoldScope
from webdepot.depot.inventory import Inventory
from webdepot.depot.places import MAIN
from webdepot.depot.tombstone import Tombstone
from webdepot.errors import CorruptData, InputError, NotFound, NotPermitted, WebdepotError
from webdepot.exchange import catalogue, transfer
from webdepot.exchange.catalogue import Record
from webdepot.harvest import runs
from webdepot.model import HarvestState, PackageId
from webdepot.provenance import Outcome, append, difference
from webdepot.quality import records
from webdepot.reasons import said
from webdepot.services.depot import audit, titles
from webdepot.services.index import indexer
from webdepot.services.progress import Watch, unwatched


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    stone: Tombstone
    waiting: tuple[str, ...]
    """Places that still have the bytes."""


def withdraw(
    archive: Archive, identifier: str, *, reason: str, approved_by: str, watch: Watch = unwatched
) -> Withdrawn:
    """Delete a package for ever. NotPermitted while a hold stands or when nobody else approved; the same call
    again goes on.
    """
    with archive.database.reading() as connection:
        before = tombstone.find(connection, identifier)
    if before is not None:
        return _finished(archive, before, watch)
    if not reason.strip():
        raise InputError("Say why it is withdrawn: the reason is all that stays.")
    person = archive.agent.partition(" (")[0]
    if not approved_by.strip() or approved_by.strip().casefold() == person.casefold():
        raise NotPermitted(
            f"A withdrawal needs the approval of somebody else than {person}. Name the person: --approved-by NAME"
        )
    stone = _stone(archive, identifier, reason=reason.strip(), approved_by=approved_by.strip())
    with archive.database.reading() as connection:
        stays = titles.levels_withdrawn(connection, stone)
    tombstone.put(archive.store, stone, catalogued=catalogue.to_document(stays) if stays else b"")
    _leave_database(archive, stone, stays)
    return _finished(archive, stone, watch)


def finish_waiting(archive: Archive) -> int:
    """Remove the bytes of withdrawn packages from places that were away; how many places still have some."""
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
        raise InputError("Say why: a hold without a reason cannot be judged later.")
    if (kind is HoldKind.RETENTION) is not (years is not None):
        raise InputError("Retention needs a number of years, a legal hold has none.")
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
        append(
            connection,
            archive.event(
                "held", scope.value, subject, message=message, detail=difference({}, _told(placed))
            ),
        )
    return placed


def release_hold(archive: Archive, number: int) -> Hold:
    with archive.database.transaction() as connection:
        hold = holds.release(connection, number, agent=archive.agent, now=archive.clock())
        message = f"{hold.kind.value} hold {hold.id}"
        append(
            connection,
            archive.event(
                "released",
                hold.scope.value,
                hold.subject,
                message=message,
                detail=difference(_told(hold), {}),
            ),
        )
    return hold


def _told(hold: Hold) -> dict[str, object]:
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


def _stone(archive: Archive, identifier: str, *, reason: str, approved_by: str) -> Tombstone:
    with archive.database.reading() as connection:
        held = holdings.get(connection, identifier)
        harvest = runs.get(connection, held.harvest)
        now = archive.clock()
        standing = holds.standing(
            connection, package=held.id, collection=harvest.collection, stored_at=held.stored_at, now=now
        )
    if standing:
        words = "; ".join(
            f"{hold.kind.value} hold {hold.id} of {hold.placed_at:%Y-%m-%d}: {hold.reason}"
            for hold in standing
        )
        raise NotPermitted(f"{held.id} may not be withdrawn: {words}.")
    inventory = copying.agree(archive.stores(), held.id)
    if inventory is None:
        raise CorruptData(
            f"No place shows an inventory of {held.id}. Run: webdepot depot audit --package {held.id}",
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


def _leave_database(archive: Archive, stone: Tombstone, stays: Sequence[Record]) -> None:
    with archive.database.transaction() as connection:
        everywhere = (MAIN, *(place.name for place in places.every(connection)))
        tombstone.record(connection, stone, waiting=everywhere)
        for name in everywhere:
            copies.forget(connection, name, stone.package)
        held = holdings.find(connection, stone.package)
        if held is not None:
            holdings.forget(connection, held)
        migration.forget(connection, stone.package)
        for container in shelf.of_harvest(connection, stone.harvest):
            transfer.forget_trees_with(connection, container.name)
        shelf.remove_of_harvest(connection, stone.harvest)
        records.replace(connection, stone.harvest, ())
        runs.move(connection, stone.harvest, HarvestState.KEPT, reason=said("withdrawn", "withdrawn"))
        titles.restore_withdrawn(connection, stays)
        identifier = PackageId(tombstone.id_of(stone.package))
        audit.expect_copies(connection, identifier, version=1, size_bytes=0, now=archive.clock())
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


def _finished(archive: Archive, stone: Tombstone, watch: Watch) -> Withdrawn:
    indexer.update(archive, watch=watch)
    audit.copy_out(archive, PackageId(tombstone.id_of(stone.package)))
    waiting = _remove_bytes(archive, stone)
    audit.write_register(archive)
    return Withdrawn(stone=stone, waiting=waiting)


def _remove_bytes(archive: Archive, stone: Tombstone) -> tuple[str, ...]:
    """From every place that still has some; what is left over is noted with the tombstone."""
    with archive.database.reading() as connection:
        write_once = {place.name for place in places.every(connection) if place.write_once}
    waiting: list[str] = []
    troubles: list[str] = []
    for name, store in archive.stores().items():
        try:
            places.require_present(name, store)
            if name not in write_once:
                copying.remove(store, stone.package, _find_inventory(archive, name, stone.package))
            elif ocfl.find_inventory(store, stone.package) is not None:
                raise NotPermitted("it is write-once; whoever holds its keys must remove the bytes there")
        except (WebdepotError, OSError) as error:
            waiting.append(name)
            troubles.append(f"{name}: {error}")
    _note_removed(archive, stone, waiting, troubles)
    return tuple(waiting)


def _find_inventory(archive: Archive, name: str, package: PackageId) -> Inventory | None:
    try:
        return ocfl.find_inventory(archive.stores()[name], package)
    except (CorruptData, NotFound):  # what can be listed is removed all the same
        return None


def _note_removed(
    archive: Archive, stone: Tombstone, waiting: Sequence[str], troubles: Sequence[str]
) -> None:
    with archive.database.transaction() as connection:
        tombstone.record(connection, stone, waiting=tuple(waiting))
        message = (
            "bytes removed in every place" if not waiting else "bytes are left in " + "; ".join(troubles)
        )
        outcome = Outcome.WARNING if waiting else Outcome.SUCCESS
        append(
            connection, archive.event("removed", "package", stone.package, message=message, outcome=outcome)
        )
