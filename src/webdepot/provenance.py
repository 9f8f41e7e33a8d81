"""Append-only events: who did what to which object, when, with what outcome. PREMIS 3 is written from them.

There is no function that changes or removes an event, and nothing outside this module writes the table.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sqlalchemy import JSON, Column, Connection, Index, Integer, RowMapping, String, Table, Text, insert, select

from webdepot.database import Moment, metadata

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
    Column("message", Text, nullable=False),
    Column("detail", JSON, nullable=False),
    Index("ix_events_subject", "subject_kind", "subject", "id"),
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


def append(connection: Connection, event: Event) -> None:
    """Write an event in the caller's transaction, so that act and event are kept or lost together."""
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
    chosen = select(events).where(events.c.subject_kind == subject_kind, events.c.subject == subject).order_by(events.c.id)
    return map(_event, connection.execute(chosen).mappings())


def iter_all(connection: Connection) -> Iterator[Event]:
    """Everything that ever happened, oldest first; streams."""
    return map(_event, connection.execute(select(events).order_by(events.c.id).execution_options(yield_per=1000)).mappings())


def latest(connection: Connection, limit: int) -> list[Event]:
    """The newest events over everything, newest first."""
    return [_event(row) for row in connection.execute(select(events).order_by(events.c.id.desc()).limit(limit)).mappings()]


def _event(row: RowMapping) -> Event:
    values = {name: row[name] for name in ("at", "agent", "action", "subject_kind", "subject", "message", "detail")}
    return Event(outcome=Outcome(row["outcome"]), **values)
