"""The table of packages."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, String, Table, Text

from webdepot.database import Moment, metadata

packages = Table(
    "packages",
    metadata,
    Column("id", String(100), primary_key=True),
    Column("harvest", String(100), ForeignKey("harvests.id"), nullable=False, unique=True),
    Column("urn", String(500), nullable=False, index=True),
    Column("title", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("stored_at", Moment, nullable=False),
    Column("inventory_sha256", String(64), nullable=False),
    Index("ix_packages_stored_at_id", "stored_at", "id"),
)
