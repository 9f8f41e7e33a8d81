"""The tables of the findings about a harvest, its verdict, reviewers' decisions and ratings of pages, ignored
findings and screenshots.
"""

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Index, Integer, String, Table, Text

from webdepot.database import Moment, Said, metadata

findings = Table(
    "findings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("harvest", String(100), ForeignKey("harvests.id"), nullable=False),
    Column("code", String(60), nullable=False),
    Column("severity", String(10), nullable=False),
    Column("subject", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("action", String(200), nullable=False),
    Column("facts", JSON),
    Index("ix_findings_harvest_code", "harvest", "code"),
)

judgements = Table(
    "judgements",
    metadata,
    Column("harvest", String(100), ForeignKey("harvests.id"), primary_key=True),
    Column("answer", String(10), nullable=False),
    Column("rule", String(100), nullable=False),
    Column("reason", Said, nullable=False),
    Column("judged_at", Moment, nullable=False),
)

ignored_findings = Table(
    "ignored_findings",
    metadata,
    Column("target", Integer, ForeignKey("targets.id"), primary_key=True),
    Column("code", String(60), primary_key=True),
    Column("subject", String(500), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("ignored_by", String(200), nullable=False),
    Column("ignored_at", Moment, nullable=False),
)

reviews = Table(
    "reviews",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("harvest", String(100), ForeignKey("harvests.id"), nullable=False, index=True),
    Column("decision", String(10), nullable=False),
    Column("words", Said, nullable=False),
    Column("by", String(200), nullable=False),
    Column("at", Moment, nullable=False),
    Column("is_automatic", Boolean, nullable=False),
)

page_ratings = Table(
    "page_ratings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("harvest", String(100), ForeignKey("harvests.id"), nullable=False, index=True),
    Column("url", Text, nullable=False),
    Column("rating", String(10), nullable=False),
    Column("words", Text, nullable=False),
    Column("by", String(200), nullable=False),
    Column("at", Moment, nullable=False),
)

screenshots = Table(
    "screenshots",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("harvest", String(100), ForeignKey("harvests.id"), nullable=False),
    Column("url", Text, nullable=False),
    Column("mime", String(100), nullable=False),
    Column("container", String(200), nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("length", BigInteger, nullable=False),
    Index("ix_screenshots_harvest_url", "harvest", "url"),
)
