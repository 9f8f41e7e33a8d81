"""The title of an archived HTML page, from its first bytes: the banner shows it before the page loads."""

import re
from typing import BinaryIO

from webdepot.access.replay.rewrite import text_of
from webdepot.entities import unescape

READ_BYTES = 1 << 16
LONGEST = 300
_TITLE = re.compile(r"<title(?:\s[^>]{0,500})?>(.{0,5000}?)</title\s*>", re.IGNORECASE | re.DOTALL)
_SPACES = re.compile(r"\s+")


def of_html(content: BinaryIO, content_type: str) -> str:
    """The first `<title>` as one line of plain text; empty if there is none."""
    title = _TITLE.search(text_of(content.read(READ_BYTES), content_type))
    return _SPACES.sub(" ", unescape(title[1])).strip()[:LONGEST] if title else ""
