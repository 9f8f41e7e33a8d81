"""Control harvests that run, in this process or another, and watch them: orders, live numbers, reports.

An order is written to the folder of the harvest (`harvest.order_file`); the process that works on it obeys
within a second. Each order is recorded as an event, with the person who gave it and the reason.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from webdepot.archive import Archive, ScratchPurpose
from webdepot.depot import holdings, package, package_content
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.harvest import order_file
from webdepot.harvest.order_file import Order, OrderSummary, OrderVerb
from webdepot.harvest.parts.part_rows import PartState
from webdepot.harvest.parts.progress_json import recent_of
from webdepot.harvest.report import live, log, reports
from webdepot.harvest.report.live import LiveNumbers
from webdepot.harvest.report.log import JSON_NAME, RecentLine
from webdepot.harvest.report.reports import HarvestReport, ReportKind
from webdepot.model import Harvest, HarvestKind, HarvestState
from webdepot.provenance import append, difference
from webdepot.services.harvest import harvests, processes
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest import orders as harvest_orders
from webdepot.services.harvest.options import HarvestOptions
from webdepot.text.patterns import LinearPattern
from webdepot.url import from_typed

_MOST_IN_EVENT = 100
"""Addresses that are listed in an event; the orders in the folder of the harvest have all of them."""
_OPEN_STATES = frozenset({HarvestState.RUNNING, HarvestState.STOPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestCourse:
    """What a harvest is really doing; its last process may have died before it recorded that."""

    name: str
    """running, paused, waiting (no process has begun it), interrupted (its process has died), or the state
    in which it ended.
    """
    reason: str
    """Why it is not running, and what to do; empty while it runs."""
    counts: Mapping[str, int]
    """Its counts; while it runs, and after its process has died, the last known ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedHarvest:
    """A harvest as it is now."""

    harvest: Harvest
    is_running: bool
    """A living process works on it."""
    live: LiveNumbers | None
    """Its last numbers; None before it began, and after it was deposited."""
    standing: OrderSummary
    """The orders in force."""
    options: HarvestOptions
    """The options after all orders."""
    orders: Sequence[Order]
    course: HarvestCourse


def course_of(archive: Archive, harvest: Harvest) -> HarvestCourse:
    name, reason, counts = harvest.state.value, harvest.reason, harvest.counts
    if harvest.kind is not HarvestKind.HARVEST or harvest.state not in _OPEN_STATES:
        return HarvestCourse(name=name, reason=reason, counts=counts)
    folder, parts = harvests.folder_of(archive, harvest), harvests.parts_of(archive, harvest)
    if parts and all(part.state is PartState.WAITING for part in parts):
        name, reason = "waiting", "No harvester has taken it yet. Start one: webdepot harvester"
    elif harvests.is_locked(archive, harvest):
        is_paused = order_file.summarize(harvest_orders.orders_of(archive, harvest)).paused
        name, reason = "paused" if is_paused else "running", ""
    elif harvest.state is HarvestState.RUNNING and not folder.exists():
        name, reason = "waiting", "The scheduler has not started it yet."
    elif harvest.state is HarvestState.RUNNING:
        name = "interrupted"
        reason = f"Its process has ended. Resume with: webdepot harvest resume {harvest.id}"
    if (
        harvest.state is HarvestState.RUNNING
        and (numbers := harvest_orders.numbers_of(archive, harvest)) is not None
    ):
        counts = live.counts_of(numbers)
    return HarvestCourse(name=name, reason=reason, counts=counts)


def watch(archive: Archive, harvest_id: str) -> WatchedHarvest:
    """A harvest with its numbers, options and orders; NotFound if there is none with this id."""
    harvest = harvests.get(archive, harvest_id)
    orders = harvest_orders.orders_of(archive, harvest)
    standing = order_file.summarize(orders)
    options = (
        harvest_options.from_kept(harvest.settings)
        if harvest.kind is HarvestKind.HARVEST
        else HarvestOptions.from_config(archive.config)
    )
    return WatchedHarvest(
        harvest=harvest,
        is_running=harvests.is_locked(archive, harvest),
        live=harvest_orders.numbers_of(archive, harvest),
        standing=standing,
        options=harvest_options.with_changes(options, standing.changes),
        orders=orders,
        course=course_of(archive, harvest),
    )


def recent(archive: Archive, harvest: Harvest, limit: int = 15) -> Sequence[RecentLine]:
    """The newest log lines of a running harvest, from all its processes."""
    folder = harvests.folder_of(archive, harvest)
    lines = [line for part in (folder, *processes.existing(folder)) for line in log.recent(part, limit)]
    lines += [line for part in harvests.parts_of(archive, harvest) for line in recent_of(part.live)]
    return sorted(lines, key=lambda line: line.at, reverse=True)[:limit]


