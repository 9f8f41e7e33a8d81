"""Harvesters as rows of the database, so that the portal can show them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from webdepot.harvest.parts.part_rows import NOW, PartState
from webdepot.harvest.tables import harvesters, parts

_FORGET_AFTER_S = 86_400.0
_ALIVE_S = 30.0
"""A harvester that was not seen for longer has stopped responding: they report at least every ten seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvesterRow:
    name: str
    machine: str
    version: str
    places: int
    """How many parts it works on at the same time at most."""
    browser: bool
    seen_s: float
    """How long ago it was last seen."""
    runs_s: float
    """How long it has been running."""
    free_bytes: int
    running: int
    """Parts that are held on its machine now, by all its harvesters."""

    @property
    def is_live(self) -> bool:
        return self.seen_s < _ALIVE_S


def show(
    connection: Connection,
    name: str,
    *,
    machine: str,
    version: str,
    places: int,
    browser: bool,
    free_bytes: int,
) -> None:
    """Record that a harvester is alive."""
    now = {"seen_at_s": NOW, "free_bytes": free_bytes}
    first = {
        "name": name,
        "machine": machine,
        "version": version,
        "places": places,
        "browser": browser,
        "began_at_s": NOW,
    }
    shown = insert(harvesters).values(**first, **now)
    connection.execute(shown.on_conflict_do_update(index_elements=["name"], set_=now))
    connection.execute(delete(harvesters).where(harvesters.c.seen_at_s < NOW - _FORGET_AFTER_S))


def remove(connection: Connection, name: str) -> None:
    connection.execute(delete(harvesters).where(harvesters.c.name == name))


def every(connection: Connection) -> Sequence[HarvesterRow]:
    """All harvesters seen in the last day, by machine."""
    is_held = and_(parts.c.state == PartState.RUNNING.value, parts.c.until_s > NOW)
    running = (
        select(func.count())
        .select_from(parts)
        .where(is_held, parts.c.machine == harvesters.c.machine)
        .scalar_subquery()
    )
    chosen = select(
        harvesters,
        (NOW - harvesters.c.seen_at_s).label("seen_s"),
        (NOW - harvesters.c.began_at_s).label("runs_s"),
        running.label("running"),
    ).order_by(harvesters.c.machine, harvesters.c.began_at_s)
    return [
        HarvesterRow(
            name=row.name,
            machine=row.machine,
            version=row.version,
            places=row.places,
            browser=row.browser,
            seen_s=row.seen_s,
            runs_s=row.runs_s,
            free_bytes=row.free_bytes,
            running=row.running,
        )
        for row in connection.execute(chosen)
    ]
