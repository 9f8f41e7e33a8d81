"""Steering harvests that run, in this process or another, and looking at them: orders, live numbers, reports.

An order is written into the folder of the harvest (`harvest.control`); the process that works on it obeys
within a moment. Each is kept as an event, with who gave it and why.
"""

import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from webdepot.archive import Archive
from webdepot.depot import holdings, package
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.harvest import control
from webdepot.harvest.control import Order, Standing, Verb
from webdepot.harvest.report import live, log, reports
from webdepot.harvest.report.live import LiveNumbers
from webdepot.harvest.report.log import JSON_NAME, RecentLine
from webdepot.harvest.report.reports import HarvestReport, ReportKind
from webdepot.model import Harvest, HarvestKind, HarvestState
from webdepot.provenance import Event, append, difference
from webdepot.services.harvest import harvests, parts
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest.options import HarvestOptions
from webdepot.url import from_typed

_MOST_TOLD = 100
"""So many addresses an event tells of; the orders themselves stay in the folder of the harvest."""
_NEEDS_RUNNING = frozenset({Verb.PAUSE, Verb.STOP, Verb.ABORT})
_OPEN_STATES = frozenset({HarvestState.RUNNING, HarvestState.STOPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A harvest as it stands now."""

    harvest: Harvest
    is_running: bool
    """A living process works on it."""
    live: LiveNumbers | None
    """Its last numbers; None before it began, and once it is in the depot."""
    standing: Standing
    options: HarvestOptions
    """As they are after all orders."""
    orders: Sequence[Order]


def watch(archive: Archive, harvest: str) -> Watched:
    found = harvests.get(archive, harvest)
    folder = harvests.folder_of(archive, found)
    orders = control.read(folder)
    standing = control.standing(orders)
    options = (
        harvest_options.from_kept(found.settings)
        if found.kind is HarvestKind.HARVEST
        else HarvestOptions.from_config(archive.config)
    )
    return Watched(
        harvest=found,
        is_running=harvests.is_locked(archive, found),
        live=live.read(folder),
        standing=standing,
        options=harvest_options.changed(options, standing.changes),
        orders=orders,
    )


def recent(archive: Archive, harvest: Harvest, limit: int = 15) -> Sequence[RecentLine]:
    """The newest lines of the log of a harvest that runs, over all its processes."""
    folder = harvests.folder_of(archive, harvest)
    lines = [line for part in (folder, *parts.existing(folder)) for line in log.recent(part, limit)]
    return sorted(lines, key=lambda line: line.at, reverse=True)[:limit]


def give(archive: Archive, harvest: str, verb: Verb, *, by: str = "", reason: str = "") -> Order:
    """Pause, resume, stop or abort a harvest that runs; Conflict says what else can be done."""
    found = _open(archive, harvest)
    if verb in _NEEDS_RUNNING | {Verb.RESUME} and not harvests.is_locked(archive, found):
        raise Conflict(
            f"Nobody works on harvest {harvest} now, it is {found.state}. Go on with it: webdepot harvest resume {harvest}"
        )
    return _give(archive, found, verb, by=by, reason=reason, detail=_course(archive, found, verb))


def lift_pause(archive: Archive, harvest: str, *, by: str = "") -> Order:
    """Before a stopped harvest is run again: a pause ordered earlier would hold it."""
    found = _open(archive, harvest)
    return _give(archive, found, Verb.RESUME, by=by, reason="", detail=_course(archive, found, Verb.RESUME))


def _course(archive: Archive, harvest: Harvest, verb: Verb) -> Mapping[str, object]:
    """What the harvest was told to do before this order, and what it is told now."""
    is_running = harvests.is_locked(archive, harvest)
    is_paused = control.standing(control.read(harvests.folder_of(archive, harvest))).paused
    before = "paused" if is_paused else "running" if is_running else harvest.state.value
    after = {Verb.PAUSE: "paused", Verb.RESUME: "running", Verb.STOP: "stopped", Verb.ABORT: "ended"}[verb]
    return {"before": {"course": before}, "after": {"course": after}}


def change(
    archive: Archive, harvest: str, changes: Mapping[str, object], *, by: str = "", reason: str = ""
) -> Order:
    """Other limits or rules from now on; for a stopped harvest, from when it goes on. InputError for what
    cannot be changed.
    """
    if not changes:
        raise InputError("Say what shall change, for example --limit-pages 1000.")
    watched = watch(archive, harvest)
    found = _open(archive, harvest)
    changed = harvest_options.changed(watched.options, changes)
    harvest_options.settings_of(
        archive, found.seeds, changed, agent="check"
    )  # a rule that is none is told now, not in the crawl
    before = {name: _plain(getattr(watched.options, name)) for name in changes}
    return _give(
        archive, found, Verb.CHANGE, by=by, reason=reason, changes=changes, detail=difference(before, changes)
    )


def use_profile(
    archive: Archive, harvest: str, options: HarvestOptions, *, by: str = "", reason: str = ""
) -> Order:
    """The rules, limits and hosts of a profile from now on."""
    names = harvest_options.CHANGEABLE
    return change(
        archive,
        harvest,
        {name: _plain(getattr(options, name)) for name in sorted(names)},
        by=by,
        reason=reason,
    )


def reject(
    archive: Archive, harvest: str, patterns: Sequence[str], *, by: str = "", reason: str = ""
) -> Order:
    """Leave out what matches from now on, and of what waits."""
    before = watch(archive, harvest).options.reject
    return change(
        archive,
        harvest,
        {"reject": [*before, *(pattern for pattern in patterns if pattern not in before)]},
        by=by,
        reason=reason,
    )


def add(archive: Archive, harvest: str, typed: Sequence[str], *, by: str = "", reason: str = "") -> Order:
    """Fetch these, too, whatever the scope says; their links are judged as ever."""
    if not typed:
        raise InputError("Name at least one address to add.")
    urls = tuple(map(from_typed, typed))
    found = _open(archive, harvest)
    return _give(
        archive,
        found,
        Verb.ADD,
        by=by,
        reason=reason,
        urls=urls,
        detail=_listed(archive, found, Verb.ADD, urls),
    )


def remove(
    archive: Archive, harvest: str, patterns: Sequence[str], *, by: str = "", reason: str = ""
) -> Order:
    """Give up waiting addresses in which one of the regular expressions is found."""
    if not patterns:
        raise InputError("Name at least one regular expression to remove.")
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise InputError(f"{pattern!r} is no regular expression: {error}.") from error
    found = _open(archive, harvest)
    detail = _listed(archive, found, Verb.REMOVE, patterns)
    return _give(archive, found, Verb.REMOVE, by=by, reason=reason, urls=tuple(patterns), detail=detail)


def _listed(archive: Archive, harvest: Harvest, verb: Verb, more: Sequence[str]) -> Mapping[str, object]:
    """Addresses added, or patterns given up, by orders so far; and with this one."""
    so_far = [
        url
        for order in control.read(harvests.folder_of(archive, harvest))
        if order.verb is verb
        for url in order.urls
    ]
    name = "added" if verb is Verb.ADD else "removed"
    return {"before": {name: so_far[-_MOST_TOLD:]}, "after": {name: [*so_far, *more][-_MOST_TOLD:]}}


def report(
    archive: Archive, harvest: str, kind: ReportKind, *, limit: int = 0, offset: int = 0
) -> HarvestReport:
    """A report, of a harvest that runs as of one in the depot. NotFound for an import, which has no log."""
    found = harvests.get(archive, harvest)
    folder = harvests.folder_of(archive, found)
    if (folder / JSON_NAME).exists():
        reports.refresh(folder / JSON_NAME, folder / reports.FILE_NAME)
        made = reports.read(folder / reports.FILE_NAME, kind, limit=limit, offset=offset)
    else:
        made = reports.read(_counted(archive, found), kind, limit=limit, offset=offset)
    return _with_outside(archive, found, made) if kind is ReportKind.REJECTED and not offset else made


def _counted(archive: Archive, harvest: Harvest) -> Path:
    """The counts of a harvest in the depot, made once from the log in its package."""
    path = archive.home / "cache" / "reports" / f"{harvest.id}.db"
    if path.exists():
        return path
    with archive.database.reading() as connection:
        held = holdings.find_of_harvest(connection, harvest.id)
    if held is None or harvest.kind is not HarvestKind.HARVEST:
        raise NotFound(f"Harvest {harvest.id} has no log to report from.")
    facts = package.read(archive.store, package.id_of(harvest.id))
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=path.parent) as folder,
        closing(package.open_file(archive.store, facts, f"log/{JSON_NAME}")) as lines,
    ):
        reports.count_all(lines, Path(folder) / "new.db")
        (Path(folder) / "new.db").replace(path)
    return path


def _with_outside(archive: Archive, harvest: Harvest, made: HarvestReport) -> HarvestReport:
    """Links that merely lead elsewhere are counted, not logged: their number stands beside those of the log."""
    known = live.read(harvests.folder_of(archive, harvest))
    outside = known.refusals.get("outside", 0) if known is not None else harvest.counts.get("outside", 0)
    logged = sum(int(row["refused"]) for row in made.rows if row["name"] == "outside")
    if outside <= logged:
        return made
    row = {"name": "outside", "refused": outside, "example": "", "reason": "it does not belong to a seed"}
    rows = [row, *(other for other in made.rows if other["name"] != "outside")]
    return replace(
        made, rows=sorted(rows, key=lambda other: -int(other["refused"])), total=max(made.total, len(rows))
    )


def _open(archive: Archive, harvest: str) -> Harvest:
    found = harvests.get(archive, harvest)
    if found.kind is not HarvestKind.HARVEST or found.state not in _OPEN_STATES:
        raise Conflict(
            f"Harvest {harvest} is {found.state}; only one that runs or was stopped can be steered."
        )
    return found


def _give(
    archive: Archive,
    harvest: Harvest,
    verb: Verb,
    *,
    by: str,
    reason: str,
    urls: Sequence[str] = (),
    changes: Mapping[str, object] | None = None,
    detail: Mapping[str, object],
) -> Order:
    agent = by or archive.agent
    folder = harvests.folder_of(archive, harvest)
    order = control.give(
        folder, verb, at=archive.clock(), by=agent, reason=reason, urls=urls, changes=changes
    )
    with archive.database.transaction() as connection:
        append(
            connection,
            Event(
                at=order.at,
                agent=agent,
                action=f"ordered {verb.value}",
                subject_kind="harvest",
                subject=harvest.id,
                message=reason,
                detail=detail,
            ),
        )
    return order


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (tuple, list)) else value
