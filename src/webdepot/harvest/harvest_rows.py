"""Harvests in the database: one row per harvest. Only `move` changes the state, and only as `HARVEST` allows.

running ──> finished ──> kept             it ended, was accepted, and has its package
   │  ╲        ╰──────> rejected          a reviewer's decision, which can be undone
   │   ──> stopped, failed ──> running    stopped by a person or a full disk, or nothing harvested; resumed
                                          from its folder
"""

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, insert, literal, select, tuple_, update

from webdepot.database import Moment
from webdepot.errors import NotFound
from webdepot.harvest.tables import harvests
from webdepot.model import Harvest, HarvestId, HarvestKind, HarvestState, TargetId
from webdepot.reasons import said
from webdepot.states import Machine, Step
from webdepot.times import to_timestamp
from webdepot.url import Url

ROWS = 50
RECEIVED = "received"
"""The setting that marks a harvest that another archive made."""
_H = HarvestState
HARVEST = Machine(
    noun="harvest",
    steps=(
        Step(
            act="start",
            before=(),
            after=_H.RUNNING,
            meaning="By the schedule, by a person, or as an import of containers.",
        ),
        Step(
            act="finish",
            before=(_H.RUNNING,),
            after=_H.FINISHED,
            meaning="The queue is empty, or a limit was reached.",
        ),
        Step(
            act="stop",
            before=(_H.RUNNING, _H.STOPPED),
            after=_H.STOPPED,
            meaning="A person stopped it, its time window ended, or the disk was full. It can be resumed.",
        ),
        Step(act="fail", before=(_H.RUNNING,), after=_H.FAILED, meaning="Nothing could be harvested."),
        Step(
            act="resume",
            before=(_H.RUNNING, _H.STOPPED, _H.FAILED),
            after=_H.RUNNING,
            meaning="It continues from its last checkpoint, also after its process was killed.",
        ),
        Step(
            act="accept",
            before=(_H.FINISHED,),
            after=_H.KEPT,
            meaning="It is deposited and becomes public.",
        ),
        Step(
            act="reject",
            before=(_H.FINISHED,),
            after=_H.REJECTED,
            meaning="A reviewer rejects it and gives a reason; it is not shown.",
        ),
        Step(
            act="reopen",
            before=(_H.REJECTED,),
            after=_H.FINISHED,
            meaning="The rejection is undone; it waits for review again.",
        ),
        Step(act="extend", before=(_H.KEPT,), after=_H.KEPT, meaning="Its package gets a new version."),
    ),
    meanings={
        _H.RUNNING: "a process works on it, or was killed while doing so",
        _H.STOPPED: "it can be resumed",
        _H.FAILED: "nothing could be harvested",
        _H.FINISHED: "it waits for a reviewer, or for the rules of automatic acceptance",
        _H.REJECTED: "it is not shown and not in the depot; its containers stay in the working folder",
        _H.KEPT: "it is in the depot",
    },
)


def new_id(now: datetime, host: str) -> HarvestId:
    """A readable id, sortable by time, and unique among archives that exchange packages."""
    slug = re.sub(r"[^a-z0-9]+", "-", host.lower()).strip("-")[:40] or "import"
    return HarvestId(f"{to_timestamp(now)}-{slug}-{secrets.token_hex(3)}")


def begin(connection: Connection, harvest: Harvest) -> None:
    """Add the row of a new harvest."""
    connection.execute(
        insert(harvests).values(
            id=harvest.id,
            target=harvest.target,
            kind=harvest.kind.value,
            state=harvest.state.value,
            seeds=list(harvest.seeds),
            collection=harvest.collection,
            settings=dict(harvest.settings),
            started_at=harvest.started_at,
            ended_at=harvest.ended_at,
            reason=harvest.reason,
            counts=dict(harvest.counts),
        )
    )


