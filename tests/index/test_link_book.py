"""The book of links: texts of links for each page, replaced and removed with their container."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from webdepot.index.text.link_book import Link, LinkBook

BEFORE = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('schema', '1');
CREATE TABLE links (
    container TEXT NOT NULL, target TEXT NOT NULL, source TEXT NOT NULL, timestamp TEXT NOT NULL,
    words TEXT NOT NULL
);
CREATE INDEX links_of_container ON links (container);
CREATE INDEX links_to ON links (target, source);
CREATE INDEX links_from ON links (source);
CREATE TABLE changed (target TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO links VALUES ('a.warc', 'nl,een)/', 'nl,twee)/', '20200101000000', 'One');
INSERT INTO links VALUES ('a.warc', 'nl,een)/', 'nl,een)/over', '20200101000000', 'Home');
INSERT INTO links VALUES ('b.warc', 'nl,een)/', 'nl,drie)/', '20210101000000', 'One');
INSERT INTO changed VALUES ('nl,een)/');
"""


def link(target: str, source: str, words: str) -> Link:
    return Link(target=target, source=source, timestamp="20200101000000", words=words)


def anchors(book: LinkBook, target: str) -> tuple[str, str]:
    return book.anchors(target, lambda key, stamp: True)[1:]


def keys(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {key for (key,) in connection.execute("SELECT key FROM pages")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "links.db"


def test_links_are_replaced_with_their_container_and_nothing_of_them_is_left(path: Path):
    book = LinkBook(path)
    book.add("a.warc", [link("nl,een)/", "nl,twee)/", "One"), link("nl,vier)/", "nl,twee)/", "Four")])
    book.add("b.warc", [link("nl,een)/", "nl,een)/over", "Home")])
    book.settle(book.changed(limit=10))
    assert anchors(book, "nl,een)/") == ("One", "Home")
    book.add("a.warc", [link("nl,een)/", "nl,drie)/", "First")])
    assert book.changed(limit=10) == ["nl,een)/", "nl,vier)/"]
    assert anchors(book, "nl,een)/") == ("First", "Home")
    assert anchors(book, "nl,vier)/") == ("", "")
    book.add("a.warc", [])
    book.close()
    assert keys(path) == {"nl,een)/", "nl,een)/over"}


def test_targets_of_pages_below_a_prefix_are_considered_again(path: Path):
    book = LinkBook(path)
    book.add("a.warc", [link("nl,een)/", "nl,twee)/a", "One"), link("nl,vier)/", "nl,drie)/", "Four")])
    book.settle(book.changed(limit=10))
    book.reconsider("nl,twee)/")
    assert book.changed(limit=10) == ["nl,een)/"]
    book.close()


def test_a_book_of_the_first_schema_is_converted(path: Path):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(BEFORE)
    book = LinkBook(path)
    assert book.changed(limit=10) == ["nl,een)/"]
    assert anchors(book, "nl,een)/") == ("One", "Home")
    book.add("a.warc", [])
    assert anchors(book, "nl,een)/") == ("One", "")
    book.close()
    assert keys(path) == {"nl,een)/", "nl,drie)/"}
