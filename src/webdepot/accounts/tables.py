"""Tables of what all portals of an archive share: attempts that are limited, and keys."""

from sqlalchemy import Column, Index, Integer, String, Table

from webdepot.database import Moment, metadata

attempts = Table(
    "attempts",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name_hash", String(64), nullable=False),
    Column("at", Moment, nullable=False),
    Index("ix_attempts_name_hash_at", "name_hash", "at"),
    Index("ix_attempts_at", "at"),
)

shared_keys = Table(
    "shared_keys",
    metadata,
    Column("name", String(60), primary_key=True),
    Column("value", String(64), nullable=False),
    Column("created_at", Moment, nullable=False),
)
