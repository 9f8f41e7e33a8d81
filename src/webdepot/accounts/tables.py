"""Tables of people, of their sessions and keys, and of what portals share: limited attempts, keys."""

from sqlalchemy import JSON, Column, ForeignKey, Index, Integer, String, Table

from webdepot.database import Moment, metadata

people = Table(
    "people",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("password_hash", String(300), nullable=False),
    Column("roles", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("closed_at", Moment),
    Column("external", String(500), index=True),
)

sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("person", Integer, ForeignKey("people.id"), nullable=False, index=True),
    Column("ends_at", Moment, nullable=False),
    Column("began_at", Moment),
    Column("seen_at", Moment),
    Column("device", String(300)),
    Column("address", String(60)),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("person", Integer, ForeignKey("people.id"), nullable=False, index=True),
    Column("label", String(100), nullable=False),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("roles", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("ends_at", Moment),
    Column("used_at", Moment),
)

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
