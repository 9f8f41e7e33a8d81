"""How often targets were harvested, and when last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from webdepot.archive import Archive
from webdepot.harvest.tables import harvests
from webdepot.model import HarvestState


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetHarvests:
    """Number of harvests of a target, and its newest harvest."""

    count: int
    last_at: datetime
    last: str


def harvests_of_targets(archive: Archive, targets: Sequence[int]) -> Mapping[int, TargetHarvests]:
    """The harvests of these targets by target id; a target that was never harvested is left out."""
    if not targets:
        return {}
    chosen = (
        select(
            harvests.c.target,
            func.count().label("times"),
            func.max(harvests.c.started_at).label("last_at"),
            func.max(harvests.c.id).label("last"),
        )
        .where(harvests.c.target.in_(targets))
        .group_by(harvests.c.target)
    )
    with archive.database.reading() as connection:
        rows = connection.execute(chosen).all()
    return {row.target: TargetHarvests(count=row.times, last_at=row.last_at, last=row.last) for row in rows}


def kept_targets(archive: Archive, targets: Sequence[int]) -> frozenset[int]:
    """Those of these targets that have a harvest which was accepted."""
    if not targets:
        return frozenset()
    chosen = select(harvests.c.target).where(
        harvests.c.target.in_(targets), harvests.c.state == HarvestState.KEPT.value
    )
    with archive.database.reading() as connection:
        return frozenset(connection.execute(chosen.distinct()).scalars())
