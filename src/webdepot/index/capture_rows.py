"""Captures as rows of the capture index: its tables, and conversion of a capture to a row and back.

Rows contain keys, containers, collections, media types and record kinds as numbers, timestamps as numbers of
14 digits, digests as their bytes.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from webdepot import digest as digests
from webdepot.model import Capture, Location, RecordKind
from webdepot.url import key as key_of

SCHEMA = 2
TABLES = """
CREATE TABLE keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, url TEXT NOT NULL);
CREATE TABLE containers (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, collection INTEGER NOT NULL, captures INTEGER NOT NULL
);
CREATE TABLE collections (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE mimes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE captures (
    key INTEGER NOT NULL, timestamp INTEGER NOT NULL, container INTEGER NOT NULL, offset INTEGER NOT NULL,
    length INTEGER NOT NULL, collection INTEGER NOT NULL, kind INTEGER NOT NULL, status INTEGER NOT NULL,
    mime INTEGER NOT NULL, digest BLOB, url TEXT, redirect TEXT, refers_to_url TEXT, refers_to_timestamp TEXT,
    loops INTEGER NOT NULL,
    PRIMARY KEY (key, timestamp, container, offset)
) WITHOUT ROWID;
CREATE INDEX by_collection ON captures (key, collection, timestamp);
CREATE INDEX by_loop ON captures (key, timestamp) WHERE loops = 1;
CREATE INDEX by_digest ON captures (substr(digest, 1, 8)) WHERE kind = 0;
CREATE INDEX by_time ON captures (timestamp) WHERE kind = 0 AND status = 200 AND mime <= 2;
CREATE INDEX by_container ON captures (container);
INSERT INTO mimes VALUES (1, 'text/html'), (2, 'application/xhtml+xml');
"""
_KNOWN_KEYS = (
    "SELECT keys.key, keys.id, keys.url FROM json_each(?) AS asked CROSS JOIN keys ON keys.key = asked.value"
)
INSERT = "INSERT OR REPLACE INTO captures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# These numbers are stored: add to the end, never renumber.
_KINDS = (
    RecordKind.RESPONSE,
    RecordKind.REVISIT,
    RecordKind.RESOURCE,
    RecordKind.CONVERSION,
    RecordKind.METADATA,
    RecordKind.REQUEST,
    RecordKind.WARCINFO,
    RecordKind.CONTINUATION,
    RecordKind.UNKNOWN,
)
KIND_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
ALGORITHMS = {16: "md5", 20: "sha1", 32: "sha256", 64: "sha512"}


order = attrgetter("key", "timestamp")
"""The order of captures in the index."""


def number_of(timestamp: str) -> int:
    """A timestamp as a number: 6 bytes instead of 15. A short one means its first moment."""
    return int(timestamp.ljust(14, "0")) if timestamp.isascii() and timestamp.isdigit() else 0


_Numbers = dict[str, tuple[int, str]]
"""The number of each key, and the URL stored with it."""


def numbers_of_keys(connection: sqlite3.Connection, captures: Sequence[Capture]) -> _Numbers:
    """The numbers of the keys; new keys get the next numbers, which is safe inside a transaction. One query
    for all keys.
    """
    # The first URL of a key counts. Numbers follow the keys, like the captures: rows in the order of the tree
    # are inserted faster.
    urls: dict[str, str] = {}
    for capture in captures:
        urls.setdefault(capture.key, capture.url)
    numbers: _Numbers = {
        key: (number, url) for key, number, url in connection.execute(_KNOWN_KEYS, (json.dumps(list(urls)),))
    }
    following = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM keys").fetchone()[0]
    fresh = [
        (number, key, urls[key])
        for number, key in enumerate((key for key in urls if key not in numbers), start=following)
    ]
    connection.executemany("INSERT INTO keys VALUES (?, ?, ?)", fresh)
    numbers |= {key: (number, url) for number, key, url in fresh}
    return numbers


def numbers_of_mimes(connection: sqlite3.Connection, captures: Sequence[Capture]) -> dict[str, int]:
    names = {capture.mime for capture in captures}
    connection.executemany(
        "INSERT INTO mimes (name) VALUES (?) ON CONFLICT DO NOTHING", [(name,) for name in sorted(names)]
    )
    return {
        name: connection.execute("SELECT id FROM mimes WHERE name = ?", (name,)).fetchone()[0]
        for name in names
    }


def row_of(
    capture: Capture, container: int, collection: int, keys: _Numbers, mimes: Mapping[str, int]
) -> tuple[Any, ...]:
    digest = digests.find_value(capture.digest)
    key, url = keys[capture.key]
    place, redirect = capture.location, capture.redirect
    return (
        key,
        number_of(capture.timestamp),
        container,
        place.offset,
        place.length,
        collection,
        KIND_NUMBERS[capture.kind],
        capture.status,
        mimes[capture.mime],
        # Bytes if the algorithm is known (their length identifies it), otherwise the text itself.
        digest if digest is not None else capture.digest or None,
        None if capture.url == url else capture.url,
        redirect or None,
        capture.refers_to_url or None,
        capture.refers_to_timestamp or None,
        int(is_loop(capture)),
    )


def is_loop(capture: Capture) -> bool:
    """Whether a capture redirects to its own key."""
    redirect = capture.redirect
    return 300 <= capture.status < 400 and bool(redirect) and key_of(redirect) == capture.key


def capture_of(row: Any) -> Capture:
    (
        key,
        timestamp,
        url,
        kind,
        status,
        mime,
        digest,
        container,
        offset,
        length,
        redirect,
        refers_to_url,
        refers_to_timestamp,
    ) = row[:13]
    return Capture(
        key=key,
        timestamp=f"{timestamp:014d}",
        url=url,
        kind=_KINDS[kind],
        status=status,
        mime=mime,
        digest=digest_of(digest),
        location=Location(container=container, offset=offset, length=length),
        redirect=redirect or "",
        refers_to_url=refers_to_url or "",
        refers_to_timestamp=refers_to_timestamp or "",
        replaced=bool(row[13]) and not 300 <= status < 400,
    )


def digest_of(kept: Any) -> str:
    return str(digests.Digest(ALGORITHMS[len(kept)], kept)) if isinstance(kept, bytes) else kept or ""


def position_of(row: Any) -> tuple[int, int, int]:
    return row[1], row[-2], row[8]
