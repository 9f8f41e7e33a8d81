"""The board on which a harvest is laid out to be compared: what was visited, which page asked for what, and
what came last time.

All sides can be millions of rows, so they stand in a temporary SQLite database that lives in memory until it
grows and then on the disk. Addresses meet by their exact form or else by their key, since the frontier takes
spellings of one page for one.

    visits    url, key, status, reason, rule, path, note         from crawl.jsonl; the last line of an address counts
    links     page, url, key, hop                                 from the metadata records of the containers, or read from the pages
    answers   key, url, digest                                    documents of this harvest
    before    key, url, digest                                    documents of the one before
    observed  url, code, place, detail                            answers that are cut, false or not what their record says
    looks     digest, code, detail                                pages that are not what they should be, by their bytes
    revisits  url, digest                                         answers whose bytes stand in another record
"""

import hashlib
import io
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webdepot import digest
from webdepot.container.http import HttpHead, content_decoded
from webdepot.container.record import Record
from webdepot.model import Capture, RecordKind
from webdepot.quality import pages
from webdepot.url import find_canonical, key

Extract = Callable[[str, HttpHead, bytes], Iterable[tuple[str, str]]]
"""From address, head and body of a page to the addresses it leads to and their hop letters."""

MOST_LINKS_BYTES = 64 << 20
MOST_READ_BYTES = 2 << 20
_CHUNK_BYTES = 1 << 18
_OUTLINK = re.compile(r"outlink:\s*(\S+)(?:\s+([A-Z]))?", re.IGNORECASE)
_HTML = ("text/html", "application/xhtml+xml")
_WITH_LINKS = (*_HTML, "text/css")
_SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA cache_size = -32000; BEGIN;
CREATE TABLE visits (url TEXT PRIMARY KEY, key TEXT, status INTEGER, reason TEXT, rule TEXT, path TEXT, note TEXT) WITHOUT ROWID;
CREATE TABLE links (page TEXT, url TEXT, key TEXT, hop TEXT);
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
class Asked:
    """An address that pages ask for."""

    url: str
    pages: int
    first_page: str


