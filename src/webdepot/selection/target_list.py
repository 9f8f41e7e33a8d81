"""Lists of targets: filtered, sorted and counted in the database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from webdepot.selection.states import TargetState
from webdepot.selection.tables import targets
from webdepot.selection.target_words import having
from webdepot.selection.targets import Dossier, Origin, dossiers_of, to_dossier

ROWS = 50
FEW = 2000
"""Up to this many matches of a text search are sorted on their own; more are read in the order of the list.
"""


class TargetSort(StrEnum):
    NAME = "name"
    HOST = "host"
    SINCE = "since"
    CREATED = "created"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFilter:
    """Which targets a list shows, and in which order. Empty fields do not filter."""

    state: TargetState | None = None
    words: str = ""
    collection: str = ""
    origin: Origin | None = None
    nominated_by: str = ""
    sort: TargetSort = TargetSort.NAME
    descending: bool = False
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPage:
    rows: Sequence[Dossier]
    total: int
    page: int

    @property
    def pages(self) -> int:
        return max(-(-self.total // ROWS), 1)


def listing(connection: Connection, wanted: TargetFilter) -> TargetPage:
    """One page of the list; filtered, sorted and counted in the database."""
    where = matching(wanted)
    total = connection.execute(select(func.count()).select_from(targets).where(*where)).scalar_one()
    if wanted.words and total <= FEW:
        where = [targets.c.id.in_(connection.execute(select(targets.c.id).where(*where)).scalars().all())]
    page = min(max(wanted.page, 1), max(-(-total // ROWS), 1))
    # First the numbers, from an index; whole rows only for those that are shown.
    first = (page - 1) * ROWS
    if first > total // 2:
        # Closer to the end: read in reverse order from there, fewer rows have to be skipped.
        count = min(ROWS, total - first)
        reverse = _sorted(
            select(targets.c.id).where(*where), replace(wanted, descending=not wanted.descending)
        )
        chosen = list(connection.execute(reverse.limit(count).offset(total - first - count)).scalars())[::-1]
    else:
        chosen = list(
            connection.execute(
                _sorted(select(targets.c.id).where(*where), wanted).limit(ROWS).offset(first)
            ).scalars()
        )
    return TargetPage(rows=dossiers_of(connection, chosen), total=total, page=page)


def past(connection: Connection, wanted: TargetFilter, last: int, limit: int) -> list[Dossier]:
    """The next targets that a filter matches, by number, after the target with the number `last`."""
    chosen = select(targets).where(*matching(wanted), targets.c.id > last)
    return [
        to_dossier(row) for row in connection.execute(chosen.order_by(targets.c.id).limit(limit)).mappings()
    ]


def iter_filtered(connection: Connection, wanted: TargetFilter) -> Iterator[Dossier]:
    """All targets that a filter matches, in its order; streams."""
    rows = connection.execute(
        _sorted(select(targets).where(*matching(wanted)), wanted).execution_options(yield_per=1000)
    )
    return map(to_dossier, rows.mappings())


def counts(connection: Connection) -> Mapping[TargetState, int]:
    """How many targets are in each state."""
    numbers = {
        row[0]: row[1]
        for row in connection.execute(select(targets.c.state, func.count()).group_by(targets.c.state))
    }
    return {state: numbers.get(state.value, 0) for state in TargetState}


def matching(wanted: TargetFilter) -> list[ColumnElement[bool]]:
    """The conditions of a filter."""
    where: list[ColumnElement[bool]] = []
    where.append(
        targets.c.state == wanted.state.value
        if wanted.state
        else targets.c.state != TargetState.IMPORTED.value
    )
    if wanted.collection:
        where.append(targets.c.collection == wanted.collection)
    if wanted.origin:
        where.append(targets.c.origin == wanted.origin.value)
    if wanted.nominated_by:
        where.append(targets.c.nominated_by == wanted.nominated_by)
    return where + having(wanted.words)


def _sorted(chosen: Select[Any], wanted: TargetFilter) -> Select[Any]:
    column = {
        TargetSort.NAME: targets.c.name,
        TargetSort.HOST: targets.c.host,
        TargetSort.SINCE: targets.c.state_since,
        TargetSort.CREATED: targets.c.created_at,
    }[wanted.sort]
    return (
        chosen.order_by(column.desc(), targets.c.id.desc())
        if wanted.descending
        else chosen.order_by(column, targets.c.id)
    )
