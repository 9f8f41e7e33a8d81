"""Copies of packages in several places: add and remove places, copy packages to them, write the register.

    add_place ── fill ──> active           a new place is filled package by package

A fill that was interrupted continues where it stopped. A place that cannot be reached is reported and
skipped; its copies keep their state, and `audit` checks them first when it is back.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from webdepot import durable
from webdepot.archive import Archive
from webdepot.config.config import FILE_NAME
from webdepot.depot import copies, holdings, package, places, register, replication
from webdepot.depot.copies import Copy, CopyState
from webdepot.depot.ocfl import layout
from webdepot.depot.places import MAIN, DepotPlace, PlaceState
from webdepot.depot.store.wrappers import Meter, MeteredStore
from webdepot.errors import Conflict, NoSpace, NotPermitted, RemoteError, WebdepotError
from webdepot.model import PackageId
from webdepot.ports.object_store import ObjectStore
from webdepot.provenance import Outcome, append, difference
from webdepot.reasons import said
from webdepot.services.progress import Phase, Progress, Watch, unwatched

BATCH = 64
UNAVAILABLE = (RemoteError, NotPermitted, NoSpace, OSError)
"""Errors that concern a whole place, not one package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillReport:
    copied: int
    size_bytes: int
    waiting: int
    """Copies still waiting, because a place is away or a package has no good source."""
    away: Mapping[str, str] = field(default_factory=dict)
    """Places that could not be reached, with the reason."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Packages that could not be copied, with the reason."""


def check_portal_place(archive: Archive, address: str) -> None:
    """NotPermitted unless the configuration allows adding a place at this address in the portal."""
    wanted, _, server = places.normal_address(address).partition("?")
    for allowed in archive.config.depot.portal_places:
        parent, _, allowed_server = places.normal_address(allowed).partition("?")
        is_below = (wanted.rstrip("/") + "/").startswith(parent.rstrip("/") + "/")
        if is_below and server == allowed_server and ".." not in wanted.split("/"):
            return
    text = "The configuration does not allow {address}. See portal_places in [depot]."
    raise NotPermitted(said("place_not_allowed", text, address=address[:200]))


def add_place(
    archive: Archive, name: str, address: str, *, write_once: bool = False, by: str = ""
) -> DepotPlace:
    """Register a place and prepare it; every package then waits to be copied there. A place that is already
    registered with this address stays as it is, so that the call can be repeated.

    InputError if name or address is not valid, Conflict if another place has the name or the address.
    """
    places.check_name(name)
    address = places.normal_address(address)
    with archive.database.reading() as connection:
        known = places.find(connection, name)
    if known is not None and (known.address, known.write_once) == (address, write_once):
        return known
    if address == archive.depot_address:
        raise Conflict(f"{address} is already the main place of the depot.")
    store = places.open_store(name, address)
    layout.prepare(store)
    place = DepotPlace(
        name=name,
        address=address,
        state=PlaceState.FILLING,
        write_once=write_once,
        refuses_overwriting=write_once or places.refuses_overwriting(store),
        added_at=archive.clock(),
    )
    with archive.database.transaction() as connection:
        places.add(connection, place)
        count = copies.expect_all(connection, name, archive.clock())
        message = f"{address}; {count} packages are to be copied"
        detail = difference({}, _to_detail(place))
        append(connection, archive.event("added", "place", name, message=message, detail=detail, by=by))
    return place


def remove_place(archive: Archive, name: str) -> DepotPlace:
    """Forget a place. Its files stay where they are."""
    with archive.database.transaction() as connection:
        place = places.get(connection, name)
        copies.forget_place(connection, name)
        places.remove(connection, name)
        message = f"{place.address} is no longer a place of the depot"
        detail = difference(_to_detail(place), {})
        append(connection, archive.event("removed", "place", name, message=message, detail=detail))
    return place


def _to_detail(place: DepotPlace) -> dict[str, object]:
    return {"address": place.address, "state": place.state.value, "write_once": place.write_once}


def fill(
    archive: Archive, *, place: str = "", rate_bytes_s: float | None = None, watch: Watch = unwatched
) -> FillReport:
    """Copy the packages that wait to be copied, to one place or to all; can be repeated if interrupted."""
    with locked(archive):
        return fill_locked(archive, place=place, meter=new_meter(archive, rate_bytes_s), watch=watch)


def fill_locked(archive: Archive, *, place: str, meter: Meter, watch: Watch) -> FillReport:
    """As `fill`, for a caller that holds the lock of the depot."""
    copied, size_bytes = 0, 0
    away: dict[str, str] = {}
    failed: dict[str, str] = {}
    with archive.database.reading() as connection:
        names = (
            [MAIN, *(each.name for each in places.every(connection))]
            if not place
            else [places.get(connection, place).name]
        )
    for name in names:
        for copy in _iter_waiting(archive, name):
            try:
                size_bytes += copy_package(archive, name, copy.package, meter=meter)
                copied += 1
            except UNAVAILABLE as error:
                away[name] = str(error)
                note_away(archive, name, str(error))
                break
            except WebdepotError as error:
                failed[f"{name} {copy.package}"] = str(error)
            watch(
                Progress(
                    phase=Phase.COPY,
                    done=copied,
                    size_bytes=size_bytes,
                    errors=len(failed),
                    note=copy.package,
                )
            )
    return FillReport(
        copied=copied,
        size_bytes=size_bytes,
        waiting=_activate_filled(archive, names),
        away=away,
        failed=failed,
    )