def give(archive: Archive, harvest_id: str, verb: OrderVerb, *, by: str = "", reason: str = "") -> Order:
    """Pause, resume, stop or abort a running harvest; Conflict if it is not running."""
    harvest = _get_open(archive, harvest_id)
    if not harvests.is_locked(archive, harvest):
        also = f" Or abort it: webdepot harvest abort {harvest_id}" if verb is OrderVerb.ABORT else ""
        raise Conflict(
            f"No process is working on harvest {harvest_id}: it is {course_of(archive, harvest).name}. "
            f"Resume it: webdepot harvest resume {harvest_id}{also}"
        )
    return _give(archive, harvest, verb, by=by, reason=reason, detail=_course(archive, harvest, verb))


def give_up(archive: Archive, harvest_id: str, *, by: str = "", reason: str = "") -> Order:
    """Abort a harvest that no process works on: its next run ends at once, with what was fetched."""
    harvest, verb = _get_open(archive, harvest_id), OrderVerb.ABORT
    return _give(archive, harvest, verb, by=by, reason=reason, detail=_course(archive, harvest, verb))


def lift_pause(archive: Archive, harvest_id: str, *, by: str = "") -> Order:
    """End a pause before a stopped harvest is run again; otherwise it would stay paused."""
    harvest, verb = _get_open(archive, harvest_id), OrderVerb.RESUME
    return _give(archive, harvest, verb, by=by, reason="", detail=_course(archive, harvest, verb))


def _course(archive: Archive, harvest: Harvest, verb: OrderVerb) -> Mapping[str, object]:
    """What the harvest was doing before this order, and what it does after it."""
    is_paused = order_file.summarize(harvest_orders.orders_of(archive, harvest)).paused
    before = "paused" if is_paused else course_of(archive, harvest).name
    after = {
        OrderVerb.PAUSE: "paused",
        OrderVerb.RESUME: "running",
        OrderVerb.STOP: "stopped",
        OrderVerb.ABORT: "ended",
    }[verb]
    return {"before": {"course": before}, "after": {"course": after}}


def change(
    archive: Archive, harvest_id: str, changes: Mapping[str, object], *, by: str = "", reason: str = ""
) -> Order:
    """Change limits or rules from now on; for a stopped harvest, from when it is resumed.

    InputError if an option cannot be changed or its value is invalid.
    """
    if not changes:
        raise InputError("Nothing to change. Give at least one option, for example --limit-pages 1000.")
    watched = watch(archive, harvest_id)
    harvest = _get_open(archive, harvest_id)
    options = harvest_options.with_changes(watched.options, changes)
    # An invalid rule must be refused now, not found by the crawl.
    harvest_options.settings_of(archive, harvest.seeds, options, agent="check")
    before = {name: _plain(getattr(watched.options, name)) for name in changes}
    detail = difference(before, changes)
    return _give(archive, harvest, OrderVerb.CHANGE, by=by, reason=reason, changes=changes, detail=detail)


def use_profile(
    archive: Archive, harvest_id: str, options: HarvestOptions, *, by: str = "", reason: str = ""
) -> Order:
    """Use the rules, limits and hosts of a profile from now on."""
    changes = {name: _plain(getattr(options, name)) for name in sorted(harvest_options.CHANGEABLE)}
    return change(archive, harvest_id, changes, by=by, reason=reason)


def reject(
    archive: Archive, harvest_id: str, patterns: Sequence[str], *, by: str = "", reason: str = ""
) -> Order:
    """Do not fetch addresses that match, including those in the queue."""
    before = watch(archive, harvest_id).options.reject
    new = [pattern for pattern in patterns if pattern not in before]
    return change(archive, harvest_id, {"reject": [*before, *new]}, by=by, reason=reason)


def add(archive: Archive, harvest_id: str, typed: Sequence[str], *, by: str = "", reason: str = "") -> Order:
    """Fetch addresses even if they are outside the scope; their links are judged as usual."""
    if not typed:
        raise InputError("Name at least one address to add.")
    urls = tuple(map(from_typed, typed))
    return _give_urls(archive, harvest_id, OrderVerb.ADD, urls, by=by, reason=reason)


def remove(
    archive: Archive, harvest_id: str, patterns: Sequence[str], *, by: str = "", reason: str = ""
) -> Order:
    """Remove queued addresses that match one of the regular expressions."""
    if not patterns:
        raise InputError("Name at least one regular expression to remove.")
    for pattern in patterns:
        try:
            LinearPattern(pattern)
        except ValueError as error:
            raise InputError(f"{pattern!r} is not a usable regular expression: {error}.") from error
    return _give_urls(archive, harvest_id, OrderVerb.REMOVE, tuple(patterns), by=by, reason=reason)


