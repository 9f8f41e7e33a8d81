"""Tables of the engine."""

from sqlalchemy import JSON, Column, Index, Integer, String, Table

from webdepot.database import Moment, Said, metadata

jobs = Table(
    "jobs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("kind", String(40), nullable=False),
    # What it works on. There is one open job of a kind for each subject.
    Column("subject", String(200), nullable=False),
    Column("arguments", JSON, nullable=False),
    # A file or folder below the home without which it cannot run; empty if any machine can do it.
    Column("needs", String(300), nullable=False),
    Column("state", String(10), nullable=False),
    # How far it is. A job that must not repeat what it did resumes from here.
    Column("progress", JSON, nullable=False),
    Column("result", JSON, nullable=False),
    Column("reason", Said, nullable=False),
    Column("by", String(200), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("holder", String(100), nullable=False),
    Column("lease_ends_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("began_at", Moment),
    Column("ended_at", Moment),
    Index("ix_jobs_state", "state", "id"),
    Index("ix_jobs_kind_subject", "kind", "subject", "id"),
)

workers = Table(
    "workers",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("role", String(20), nullable=False),
    Column("machine", String(60), nullable=False),
    Column("version", String(40), nullable=False),
    Column("began_at", Moment, nullable=False),
    Column("seen_at", Moment, nullable=False),
)
