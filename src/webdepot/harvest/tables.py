"""The tables of harvests.

Those of harvests on several machines (`harvest.parts`) have rows that one process owns at a time. Their
times are seconds since 1970 by the clock of the database server, so that clocks of machines need not agree.
They are empty when nothing is being harvested, and are not part of the depot.
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

from webdepot.database import Moment, Said, metadata

harvests = Table(
    "harvests",
    metadata,
    Column("id", String(100), primary_key=True),
    Column("target", Integer, ForeignKey("targets.id"), nullable=False),
    Column("kind", String(10), nullable=False),
    Column("state", String(10), nullable=False),
    Column("seeds", JSON, nullable=False),
    Column("collection", String(60), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("reason", Said, nullable=False),
    Column("counts", JSON, nullable=False),
    # Lists of a million harvests are read in the order of these, one page at a time.
    Index("ix_harvests_started_at", "started_at", "id"),
    Index("ix_harvests_state_started_at", "state", "started_at", "id"),
    Index("ix_harvests_target_started_at", "target", "started_at", "id"),
    Index("ix_harvests_collection_started_at", "collection", "started_at", "id"),
)

parts = Table(
    "parts",
    metadata,
    Column("harvest", String(100), primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
    Column("needs_browser", Boolean, nullable=False),
    Column("offered_at_s", Float, nullable=False),
    Column("state", String(10), nullable=False),
    Column("holder", String(100), nullable=False),
    Column("machine", String(60), nullable=False),
    Column("until_s", Float, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("checkpoint", Integer, nullable=False),
    Column("spans", JSON, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("obeyed", Integer, nullable=False),
    Column("idle", Boolean, nullable=False),
    Column("stopping", Boolean, nullable=False),
    Column("fetched", BigInteger, nullable=False),
    Column("pages", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("live", JSON, nullable=False),
    Column("result", JSON, nullable=False),
    Column("reason", Text, nullable=False),
    Column("watcher", String(100), nullable=False),
    Column("watched_until_s", Float, nullable=False),
    Index("ix_parts_state", "state"),
    Index("ix_parts_holder", "holder"),
)
"""Parts of harvests. `generation` counts how often a part was taken; `spans` says which generation made which
checkpoints: [[generation, its last checkpoint], …]. The watcher is the process that ends the harvest, in part
0.
"""

handed_links = Table(
    "handed_links",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("harvest", String(100), nullable=False),
    Column("part", Integer, nullable=False),
    Column("lines", Text, nullable=False),
    Index("ix_handed_links_harvest_part", "harvest", "part"),
)
"""Links that a part found on hosts of another one, which deletes the row when it has queued them."""

harvest_orders = Table(
    "harvest_orders",
    metadata,
    Column("harvest", String(100), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("line", Text, nullable=False),
)
"""Orders to a harvest, each as a line of `orders.jsonl`."""

servers = Table(
    "servers",
    metadata,
    Column("address", String(300), primary_key=True),
    Column("holder", String(100), nullable=False),
    Column("free_at_s", Float, nullable=False),
    Column("pause_s", Float, nullable=False),
    Column("wanted", String(100), nullable=False),
    Index("ix_servers_holder", "holder"),
)
"""Whose turn it is at a server. A turn belongs to the holder of a part, for as long as it holds the part."""

harvesters = Table(
    "harvesters",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("machine", String(60), nullable=False),
    Column("version", String(40), nullable=False),
    Column("places", Integer, nullable=False),
    Column("browser", Boolean, nullable=False),
    Column("began_at_s", Float, nullable=False),
    Column("seen_at_s", Float, nullable=False),
    Column("free_bytes", BigInteger, nullable=False),
)
"""Processes `webdepot harvester`. One whose `seen_at_s` is old has stopped responding."""
