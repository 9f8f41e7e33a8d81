"""The visible text of a page, for rules that compare pages."""

import re
from contextlib import suppress
from html import unescape

from webdepot.container.http import content_decoded, parse_head, transfer_decoded
from webdepot.model import Visit
from webdepot.text.encoding import decode

_READ_BYTES = 1 << 18
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_HIDDEN = re.compile(
    r"<(script|style|noscript|template|title)\b.*?(</\1\s*>|\Z)|<!--.*?(-->|\Z)", re.IGNORECASE | re.DOTALL
)
_TAG = re.compile(r"<[^>]*+(?:>|\Z)")


def find_html(visit: Visit, *, limit_bytes: int = _READ_BYTES) -> str | None:
    """The start of a page; None if the response is not a page."""
    if visit.failure is not None or not 200 <= visit.status < 300:
        return None
    head = parse_head(visit.head)
    media_type = head.get("content-type") or "text/html"
    if media_type.partition(";")[0].strip().lower() not in _HTML:
        return None
    visit.body.seek(0)
    body = b""
    with suppress(Exception):  # a wrong coding is the server's error; such a page has no text
        coded = content_decoded(transfer_decoded(visit.body, head), head, limit_bytes=limit_bytes)
        body = coded.read(limit_bytes)
    return decode(body, media_type)[0]


def visible_text(html: str) -> str:
    """The text between the tags, with a line break for each of them."""
    return unescape(_TAG.sub("\n", _HIDDEN.sub("\n", html)))
