"""Adding pages to the SQLite text index and removing them. The tables are in `sqlite_index.py`."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, replace

from webdepot.index.text import states
from webdepot.index.text.hits import address_words, sites_of
from webdepot.index.text.states import FOREVER, Content, LeavingCaptures, SeenCapture, StateRun, remaining
from webdepot.index.text.words import tokens
from webdepot.ports.search import PageText
from webdepot.url import domain_of

_UNSIGNED = (1 << 64) - 1


def with_waiting(connection: sqlite3.Connection, page: PageText) -> Iterator[PageText]:
    """The page, and the revisits that were waiting for its payload."""
    yield page
    if page.repeats or not page.digest:
        return
    for (waiting,) in connection.execute(
        "DELETE FROM waiting WHERE payload = ? RETURNING page", (page.digest,)
    ).fetchall():
        yield PageText(**json.loads(waiting))


def add(connection: sqlite3.Connection, page: PageText) -> None:
    """Join one capture with the states of its page."""
    content = states.content_of(page) if not page.repeats else _find_content(connection, page.digest)
    if content is None:
        connection.execute(
            "INSERT INTO waiting (payload, page) VALUES (?, ?)", (page.digest, json.dumps(asdict(page)))
        )
        return
    new = SeenCapture(int(page.timestamp), page.collection, replace(content, url=page.url))
    starts = _starts(connection, page.key)
    part = states.touched(starts, [new.stamp])
    known = [seen for start in starts[part] for seen in _take_out(connection, page.key, start)]
    for run in states.merged(known, [new], until=starts[part.stop] if part.stop < len(starts) else FOREVER):
        _put(connection, page.key, run)


def remove(
    connection: sqlite3.Connection, page: str, leaving: LeavingCaptures, payloads: frozenset[str]
) -> int:
    """Write a page again without some of its captures; return how many were removed."""
    known = [seen for start in _starts(connection, page) for seen in _take_out(connection, page, start)]
    staying = list(remaining(known, leaving, payloads))
    for run in states.merged(staying, (), until=FOREVER):
        _put(connection, page, run)
    return len(known) - len(staying)


def anchor(connection: sqlite3.Connection, page: str, external: str, internal: str) -> bool:
    """Replace the texts of links to a page; return whether that changed anything."""
    states_of_page = connection.execute(
        "SELECT id FROM states WHERE page = ? AND NOT gone", (page,)
    ).fetchall()
    if not states_of_page or anchors_of(connection, page) == (external, internal):
        return False
    connection.execute("INSERT OR REPLACE INTO anchors VALUES (?, ?, ?)", (page, external, internal))
    for (state,) in states_of_page:
        connection.execute("DELETE FROM words WHERE rowid = ?", (state,))
        _index(connection, state, page, content_of(connection, state)[0])
    return True


def anchors_of(connection: sqlite3.Connection, page: str) -> tuple[str, str]:
    """Texts of links to a page, from other sites and from its own."""
    row = connection.execute("SELECT external, internal FROM anchors WHERE page = ?", (page,)).fetchone()
    return row or ("", "")


def content_of(connection: sqlite3.Connection, state: int) -> tuple[Content, str]:
    """The content and the collection of a state."""
    row = connection.execute(
        "SELECT url, mime, size, title, headings, text, language, digest, collection, images, format, "
        "likeness, gone FROM states WHERE id = ?",
        (state,),
    ).fetchone()
    url, mime, size, title, headings, text, language, digest, collection, images, pronom, like, gone = row
    payloads = frozenset(
        payload for (payload,) in connection.execute("SELECT payload FROM payloads WHERE state = ?", (state,))
    )
    content = Content(
        url=url,
        mime=mime,
        size_bytes=size,
        title=title,
        headings=headings,
        text=text,
        language=language,
        words=digest,
        payloads=payloads,
        format=pronom,
        likeness=unsigned(like),
        images=images,
        gone=bool(gone),
    )
    return content, collection


def unsigned(likeness: int) -> int:
    """The unsigned 64-bit number for a likeness, which SQLite stores as a signed one."""
    return likeness & _UNSIGNED


def _signed(likeness: int) -> int:
    return likeness - (1 << 64) if likeness >> 63 else likeness


def _find_content(connection: sqlite3.Connection, payload: str) -> Content | None:
    row = connection.execute("SELECT state FROM payloads WHERE payload = ? LIMIT 1", (payload,)).fetchone()
    return content_of(connection, row[0])[0] if row else None


def _starts(connection: sqlite3.Connection, page: str) -> list[int]:
    """First captures of a page's runs, in order."""
    rows = connection.execute("SELECT DISTINCT valid_from FROM states WHERE page = ? ORDER BY 1", (page,))
    return [start for (start,) in rows]


def _take_out(connection: sqlite3.Connection, page: str, start: int) -> Iterator[SeenCapture]:
    """The captures of a run, whose rows are removed."""
    for (state,) in connection.execute(
        "SELECT id FROM states WHERE page = ? AND valid_from = ?", (page, start)
    ).fetchall():
        content, collection = content_of(connection, state)
        rows = connection.execute("SELECT stamp FROM seen WHERE state = ? ORDER BY stamp, number", (state,))
        stamps = [stamp for (stamp,) in rows]
        for statement in (
            "states WHERE id",
            "seen WHERE state",
            "sites WHERE state",
            "payloads WHERE state",
            "words WHERE rowid",
        ):
            connection.execute(f"DELETE FROM {statement} = ?", (state,))  # noqa: S608 - from the lines above
        yield from (SeenCapture(stamp, collection, content) for stamp in stamps)


def _put(connection: sqlite3.Connection, page: str, run: StateRun) -> None:
    content = run.content
    shown = (
        content.url,
        content.mime,
        content.size_bytes,
        content.language,
        content.words,
        content.title,
        content.headings,
        content.text,
        content.images,
        content.format,
        _signed(content.likeness),
        content.gone,
        next(sites_of(content.url)),
        domain_of(content.url),
    )
    for collection in sorted({capture.collection for capture in run.seen}):
        stamps = [capture.stamp for capture in run.seen if capture.collection == collection]
        state = connection.execute(
            f"INSERT INTO states VALUES (NULL{', ?' * (5 + len(shown))}) RETURNING id",  # noqa: S608 - question marks
            (page, run.valid_from, run.valid_to, stamps[-1], collection, *shown),
        ).fetchone()[0]
        connection.executemany(
            "INSERT INTO seen VALUES (?, ?, ?)",
            [(state, stamp, number) for number, stamp in enumerate(stamps)],
        )
        connection.executemany(
            "INSERT INTO sites VALUES (?, ?)", [(state, site) for site in sites_of(content.url)]
        )
        connection.executemany(
            "INSERT INTO payloads VALUES (?, ?)", [(payload, state) for payload in content.payloads]
        )
        if not content.gone:
            _index(connection, state, page, content)


def _index(connection: sqlite3.Connection, state: int, page: str, content: Content) -> None:
    """Put the words of a state into FTS5."""
    parts = (
        content.title,
        *anchors_of(connection, page),
        content.headings,
        address_words(content.url),
        content.images,
        content.text,
    )
    connection.execute(
        "INSERT INTO words (rowid, title, external, internal, headings, address, images, body) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (state, *(" ".join(tokens(part)) for part in parts)),
    )
