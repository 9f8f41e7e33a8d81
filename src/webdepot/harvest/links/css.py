"""Links in style sheets: url(…), @import, image-set(…). CSS Syntax 3, https://www.w3.org/TR/css-syntax-3/

One regular expression as a tokenizer, not a parser: real style sheets are broken in ways that only matter for
layout. Comments are skipped, escapes are decoded, `@namespace` addresses are names, not links.
"""

import re
from collections.abc import Iterator

from webdepot.harvest.links.reference import Reference
from webdepot.model import Hop

# Each alternative can match in only one way, so the time is linear in the length.
_STRING = r'"((?:[^"\\\n]|\\.)*+)"|\'((?:[^\'\\\n]|\\.)*+)\''
_TOKEN = re.compile(
    rf"""/\*.*?(?:\*/|\Z)
    |@namespace\b[^;]*
    |@import\s*+(?:{_STRING})
    |\b(?:url|src)\(\s*+(?:{_STRING}|((?:[^"'()\s\\]|\\[0-9a-f]{{1,6}}+\s?|\\.)*+))\s*+\)
    |\b(?:-webkit-)?image-set\(((?:[^()"';]|"[^"\n]*+"|'[^'\n]*+'|\([^()]*+\))*+)\)
    |{_STRING}
    |\\.""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_QUOTED = re.compile(r"""((?<!\w)\w*+\(\s*+)?(?:"([^"\n]*)"|'([^'\n]*)')""")
_URL = re.compile(r"""\burl\(\s*+["']?([^"')\s]+)""", re.IGNORECASE)
_CHARSET = re.compile(rb'@charset "([\w.:-]{1,40})";')
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|\n|(.))", re.DOTALL)


def charset_of(body: bytes) -> str:
    """The encoding that a style sheet states about itself (CSS Syntax 3, 3.2); empty if none."""
    stated = _CHARSET.match(body)
    return stated[1].decode() if stated else ""


def references(text: str) -> Iterator[Reference]:
    """Addresses as written, in order; all of them are parts of the page."""
    if "(" not in text and "@" not in text:
        return  # as most style attributes
    for token in _TOKEN.finditer(text):
        imported = token[1] or token[2]
        address = token[3] or token[4] or token[5]
        if imported or address:
            yield _unescape(imported or address), Hop.EMBED
        elif token[6]:
            yield from _of_image_set(token[6])


def _of_image_set(inside: str) -> Iterator[Reference]:
    for address in _URL.findall(inside):
        yield _unescape(address), Hop.EMBED
    for function, double, single in _QUOTED.findall(inside):
        if not function:  # type("image/avif") and url("…") are not plain strings
            yield _unescape(double or single), Hop.EMBED


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_letter, text) if "\\" in text else text


def _letter(escape: re.Match[str]) -> str:
    if escape[1]:
        number = int(escape[1], 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return escape[2] or ""
