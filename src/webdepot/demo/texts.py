"""The texts of the sample site: read from TOML, chosen for an edition, split into blocks.

A text that an edition does not change is that of the previous edition. The markup: paragraphs, `## heading`,
`- item`, `![caption](picture)`, and inside a line `[text](address)`, `**bold**`, `*italic*`.
"""

import datetime
import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup, escape

LANGUAGES = ("nl", "de", "en")
NEWS_FOLDERS = {"nl": "/nieuws", "de": "/de/aktuelles", "en": "/en/news"}
NEWS_TITLES = {"nl": "Nieuws", "de": "Aktuelles", "en": "News"}
_FIGURE = re.compile(r"!\[([^\]]*)\]\(([^)]*)\)\Z")
_INLINE = re.compile(r"\[([^\[\]]*+)\]\(([^()]*+)\)|\*\*([^*]+)\*\*|\*([^*]+)\*")


class BlockKind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    FIGURE = "figure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    kind: BlockKind
    words: Markup
    items: tuple[Markup, ...] = ()
    picture: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePage:
    """A page or news item in one edition."""

    path: str
    language: str
    title: str
    blocks: tuple[Block, ...]
    menu: str = ""
    """Text of the menu entry; empty if the page is not in the menu."""
    picture: str = ""
    date: datetime.date | None = None
    """Day of a news item."""

    @property
    def lead(self) -> str:
        """The first paragraph without markup, for feeds, cards and descriptions."""
        first = next((block.words for block in self.blocks if block.kind is BlockKind.PARAGRAPH), Markup())
        return first.striptags()


def pages(edition: str) -> list[SitePage]:
    """The pages of an edition without the news, in the order of the file."""
    return [
        _page(entry, text, entry["path"])
        for entry in _read("pages.toml")["page"]
        if (text := _text(entry, edition))
    ]


def news(edition: str) -> list[SitePage]:
    """The news items of an edition, newest first."""
    items = [
        _page(entry, text, f"{NEWS_FOLDERS[entry['language']]}/{entry['slug']}.html")
        for entry in _read("news.toml")["item"]
        if (text := _text(entry, edition))
    ]
    return sorted(items, key=lambda page: str(page.date), reverse=True)


def blocks(text: str) -> tuple[Block, ...]:
    """Split a text into blocks; special characters of HTML are escaped."""
    parts = re.split(r"\n\s*\n", text.strip())
    return tuple(block for part in parts for block in _blocks_of_part(part.strip().splitlines()))


def inline(line: str) -> Markup:
    """One line with its links and emphasis as HTML."""
    out, at = Markup(), 0
    for match in _INLINE.finditer(line):
        text, address, bold, italic = match.groups()
        out += escape(line[at : match.start()])
        if text is not None:
            out += Markup('<a href="{}">{}</a>').format(address, text)
        else:
            out += Markup("<b>{}</b>").format(bold) if bold else Markup("<i>{}</i>").format(italic)
        at = match.end()
    return out + escape(line[at:])


def _blocks_of_part(lines: list[str]) -> list[Block]:
    if lines[0].startswith("## "):
        rest = _blocks_of_part(lines[1:]) if lines[1:] else []
        return [Block(kind=BlockKind.HEADING, words=inline(lines[0][3:])), *rest]
    figure = _FIGURE.match(lines[0])
    if figure:
        return [Block(kind=BlockKind.FIGURE, words=escape(figure[1]), picture=figure[2])]
    intro = [line for line in lines if not line.startswith("- ")]
    items = tuple(inline(line[2:]) for line in lines if line.startswith("- "))
    paragraph = [Block(kind=BlockKind.PARAGRAPH, words=inline(" ".join(intro)))] if intro else []
    return [*paragraph, Block(kind=BlockKind.LIST, words=Markup(), items=items)] if items else paragraph


def _page(entry: dict[str, Any], text: dict[str, str], path: str) -> SitePage:
    return SitePage(
        path=path,
        language=entry["language"],
        title=text["title"],
        blocks=blocks(text["text"]),
        menu=entry.get("menu", ""),
        picture=entry.get("picture", ""),
        date=entry.get("date"),
    )


def _text(entry: dict[str, Any], edition: str) -> dict[str, str] | None:
    """The latest text up to the edition; None if the page does not exist in it."""
    years = [key for key in entry if key.isdigit() and key <= edition]
    if not years or edition > entry.get("until", "9999"):
        return None
    text: dict[str, str] = entry[max(years)]
    return text


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "texts" / name).read_text(encoding="utf-8"))
