"""The tables of containers, and of the files they were imported from."""

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, String, Table

from webdepot.database import metadata

containers = Table(
    "containers",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("harvest", String(100), ForeignKey("harvests.id"), nullable=False, index=True),
    Column("state", String(10), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False, index=True),
    Column("original_sha256", String(64), nullable=False, index=True),
    Column("records", Integer, nullable=False),
    Column("place", String(1000), nullable=False),
)

imported_files = Table(
    "imported_files",
    metadata,
    Column("place", String(1000), primary_key=True),
    Column("identity", String(100), nullable=False),
    Column("sha256", String(64), nullable=False),
)
