"""Read how a site describes itself in the head of its start page: title, Dublin Core, Open Graph and plain
meta tags.

Names of Dublin Core in HTML follow RFC 2731 (`DC.creator`); those of Open Graph https://ogp.me. If several
tags fill one field, the more careful description wins: Dublin Core, then plain tags, then Open Graph. The
values are not trusted: each is limited in length and reduced to one line of text.
"""

import re
from collections.abc import Mapping
from html.parser import HTMLParser

from webdepot.text.entities import without_too_large

READ_CHARACTERS = 200_000
LONGEST = {"title": 300, "abstract": 4000, "genre": 100}
MOST_VALUES = 40
_TAGS: Mapping[str, tuple[str, ...]] = {
    "title": ("dc.title", "dcterms.title", "og:site_name", "application-name"),
    "creators": ("dc.creator", "dcterms.creator", "author"),
    "contributors": ("dc.contributor", "dcterms.contributor"),
    "publisher": ("dc.publisher", "dcterms.publisher", "publisher"),
    "keywords": ("dc.subject", "dcterms.subject", "keywords"),
    "abstract": (
        "dc.description",
        "dcterms.abstract",
        "dcterms.description",
        "description",
        "og:description",
    ),
    "languages": ("dc.language", "dcterms.language", "content-language", "language"),
    "rights": ("dc.rights", "dcterms.rights", "copyright"),
    "genre": ("dc.type", "dcterms.type"),
    "place": ("geo.placename", "dc.coverage.spatial", "dcterms.spatial"),
}
_LISTED = frozenset({"creators", "contributors", "keywords", "languages"})
_SPACES = re.compile(r"\s+")
_LANGUAGE = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]+)*\Z", re.IGNORECASE)


def read(text: str) -> dict[str, str | tuple[str, ...]]:
    """Fields of a catalogue record that a start page fills; other fields are left out."""
    parser = _Head()
    parser.feed(without_too_large(text[:READ_CHARACTERS]))
    fields: dict[str, str | tuple[str, ...]] = {}
    for field, names in _TAGS.items():
        texts = next((parser.tags[name] for name in names if parser.tags.get(name)), [])
        if field == "title" and not texts:
            texts = [parser.title]
        if field == "languages" and not texts:
            texts = [parser.language]
        parts = (part for text in texts for part in _split(field, text))
        values = tuple(dict.fromkeys(filter(None, (_value(field, part) for part in parts))))[:MOST_VALUES]
        if values:
            fields[field] = values if field in _LISTED else values[0]
    return fields


def _split(field: str, text: str) -> list[str]:
    if field == "keywords":
        return re.split(r"[;,]", text)
    return re.split(r"[;,\s]+", text) if field == "languages" else [text]


def _value(field: str, text: str) -> str:
    line = _SPACES.sub(" ", "".join(char if char.isprintable() else " " for char in text)).strip()[
        : LONGEST.get(field, 200)
    ]
    if field == "languages":
        code = _LANGUAGE.match(line)
        return code[1].lower() if code else ""
    return line


class _Head(HTMLParser):
    """Reads meta tags until the body begins; never fails on bad markup."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: dict[str, list[str]] = {}
        self.title = ""
        self.language = ""
        self._in_title = False
        self._is_over = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "html":
            self.language = self.language or attributes.get("lang", "") or attributes.get("xml:lang", "")
        elif tag == "body":
            self._is_over = True
        elif tag == "meta" and not self._is_over:
            named = (attributes.get(key) for key in ("name", "property", "http-equiv"))
            name = next(filter(None, named), "").strip().lower()
            content = attributes.get("content")
            if name and content and len(self.tags.setdefault(name, [])) < MOST_VALUES:
                self.tags[name].append(content)
        self._in_title = tag == "title" and not self.title and not self._is_over

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title = (self.title + data)[:5000]
