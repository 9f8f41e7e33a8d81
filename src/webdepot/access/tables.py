"""Tables of access rules, saved searches, pages of collections, usage statistics, and lent pages."""

from sqlalchemy import Boolean, Column, Integer, String, Table, Text

from webdepot.database import Moment, metadata

access_rules = Table(
    "access_rules",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("prefix", String(2000), nullable=False, index=True),
    Column("exact", Boolean, nullable=False),
    Column("captured_from", String(14), nullable=False),
    Column("captured_to", String(14), nullable=False),
    Column("embargo_days", Integer, nullable=False),
    Column("valid_from", String(10), nullable=False),
    Column("valid_to", String(10), nullable=False),
    Column("access_point", String(20), nullable=False),
    Column("answer", String(10), nullable=False),
    Column("public_text", Text, nullable=False),
    Column("private_note", Text, nullable=False),
    Column("reason", String(40), nullable=False),
    Column("created_by", String(200), nullable=False),
    Column("created_at", Moment, nullable=False),
)

saved_searches = Table(
    "saved_searches",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("token", String(40), nullable=False, unique=True),
    Column("person", String(100), nullable=False, index=True),
    Column("name", String(200), nullable=False),
    Column("query", Text, nullable=False),
    Column("collection", String(60), nullable=False),
    Column("created_at", Moment, nullable=False),
)

collection_pages = Table(
    "collection_pages",
    metadata,
    Column("name", String(60), primary_key=True),
    Column("title", String(200), nullable=False),
    Column("text", Text, nullable=False),
    Column("is_public", Boolean, nullable=False),
    Column("picture_url", Text, nullable=False),
    Column("picture_timestamp", String(14), nullable=False),
)

usage = Table(
    "usage",
    metadata,
    Column("month", String(7), primary_key=True),
    Column("metric", String(30), primary_key=True),
    Column("collection", String(60), primary_key=True),
    Column("site", String(255), primary_key=True),
    Column("access_point", String(20), primary_key=True),
    Column("country", String(2), primary_key=True),
    Column("count", Integer, nullable=False),
)

usage_of_pages = Table(
    "usage_of_pages",
    metadata,
    Column("month", String(7), primary_key=True),
    Column("collection", String(60), primary_key=True),
    Column("digest", String(64), primary_key=True),
    Column("url", Text, nullable=False),
    Column("count", Integer, nullable=False),
)

reading_seats = Table(
    "reading_seats",
    metadata,
    Column("key_digest", String(64), primary_key=True),
    Column("url", Text, nullable=False),
    Column("seat", String(64), nullable=False),
    Column("taken_at", Moment, nullable=False),
    Column("until", Moment, nullable=False),
)
