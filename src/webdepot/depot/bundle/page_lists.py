"""Lists of pages in WACZ files: `pages/*.jsonl`, one JSON object in a line, the first of which may describe
the list (https://specs.webrecorder.net/wacz/1.1.1/#pages-jsonl).

    pages/pages.jsonl        seeds (Browsertrix), or all pages (ArchiveWeb.page, py-wacz)
    pages/extraPages.jsonl   the other pages (Browsertrix)

Fields that are used: `url`, `ts`, `title`, `text` (what a browser showed), `seed`. Lines that cannot be read
are skipped: a list only adds to what is known from the captures.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO

from webdepot.text import untrusted_json
from webdepot.times import to_timestamp

LONGEST_LINE_BYTES = 16 << 20
_NAME = re.compile(r"(?:\A|/)pages/[^/]+\.jsonl\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPage:
    """One page of a list."""

    url: str
    timestamp: str = ""
    """Empty if the list has no readable date."""
    title: str = ""
    text: str = ""
    is_seed: bool = False


def is_page_list(name: str) -> bool:
    """Whether a file of a WACZ is a list of pages, by its path."""
    return _NAME.search(name) is not None


def iter_pages(stream: IO[bytes]) -> Iterator[ListedPage]:
    """The pages of a list, in its order."""
    while line := stream.readline(LONGEST_LINE_BYTES):
        is_cut = not line.endswith(b"\n")
        page = _page(line)
        if page is not None:
            yield page
        while is_cut and (rest := stream.readline(LONGEST_LINE_BYTES)):
            is_cut = not rest.endswith(b"\n")


def _page(line: bytes) -> ListedPage | None:
    try:
        values = untrusted_json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    url = _text(values.get("url"))
    if not url.startswith(("http://", "https://")):
        return None
    return ListedPage(
        url=url,
        timestamp=_timestamp(values.get("ts")),
        title=_text(values.get("title")),
        text=_text(values.get("text")),
        is_seed=values.get("seed") in (True, "true"),
    )


def _text(value: object) -> str:
    """A text without halves of characters, which JSON can contain."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _timestamp(value: object) -> str:
    """A date of RFC 3339, or in milliseconds (old versions of ArchiveWeb.page)."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return to_timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
        if isinstance(value, int):
            return to_timestamp(datetime.fromtimestamp(value / 1000, UTC))
    except (ValueError, OverflowError, OSError):
        pass
    return ""