class Board:
    """Fill it with `take_log` and `take_record`, then `settle`, then ask. Close it to free its file."""

    def __init__(self, extract: Extract | None = None) -> None:
        """`extract` reads the links out of pages, for containers that do not tell them."""
        self._extract = extract
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(_SCHEMA)
        self.damaged_lines = 0

    def take_log(self, path: Path) -> None:
        with path.open("rb") as lines:
            self._database.executemany(
                "INSERT OR REPLACE INTO visits VALUES (?, ?, ?, ?, ?, ?, ?)", self._visits(lines)
            )

    def take_record(self, record: Record) -> None:
        """Outlinks of a metadata record, truncation and (where no log tells) the status of an answer."""
        content_type = (record.fields.get("content-type") or "").lower()
        if record.kind.value == "metadata" and content_type.startswith("application/warc-fields"):
            self._take_links(record)
        elif record.kind.value in ("response", "revisit"):
            self._take_answer(record)

    def take_before(self, captures: Iterable[Capture]) -> None:
        """What the harvest before had, to see what is new, gone or changed."""
        rows = ((each.key, each.url, each.digest) for each in captures if 200 <= each.status < 300)
        self._database.executemany("INSERT OR REPLACE INTO before VALUES (?, ?, ?)", rows)

    def settle(self, false_before: Mapping[str, tuple[str, str]] | None = None) -> None:
        """All is there. `false_before` are addresses that brought no right page last time, with code and
        detail: of those that have not changed since, the bytes are not in this harvest.
        """
        self._database.executescript(_INDEXES)
        known = "SELECT revisits.url, looks.code, looks.detail FROM revisits JOIN looks USING (digest)"
        again = [(url, code, detail) for url, code, detail in self._database.execute(known)]
        seen = {url for url, _, _ in again}
        for url, _ in (
            self._database.execute("SELECT url, digest FROM revisits").fetchall() if false_before else ()
        ):
            if url in (false_before or {}) and url not in seen:
                again.append((url, *(false_before or {})[url]))
        for url, code, detail in again:
            if code != "page-login" or not pages.is_sign_in(url):
                self._observe(url, code, "", detail)

    def answers(self) -> int:
        """Addresses that answered with a document, robots.txt aside."""
        found = self._database.execute(
            "SELECT count(*) FROM visits WHERE status BETWEEN 200 AND 299 AND path NOT LIKE '%P'"
        )
        return int(found.fetchone()[0])

    def visited(self, url: str) -> Visited | None:
        """What came of an address, in this spelling or else in the best of those with its key."""
        exact = self._database.execute(
            "SELECT url, status, reason, rule FROM visits WHERE url = ?", (url,)
        ).fetchone()
        if exact is None or exact[1] < 200:
            order = "ORDER BY status BETWEEN 200 AND 399 DESC, status DESC LIMIT 1"
            alike = self._database.execute(
                f"SELECT url, status, reason, rule FROM visits WHERE key = ? {order}",  # noqa: S608
                (key(url),),
            ).fetchone()
            exact = alike if exact is None or (alike and alike[1] >= 200) else exact
        return Visited(url=exact[0], status=exact[1], reason=exact[2], rule=exact[3]) if exact else None

    def redirects(self, url: str) -> list[str]:
        """Where an address redirects to."""
        return [
            row[0]
            for row in self._database.execute(
                "SELECT url FROM links WHERE page = ? AND hop = 'R' LIMIT 5", (url,)
            )
        ]

    def iter_asked(self, hop: str) -> Iterator[Asked]:
        """Every address that pages ask for in that way, once, with the number of pages and one of them.

        Pages that say only that something is not there do not count: nobody is shown them on purpose.
        """
        good = "NOT EXISTS (SELECT 1 FROM visits WHERE visits.url = links.page AND visits.status >= 400)"
        chosen = (
            f"SELECT url, count(DISTINCT page), min(page) FROM links WHERE hop = ? AND {good} GROUP BY url"  # noqa: S608
        )
        cursor = self._database.execute(chosen, (hop,))
        for url, count, first_page in cursor:
            yield Asked(url=url, pages=count, first_page=first_page)

    def iter_observed(self) -> Iterator[tuple[str, str, str, str]]:
        """Address, code, place and detail of each answer that is cut, false or not what its record says."""
        yield from self._database.execute(
            "SELECT DISTINCT url, code, place, detail FROM observed ORDER BY url"
        )

    def iter_noted(self, start: str) -> Iterator[tuple[str, str]]:
        """Addresses whose log line has an annotation that starts so, with the rest of it."""
        for url, note in self._database.execute(
            "SELECT url, note FROM visits WHERE instr(note, ?) ORDER BY url", (start,)
        ):
            yield from ((url, each.removeprefix(start)) for each in note.split(",") if each.startswith(start))

    def iter_redirecting(self) -> Iterator[str]:
        yield from (
            row[0]
            for row in self._database.execute(
                "SELECT url FROM visits WHERE status BETWEEN 300 AND 399 AND status <> 304"
            )
        )

    def iter_kept(self) -> Iterator[str]:
        """Every address that answered with a document or a redirect, robots.txt aside."""
        chosen = "SELECT url FROM visits WHERE status BETWEEN 200 AND 399 AND path NOT LIKE '%P' ORDER BY url"
        yield from (row[0] for row in self._database.execute(chosen))

    def has_host(self, host: str) -> bool:
        """Whether anything of a host answered."""
        chosen = "SELECT 1 FROM visits WHERE (url BETWEEN ? AND ? OR url BETWEEN ? AND ?) AND status BETWEEN 200 AND 399 LIMIT 1"
        ends = [f"{scheme}://{host}{end}" for scheme in ("http", "https") for end in ("/", "0")]
        return self._database.execute(chosen, ends).fetchone() is not None

    def has_before(self) -> bool:
        return self._database.execute("SELECT 1 FROM before LIMIT 1").fetchone() is not None

    def changes(self) -> dict[str, int]:
        """How many documents are `new`, `gone`, `changed` and the `same`."""
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
                url = str(facts["url"])
                yield (
                    url,
                    key(url),
                    int(facts["status"]),
                    *(str(facts.get(name) or "") for name in ("reason", "rule", "path", "note")),
                )
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                self.damaged_lines += 1

    def _take_links(self, record: Record) -> None:
        text = record.payload().read(MOST_LINKS_BYTES).decode("utf-8", "replace")
        found = (
            (link.group(1), (link.group(2) or "L").upper())
            for link in map(_OUTLINK.match, text.splitlines())
            if link
        )
        # Heritrix writes addresses as they stand in the page; ours are canonical already.
        links = ((record.url, url, key(url), hop) for raw, hop in found if (url := find_canonical(raw)))
        self._database.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", links)

    def _take_answer(self, record: Record) -> None:
        place = f"{record.location.container} byte {record.location.offset}"
        # A later answer, as a patch brings one, stands in place of the earlier.
        self._database.execute("DELETE FROM observed WHERE url = ?", (record.url,))
        if reason := record.fields.get("warc-truncated"):
            self._observe(record.url, "body-truncated", place, reason)
        head = record.head
        if head is None or not record.url.startswith(("http:", "https:")):
            return
        values = (record.url, key(record.url), head.status)
        self._database.execute("INSERT OR IGNORE INTO visits VALUES (?, ?, ?, '', '', '', '')", values)
        location = head.get("location") if 300 <= head.status < 400 else None
        if location and (target := find_canonical(location, record.url)):
            self._database.execute(
                "INSERT INTO links VALUES (?, ?, ?, 'R')", (record.url, target, key(target))
            )
        found = record.payload_digest
        if record.kind is RecordKind.RESPONSE:
            found = self._take_body(record, head, place)
        elif found:
            stated = digest.parse(found)
            found = str(stated) if stated is not None else found
            self._database.execute("INSERT INTO revisits VALUES (?, ?)", (record.url, found))
        if 200 <= head.status < 300:
            self._database.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key(record.url), record.url, found)
            )

    def _take_body(self, record: Record, head: HttpHead, place: str) -> str:
        """Read the body once: its digest and length against what was said of it, and what kind of page it is."""
        hasher, kept, size_bytes = hashlib.sha1(usedforsecurity=False), b"", 0
        stream = record.payload()
        while piece := stream.read(_CHUNK_BYTES):
            hasher.update(piece)
            size_bytes += len(piece)
            kept += piece if len(kept) < MOST_READ_BYTES else b""
        computed = digest.Digest("sha1", hasher.digest())
        is_chunked = bool(head.get("transfer-encoding"))
        stated = digest.parse(record.payload_digest) if record.payload_digest else None
        # Some writers take the digest of the chunks, some of what is in them.
        if stated is not None and stated.algorithm == "sha1" and stated != computed and not is_chunked:
            self._observe(record.url, "digest-differs", place, f"{stated} is stated, {computed} was found")
        promised = head.get("content-length") or ""
        is_told = bool(record.fields.get("warc-truncated"))
        if (
            promised.isdigit()
            and size_bytes < int(promised)
            and not is_chunked
            and not is_told
            and head.status != 304
        ):
            self._observe(record.url, "body-truncated", place, f"{size_bytes} of {promised} bytes came")
        mime = (head.get("content-type") or "").partition(";")[0].strip().lower()
        if kept and mime in _WITH_LINKS:
            content = content_decoded(io.BytesIO(kept), head, limit_bytes=MOST_READ_BYTES).read()
            self._take_page(record.url, head, content if content else kept, mime, str(computed))
        return str(computed)

    def _take_page(self, url: str, head: HttpHead, content: bytes, mime: str, digest_of: str) -> None:
        if self._extract is not None:
            links = ((url, found, key(found), hop) for found, hop in self._extract(url, head, content))
            self._database.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", links)
        if mime in _HTML and head.status == 200 and (seen := pages.look(url, content)):
            self._observe(url, seen.code, "", seen.evidence)
            self._database.execute(
                "INSERT OR REPLACE INTO looks VALUES (?, ?, ?)", (digest_of, seen.code, seen.evidence)
            )

    def _observe(self, url: str, code: str, place: str, detail: str) -> None:
        self._database.execute("INSERT INTO observed VALUES (?, ?, ?, ?)", (url, code, place, detail))


_CHANGES = {
    "new": "FROM answers LEFT JOIN before USING (key) WHERE before.key IS NULL",
    "gone": "FROM before LEFT JOIN answers USING (key) WHERE answers.key IS NULL",
    "changed": "FROM answers JOIN before USING (key) WHERE answers.digest <> before.digest",
    "same": "FROM answers JOIN before USING (key) WHERE answers.digest = before.digest",
}
