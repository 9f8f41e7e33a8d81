"""Append-only events: who did what to which object, when, with what outcome. PREMIS 3 is written from them.

No function changes or deletes an event, and only this module writes to the table.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Index,
    Integer,
    RowMapping,
    Select,
    String,
    Table,
    insert,
    select,
)

from webdepot.database import Moment, Said, metadata

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", Moment, nullable=False),
    Column("agent", String(200), nullable=False),
    Column("action", String(60), nullable=False),
    Column("subject_kind", String(30), nullable=False),
    Column("subject", String(500), nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("message", Said, nullable=False),
    Column("detail", JSON, nullable=False),
    Index("ix_events_subject", "subject_kind", "subject", "id"),
    Index("ix_events_agent_id", "agent", "id"),
    Index("ix_events_action_id", "action", "id"),
    Index("ix_events_at", "at", "id"),
    Index("ix_events_outcome_id", "outcome", "id"),
)


class Outcome(StrEnum):
    SUCCESS = "success"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    at: datetime
    agent: str
    """A person's name or a program with its version."""
    action: str
    """A verb in the past: `harvested`, `sealed`, `recovered`, `kept`."""
    subject_kind: str
    subject: str
    outcome: Outcome = Outcome.SUCCESS
    message: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events to list; empty fields do not filter."""

    agent: str = ""
    action: str = ""
    subject_kind: str = ""
    subject: str = ""
    outcome: str = ""
    since: datetime | None = None
    until: datetime | None = None
    """Before this moment."""


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """The detail of an event about a change: the fields that differ, before and after."""
    names = [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]
    return {
        "before": {name: before[name] for name in names if name in before},
        "after": {name: after[name] for name in names if name in after},
    }


def append(connection: Connection, event: Event) -> None:
    """Write an event in the caller's transaction, so that both the change and its event are stored, or
    neither.
    """
    connection.execute(
        insert(events).values(
            at=event.at,
            agent=event.agent,
            action=event.action,
            subject_kind=event.subject_kind,
            subject=event.subject,
            outcome=event.outcome.value,
            message=event.message,
            detail=dict(event.detail),
        )
    )


def iter_of(connection: Connection, subject_kind: str, subject: str) -> Iterator[Event]:
    """The history of one object, oldest first."""
    chosen = (
        select(events)
        .where(events.c.subject_kind == subject_kind, events.c.subject == subject)
        .order_by(events.c.id)
    )
    return map(_event, connection.execute(chosen).mappings())


def iter_all(connection: Connection) -> Iterator[Event]:
    """All events, oldest first; streams."""
    return map(
        _event,
        connection.execute(select(events).order_by(events.c.id).execution_options(yield_per=1000)).mappings(),
    )


def latest(connection: Connection, limit: int) -> list[Event]:
    """The latest events, newest first."""
    return [
        _event(row)
        for row in connection.execute(select(events).order_by(events.c.id.desc()).limit(limit)).mappings()
    ]


def page(
    connection: Connection, wanted: EventFilter, *, limit: int, older_than: int = 0
) -> list[tuple[int, Event]]:
    """Events with their numbers, newest first; `older_than` is the last number of the previous page."""
    chosen = _select(wanted).order_by(events.c.id.desc()).limit(limit)
    if older_than:
        chosen = chosen.where(events.c.id < older_than)
    return [(row["id"], _event(row)) for row in connection.execute(chosen).mappings()]


def actions(connection: Connection) -> list[str]:
    """The actions that occur in events. Walks the index from one to the next, because there are few actions
    but very many events.
    """
    names: list[str] = []
    while True:
        after = events.c.action > (names[-1] if names else "")
        name: str | None = connection.execute(
            select(events.c.action).where(after).order_by(events.c.action).limit(1)
        ).scalar()
        if name is None:
            return names
        names.append(name)


def _select(wanted: EventFilter) -> Select[tuple[object, ...]]:
    chosen = select(events)
    for name in ("agent", "action", "subject_kind", "subject", "outcome"):
        if value := getattr(wanted, name):
            chosen = chosen.where(events.c[name] == value)
    if wanted.since is not None:
        chosen = chosen.where(events.c.at >= wanted.since)
    if wanted.until is not None:
        chosen = chosen.where(events.c.at < wanted.until)
    return chosen


def _event(row: RowMapping) -> Event:
    values = {
        name: row[name] for name in ("at", "agent", "action", "subject_kind", "subject", "message", "detail")
    }
    return Event(outcome=Outcome(row["outcome"]), **values)