def report(
    archive: Archive, harvest_id: str, kind: ReportKind, *, limit: int = 0, offset: int = 0
) -> HarvestReport:
    """A report about a running harvest or one in the depot. NotFound for an import, which has no log."""
    harvest = harvests.get(archive, harvest_id)
    folder = harvests.folder_of(archive, harvest)
    if (folder / JSON_NAME).exists():
        counts = folder / reports.FILE_NAME
        reports.refresh(folder / JSON_NAME, counts)
    elif harvests.parts_of(archive, harvest):
        raise Conflict(
            f"The log of harvest {harvest.id} is on the machines that run it. Its reports can be read when "
            "it has ended."
        )
    else:
        counts = _counts_of_package(archive, harvest)
    page = reports.read(counts, kind, limit=limit, offset=offset)
    return _with_outside(archive, harvest, page) if kind is ReportKind.REJECTED and not offset else page


def _counts_of_package(archive: Archive, harvest: Harvest) -> Path:
    """The counts of a harvest in the depot, made once from the log in its package."""
    path = archive.home / "cache" / "reports" / f"{harvest.id}.db"
    if path.exists():
        return path
    with archive.database.reading() as connection:
        held = holdings.find_of_harvest(connection, harvest.id)
    if held is None or harvest.kind is not HarvestKind.HARVEST:
        raise NotFound(f"Harvest {harvest.id} has no log to report from.")
    facts = package.read(archive.store, package_content.id_of(harvest.id))
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        archive.scratch_folder(ScratchPurpose.REPORT) as folder,
        closing(package.open_file(archive.store, facts, f"log/{JSON_NAME}")) as lines,
    ):
        reports.count_all(lines, folder / "new.db")
        (folder / "new.db").replace(path)
    return path


def _with_outside(archive: Archive, harvest: Harvest, page: HarvestReport) -> HarvestReport:
    """The report with the number of links outside the scope, which are counted but not logged."""
    numbers = harvest_orders.numbers_of(archive, harvest)
    outside = numbers.refusals.get("outside", 0) if numbers is not None else harvest.counts.get("outside", 0)
    logged = sum(int(row["refused"]) for row in page.rows if row["name"] == "outside")
    if outside <= logged:
        return page
    row = {"name": "outside", "refused": outside, "example": "", "reason": "it does not belong to a seed"}
    rows = [row, *(other for other in page.rows if other["name"] != "outside")]
    return replace(
        page, rows=sorted(rows, key=lambda other: -int(other["refused"])), total=max(page.total, len(rows))
    )


def _get_open(archive: Archive, harvest_id: str) -> Harvest:
    """A harvest that can be controlled; Conflict if it has ended."""
    harvest = harvests.get(archive, harvest_id)
    if harvest.kind is not HarvestKind.HARVEST or harvest.state not in _OPEN_STATES:
        raise Conflict(
            f"Harvest {harvest_id} is {harvest.state}. "
            "Only a harvest that is running or was stopped can be controlled."
        )
    return harvest


def _give_urls(
    archive: Archive, harvest_id: str, verb: OrderVerb, urls: Sequence[str], *, by: str, reason: str
) -> Order:
    """Give an order with addresses or patterns; its event lists those of earlier orders, too."""
    harvest = _get_open(archive, harvest_id)
    orders = harvest_orders.orders_of(archive, harvest)
    earlier = [url for order in orders if order.verb is verb for url in order.urls]
    name = "added" if verb is OrderVerb.ADD else "removed"
    detail = {
        "before": {name: earlier[-_MOST_IN_EVENT:]},
        "after": {name: [*earlier, *urls][-_MOST_IN_EVENT:]},
    }
    return _give(archive, harvest, verb, by=by, reason=reason, urls=urls, detail=detail)


def _give(
    archive: Archive,
    harvest: Harvest,
    verb: OrderVerb,
    *,
    by: str,
    reason: str,
    urls: Sequence[str] = (),
    changes: Mapping[str, object] | None = None,
    detail: Mapping[str, object],
) -> Order:
    agent = by or archive.agent
    event = archive.event(
        f"ordered {verb.value}", "harvest", harvest.id, message=reason, detail=detail, by=agent
    )
    new = Order(
        number=0, verb=verb, at=event.at, by=agent, reason=reason, urls=tuple(urls), changes=changes or {}
    )
    order = harvest_orders.give_order(archive, harvest, new)
    with archive.database.transaction() as connection:
        append(connection, event)
    return order


def _plain(value: object) -> object:
    """The value as JSON has it."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (tuple, list)) else value
