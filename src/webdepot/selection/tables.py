"""The tables of targets and of what was decided about them."""

from sqlalchemy import JSON, Column, Float, ForeignKey, Index, Integer, String, Table, Text

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

organisations = Table(
    "organisations",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("root", String(255), nullable=False, unique=True),
    Column("name", String(300), nullable=False),
    Column("profile", JSON, nullable=False),
    Column("corrections", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("surveyed_at", Moment, nullable=False),
)

organisation_hosts = Table(
    "organisation_hosts",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("organisation", Integer, ForeignKey("organisations.id"), nullable=False),
    Column("host", String(255), nullable=False),
    Column("domain", String(255), nullable=False),
    Column("case", Integer, nullable=False),
    Column("score", Float, nullable=False),
    Column("own", String(10), nullable=False),
    Column("signs", JSON, nullable=False),
    Column("origin", String(60), nullable=False),
    Column("linked_by", JSON, nullable=False),
    Column("decision", String(10), nullable=False),
    Column("decided_by", String(200), nullable=False),
    Column("judged_at", Moment, nullable=False),
    Index("ix_organisation_hosts_organisation_host", "organisation", "host", unique=True),
)
