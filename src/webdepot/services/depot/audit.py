"""Keeping what is kept: copies in several places, read through in a rolling plan, mended from a good copy,
with every act an event.

    add_place ── fill ──> active           a new place is filled package by package; killed, it goes on where it stopped
    audit                                  what waits is copied; then the copies that nobody read for longest, at a limited rate
                                           whole · repaired · damaged · lost · away

An audit holds no lock on packages: copies are replaced file by file and whole. Only one audit or fill works
at a time. A place that is away is told and passed over; its copies keep their state and are the first to be
looked at when it is back.
"""

import fcntl
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.config import FILE_NAME
from webdepot.depot import copies, copying, fixity, holdings, layout, ocfl, package, places, register
from webdepot.depot.copies import Copy, CopyState
from webdepot.depot.fixity import AuditOutcome, CopyAudit
from webdepot.depot.places import MAIN, Place, PlaceState
from webdepot.depot.store import s3
from webdepot.depot.store.wrapped import Meter, Metered
from webdepot.errors import Conflict, InputError, NoSpace, NotPermitted, RemoteError, WebdepotError
from webdepot.model import Finding, PackageId
from webdepot.ports import ObjectStore
from webdepot.provenance import Outcome, append, difference
from webdepot.services.depot import alarm
from webdepot.services.progress import Phase, Progress, Watch, unwatched

