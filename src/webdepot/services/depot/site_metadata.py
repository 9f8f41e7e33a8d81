"""The metadata of a site on its own start page: meta tags, title and language (detected from the text if the
page does not declare it).

While the captures of a harvest are written for its package, `StartPage` notes which of them are the start
pages, also after redirects. So the record of the site can be filled before the package is written, and the
first version of the package contains the description.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from webdepot.access.replay.server_rewrite import text_of
from webdepot.container.reader import read_record
from webdepot.errors import CorruptData
from webdepot.exchange.catalogue import CatalogueRecord, Source
from webdepot.exchange.metadata import meta_tags
from webdepot.index.content.html import words_of_html
from webdepot.index.content.language import language_of
from webdepot.model import Capture, RecordKind
from webdepot.url import key as key_of

READ_BYTES = 400_000
MOST_WANTED = 50
"""Addresses that may be the start page: seeds and the targets of their redirects."""
Values = Mapping[str, str | tuple[str, ...]]
"""Fields of a catalogue record."""


def read_values(text: str, languages: Sequence[str]) -> Values:
    """The fields of a record from the HTML of a start page; `languages` are those to detect."""
    values = meta_tags.read(text)
    if "languages" in values:
        return values
    words = words_of_html(text)
    language = language_of(f"{words.title} {words.headings} {words.text}", tuple(languages))
    return {**values, "languages": (language,)} if language else values


class StartPage:
    """Finds the start pages among the captures of a harvest."""

    def __init__(self, seeds: Iterable[str]) -> None:
        self._wanted = {
            key_of(str(seed)): number for number, seed in enumerate(seeds) if number < MOST_WANTED
        }
        self._pages: list[tuple[int, Capture]] = []

    def watch(self, captures: Iterable[Capture]) -> Iterator[Capture]:
        """Yield the captures unchanged, and note the start pages among them."""
        for capture in captures:
            if capture.key in self._wanted:
                self._note(capture)
            yield capture

    def _note(self, capture: Capture) -> None:
        number = self._wanted[capture.key]
        if capture.redirect and len(self._wanted) < MOST_WANTED:
            self._wanted.setdefault(key_of(capture.redirect), number)
        elif capture.kind is RecordKind.RESPONSE and capture.status == 200 and "html" in capture.mime:
            self._pages.append((number, capture))

    def read_values(self, containers: Mapping[str, Path], languages: Sequence[str]) -> Values:
        """The values of the first start page that has any; empty if none has, or none can be read."""
        for _, capture in sorted(self._pages, key=lambda each: (each[0], each[1].timestamp)):
            try:
                with containers[capture.location.container].open("rb") as stream:
                    record = read_record(stream, capture.location)
                    kind = record.head.get("content-type") if record.head else ""
                    text = text_of(record.content(READ_BYTES).read(READ_BYTES), kind or "")
            except (CorruptData, OSError, ValueError, EOFError, KeyError):
                continue
            if values := read_values(text, languages):
                return values
        return {}


def fill(record: CatalogueRecord, values: Values) -> CatalogueRecord:
    """The record with the site's values in every field that no person or partner filled."""
    allowed = {
        name: value
        for name, value in values.items()
        if value and record.sources.get(name) in (None, Source.SITE.value)
    }
    changed: dict[str, Any] = {
        name: value for name, value in allowed.items() if getattr(record, name) != value
    }
    return (
        replace(record, **changed, sources={**record.sources, **dict.fromkeys(changed, Source.SITE.value)})
        if changed
        else record
    )
