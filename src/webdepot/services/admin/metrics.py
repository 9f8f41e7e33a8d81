"""Figures for Prometheus, in its text format (https://prometheus.io/docs/instrumenting/exposition_formats/).

All come from the database, so every portal of an archive returns the same figures. The exception is a harvest
that is not run by harvesters: its figures are in its working folder, on the machine that runs it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from webdepot.archive import Archive
from webdepot.depot import copies, places
from webdepot.depot.places import MAIN
from webdepot.engine import job_queue, process_rows
from webdepot.engine.job_queue import JobState
from webdepot.engine.process_rows import WorkerRole
from webdepot.errors import RemoteError
from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.harvest.tables import harvests as harvest_rows
from webdepot.model import HarvestState
from webdepot.selection import scheduled_harvests
from webdepot.services.harvest import harvests, orders
from webdepot.services.index import visible_harvests
from webdepot.version import VERSION

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A figure with one value for each set of labels."""

    name: str
    help: str
    values: Iterable[tuple[Mapping[str, str], float]]


def as_text(archive: Archive) -> str:
    """The figures of this moment."""
    return "".join(_lines(gauge) for gauge in _metrics(archive))


def _metrics(archive: Archive) -> Iterator[Gauge]:
    now = archive.clock()
    yield Gauge(name="info", help="Version of the program.", values=[({"version": VERSION}, 1)])
    with archive.database.reading() as connection:
        yield from _of_database(connection, now)
    containers = visible_harvests.count_containers(archive)
    indexed = sum(1 for _ in archive.captures.containers())
    yield Gauge(
        name="containers_not_indexed",
        help="Containers that are not in the capture index yet.",
        values=[({}, max(containers - indexed, 0))],
    )
    yield Gauge(
        name="containers_without_words",
        help="Containers that are not in the text index yet.",
        values=_without_words(archive, containers),
    )
    yield from _of_running(archive, now)


def _without_words(archive: Archive, containers: int) -> list[tuple[Mapping[str, str], float]]:
    try:
        return [({}, max(containers - len(archive.texts.containers()), 0))]
    except RemoteError:  # the server of the index is away: there is no figure
        return []


def _of_database(connection: Connection, now: datetime) -> Iterator[Gauge]:
    counted = select(harvest_rows.c.state, func.count()).group_by(harvest_rows.c.state)
    states = {row[0]: row[1] for row in connection.execute(counted)}
    yield Gauge(
        name="harvests",
        help="Harvests by state.",
        values=[({"state": state.value}, states.get(state.value, 0)) for state in HarvestState],
    )
    turns = scheduled_harvests.counts(connection)
    yield Gauge(
        name="turns",
        help="Scheduled harvests by state, without those that are done.",
        values=[({"state": state.value}, count) for state, count in turns.items()],
    )
    known = job_queue.counts(connection)
    yield Gauge(
        name="jobs",
        help="Jobs by state.",
        values=[({"state": state.value}, count) for state, count in known.items()],
    )
    waiting = [job for job in job_queue.open_jobs(connection) if job.state is JobState.WAITING]
    yield Gauge(
        name="job_waiting_seconds",
        help="How long the oldest waiting job has waited.",
        values=[({}, max((_age_s(job.created_at, now) for job in waiting), default=0.0))],
    )
    seen = [row for row in process_rows.every(connection) if row.is_alive(now)]
    yield Gauge(
        name="workers",
        help="Processes seen recently, by role.",
        values=[({"role": role.value}, sum(row.role is role for row in seen)) for role in WorkerRole],
    )
    yield Gauge(
        name="copies",
        help="Copies of packages by place and state.",
        values=[
            ({"place": tally.place, "state": tally.state.value}, tally.copies)
            for tally in copies.tally(connection)
        ],
    )
    names = [MAIN, *(place.name for place in places.every(connection))]
    oldest = {name: copies.oldest_check(connection, name) for name in names}
    yield Gauge(
        name="audit_age_seconds",
        help="Age of the oldest last fixity check of a copy, by place.",
        values=[({"place": name}, _age_s(at, now)) for name, at in oldest.items() if at is not None],
    )


def _of_running(archive: Archive, now: datetime) -> Iterator[Gauge]:
    running = harvests.list_page(archive, HarvestFilter(state=HarvestState.RUNNING)).rows
    numbers = {
        harvest.id: figures
        for harvest in running
        if (figures := orders.numbers_of(archive, harvest)) is not None
    }
    for name, meaning, value in (
        ("harvest_rate", "Recent documents per second, by running harvest.", lambda of: of.rate),
        ("harvest_queue", "Addresses in the queue, by running harvest.", lambda of: of.waiting),
        ("harvest_documents", "Documents that were fetched, by running harvest.", lambda of: of.fetched),
        ("harvest_errors", "Addresses that failed, by running harvest.", lambda of: of.errors),
        ("harvest_age_seconds", "Time since a running harvest reported.", lambda of: _age_s(of.at, now)),
    ):
        yield Gauge(
            name=name, help=meaning, values=[({"harvest": key}, value(of)) for key, of in numbers.items()]
        )
    ages = {harvest.id: orders.checkpoint_age_s(archive, harvest) for harvest in running}
    yield Gauge(
        name="harvest_checkpoint_age_seconds",
        help="Age of the oldest last checkpoint of a part, by harvest that harvesters run.",
        values=[({"harvest": key}, age_s) for key, age_s in ages.items() if age_s is not None],
    )


def _age_s(at: datetime, now: datetime) -> float:
    return max((now - at).total_seconds(), 0.0)


def _lines(gauge: Gauge) -> str:
    name = f"webdepot_{gauge.name}"
    lines = [f"# HELP {name} {gauge.help}", f"# TYPE {name} gauge"]
    for labels, value in gauge.values:
        shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{'{' + shown + '}' if shown else ''} {value:g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
