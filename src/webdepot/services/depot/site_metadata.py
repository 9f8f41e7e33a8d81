"""What a site says of itself on its start page: its meta tags and title; its language, by its words where it
declares none (mission X10).

While the captures of a harvest are listed for its package, `StartPage` notes where the seeds were answered,
also behind redirects. So the record of the site is filled before the package is written, and the description
is in its first version.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from webdepot.access.replay.rewrite import text_of
from webdepot.container.reader import read_record
from webdepot.errors import CorruptData
from webdepot.exchange.catalogue import Record, Source
from webdepot.exchange.metadata import meta_tags
from webdepot.index.content.html import words_of_html
from webdepot.index.content.language import language_of
from webdepot.model import Capture, RecordKind
from webdepot.url import key as key_of

READ_BYTES = 400_000
MOST_WANTED = 50
"""Addresses that may stand for the start page: seeds and what they lead to."""
Values = Mapping[str, str | tuple[str, ...]]


def words_of(text: str, languages: Sequence[str]) -> Values:
    """Fields of a record from a start page; `languages` are those of the archive, among which an undeclared
    one is told apart.
    """
    found = meta_tags.read(text)
    if "languages" in found:
        return found
    words = words_of_html(text)
    spoken = language_of(f"{words.title} {words.headings} {words.text}", tuple(languages))
    return {**found, "languages": (spoken,)} if spoken else found


class StartPage:
    """Looks out for the answers to seeds while captures go by."""

    def __init__(self, seeds: Iterable[str]) -> None:
        self._wanted = {
            key_of(str(seed)): number for number, seed in enumerate(seeds) if number < MOST_WANTED
        }
        self._found: list[tuple[int, Capture]] = []

    def watch(self, captures: Iterable[Capture]) -> Iterator[Capture]:
        """The same captures."""
        for capture in captures:
            if capture.key in self._wanted:
                self._note(capture)
            yield capture

    def _note(self, capture: Capture) -> None:
        number = self._wanted[capture.key]
        if capture.redirect and len(self._wanted) < MOST_WANTED:
            self._wanted.setdefault(key_of(capture.redirect), number)
        elif capture.kind is RecordKind.RESPONSE and capture.status == 200 and "html" in capture.mime:
            self._found.append((number, capture))

    def words(self, containers: Mapping[str, Path], languages: Sequence[str]) -> Values:
        """What the answer to the first seed that says something says; nothing where none does, or none can be
        read.
        """
        for _, capture in sorted(self._found, key=lambda each: (each[0], each[1].timestamp)):
            try:
                with containers[capture.location.container].open("rb") as stream:
                    record = read_record(stream, capture.location)
                    kind = record.head.get("content-type") if record.head else ""
                    text = text_of(record.content(READ_BYTES).read(READ_BYTES), kind or "")
            except (CorruptData, OSError, ValueError, EOFError, KeyError):
                continue
            if found := words_of(text, languages):
                return found
        return {}


def filled(record: Record, values: Values) -> Record:
    """The record with what its site says: empty fields, and fields that this program or the site itself
    filled before.
    """
    open_to_it = {
        name: value
        for name, value in values.items()
        if value and record.sources.get(name) in (None, Source.SITE.value)
    }
    changed: dict[str, Any] = {
        name: value for name, value in open_to_it.items() if getattr(record, name) != value
    }
    return (
        replace(record, **changed, sources={**record.sources, **dict.fromkeys(changed, Source.SITE.value)})
        if changed
        else record
    )
