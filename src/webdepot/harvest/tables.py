"""The table of harvests."""

from sqlalchemy import JSON, Column, ForeignKey, Index, Integer, String, Table

from webdepot.database import Moment, Said, metadata

harvests = Table(
    "harvests",
    metadata,
    Column("id", String(100), primary_key=True),
    Column("target", Integer, ForeignKey("targets.id"), nullable=False),
    Column("kind", String(10), nullable=False),
    Column("state", String(10), nullable=False),
    Column("seeds", JSON, nullable=False),
    Column("collection", String(60), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("reason", Said, nullable=False),
    Column("counts", JSON, nullable=False),
    # Lists of a million harvests are read in the order of these, one page at a time.
    Index("ix_harvests_started_at", "started_at", "id"),
    Index("ix_harvests_state_started_at", "state", "started_at", "id"),
    Index("ix_harvests_target_started_at", "target", "started_at", "id"),
    Index("ix_harvests_collection_started_at", "collection", "started_at", "id"),
)
