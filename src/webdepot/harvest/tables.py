"""The table of harvests."""

from sqlalchemy import JSON, Column, ForeignKey, Integer, String, Table, Text

from webdepot.database import Moment, metadata

harvests = Table(
    "harvests",
    metadata,
    Column("id", String(100), primary_key=True),
    Column("target", Integer, ForeignKey("targets.id"), nullable=False, index=True),
    Column("kind", String(10), nullable=False),
    Column("state", String(10), nullable=False, index=True),
    Column("seeds", JSON, nullable=False),
    Column("collection", String(60), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("reason", Text, nullable=False),
    Column("counts", JSON, nullable=False),
)
