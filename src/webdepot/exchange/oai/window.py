"""Lists of records by datestamp, page by page. A page continues after the last record of the page before, so
that every page costs the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, literal, or_, select, tuple_

from webdepot.database import Moment
from webdepot.exchange.catalogue import CatalogueRecord, from_row
from webdepot.exchange.tables import catalogue, catalogue_sets, transfers, trees
from webdepot.exchange.transfer_zip import TransferForm


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWindow:
    """Which records to list: since and until are seconds, both included."""

    set_spec: str = ""
    since: datetime | None = None
    until: datetime
    objects_only: bool = False
    """Only records with files; formats that describe files have no others."""
    unpacked: bool = False
    """Of objects in containers, only those whose tree is ready (or cannot be made)."""


def page(
    connection: Connection, window: RecordWindow, *, after: tuple[datetime, str] | None, limit: int
) -> list[CatalogueRecord]:
    """The next records in the order of datestamp and key."""
    at, key, conditions = _place(window)
    chosen = select(catalogue)
    if window.set_spec:
        chosen = chosen.join(catalogue_sets, catalogue_sets.c.key == catalogue.c.key)
    chosen = _within(chosen, window, at, conditions)
    if after is not None:
        chosen = chosen.where(tuple_(at, key) > tuple_(literal(after[0], Moment), literal(after[1])))
    rows = connection.execute(chosen.order_by(at, key).limit(limit)).mappings()
    return [from_row(row) for row in rows]


def count(connection: Connection, window: RecordWindow) -> int:
    at, _, conditions = _place(window)
    chosen = select(func.count()).select_from(catalogue)
    if window.set_spec:
        chosen = chosen.join(catalogue_sets, catalogue_sets.c.key == catalogue.c.key)
    return int(connection.execute(_within(chosen, window, at, conditions)).scalar_one())


def earliest(connection: Connection) -> datetime | None:
    """A lower bound of all datestamps; None while there are no records."""
    created: datetime | None = connection.execute(select(func.min(catalogue.c.created_at))).scalar()
    return created


def specs(connection: Connection) -> list[str]:
    """All sets that have records."""
    return list(
        connection.execute(select(catalogue_sets.c.spec).distinct().order_by(catalogue_sets.c.spec)).scalars()
    )


def _place(
    window: RecordWindow,
) -> tuple[ColumnElement[datetime], ColumnElement[str], Sequence[ColumnElement[bool]]]:
    """The columns that order the list: those of `catalogue_sets` if a set is requested, to use its index."""
    if window.set_spec:
        return catalogue_sets.c.changed_at, catalogue_sets.c.key, (catalogue_sets.c.spec == window.set_spec,)
    return catalogue.c.changed_at, catalogue.c.key, ()


def _within(
    chosen: Select[Any],
    window: RecordWindow,
    at: ColumnElement[datetime],
    conditions: Sequence[ColumnElement[bool]],
) -> Select[Any]:
    chosen = chosen.where(
        at < literal(window.until.replace(microsecond=0) + timedelta(seconds=1), Moment), *conditions
    )
    if window.since is not None:
        chosen = chosen.where(at >= literal(window.since, Moment))
    if window.objects_only:
        chosen = chosen.where(catalogue.c.is_object)
    if window.objects_only and window.unpacked:
        ready = select(trees.c.key).where(trees.c.key == catalogue.c.key).exists()
        loose = (
            select(transfers.c.key)
            .where(transfers.c.key == catalogue.c.key, transfers.c.form == TransferForm.FILES.value)
            .exists()
        )
        chosen = chosen.where(or_(catalogue.c.withdrawn_at.is_not(None), ready, loose))
    return chosen
