"""The tables of the depot: packages, places, copies, holds, tombstones, submissions, conversions.

All of them can be rebuilt from a place: places, holds and submissions from the register, the others from
packages and tombstones.
"""

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Index, Integer, String, Table, Text

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

growth = Table(  # sums for a page: adding up a million rows each time would take a second
    "depot_growth",
    metadata,
    Column("month", String(7), primary_key=True),
    Column("packages", Integer, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
)

places = Table(
    "places",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("address", String(1000), nullable=False),
    Column("state", String(10), nullable=False),
    Column("write_once", Boolean, nullable=False),
    Column("refuses_overwriting", Boolean, nullable=False),
    Column("added_at", Moment, nullable=False),
    Column("away_since", Moment),
    Column("note", Text, nullable=False),
)

copies = Table(
    "copies",
    metadata,
    Column("place", String(40), primary_key=True),
    Column("package", String(100), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("state", String(10), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("checked_at", Moment, nullable=False),
    Column("note", Text, nullable=False),
    Index("ix_copies_checked_at", "checked_at", "place", "package"),
    Index("ix_copies_place_checked_at", "place", "checked_at", "package"),
    Index("ix_copies_state", "state", "place", "package"),
    Index("ix_copies_package", "package"),
)

tallies = Table(
    "copy_tallies",
    metadata,
    Column("place", String(40), primary_key=True),
    Column("state", String(10), primary_key=True),
    Column("copies", Integer, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
)

holds = Table(
    "holds",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("kind", String(10), nullable=False),
    Column("scope", String(10), nullable=False),
    Column("subject", String(100), nullable=False),
    Column("reason", Text, nullable=False),
    Column("agent", String(200), nullable=False),
    Column("placed_at", Moment, nullable=False),
    Column("until", Moment),
    Column("years", Integer),
    Column("released_at", Moment),
    Column("released_by", String(200), nullable=False),
    Index("ix_holds_subject", "scope", "subject"),
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("package", String(100), primary_key=True),
    Column("harvest", String(100), nullable=False),
    Column("urn", String(500), nullable=False),
    Column("title", Text, nullable=False),
    Column("withdrawn_at", Moment, nullable=False),
    Column("agent", String(200), nullable=False),
    Column("approved_by", String(200), nullable=False),
    Column("reason", Text, nullable=False),
    Column("files", JSON, nullable=False),
    Column("waiting", JSON, nullable=False),
)

submissions = Table(
    "submissions",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", Text, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("state", String(10), nullable=False),
    Column("received_at", Moment, nullable=False),
    Column("agent", String(200), nullable=False),
    Column("harvest", String(100), nullable=False),
    Column("place", String(1000), nullable=False),
    Column("reasons", JSON, nullable=False),
)

conversions = Table(
    "conversions",
    metadata,
    Column("digest", String(120), primary_key=True),
    Column("mime", String(100), primary_key=True),
    Column("package", String(100), nullable=False, index=True),
    Column("url", Text, nullable=False),
    Column("original_mime", String(100), nullable=False),
    Column("container", String(255), nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("length", BigInteger, nullable=False),
    Column("tool", String(300), nullable=False),
    Column("converted_at", Moment, nullable=False),
)