def move(
    connection: Connection,
    harvest: HarvestId,
    state: HarvestState,
    *,
    reason: str = "",
    counts: Mapping[str, int] | None = None,
    ended_at: datetime | None = None,
) -> None:
    """Change the state. The reason is always replaced; counts and end stay as they are unless given.

    Conflict if `HARVEST` does not allow the change.
    """
    before = connection.execute(select(harvests.c.state).where(harvests.c.id == harvest)).scalar_one_or_none()
    if before is not None:
        HARVEST.check(HarvestState(before), state, f"Harvest {harvest}")
    values: dict[str, object] = {"state": state.value, "reason": reason}
    if counts is not None:
        values["counts"] = dict(counts)
    if ended_at is not None:
        values["ended_at"] = ended_at
    connection.execute(update(harvests).where(harvests.c.id == harvest).values(**values))


def get(connection: Connection, harvest: str) -> Harvest:
    """The harvest with this id; NotFound if there is none."""
    row = connection.execute(select(harvests).where(harvests.c.id == harvest)).mappings().one_or_none()
    if row is None:
        raise NotFound(
            said(
                "missing_harvest",
                "There is no harvest {harvest}. List them: webdepot harvest list",
                harvest=harvest,
            )
        )
    return _harvest(row)


def exists(connection: Connection, harvest: str) -> bool:
    return connection.execute(select(harvests.c.id).where(harvests.c.id == harvest)).first() is not None


def set_settings(connection: Connection, harvest: HarvestId, settings: Mapping[str, object]) -> None:
    """Replace the options of an unfinished harvest."""
    connection.execute(update(harvests).where(harvests.c.id == harvest).values(settings=dict(settings)))


def set_seeds(connection: Connection, harvest: HarvestId, seeds: Sequence[str]) -> None:
    """Replace the start pages of a harvest that is not deposited yet."""
    connection.execute(update(harvests).where(harvests.c.id == harvest).values(seeds=list(seeds)))


def latest(connection: Connection, limit: int) -> list[Harvest]:
    """The newest harvests, newest first."""
    rows = connection.execute(
        select(harvests).order_by(harvests.c.started_at.desc(), harvests.c.id.desc()).limit(limit)
    )
    return [_harvest(row) for row in rows.mappings()]


def in_states(connection: Connection, states: Iterable[HarvestState]) -> list[Harvest]:
    """All harvests in one of these states, oldest first."""
    chosen = (
        select(harvests)
        .where(harvests.c.state.in_([state.value for state in states]))
        .order_by(harvests.c.started_at)
    )
    return [_harvest(row) for row in connection.execute(chosen).mappings()]


def unfinished(connection: Connection, target: TargetId, kind: HarvestKind) -> Harvest | None:
    """The newest harvest of this target that can be resumed."""
    return next(iter(all_unfinished(connection, target, kind)), None)


def all_unfinished(connection: Connection, target: TargetId, kind: HarvestKind) -> list[Harvest]:
    """The harvests of this target that can be resumed, newest first."""
    resumable = (HarvestState.RUNNING.value, HarvestState.STOPPED.value)
    chosen = (
        select(harvests)
        .where(harvests.c.target == target, harvests.c.kind == kind.value, harvests.c.state.in_(resumable))
        .order_by(harvests.c.started_at.desc())
    )
    return [_harvest(row) for row in connection.execute(chosen).mappings()]


def of_target(connection: Connection, target: TargetId, kind: HarvestKind) -> list[Harvest]:
    """The finished and kept harvests of a target, newest first."""
    ended = (HarvestState.FINISHED.value, HarvestState.KEPT.value)
    wanted = (harvests.c.target == target, harvests.c.kind == kind.value, harvests.c.state.in_(ended))
    return [
        _harvest(row)
        for row in connection.execute(
            select(harvests).where(*wanted).order_by(harvests.c.started_at.desc())
        ).mappings()
    ]


def is_page(harvest: Harvest) -> bool:
    """Whether it is one page with its parts, not the site."""
    return bool(harvest.settings.get("only_page"))


def is_received(harvest: Harvest) -> bool:
    """Whether another archive made this harvest, and it came here in a package."""
    return bool(harvest.settings.get(RECEIVED))


def is_patch_of(patch: Harvest, parent: Harvest) -> bool:
    """Whether this patch belongs to that harvest. One that was received does not change a harvest of ours."""
    return patch.settings.get("patch_of") == parent.id and is_received(patch) <= is_received(parent)


