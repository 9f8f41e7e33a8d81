"""Every implementation of `TextIndex`, and pages for them."""

import pytest

import opensearch
from webdepot.index import page_files
from webdepot.index.text.sqlite_index import SqliteTextIndex
from webdepot.index.text.tantivy_index import TantivyTextIndex
from webdepot.ports.search import PageFile, PageText, TextQuery
from webdepot.url import key as key_of

MAKERS = {
    "tantivy": lambda folder: TantivyTextIndex(folder, memory_bytes=16 << 20),
    "sqlite": SqliteTextIndex,
    "opensearch": opensearch.new_index,
}
ENGINES = [
    pytest.param(name, marks=pytest.mark.opensearch if name == "opensearch" else ())
    for name in sorted(MAKERS)
]
"""Their names as parameters of tests."""


def page(url="http://example.org/", timestamp="20200101000000", text="some words", **changed):
    values = {
        "key": key_of(url),
        "url": url,
        "timestamp": timestamp,
        "mime": "text/html",
        "size_bytes": 100,
        "collection": "c",
        "title": "",
        "headings": "",
        "text": text,
        "language": "",
        "digest": f"digest of {text}",
    }
    return PageText(**{**values, **changed})


HISTORY = [
    page(timestamp="20100101000000", text="old words"),
    page(timestamp="20120101000000", text="old words"),
    page(timestamp="20140101000000", text="new words"),
    page(timestamp="20160101000000", text="old words"),
]


def page_files_of(folder, containers):
    """The pages of containers as a worker writes them."""
    for name, pages in containers.items():
        with page_files.written(folder / name) as write:
            for one in pages:
                write(one)
    return [PageFile(container=name, path=folder / name) for name in containers]


def urls(index, *words, **asked):
    return [hit.url for hit in index.find(TextQuery(words=words, limit=100, **asked)).hits]
