"""The title of an archived page or feed, from its first bytes: the banner shows it before the page loads."""

import re
from typing import BinaryIO

from webdepot.access.replay.server_rewrite import text_of
from webdepot.text.entities import unescape

READ_BYTES = 1 << 16
LONGEST = 300
_LONGEST_RAW = 5000
_TITLE = re.compile(r"<title(?:\s[^<>]{0,500}+)?>", re.IGNORECASE)
_END = re.compile(r"</title\s*+>", re.IGNORECASE)
_FEED = re.compile(r"<(?:[a-z]{1,20}:)?(?:rss|feed|rdf)[\s>]", re.IGNORECASE)
_CDATA = re.compile(r"<!\[CDATA\[|\]\]>")
_SPACES = re.compile(r"\s+")


def of_html(content: BinaryIO, content_type: str) -> str:
    """The first `<title>` as one line of plain text; empty if there is none."""
    return _first_title(text_of(content.read(READ_BYTES), content_type))


def of_feed(content: BinaryIO, content_type: str) -> str:
    """The title of a feed in XML; empty for other documents."""
    text = text_of(content.read(READ_BYTES), content_type)
    return _first_title(_CDATA.sub("", text)) if _FEED.search(text) else ""


def _first_title(text: str) -> str:
    title = _TITLE.search(text)
    end = _END.search(text, title.end(), title.end() + _LONGEST_RAW) if title else None
    if not title or not end:
        return ""
    return _SPACES.sub(" ", unescape(text[title.end() : end.start()])).strip()[:LONGEST]
