"""Tables of the catalogue, of the objects offered to partners, of partners and their records, and of web
hooks.
"""

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Index, Integer, String, Table, Text

from webdepot.database import Moment, metadata

catalogue = Table(
    "catalogue",
    metadata,
    Column("key", String(100), primary_key=True),
    Column("level", String(20), nullable=False),
    Column("parent", String(100), nullable=False, index=True),
    Column("urn", String(500), nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("subtitle", Text, nullable=False),
    Column("responsibility", Text, nullable=False),
    Column("creators", JSON, nullable=False),
    Column("contributors", JSON, nullable=False),
    Column("publisher", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("country", String(2), nullable=False),
    Column("genre", String(100), nullable=False, index=True),
    Column("keywords", JSON, nullable=False),
    Column("ddc", JSON, nullable=False),
    Column("abstract", Text, nullable=False),
    Column("languages", JSON, nullable=False),
    Column("run_from", String(10), nullable=False),
    Column("run_to", String(10), nullable=False),
    Column("date", String(20), nullable=False),
    Column("part", Text, nullable=False),
    Column("identifiers", JSON, nullable=False),
    Column("addresses", JSON, nullable=False),
    Column("rights", Text, nullable=False),
    Column("access", String(10), nullable=False),
    Column("collection", String(60), nullable=False, index=True),
    Column("target", Integer, index=True),
    Column("harvest", String(100), nullable=False, index=True),
    Column("package", String(100), nullable=False, index=True),
    Column("is_object", Boolean, nullable=False),
    Column("sources", JSON, nullable=False),
    Column("foreign", JSON, nullable=False),
    Column("origin", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("withdrawn_at", Moment),
    Column("withdrawn_reason", Text, nullable=False),
    Index("ix_catalogue_changed_at_key", "changed_at", "key"),
    Index("ix_catalogue_is_object_changed_at_key", "is_object", "changed_at", "key"),
    Index("ix_catalogue_level_title_key", "level", "title", "key"),
)

catalogue_words = Table(
    "catalogue_words",
    metadata,
    Column("key", String(100), primary_key=True),
    Column("field", String(10), primary_key=True),
    Column("word", String(60), primary_key=True),
    Index("ix_catalogue_words_word", "field", "word", "key"),
)

catalogue_sets = Table(
    "catalogue_sets",
    metadata,
    Column("spec", String(200), primary_key=True),
    Column("changed_at", Moment, primary_key=True),
    Column("key", String(100), primary_key=True),
    Index("ix_catalogue_sets_key", "key"),
)

transfers = Table(
    "transfers",
    metadata,
    Column("key", String(100), primary_key=True),
    Column("form", String(20), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("start", String(1000), nullable=False),
    Column("files", JSON, nullable=False),
    Column("made_at", Moment, nullable=False),
)

trees = Table(
    "trees",
    metadata,
    Column("key", String(100), primary_key=True),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("start", String(1000), nullable=False),
    Column("files", JSON, nullable=False),
    Column("reason", Text, nullable=False),
    Column("made_at", Moment, nullable=False),
)

partners = Table(
    "partners",
    metadata,
    Column("name", String(60), primary_key=True),
    Column("url", String(1000), nullable=False),
    Column("prefix", String(60), nullable=False),
    Column("set_spec", String(200), nullable=False),
    Column("collection", String(60), nullable=False),
    Column("token", String(500), nullable=False),
    Column("issued_token_hash", String(64), nullable=False, index=True),
    Column("urn_check", String(10), nullable=False),
    Column("on_withdrawal", String(10), nullable=False),
    Column("lmer", String(5), nullable=False),
    Column("transfer", String(12), nullable=False, server_default=""),
    Column("added_at", Moment, nullable=False),
)

partner_runs = Table(
    "partner_runs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("partner", String(60), nullable=False),
    Column("state", String(10), nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("since", String(20), nullable=False),
    Column("first_response", String(20), nullable=False),
    Column("resumption", Text, nullable=False),
    Column("pages", Integer, nullable=False),
    Column("records", Integer, nullable=False),
    Column("deleted", Integer, nullable=False),
    Column("list_size", Integer, nullable=False),
    Column("error", Text, nullable=False),
    Index("ix_partner_runs_partner", "partner", "id"),
)

partner_records = Table(
    "partner_records",
    metadata,
    Column("partner", String(60), primary_key=True),
    Column("identifier", String(500), primary_key=True),
    Column("datestamp", String(20), nullable=False),
    Column("sets", JSON, nullable=False),
    Column("xml", Text, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("urn", String(500), nullable=False, index=True),
    Column("state", String(12), nullable=False),
    Column("reason", Text, nullable=False),
    Column("warnings", JSON, nullable=False),
    Column("seen_at", Moment, nullable=False),
    Column("done_at", Moment),
    Index("ix_partner_records_state", "partner", "state", "identifier"),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(60), nullable=False, unique=True),
    Column("url", Text, nullable=False),
    Column("salt", String(64), nullable=False),
    Column("events", JSON, nullable=False),
    Column("created_by", String(200), nullable=False),
    Column("created_at", Moment, nullable=False),
)

webhook_messages = Table(
    "webhook_messages",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("hook", Integer, ForeignKey("webhooks.id"), nullable=False),
    Column("event", String(30), nullable=False),
    Column("key", String(300), nullable=False),
    Column("body", Text, nullable=False),
    Column("state", String(10), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("queued_at", Moment, nullable=False),
    Column("next_at", Moment, nullable=False),
    Column("claimed_until", Moment),
    Column("sent_at", Moment),
    Column("error", Text, nullable=False),
    Index("ix_webhook_messages_hook_key", "hook", "key", unique=True),
    Index("ix_webhook_messages_state_next_at", "state", "next_at", "id"),
)