def _iter_waiting(archive: Archive, place: str) -> Iterator[Copy]:
    after = ""
    while True:
        with archive.database.reading() as connection:
            batch = copies.in_state(connection, [CopyState.WAITING], place=place, after=after, limit=BATCH)
        if not batch:
            return
        yield from batch
        after = batch[-1].package


def copy_package(archive: Archive, name: str, identifier: PackageId, *, meter: Meter | None = None) -> int:
    """Copy one package to a place, or update it there to the newest version; return the bytes copied."""
    stores = metered(archive.stores(), meter or Meter())
    target = stores.pop(name)
    places.require_present(name, target)
    with archive.database.reading() as connection:
        known = holdings.inventory_sha256(connection, identifier)
        held = holdings.find(connection, identifier)
    inventory = replication.choose_inventory(stores, identifier, known_sha256=known)
    if inventory is None:
        raise RemoteError(f"No other reachable place has the package {identifier}.", retry=True)
    result = replication.replicate(target, stores, inventory)
    now = archive.clock()
    state = CopyState.LOST if result.lost else CopyState.WHOLE
    note = f"No place has a good copy of {result.lost[0]}." if result.lost else ""
    with archive.database.transaction() as connection:
        size_bytes = held.size_bytes if held else result.size_bytes
        copies.record(
            connection,
            Copy(
                place=name,
                package=identifier,
                version=inventory.head,
                state=state,
                size_bytes=size_bytes,
                checked_at=now,
                note=note,
            ),
        )
        # The register is written with every audit. If copying it were an event, the register would never
        # become stable, because it contains all events.
        if result.lost or package.is_package(identifier):
            detail = {
                "place": name,
                "version": inventory.head,
                "files": len(result.written),
                "bytes": result.size_bytes,
            }
            event = archive.event(
                "copied",
                "package",
                identifier,
                outcome=Outcome.FAILURE if result.lost else Outcome.SUCCESS,
                message=note or f"to the place {name}, {len(result.written)} files",
                detail=detail,
            )
            append(connection, event)
    return result.size_bytes


def copy_out(archive: Archive, identifier: PackageId) -> None:
    """Copy a package to the other places now.

    If a place fails, an event records it, and the next audit copies the package.
    """
    with archive.database.reading() as connection:
        waiting = [
            copy for copy in copies.of_package(connection, identifier) if copy.state is CopyState.WAITING
        ]
    for copy in waiting:
        try:
            copy_package(archive, copy.place, identifier)
        except (WebdepotError, OSError) as error:
            message = f"to the place {copy.place}: {error}"
            event = archive.event("copied", "package", identifier, outcome=Outcome.FAILURE, message=message)
            with archive.database.transaction() as connection:
                append(connection, event)


def write_register(archive: Archive) -> bool:
    """Write the current state of people's decisions to the depot, and copy it out; return whether it had
    changed.
    """
    path = archive.home / FILE_NAME
    config = path.read_text(encoding="utf-8") if path.exists() else ""
    now = archive.clock()
    with archive.database.reading() as connection:
        written = register.write(archive.store, connection, config=config, user=archive.agent, created=now)
    if written is None:
        return False
    identifier = PackageId(written.id)
    with archive.database.transaction() as connection:
        copies.expect(connection, identifier, version=written.head, size_bytes=0, now=now)
    copy_out(archive, identifier)
    return True


def note_away(archive: Archive, name: str, reason: str) -> None:
    """Record that a place cannot be reached; an event only if it was reachable before."""
    with archive.database.transaction() as connection:
        place = places.find(connection, name)
        if place is None or place.away_since is None:
            places.note_away(connection, name, archive.clock(), reason)
            event = archive.event("missed", "place", name, outcome=Outcome.FAILURE, message=reason)
            append(connection, event)


def _activate_filled(archive: Archive, names: Sequence[str]) -> int:
    """Mark the places that have everything as active; return the number of copies still waiting in these
    places.
    """
    left = 0
    with archive.database.transaction() as connection:
        for name in names:
            waiting = sum(
                tally.copies
                for tally in copies.tally(connection)
                if tally.place == name and tally.state is CopyState.WAITING
            )
            left += waiting
            place = places.find(connection, name)
            if place is not None and place.state is PlaceState.FILLING and not waiting:
                places.activate(connection, name)
                append(
                    connection,
                    archive.event("filled", "place", name, message="every package has been copied"),
                )
    return left


@contextmanager
def locked(archive: Archive) -> Iterator[None]:
    """Hold the lock of the depot: only one audit or fill runs at a time, another one gets Conflict."""
    busy = "Another audit or fill of the depot is running. Wait until it is finished, or stop that process."
    with durable.locked(archive.home / "depot.lock", busy=busy):
        yield


def new_meter(archive: Archive, rate_bytes_s: float | None) -> Meter:
    return Meter(archive.config.depot.audit_bytes_per_s if rate_bytes_s is None else rate_bytes_s)


def metered(stores: Mapping[str, ObjectStore], meter: Meter) -> dict[str, ObjectStore]:
    return {name: MeteredStore(store, meter) for name, store in stores.items()}
