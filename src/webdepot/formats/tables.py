"""Tables of formats: one row for each distinct payload and engine, one for each surveyed container; the
installed sets of signatures; and the registry of formats and of the software that renders them.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
)

from webdepot.database import Moment, metadata

identifications = Table(
    "identifications",
    metadata,
    Column("digest", String(100), primary_key=True),
    Column("engine", String(300), primary_key=True),
    Column("url", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("server_mime", String(200), nullable=False),
    Column("puid", String(30), nullable=False),
    Column("name", String(200), nullable=False),
    Column("version", String(60), nullable=False),
    Column("mime", String(200), nullable=False),
    Column("basis", String(20), nullable=False),
    Column("verdict", String(20), nullable=False),
    Column("warning", Text, nullable=False),
    Column("validity", String(20), nullable=False),
    Column("findings", JSON, nullable=False),
    Column("properties", JSON, nullable=False),
    Column("identified_at", Moment, nullable=False),
    Index("ix_identifications_puid_digest", "puid", "digest"),
)

surveys = Table(
    "surveys",
    metadata,
    Column("container", String(255), primary_key=True),
    Column("harvest", String(100), nullable=False, index=True),
    Column("engine", String(300), nullable=False),
    Column("files", Integer, nullable=False),
    Column("checked", Integer, nullable=False),
    Column("distinct_files", Integer, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("duration_s", Float, nullable=False),
    Column("surveyed_at", Moment, nullable=False),
)

format_counts = Table(
    "format_counts",
    metadata,
    Column("container", String(255), primary_key=True),
    Column("puid", String(30), primary_key=True),
    Column("mime", String(200), primary_key=True),
    Column("verdict", String(20), primary_key=True),
    Column("validity", String(20), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("version", String(60), nullable=False),
    Column("uris", Integer, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("warnings", Integer, nullable=False),
)

signature_sets = Table(
    "signature_sets",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("engine", String(300), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("installed_at", Moment, nullable=False),
    Column("installed_by", String(200), nullable=False),
)

registry_formats = Table(
    "registry_formats",
    metadata,
    Column("puid", String(100), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("risk", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("changed_by", String(200), nullable=False),
)

registry_software = Table(
    "registry_software",
    metadata,
    Column("id", String(60), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("versions", String(100), nullable=False),
    Column("is_current", Boolean, nullable=False),
    Column("note", Text, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("changed_by", String(200), nullable=False),
)

registry_renderings = Table(
    "registry_renderings",
    metadata,
    Column("puid", String(100), ForeignKey("registry_formats.puid"), primary_key=True),
    Column("software", String(60), ForeignKey("registry_software.id"), primary_key=True),
)
