"""The tables of targets and of what was decided about them."""

from sqlalchemy import JSON, Column, ForeignKey, Integer, String, Table, Text

from webdepot.database import Moment, metadata

targets = Table(
    "targets",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("key", String(2000), nullable=False, unique=True),
    Column("name", String(300), nullable=False),
    Column("seeds", JSON, nullable=False),
    Column("collection", String(60), nullable=False, index=True),
    Column("purpose", String(10), nullable=False),
    Column("created_at", Moment, nullable=False),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("target", Integer, ForeignKey("targets.id"), nullable=False, index=True),
    Column("question", String(60), nullable=False),
    Column("answer", String(10), nullable=False),
    Column("rule", String(100), nullable=False),
    Column("reason", Text, nullable=False),
    Column("agent", String(200), nullable=False),
    Column("at", Moment, nullable=False),
)