def patches(connection: Connection) -> list[Harvest]:
    """All finished and kept patches, oldest first."""
    ended = (HarvestState.FINISHED.value, HarvestState.KEPT.value)
    wanted = (harvests.c.kind == HarvestKind.PATCH.value, harvests.c.state.in_(ended))
    return [
        _harvest(row)
        for row in connection.execute(
            select(harvests).where(*wanted).order_by(harvests.c.started_at)
        ).mappings()
    ]


def newest_of(connection: Connection, target: TargetId) -> Harvest | None:
    """The newest harvest of a target in any state; imports do not count."""
    chosen = select(harvests).where(harvests.c.target == target, harvests.c.kind == HarvestKind.HARVEST.value)
    row = connection.execute(chosen.order_by(harvests.c.started_at.desc()).limit(1)).mappings().one_or_none()
    return _harvest(row) if row else None


def of_target_any(connection: Connection, target: TargetId, kind: HarvestKind) -> list[Harvest]:
    """The harvests of a target in any state, newest first."""
    wanted = (harvests.c.target == target, harvests.c.kind == kind.value)
    return [
        _harvest(row)
        for row in connection.execute(
            select(harvests).where(*wanted).order_by(harvests.c.started_at.desc())
        ).mappings()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestFilter:
    """Which harvests a list shows. Empty fields do not filter."""

    state: HarvestState | None = None
    target: int = 0
    collection: str = ""
    kind: HarvestKind | None = None
    since: datetime | None = None
    until: datetime | None = None
    oldest_first: bool = False
    page: int = 1
    limit: int = ROWS
    """Harvests on a page."""
    past: tuple[datetime, str] | None = None
    """Start and id of the last harvest on the page before, from which a list without page numbers continues.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestPage:
    """One page of a list of harvests."""

    rows: Sequence[Harvest]
    has_more: bool
    page: int


def list_page(connection: Connection, query: HarvestFilter, *also: ColumnElement[bool]) -> HarvestPage:
    """One page of the list; `also` are further conditions. One more row is read to know whether there is a
    next page: counting a million rows takes longer than showing fifty.
    """
    column = harvests.c
    where = [
        *also,
        *([column.state == query.state.value] if query.state else []),
        *([column.target == query.target] if query.target else []),
        *([column.collection == query.collection] if query.collection else []),
        *([column.kind == query.kind.value] if query.kind else []),
        *([column.started_at >= query.since] if query.since else []),
        *([column.started_at < query.until] if query.until else []),
    ]
    if query.past is not None:
        last = tuple_(literal(query.past[0], Moment), literal(query.past[1]))
        here = tuple_(column.started_at, column.id)
        where.append(here > last if query.oldest_first else here < last)
    order = (
        (column.started_at, column.id) if query.oldest_first else (column.started_at.desc(), column.id.desc())
    )
    page, limit = max(query.page, 1), query.limit
    chosen = select(column.id).where(*where).order_by(*order).limit(limit + 1).offset((page - 1) * limit)
    ids = list(connection.execute(chosen).scalars())
    rows = connection.execute(select(harvests).where(column.id.in_(ids[:limit])).order_by(*order)).mappings()
    return HarvestPage(rows=[_harvest(row) for row in rows], has_more=len(ids) > limit, page=page)


def collections(connection: Connection) -> Sequence[str]:
    """The names of all collections that have a harvest. Walks the index from one to the next, because there
    are few collections but very many harvests.
    """
    names: list[str] = []
    column = harvests.c.collection
    while True:
        after = [column > names[-1]] if names else []
        chosen = select(column).where(*after).order_by(column).limit(1)
        name: str | None = connection.execute(chosen).scalar()
        if name is None:
            return names
        names.append(name)


def _harvest(row: RowMapping) -> Harvest:
    return Harvest(
        id=HarvestId(row["id"]),
        target=TargetId(row["target"]),
        kind=HarvestKind(row["kind"]),
        state=HarvestState(row["state"]),
        seeds=tuple(map(Url, row["seeds"])),
        collection=row["collection"],
        settings=row["settings"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        reason=row["reason"],
        counts=row["counts"],
    )
