"""A temporary database of a harvest, for its check: visits, links, responses and the harvest before it.

Each table can have millions of rows, so they are in a temporary SQLite database, which is in memory until it
grows and then on the disk. Addresses are matched exactly or by their key, because the frontier treats
different spellings of one page as one.

    visits    url, key, status, reason, rule, path, note   from crawl.jsonl; the last line of a URL counts
    links     page, url, hop                               from `record_facts`
    answers   key, url, digest                             documents of this harvest
    before    key, url, digest                             documents of the harvest before it
    observed  url, code, place, detail                     responses that are truncated, false or do not match
                                                           their record
    looks     digest, code, detail                         pages that are not the expected content, by payload
    revisits  url, digest                                  responses whose payload is in another record
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webdepot.model import Capture
from webdepot.quality import false_pages
from webdepot.quality.record_facts import RecordFacts
from webdepot.url import key

_HIGHEST_STATUS = 99_999
_SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA cache_size = -16000; BEGIN;
CREATE TABLE visits (
    url TEXT PRIMARY KEY, key TEXT, status INTEGER, reason TEXT, rule TEXT, path TEXT, note TEXT
) WITHOUT ROWID;
CREATE TABLE links (page TEXT, url TEXT, hop TEXT);
CREATE TABLE answers (key TEXT PRIMARY KEY, url TEXT, digest TEXT) WITHOUT ROWID;
CREATE TABLE before (key TEXT PRIMARY KEY, url TEXT, digest TEXT) WITHOUT ROWID;
CREATE TABLE observed (url TEXT, code TEXT, place TEXT, detail TEXT);
CREATE INDEX observed_url ON observed (url);
CREATE TABLE looks (digest TEXT PRIMARY KEY, code TEXT, detail TEXT) WITHOUT ROWID;
CREATE TABLE revisits (url TEXT, digest TEXT);
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
class LinkTarget:
    """An address that pages link to or embed."""

    url: str
    pages: int
    first_page: str


class CheckDatabase:
    """Fill it with `add_log`, `add` and `add_before`, then call `finish`, then query it; then close it."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(_SCHEMA)
        self.damaged_lines = 0

    def add_log(self, path: Path) -> None:
        with path.open("rb") as lines:
            self._database.executemany(
                "INSERT OR REPLACE INTO visits VALUES (?, ?, ?, ?, ?, ?, ?)", self._visits(lines)
            )

    def add(self, facts: RecordFacts) -> None:
        """Add the outlinks of a metadata record, or the facts of a response. A later response of the same
        address, for example of a patch, replaces the observations of the earlier one.
        """
        links = ((facts.url, *link) for link in facts.links)
        self._database.executemany("INSERT INTO links VALUES (?, ?, ?)", links)
        if not facts.is_response:
            return
        url = facts.url
        self._database.execute("DELETE FROM observed WHERE url = ?", (url,))
        for each in facts.observed:
            self._observe(url, each.code, each.place, each.detail)
        if facts.status is None:
            return
        values = (url, facts.key, facts.status)
        self._database.execute("INSERT OR IGNORE INTO visits VALUES (?, ?, ?, '', '', '', '')", values)
        if facts.is_revisit and facts.digest:
            self._database.execute("INSERT INTO revisits VALUES (?, ?)", (url, facts.digest))
        if facts.false is not None:
            look = (facts.digest, facts.false.code, facts.false.detail)
            self._database.execute("INSERT OR REPLACE INTO looks VALUES (?, ?, ?)", look)
        if 200 <= facts.status < 300:
            self._database.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (facts.key, url, facts.digest)
            )

    def add_before(self, captures: Iterable[Capture]) -> None:
        """Add the captures of the harvest before, to find what is new, gone or changed."""
        rows = ((each.key, each.url, each.digest) for each in captures if 200 <= each.status < 300)
        self._database.executemany("INSERT OR REPLACE INTO before VALUES (?, ?, ?)", rows)

    def finish(self, false_before: Mapping[str, tuple[str, str]] | None = None) -> None:
        """Create the indexes, and find the false pages among revisits, whose payload is not in the response.

        `false_before` has the addresses whose page was false in the harvest before, with code and detail: if
        one is a revisit now, its page is still false.
        """
        self._database.executescript(_INDEXES)
        known = "SELECT revisits.url, looks.code, looks.detail FROM revisits JOIN looks USING (digest)"
        seen: set[str] = set()
        for url, code, detail in self._database.execute(known):
            self._observe_page(url, code, detail)
            if false_before and url in false_before:
                seen.add(url)
        if false_before:
            for (url,) in self._database.execute("SELECT url FROM revisits"):
                if url in false_before and url not in seen:
                    self._observe_page(url, *false_before[url])

    def _observe_page(self, url: str, code: str, detail: str) -> None:
        if code != "page-login" or not false_pages.is_sign_in(url):
            self._observe(url, code, "", detail)

    def count_documents(self) -> int:
        """The number of addresses that returned a document, without robots.txt."""
        rows = self._database.execute(
            "SELECT count(*) FROM visits WHERE status BETWEEN 200 AND 299 AND path NOT LIKE '%P'"
        )
        return int(rows.fetchone()[0])

    def find_visit(self, url: str) -> Visited | None:
        """The visit of an address in this spelling, otherwise the best one with the same key."""
        row = self._database.execute(
            "SELECT url, status, reason, rule FROM visits WHERE url = ?", (url,)
        ).fetchone()
        if row is None or row[1] < 200:
            order = "ORDER BY status BETWEEN 200 AND 399 DESC, status DESC LIMIT 1"
            same_key = self._database.execute(
                f"SELECT url, status, reason, rule FROM visits WHERE key = ? {order}",  # noqa: S608
                (key(url),),
            ).fetchone()
            row = same_key if row is None or (same_key and same_key[1] >= 200) else row
        return Visited(url=row[0], status=row[1], reason=row[2], rule=row[3]) if row else None

    def redirects(self, url: str) -> list[str]:
        """The addresses that an address redirects to, at most five."""
        return [
            row[0]
            for row in self._database.execute(
                "SELECT url FROM links WHERE page = ? AND hop = 'R' LIMIT 5", (url,)
            )
        ]

    def iter_linked(self, hop: str) -> Iterator[LinkTarget]:
        """Every address that pages link to by this kind of hop, once, with the number of pages and one of
        them.

        Links of error pages do not count: they are not part of the site.
        """
        good = "page NOT IN (SELECT url FROM visits WHERE status >= 400)"
        chosen = (
            f"SELECT url, count(DISTINCT page), min(page) FROM links WHERE hop = ? AND {good} GROUP BY url"  # noqa: S608
        )
        cursor = self._database.execute(chosen, (hop,))
        for url, count, first_page in cursor:
            yield LinkTarget(url=url, pages=count, first_page=first_page)

    def iter_observed(self) -> Iterator[tuple[str, str, str, str]]:
        """Address, code, place and detail of each response that is truncated, false or does not match its
        record. That a guessed address has no page says nothing about the site.
        """
        yield from self._database.execute(
            "SELECT DISTINCT url, code, place, detail FROM observed "
            "WHERE code <> 'soft-missing' OR NOT EXISTS (SELECT 1 FROM visits "
            "WHERE visits.url = observed.url AND rtrim(path, 'R') LIKE '%X') ORDER BY url"
        )

    def iter_noted(self, start: str) -> Iterator[tuple[str, str]]:
        """Addresses whose log line has an annotation with this prefix, and the rest of the annotation."""
        for url, note in self._database.execute(
            "SELECT url, note FROM visits WHERE instr(note, ?) ORDER BY url", (start,)
        ):
            yield from ((url, each.removeprefix(start)) for each in note.split(",") if each.startswith(start))

    def iter_rejected(self, status: int) -> Iterator[tuple[str, int, str, str]]:
        """Rules that rejected addresses with this status: name, number of addresses, the first one and the
        reason why it was rejected.
        """
        yield from self._database.execute(
            "SELECT rule, count(*), min(url), reason FROM visits WHERE status = ? GROUP BY rule",
            (status,),
        ).fetchall()

    def iter_redirecting(self) -> Iterator[str]:
        yield from (
            row[0]
            for row in self._database.execute(
                "SELECT url FROM visits WHERE status BETWEEN 300 AND 399 AND status <> 304"
            )
        )

    def iter_kept(self) -> Iterator[str]:
        """Every address that returned a document or a redirect, without robots.txt."""
        chosen = "SELECT url FROM visits WHERE status BETWEEN 200 AND 399 AND path NOT LIKE '%P' ORDER BY url"
        yield from (row[0] for row in self._database.execute(chosen))

    def has_host(self, host: str) -> bool:
        """Whether any address of a host returned a document or a redirect."""
        chosen = (
            "SELECT 1 FROM visits WHERE (url BETWEEN ? AND ? OR url BETWEEN ? AND ?) "
            "AND status BETWEEN 200 AND 399 LIMIT 1"
        )
        ends = [f"{scheme}://{host}{end}" for scheme in ("http", "https") for end in ("/", "0")]
        return self._database.execute(chosen, ends).fetchone() is not None

    def has_before(self) -> bool:
        return self._database.execute("SELECT 1 FROM before LIMIT 1").fetchone() is not None

    def changes(self) -> dict[str, int]:
        """The number of documents that are `new`, `gone`, `changed` and the `same`."""
        return {
            name: int(self._database.execute(f"SELECT count(*) {_CHANGES[name]}").fetchone()[0])
            for name in _CHANGES
        }

    def iter_changes(self, name: str, limit: int) -> Iterator[str]:
        column = "before.url" if name == "gone" else "answers.url"
        chosen = f"SELECT {column} {_CHANGES[name]} ORDER BY 1 LIMIT ?"
        yield from (row[0] for row in self._database.execute(chosen, (limit,)))

    def close(self) -> None:
        self._database.close()

    def _visits(self, lines: Iterable[bytes]) -> Iterator[tuple[Any, ...]]:
        for line in lines:
            try:
                facts = json.loads(line)
                url, status = str(facts["url"]), int(facts["status"])
                texts = [str(facts.get(name) or "") for name in ("reason", "rule", "path", "note")]
                "".join((url, *texts)).encode()  # half a character cannot be stored
                if abs(status) > _HIGHEST_STATUS:
                    raise ValueError("no status")
                yield (url, key(url), status, *texts)
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
                self.damaged_lines += 1

    def _observe(self, url: str, code: str, place: str, detail: str) -> None:
        self._database.execute("INSERT INTO observed VALUES (?, ?, ?, ?)", (url, code, place, detail))


_CHANGES = {
    "new": "FROM answers LEFT JOIN before USING (key) WHERE before.key IS NULL",
    "gone": "FROM before LEFT JOIN answers USING (key) WHERE answers.key IS NULL",
    "changed": "FROM answers JOIN before USING (key) WHERE answers.digest <> before.digest",
    "same": "FROM answers JOIN before USING (key) WHERE answers.digest = before.digest",
}
