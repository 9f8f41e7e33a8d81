"""The tables of targets, decisions about them, letters to their owners, organisations and schedules."""

from sqlalchemy import JSON, Boolean, Column, Float, ForeignKey, Index, Integer, String, Table, Text

from webdepot.database import Moment, Said, metadata

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
    Column("host", String(255), nullable=False, server_default=""),
    Column("state", String(20), nullable=False, server_default="nominated"),
    Column("state_since", Moment, nullable=False, server_default="1970-01-01T00:00:00.000000Z"),
    Column("state_reason", Said, nullable=False, server_default=""),
    Column("strategy", String(10), nullable=False, server_default="selective"),
    Column("origin", String(10), nullable=False, server_default="staff"),
    Column("nominated_by", String(200), nullable=False, server_default=""),
    Column("note", Text, nullable=False, server_default=""),
    Column("look_again_on", String(10), nullable=False, server_default=""),
    Column("words", Text, nullable=False, server_default=""),
    Index("ix_targets_state_name", "state", "name", "id"),
    Index("ix_targets_state_since", "state", "state_since", "id"),
    Index("ix_targets_name", "name", "id"),
    Index("ix_targets_since", "state_since", "id"),
    Index("ix_targets_created", "created_at", "id"),
    Index("ix_targets_host", "host", "id"),
    # All columns that a search by text reads, so that it needs only the index: a tenth of the table.
    Index("ix_targets_words", "words", "state", "collection", "origin"),
)

target_seeds = Table(
    "target_seeds",
    metadata,
    Column("target", Integer, ForeignKey("targets.id"), primary_key=True),
    Column("key", String(2000), primary_key=True),
    Column("url", Text, nullable=False),
    Index("ix_target_seeds_key", "key"),
)

criteria = Table(
    "criteria",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("code", String(60), nullable=False, unique=True),
    Column("question", Text, nullable=False),
    Column("kind", String(10), nullable=False),
    Column("weight", Float, nullable=False),
    Column("required", Boolean, nullable=False),
    Column("roles", JSON, nullable=False),
    Column("position", Integer, nullable=False),
)

