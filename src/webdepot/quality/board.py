"""The board on which a harvest is laid out to be compared: what was visited, and which page asked for what.

Both sides can be millions of rows, so they stand in a temporary SQLite database that lives in memory until it grows and then on the
disk. Addresses meet by their exact form or else by their key, since the frontier takes spellings of one page for one.

    visits   url, key, status, reason, rule, path, note         from crawl.jsonl; the last line of an address counts
    links    page, url, key, hop                                 from the metadata records of the containers
"""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webdepot.container.reader import Record
from webdepot.url import find_canonical, key

MOST_LINKS_BYTES = 64 << 20
_OUTLINK = re.compile(r"outlink:\s*(\S+)(?:\s+([A-Z]))?", re.IGNORECASE)
_SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA cache_size = -32000; BEGIN;
CREATE TABLE visits (url TEXT PRIMARY KEY, key TEXT, status INTEGER, reason TEXT, rule TEXT, path TEXT, note TEXT) WITHOUT ROWID;
CREATE TABLE links (page TEXT, url TEXT, key TEXT, hop TEXT);
CREATE TABLE truncated (url TEXT, reason TEXT, place TEXT);
"""
_INDEXES = """
CREATE INDEX visits_key ON visits (key, status);
CREATE INDEX links_url ON links (hop, url, page);
CREATE INDEX links_page ON links (page) WHERE hop = 'R';
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visited:
    url: str
    status: int
    reason: str
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An address that pages ask for."""

    url: str
    pages: int
    first_page: str


class Board:
    """Fill it with `take_log` and `take_record`, then `settle`, then ask. Close it to free its file."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(_SCHEMA)
        self.damaged_lines = 0

    def take_log(self, path: Path) -> None:
        with path.open("rb") as lines:
            self._database.executemany("INSERT OR REPLACE INTO visits VALUES (?, ?, ?, ?, ?, ?, ?)", self._visits(lines))

    def take_record(self, record: Record) -> None:
        """Outlinks of a metadata record, truncation and (where no log tells) the status of an answer."""
        content_type = (record.fields.get("content-type") or "").lower()
        if record.kind.value == "metadata" and content_type.startswith("application/warc-fields"):
            self._take_links(record)
        elif record.kind.value in ("response", "revisit"):
            self._take_answer(record)

    def settle(self) -> None:
        self._database.executescript(_INDEXES)

    def answers(self) -> int:
        """Addresses that answered with a document, robots.txt aside."""
        found = self._database.execute("SELECT count(*) FROM visits WHERE status BETWEEN 200 AND 299 AND path NOT LIKE '%P'")
        return int(found.fetchone()[0])

    def visited(self, url: str) -> Visited | None:
        """What came of an address, in this spelling or else in the best of those with its key."""
        exact = self._database.execute("SELECT url, status, reason, rule FROM visits WHERE url = ?", (url,)).fetchone()
        if exact is None or exact[1] < 200:
            order = "ORDER BY status BETWEEN 200 AND 399 DESC, status DESC LIMIT 1"
            alike = self._database.execute(f"SELECT url, status, reason, rule FROM visits WHERE key = ? {order}", (key(url),)).fetchone()  # noqa: S608
            exact = alike if exact is None or (alike and alike[1] >= 200) else exact
        return Visited(url=exact[0], status=exact[1], reason=exact[2], rule=exact[3]) if exact else None

    def redirects(self, url: str) -> list[str]:
        """Where an address redirects to."""
        return [row[0] for row in self._database.execute("SELECT url FROM links WHERE page = ? AND hop = 'R' LIMIT 5", (url,))]

    def iter_asked(self, hop: str) -> Iterator[Asked]:
        """Every address that pages ask for in that way, once, with the number of pages and one of them."""
        cursor = self._database.execute("SELECT url, count(DISTINCT page), min(page) FROM links WHERE hop = ? GROUP BY url", (hop,))
        for url, pages, first_page in cursor:
            yield Asked(url=url, pages=pages, first_page=first_page)

    def iter_truncated(self) -> Iterator[tuple[str, str, str]]:
        """Address, reason and place of each answer that is not whole."""
        yield from self._database.execute("SELECT url, reason, place FROM truncated ORDER BY url")

    def close(self) -> None:
        self._database.close()

    def _visits(self, lines: Iterable[bytes]) -> Iterator[tuple[Any, ...]]:
        for line in lines:
            try:
                facts = json.loads(line)
                url = str(facts["url"])
                yield (url, key(url), int(facts["status"]), *(str(facts.get(name) or "") for name in ("reason", "rule", "path", "note")))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                self.damaged_lines += 1

    def _take_links(self, record: Record) -> None:
        text = record.payload().read(MOST_LINKS_BYTES).decode("utf-8", "replace")
        found = ((link.group(1), (link.group(2) or "L").upper()) for link in map(_OUTLINK.match, text.splitlines()) if link)
        # Heritrix writes addresses as they stand in the page; ours are canonical already.
        links = ((record.url, url, key(url), hop) for raw, hop in found if (url := find_canonical(raw)))
        self._database.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", links)

    def _take_answer(self, record: Record) -> None:
        if reason := record.fields.get("warc-truncated"):
            place = f"{record.location.container} byte {record.location.offset}"
            self._database.execute("INSERT INTO truncated VALUES (?, ?, ?)", (record.url, reason, place))
        if record.head is not None and record.url.startswith(("http:", "https:")):
            values = (record.url, key(record.url), record.head.status)
            self._database.execute("INSERT OR IGNORE INTO visits VALUES (?, ?, ?, '', '', '', '')", values)
