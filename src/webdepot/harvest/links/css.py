"""Links in style sheets: url(…), @import, image-set(…). CSS Syntax 3, https://www.w3.org/TR/css-syntax-3/

A tokenizer in one regular expression rather than a parser: style sheets of the wild are broken in ways that
only matter for layout. Comments are passed over, escapes are undone, `@namespace` addresses are names, not
links.
"""

import re
from collections.abc import Iterator

from webdepot.model import Hop

# Each alternative can match in one way only, so the time is linear in the length.
_STRING = r'"((?:[^"\\\n]|\\.|\\\n)*)"|\'((?:[^\'\\\n]|\\.|\\\n)*)\''
_TOKEN = re.compile(
    rf"""/\*.*?(?:\*/|\Z)
    |@namespace\b[^;]*
    |@import\s*(?:{_STRING})
    |\b(?:url|src)\(\s*(?:{_STRING}|((?:[^"'()\s\\]|\\[0-9a-f]{{1,6}}+\s?|\\.)*+))\s*\)
    |\b(?:-webkit-)?image-set\(((?:[^()"';]|"[^"\n]*"|'[^'\n]*'|\([^()]*\))*)\)
    |{_STRING}""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_QUOTED = re.compile(r"""(\w*\(\s*)?(?:"([^"\n]*)"|'([^'\n]*)')""")
_URL = re.compile(r"""\burl\(\s*["']?([^"')\s]+)""", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|\n|(.))", re.DOTALL)


def references(text: str) -> Iterator[tuple[str, Hop]]:
    """Addresses as written, in order; all of them are parts of the page."""
    for found in _TOKEN.finditer(text):
        imported = found[1] or found[2]
        address = found[3] or found[4] or found[5]
        if imported or address:
            yield _unescaped(imported or address), Hop.EMBED
        elif found[6]:
            yield from _of_image_set(found[6])


def _of_image_set(inside: str) -> Iterator[tuple[str, Hop]]:
    for address in _URL.findall(inside):
        yield _unescaped(address), Hop.EMBED
    for function, double, single in _QUOTED.findall(inside):
        if not function:  # type("image/avif") and url("…") are not plain strings
            yield _unescaped(double or single), Hop.EMBED


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_letter, text) if "\\" in text else text


def _letter(found: re.Match[str]) -> str:
    if found[1]:
        number = int(found[1], 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return found[2] or ""
