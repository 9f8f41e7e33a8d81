"""The title of an archived HTML page, from its first bytes: what the banner says before the page itself has spoken."""

import html
import re
from typing import BinaryIO

READ_BYTES = 1 << 16
LONGEST = 300
_TITLE = re.compile(r"<title(?:\s[^>]{0,500})?>(.{0,5000}?)</title\s*>", re.IGNORECASE | re.DOTALL)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([a-zA-Z0-9_.:-]{2,40})", re.IGNORECASE)
_SPACES = re.compile(r"\s+")


def of_html(content: BinaryIO, content_type: str) -> str:
    """The first `<title>` in one line of plain text; empty where there is none."""
    # Four megabytes that a server without a banner does not need.
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding, map_encoding_to_html5

    data = content.read(READ_BYTES)
    found = _CHARSET.search(content_type) or _CHARSET.search(data[:2048].decode("latin-1"))
    # The names browsers know (https://encoding.spec.whatwg.org); any other name is no help.
    encoding = (map_encoding_to_html5(found[1], fallback_utf8=False) if found else None) or detect_encoding(data)
    text = bytes_to_str(data, encoding, fallback_encodings=("utf-8", "windows-1252"), errors="replace")
    title = _TITLE.search(text)
    return _SPACES.sub(" ", html.unescape(title[1])).strip()[:LONGEST] if title else ""