BATCH = 64
_STATES = {
    AuditOutcome.WHOLE: CopyState.WHOLE,
    AuditOutcome.REPAIRED: CopyState.WHOLE,
    AuditOutcome.DAMAGED: CopyState.DAMAGED,
    AuditOutcome.LOST: CopyState.LOST,
}
_OUTCOMES = {AuditOutcome.WHOLE: Outcome.SUCCESS, AuditOutcome.REPAIRED: Outcome.WARNING}
_AWAY = (RemoteError, NotPermitted, NoSpace, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class FillReport:
    copied: int
    size_bytes: int
    waiting: int
    """Copies that still wait, because a place is away or a package has no good source."""
    away: Mapping[str, str] = field(default_factory=dict)
    """Places that could not be reached, with the reason."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Packages that could not be copied, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    counts: Mapping[AuditOutcome, int]
    size_bytes: int
    filled: FillReport
    alarms: Sequence[str]
    """What cannot be repaired or reached, in words."""
    problems: Sequence[CopyAudit]
    """Everything that was not whole, at most a thousand."""
    left: int
    """Copies that are due and were not looked at, because a limit was reached; counted up to a thousand."""

    @property
    def lost(self) -> int:
        return self.counts.get(AuditOutcome.LOST, 0)


# --- places ---


def add_place(archive: Archive, name: str, address: str, *, write_once: bool = False) -> Place:
    """Register a place and prepare it; every package waits to be copied there. InputError or Conflict with
    words.
    """
    places.check_name(name)
    address = places.normal_address(address)
    if address == archive.depot_address:
        raise Conflict(f"{address} is the depot's main place already.")
    store = places.open_store(name, address)
    layout.prepare(store)
    place = Place(
        name=name,
        address=address,
        state=PlaceState.FILLING,
        write_once=write_once,
        refuses_overwriting=s3.refuses_overwriting(store)
        if isinstance(store, s3.S3Store) and not write_once
        else True,
        added_at=archive.clock(),
    )
    with archive.database.transaction() as connection:
        places.add(connection, place)
        count = copies.expect_all(connection, name, archive.clock())
        message = f"{address}; {count} packages are to be copied"
        append(
            connection,
            archive.event("added", "place", name, message=message, detail=difference({}, _told(place))),
        )
    return place


def remove_place(archive: Archive, name: str) -> Place:
    """Forget a place. Its files stay where they are; whoever wants them gone removes them there."""
    with archive.database.transaction() as connection:
        place = places.get(connection, name)
        copies.forget_place(connection, name)
        places.remove(connection, name)
        message = f"{place.address} is no place of the depot any more"
        append(
            connection,
            archive.event("removed", "place", name, message=message, detail=difference(_told(place), {})),
        )
    return place


def _told(place: Place) -> dict[str, object]:
    return {"address": place.address, "state": place.state.value, "write_once": place.write_once}


def fill(
    archive: Archive, *, place: str = "", rate_bytes_s: float | None = None, watch: Watch = unwatched
) -> FillReport:
    """Copy what waits to be copied, to one place or to all. Killed or stopped, it goes on where it was."""
    with _alone(archive):
        return _fill(archive, place=place, meter=_meter(archive, rate_bytes_s), watch=watch)


def _fill(archive: Archive, *, place: str, meter: Meter, watch: Watch) -> FillReport:
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
        after = ""
        while name not in away:
            with archive.database.reading() as connection:
                waiting = copies.in_state(
                    connection, [CopyState.WAITING], place=name, after=after, limit=BATCH
                )
            if not waiting:
                break
            for copy in waiting:
                after = copy.package
                try:
                    size_bytes += bring_copy(archive, name, copy.package, meter=meter)
                    copied += 1
                except _AWAY as error:
                    away[name] = str(error)
                    _note_away(archive, name, str(error))
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
        copied=copied, size_bytes=size_bytes, waiting=_settle(archive, names), away=away, failed=failed
    )


def bring_copy(archive: Archive, name: str, identifier: PackageId, *, meter: Meter | None = None) -> int:
    """Copy one package to a place, or bring it up to the newest version there; bytes that went over."""
    stores = _metered(archive.stores(), meter or Meter())
    target = stores.pop(name)
    places.require_present(name, target)
    with archive.database.reading() as connection:
        known = holdings.inventory_sha256(connection, identifier)
        held = holdings.find(connection, identifier)
    inventory = copying.agree(stores, identifier, known_sha256=known)
    if inventory is None:
        raise RemoteError(f"No other place that can be reached has the package {identifier}.", retry=True)
    brought = copying.bring(target, stores, inventory)
    now = archive.clock()
    state = CopyState.LOST if brought.lost else CopyState.WHOLE
    note = f"No place has a good copy of {brought.lost[0]}." if brought.lost else ""
    with archive.database.transaction() as connection:
        size_bytes = held.size_bytes if held else brought.size_bytes
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
        outcome = Outcome.FAILURE if brought.lost else Outcome.SUCCESS
        detail = {
            "place": name,
            "version": inventory.head,
            "files": len(brought.written),
            "bytes": brought.size_bytes,
        }
        message = note or f"to the place {name}, {len(brought.written)} files"
        # The register is written with every audit; an event of its copying would be its next news, without
        # end.
        if brought.lost or package.is_package(identifier):
            append(
                connection,
                archive.event(
                    "copied", "package", identifier, outcome=outcome, message=message, detail=detail
                ),
            )
    return brought.size_bytes


def copy_out(archive: Archive, identifier: PackageId) -> None:
    """To the other places at once; one that cannot take it now is told by an event, and gets it by the next
    audit.
    """
    with archive.database.reading() as connection:
        waiting = [
            copy for copy in copies.of_package(connection, identifier) if copy.state is CopyState.WAITING
        ]
    for copy in waiting:
        try:
            bring_copy(archive, copy.place, identifier)
        except (WebdepotError, OSError) as error:
            message = f"to the place {copy.place}: {error}"
            event = archive.event("copied", "package", identifier, outcome=Outcome.FAILURE, message=message)
            with archive.database.transaction() as connection:
                append(connection, event)


def write_register(archive: Archive) -> bool:
    """Put what people decided into the depot; whether something was new. It is copied to the other places
    like a package.
    """
    path = archive.home / FILE_NAME
    config = path.read_text(encoding="utf-8") if path.exists() else ""
    now = archive.clock()
    with archive.database.reading() as connection:
        written = register.write(archive.store, connection, config=config, user=archive.agent, created=now)
    if written is None:
        return False
    with archive.database.transaction() as connection:
        expect_copies(connection, PackageId(written.id), version=written.head, size_bytes=0, now=now)
    copy_out(archive, PackageId(written.id))
    return True


def expect_copies(
    connection: Connection, identifier: PackageId, *, version: int, size_bytes: int, now: datetime
) -> None:
    """An object that is no package stands in the main place and is to be in all others."""
    for name in (MAIN, *(place.name for place in places.every(connection))):
        state = CopyState.WHOLE if name == MAIN else CopyState.WAITING
        shown = version if name == MAIN else 0
        copies.record(
            connection,
            Copy(
                place=name,
                package=identifier,
                version=shown,
                state=state,
                size_bytes=size_bytes,
                checked_at=now,
            ),
        )


def _settle(archive: Archive, names: Sequence[str]) -> int:
    """Places that have everything are active from now on; how many copies still wait in these places."""
    left = 0
    with archive.database.transaction() as connection:
        for name in names:
            waiting = sum(
                t.copies for t in copies.tally(connection) if t.place == name and t.state is CopyState.WAITING
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


# --- audit ---


def audit(
    archive: Archive,
    *,
    place: str = "",
    packages: Sequence[str] = (),
    older_than_days: float | None = None,
    limit_bytes: int = 0,
    rate_bytes_s: float | None = None,
    repair: bool = True,
    watch: Watch = unwatched,
) -> AuditReport:
    """Copy what waits, then read and compare the copies that are due, oldest first; mend what is damaged;
    tell what cannot be mended.

    Each copy's result is durable before the next is begun, so a killed audit loses no more than the copies it
    was reading.
    """
    if place and place != MAIN:
        with archive.database.reading() as connection:
            places.get(connection, place)
    started = archive.clock()
    with _alone(archive):
        meter = _meter(archive, rate_bytes_s)
        if repair and not packages:
            write_register(archive)
        filled = (
            _fill(archive, place="", meter=meter, watch=watch)
            if repair and not packages
            else FillReport(copied=0, size_bytes=0, waiting=0)
        )
        days = archive.config.depot.audit_days if older_than_days is None else older_than_days
        # What is read now is not due again in the same audit, however young copies were asked for.
        before = min(archive.clock() - timedelta(days=days), started)
        run = _Run(archive, meter=meter, repair=repair, limit_bytes=limit_bytes, watch=watch)
        run.over(_named(archive, packages, place) if packages else _due(archive, before, place))
        return run.report(filled, left=0 if packages else _left(archive, before, place, run.away))


def _due(archive: Archive, before: datetime, place: str) -> Iterator[Copy]:
    after: Copy | None = None
    while True:
        with archive.database.reading() as connection:
            batch = copies.due(connection, before=before, place=place, after=after, limit=BATCH)
        if not batch:
            return
        yield from batch
        after = batch[-1]


def _named(archive: Archive, packages: Sequence[str], place: str) -> Iterator[Copy]:
    for name in packages:
        with archive.database.reading() as connection:
            found = copies.of_package(connection, holdings.get(connection, name).id)
        yield from (copy for copy in found if not place or copy.place == place)


def _left(archive: Archive, before: datetime, place: str, away: frozenset[str]) -> int:
    with archive.database.reading() as connection:
        return sum(
            copy.place not in away for copy in copies.due(connection, before=before, place=place, limit=1000)
        )


class _Run:
    """One audit: copies in, results recorded one by one, totals kept."""

    def __init__(
        self, archive: Archive, *, meter: Meter, repair: bool, limit_bytes: int, watch: Watch
    ) -> None:
        self._archive = archive
        self._meter = meter
        self._stores = _metered(archive.stores(), meter)
        self._repair = repair
        self._limit_bytes = limit_bytes
        self._watch = watch
        self._counts: Counter[AuditOutcome] = Counter()
        self._problems: list[CopyAudit] = []
        self._away: dict[str, str] = {}

    @property
    def away(self) -> frozenset[str]:
        return frozenset(self._away)

    def over(self, due: Iterator[Copy]) -> None:
        """A few copies at once, each recorded as soon as it is known."""
        threads = self._archive.config.depot.audit_threads
        with ThreadPoolExecutor(threads) as pool:
            waiting: list[Callable[[], CopyAudit]] = []
            for copy in due:
                if self._limit_bytes and self._meter.size_bytes >= self._limit_bytes:
                    break
                if copy.place in self._away or copy.place not in self._stores:
                    continue
                if len(waiting) >= threads:
                    self._record(waiting.pop(0)())
                waiting.append(pool.submit(self._look, copy).result)
            for result in waiting:
                self._record(result())

    def report(self, filled: FillReport, left: int) -> AuditReport:
        alarms = [
            f"{each.package} in {each.place}: {each.message}"
            for each in self._problems
            if each.outcome in _ALARMING
        ]
        alarms += [
            f"The place {name} is away: {words}" for name, words in (self._away | dict(filled.away)).items()
        ]
        report = AuditReport(
            counts=dict(self._counts),
            size_bytes=self._meter.size_bytes,
            filled=filled,
            alarms=alarms,
            problems=self._problems,
            left=left,
        )
        if alarms:
            alarm.sound(self._archive, alarms)
        return report

    def _look(self, copy: Copy) -> CopyAudit:
        with self._archive.database.reading() as connection:
            held = holdings.find(connection, copy.package)
            known = holdings.inventory_sha256(connection, copy.package)
        found = fixity.audit_package(
            self._stores,
            copy.package,
            [copy.place],
            known_sha256=known,
            known_version=held.version if held else 0,
            repair=self._repair,
        )
        return found[0]

    def _record(self, found: CopyAudit) -> None:
        self._counts[found.outcome] += 1
        if found.outcome is AuditOutcome.AWAY:
            if found.place not in self._away:
                self._away[found.place] = found.message
                _note_away(self._archive, found.place, found.message)
        else:
            _record_audit(self._archive, found)
        if found.outcome is not AuditOutcome.WHOLE and len(self._problems) < 1000:
            self._problems.append(found)
        errors = self._counts[AuditOutcome.LOST] + self._counts[AuditOutcome.DAMAGED]
        done = sum(self._counts.values())
        self._watch(
            Progress(
                phase=Phase.AUDIT,
                done=done,
                size_bytes=self._meter.size_bytes,
                errors=errors,
                note=found.package,
            )
        )


_ALARMING = (AuditOutcome.LOST, AuditOutcome.DAMAGED)


def _record_audit(archive: Archive, found: CopyAudit) -> None:
    """The copy's new state and the event, in one transaction; the place is there, so it is not away any more."""
    now = archive.clock()
    with archive.database.transaction() as connection:
        before = copies.find(connection, found.place, found.package)
        if before is None:  # withdrawn, or the place was removed, while it was read
            return
        copies.record(
            connection,
            Copy(
                place=found.place,
                package=found.package,
                version=found.version or before.version,
                state=_STATES[found.outcome],
                size_bytes=before.size_bytes,
                checked_at=now,
                note="" if _STATES[found.outcome] is CopyState.WHOLE else found.message,
            ),
        )
        places.note_away(connection, found.place, None)
        detail: dict[str, object] = {
            "place": found.place,
            "version": found.version,
            "findings": [each.code for each in found.findings[:50]],
        }
        if found.repaired:
            detail["repaired"] = dict(list(found.repaired.items())[:200])
        if found.lost:
            detail["lost"] = list(found.lost[:200])
        action = "repaired" if found.outcome is AuditOutcome.REPAIRED else "audited"
        append(
            connection,
            archive.event(
                action,
                "package",
                found.package,
                outcome=_OUTCOMES.get(found.outcome, Outcome.FAILURE),
                message=f"{found.outcome.value} in {found.place}"
                + (f": {found.message}" if found.message else ""),
                detail=detail,
            ),
        )


def _note_away(archive: Archive, name: str, words: str) -> None:
    now = archive.clock()
    with archive.database.transaction() as connection:
        place = places.find(connection, name)
        if place is None or place.away_since is None:
            places.note_away(connection, name, now, words)
            append(connection, archive.event("missed", "place", name, outcome=Outcome.FAILURE, message=words))


# --- from a place alone ---


def open_place(address: str) -> ObjectStore:
    """The store at a folder or s3:// address, whether this archive uses it or not."""
    return places.open_store(MAIN, places.normal_address(address))


def verify_place(store: ObjectStore, *, watch: Watch = unwatched) -> Iterator[tuple[str, Finding]]:
    """Read a whole depot from its files alone, without a database: each finding with the object it is about."""
    if store.size(layout.ROOT_DECLARATION) is None:
        raise InputError("There is no depot at this place: the file 0=ocfl_1.1 is missing.")
    for done, identifier in enumerate(ocfl.iter_objects(store), start=1):
        watch(Progress(phase=Phase.AUDIT, done=done, note=identifier))
        for finding in fixity.verify_package(store, PackageId(identifier)):
            yield identifier, finding
    for folder in ocfl.iter_unfinished(store):
        yield folder, ocfl.unfinished(folder)


@contextmanager
def _alone(archive: Archive) -> Iterator[None]:
    """One audit or fill at a time; a killed one lets go by dying."""
    with (archive.home / "depot.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(
                "Another audit or fill of the depot is at work. Wait for it, or stop that process."
            ) from None
        yield


def _meter(archive: Archive, rate_bytes_s: float | None) -> Meter:
    return Meter(archive.config.depot.audit_bytes_per_s if rate_bytes_s is None else rate_bytes_s)


def _metered(stores: Mapping[str, ObjectStore], meter: Meter) -> dict[str, ObjectStore]:
    return {name: Metered(store, meter) for name, store in stores.items()}