criterion_answers = Table(
    "criterion_answers",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("target", Integer, ForeignKey("targets.id"), nullable=False, index=True),
    Column("criterion", String(60), nullable=False),
    Column("question", Text, nullable=False),
    Column("value", Float, nullable=False),
    Column("words", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("agent", String(200), nullable=False),
    Column("at", Moment, nullable=False),
)

contacts = Table(
    "contacts",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("target", Integer, ForeignKey("targets.id"), nullable=False, index=True),
    Column("name", String(200), nullable=False),
    Column("organisation", String(200), nullable=False),
    Column("mail", String(254), nullable=False, index=True),
    Column("post", Text, nullable=False),
    Column("language", String(10), nullable=False),
    Column("note", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("ended_at", Moment),
)

letter_templates = Table(
    "letter_templates",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("kind", String(20), nullable=False),
    Column("language", String(10), nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("agent", String(200), nullable=False),
    Column("at", Moment, nullable=False),
    Index("ix_letter_templates_kind", "kind", "language", "id"),
)

letters = Table(
    "letters",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("kind", String(20), nullable=False),
    Column("target", Integer, ForeignKey("targets.id"), index=True),
    Column("case", Integer, ForeignKey("cases.id"), index=True),
    Column("about", Integer),
    Column("state", String(20), nullable=False),
    Column("language", String(10), nullable=False),
    Column("recipient", String(254), nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("token_hash", String(64), nullable=False, index=True),
    Column("term_days", Integer, nullable=False),
    Column("term_ends_on", String(10), nullable=False),
    Column("remind_on", String(10), nullable=False),
    Column("message_id", String(300), nullable=False),
    Column("error", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("agent", String(200), nullable=False),
    Column("queued_at", Moment, nullable=False),
    Column("sent_at", Moment),
    Column("claimed_until", Moment),
    Index("ix_letters_state_term", "state", "kind", "term_ends_on"),
    Index("ix_letters_queued", "queued_at", "id"),
)

grounds = Table(
    "grounds",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("target", Integer, ForeignKey("targets.id"), nullable=False, index=True),
    Column("ground", String(60), nullable=False),
    Column("since", String(10), nullable=False),
    Column("until", String(10), nullable=False),
    Column("reason", Said, nullable=False),
    Column("conditions", JSON, nullable=False),
    Column("rules", JSON, nullable=False),
    Column("letter", Integer, ForeignKey("letters.id")),
    Column("agent", String(200), nullable=False),
    Column("at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("ended_by", String(200), nullable=False),
    Column("ended_reason", Said, nullable=False),
)

cases = Table(
    "cases",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("reference", String(30), nullable=False, unique=True),
    Column("state", String(20), nullable=False),
    Column("state_since", Moment, nullable=False),
    Column("host", String(255), nullable=False, index=True),
    Column("url", Text, nullable=False),
    Column("captured_at", String(14), nullable=False),
    Column("who", String(30), nullable=False),
    Column("ground", String(30), nullable=False),
    Column("words", Text, nullable=False),
    Column("name", String(200), nullable=False),
    Column("mail", String(254), nullable=False),
    Column("language", String(10), nullable=False),
    Column("origin", String(10), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("handled_by", String(200), nullable=False),
    Column("decision", String(20), nullable=False),
    Column("decision_words", Text, nullable=False),
    Column("detail", JSON, nullable=False),
    Column("rules", JSON, nullable=False),
    Index("ix_cases_state_since", "state", "state_since", "id"),
    Index("ix_cases_since", "state_since", "id"),
)

target_lists = Table(
    "target_lists",
    metadata,
    Column("token", String(40), primary_key=True),
    Column("agent", String(200), nullable=False),
    Column("at", Moment, nullable=False),
    Column("text", Text, nullable=False),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("target", Integer, ForeignKey("targets.id"), nullable=False, index=True),
    Column("question", String(60), nullable=False),
    Column("answer", String(10), nullable=False),
    Column("rule", String(100), nullable=False),
    Column("reason", Said, nullable=False),
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

schedules = Table(
    "schedules",
    metadata,
    Column("target", Integer, ForeignKey("targets.id"), primary_key=True),
    Column("frequency", String(20), nullable=False),
    Column("first_on", String(10), nullable=False),
    Column("at_time", String(5), nullable=False),
    Column("cron", String(100), nullable=False),
    Column("last_on", String(10), nullable=False),
    Column("window_opens", String(5), nullable=False),
    Column("window_closes", String(5), nullable=False),
    Column("profile", String(60), nullable=False),
    Column("is_active", Boolean, nullable=False),
    Column("next_at", Moment),
    Column("last_at", Moment),
    Column("changed_by", String(200), nullable=False),
    Column("changed_at", Moment, nullable=False),
    # The scheduler asks for due plans; pages list plans by next date, all or of one frequency; the calendar
    # counts by day.
    Index("ix_schedules_next_at", "is_active", "next_at", "target"),
    Index("ix_schedules_frequency_next_at", "frequency", "is_active", "next_at", "target"),
    Index("ix_schedules_days", "is_active", "frequency", "cron", "first_on", "last_on"),
)

turns = Table(
    "turns",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("target", Integer, ForeignKey("targets.id"), nullable=False),
    Column("due_at", Moment, nullable=False),
    Column("state", String(10), nullable=False),
    Column("not_before", Moment, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("holder", String(100), nullable=False),
    Column("lease_ends_at", Moment),
    Column("harvest", String(100)),
    Column("reason", Said, nullable=False),
    Column("began_at", Moment),
    Column("ended_at", Moment),
    # One turn for a date: this guarantees that a harvest runs once, however many schedulers there are.
    Index("ix_turns_target_due_at", "target", "due_at", unique=True),
    Index("ix_turns_state_not_before", "state", "not_before", "id"),
    Index("ix_turns_state_due_at", "state", "due_at", "id"),
    # With the state, so that the calendar counts a month from the index alone.
    Index("ix_turns_due_at", "due_at", "id", "state"),
    Index("ix_turns_harvest", "harvest"),
)
