"""Fixity audits: read the copies of packages in a rolling plan, repair them from good copies, raise alarms.

An audit first copies what waits to be copied (`storage_places`), then reads the copies that have not been
checked for longest, at a limited rate. Each copy has one outcome: whole, repaired, damaged, lost or away.

An audit does not lock packages: copies are replaced file by file, and each file completely or not at all.
Only one audit or fill runs at a time. A place that cannot be reached is reported and skipped; its copies keep
their state and are checked first when it is back.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.depot import copies, fixity, holdings, places
from webdepot.depot.copies import Copy, CopyState
from webdepot.depot.fixity import AuditOutcome, CopyAudit
from webdepot.depot.ocfl import layout, objects, verification
from webdepot.depot.places import MAIN
from webdepot.depot.store.wrappers import Meter
from webdepot.errors import InputError
from webdepot.model import Finding, PackageId
from webdepot.ports.object_store import ObjectStore
from webdepot.provenance import Outcome, append, difference
from webdepot.services.depot import alarm, storage_places
from webdepot.services.depot.storage_places import FillReport
from webdepot.services.progress import Phase, Progress, Watch, unwatched

BATCH = 64
MOST_PROBLEMS = 1000
_STATES = {
    AuditOutcome.WHOLE: CopyState.WHOLE,
    AuditOutcome.REPAIRED: CopyState.WHOLE,
    AuditOutcome.DAMAGED: CopyState.DAMAGED,
    AuditOutcome.LOST: CopyState.LOST,
}
_OUTCOMES = {AuditOutcome.WHOLE: Outcome.SUCCESS, AuditOutcome.REPAIRED: Outcome.WARNING}
_ALARMING = (AuditOutcome.LOST, AuditOutcome.DAMAGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    counts: Mapping[AuditOutcome, int]
    size_bytes: int
    filled: FillReport
    alarms: Sequence[str]
    """One message for each thing that could not be repaired or reached."""
    problems: Sequence[CopyAudit]
    """The copies that were not whole, at most `MOST_PROBLEMS`."""
    left: int
    """Copies that are due but were not read because a limit was reached; counted up to a thousand."""

    @property
    def lost(self) -> int:
        return self.counts.get(AuditOutcome.LOST, 0)


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
    begun_at: datetime | None = None,
) -> AuditReport:
    """Copy what waits to be copied; then read the copies that are due, oldest first, and repair damage.

    `begun_at` is when an audit began that was interrupted: what was read since then is not read again.

    Each result is durable before the next copy is begun, so an interrupted audit loses only the copies that
    it was reading.
    """
    if place and place != MAIN:
        with archive.database.reading() as connection:
            places.get(connection, place)
    started = begun_at or archive.clock()
    with storage_places.locked(archive):
        meter = storage_places.new_meter(archive, rate_bytes_s)
        if repair and not packages:
            storage_places.write_register(archive)
        filled = (
            storage_places.fill_locked(archive, place="", meter=meter, watch=watch)
            if repair and not packages
            else FillReport(copied=0, size_bytes=0, waiting=0)
        )
        days = archive.config.depot.audit_days if older_than_days is None else older_than_days
        # A copy read by this audit must not become due again in it, even if `older_than_days` is 0.
        before = min(archive.clock() - timedelta(days=days), started)
        run = _AuditRun(archive, meter=meter, repair=repair, limit_bytes=limit_bytes, watch=watch)
        run.check(_named(archive, packages, place) if packages else _due(archive, before, place))
        return run.report(filled, left=0 if packages else _left(archive, before, place, run.away))


def note_request(connection: Connection, archive: Archive, *, by: str) -> None:
    """Record that a person asked for an audit."""
    detail = difference({}, {"audit": "asked for"})
    append(connection, archive.event("asked for", "place", MAIN, by=by, detail=detail))


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
            every = copies.of_package(connection, holdings.get(connection, name).id)
        yield from (copy for copy in every if not place or copy.place == place)


def _left(archive: Archive, before: datetime, place: str, away: frozenset[str]) -> int:
    with archive.database.reading() as connection:
        return sum(
            copy.place not in away for copy in copies.due(connection, before=before, place=place, limit=1000)
        )


class _AuditRun:
    """One audit: reads copies, records their results one by one, and keeps totals."""

    def __init__(
        self, archive: Archive, *, meter: Meter, repair: bool, limit_bytes: int, watch: Watch
    ) -> None:
        self._archive = archive
        self._meter = meter
        self._stores = storage_places.metered(archive.stores(), meter)
        self._repair = repair
        self._limit_bytes = limit_bytes
        self._watch = watch
        self._counts: Counter[AuditOutcome] = Counter()
        self._problems: list[CopyAudit] = []
        self._away: dict[str, str] = {}

    @property
    def away(self) -> frozenset[str]:
        return frozenset(self._away)

    def check(self, due: Iterator[Copy]) -> None:
        """Read the copies, a few at the same time, and record each result as soon as it is known."""
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
                waiting.append(pool.submit(self._check_copy, copy).result)
            for result in waiting:
                self._record(result())

    def report(self, filled: FillReport, left: int) -> AuditReport:
        alarms = [
            f"{each.package} in {each.place}: {each.message}"
            for each in self._problems
            if each.outcome in _ALARMING
        ]
        alarms += [
            f"The place {name} cannot be reached: {reason}"
            for name, reason in (self._away | dict(filled.away)).items()
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
            alarm.send(self._archive, alarms)
        return report

    def _check_copy(self, copy: Copy) -> CopyAudit:
        with self._archive.database.reading() as connection:
            held = holdings.find(connection, copy.package)
            known = holdings.inventory_sha256(connection, copy.package)
        [result] = fixity.audit_package(
            self._stores,
            copy.package,
            [copy.place],
            known_sha256=known,
            known_version=held.version if held else 0,
            repair=self._repair,
        )
        return result

    def _record(self, result: CopyAudit) -> None:
        self._counts[result.outcome] += 1
        if result.outcome is AuditOutcome.AWAY:
            if result.place not in self._away:
                self._away[result.place] = result.message
                storage_places.note_away(self._archive, result.place, result.message)
        else:
            _record_result(self._archive, result)
        if result.outcome is not AuditOutcome.WHOLE and len(self._problems) < MOST_PROBLEMS:
            self._problems.append(result)
        errors = self._counts[AuditOutcome.LOST] + self._counts[AuditOutcome.DAMAGED]
        done = sum(self._counts.values())
        self._watch(
            Progress(
                phase=Phase.AUDIT,
                done=done,
                size_bytes=self._meter.size_bytes,
                errors=errors,
                note=result.package,
            )
        )


def _record_result(archive: Archive, result: CopyAudit) -> None:
    """Write the copy's new state and the event in one transaction. The place was read, so it is not away."""
    now = archive.clock()
    state = _STATES[result.outcome]
    with archive.database.transaction() as connection:
        before = copies.find(connection, result.place, result.package)
        if before is None:  # the package was withdrawn, or the place removed, during the check
            return
        copies.record(
            connection,
            Copy(
                place=result.place,
                package=result.package,
                version=result.version or before.version,
                state=state,
                size_bytes=before.size_bytes,
                checked_at=now,
                note="" if state is CopyState.WHOLE else result.message,
            ),
        )
        places.note_away(connection, result.place, None)
        detail: dict[str, object] = {
            "place": result.place,
            "version": result.version,
            "findings": [each.code for each in result.findings[:50]],
        }
        if result.repaired:
            detail["repaired"] = dict(list(result.repaired.items())[:200])
        if result.lost:
            detail["lost"] = list(result.lost[:200])
        outcome = "intact" if result.outcome is AuditOutcome.WHOLE else result.outcome.value
        message = f"{outcome} in {result.place}"
        event = archive.event(
            "repaired" if result.outcome is AuditOutcome.REPAIRED else "audited",
            "package",
            result.package,
            outcome=_OUTCOMES.get(result.outcome, Outcome.FAILURE),
            message=f"{message}: {result.message}" if result.message else message,
            detail=detail,
        )
        append(connection, event)


def open_place(address: str) -> ObjectStore:
    """The store at a folder or s3:// address, whether this archive uses it or not."""
    return places.open_store(MAIN, places.normal_address(address))


def verify_place(store: ObjectStore, *, watch: Watch = unwatched) -> Iterator[tuple[str, Finding]]:
    """Read a whole depot from its files, without a database; each finding with the object it is about."""
    if store.size(layout.ROOT_DECLARATION) is None:
        raise InputError("There is no depot at this place: the file 0=ocfl_1.1 is missing.")
    for done, identifier in enumerate(objects.iter_objects(store), start=1):
        watch(Progress(phase=Phase.AUDIT, done=done, note=identifier))
        for finding in fixity.verify_package(store, PackageId(identifier)):
            yield identifier, finding
    for folder in objects.iter_unfinished(store):
        yield folder, verification.unfinished(folder)
