"""The files that a program built with webpack or Rspack loads when they are needed, such as the code of the
page behind a link. Their names are not in the script as they are: a function puts them together from tables.

    r.u = e => "assets/js/" + ({48: "a94703ab"}[e] || e) + "." + {48: "6ad1b3c0", 53: "0c1f"}[e] + ".js"
    r.miniCssF = e => "css/" + {48: "77aa"}[e] + ".css"                        webpack 5, style sheets
    function s(e) { return c.p + "" + ({}[e] || e) + "." + {3: "6a8"}[e] + ".js" }     webpack 4
    r.p = "/";  r.p = url + "../"                   where the names start, as text or from the script's folder

Only such functions are read, as a sum of strings, tables and choices; anything else in one makes it unknown.
"""

import re
from collections.abc import Callable
from itertools import islice

MOST_DEPTH = 3
"""Most nested brackets in the sum."""
MOST_CHUNKS = 5000
"""Most chunks of one program; further ones are left out."""
_TABLE = r"""\{(?:\s*+(?:[\w$]++|"[^"\\]*+"|'[^'\\]*+')\s*+:\s*+(?:"[^"\\]*+"|'[^'\\]*+')\s*+,?)*+\s*+\}"""
_HEAD = re.compile(
    r"""(?<![\w$.])(?P<object>[\w$]++)\.(?:u|miniCssF)\s*+=\s*+
        (?:function\s*+\((?P<a>[\w$]++)\)\s*+\{\s*+return\s*+|\(?(?P<b>[\w$]++)\)?\s*+=>\s*+(?:\{\s*+return\s*+)?)
    |(?<![\w$])function\s*+[\w$]*+\s*+\((?P<c>[\w$]++)\)\s*+\{\s*+return\s++(?P<old>[\w$]++)\.p\s*+\+\s*+""",
    re.VERBOSE,
)
_TOKEN = re.compile(
    rf"""\s*+(?:(?P<table>{_TABLE})|(?P<text>"[^"\\]*+"|'[^'\\]*+')|(?P<name>[\w$]++)|(?P<sign>===?|\|\||[-+?:()\[\]]))""",
    re.VERBOSE,
)
_ENTRY = re.compile(
    r"""(?:(?<![\w$])([\w$]++)|"([^"\\]*+)"|'([^'\\]*+)')\s*+:\s*+(?:"([^"\\]*+)"|'([^'\\]*+)')"""
)
_FOLDER = re.compile(
    r"""(?<![\w$.])([\w$]++)\.p\s*+=\s*+(?:"([^"\\]*+)"|'([^'\\]*+)'|[\w$]++(?:\s*+\+\s*+["']((?:\.\./)++)["'])?)"""
)
_LOADED = re.compile(r"(?<![\w$])[\w$]++\.e\((\d++)\)")
"""A chunk that the script requests by its number, if files are named by the number alone."""
_WORTH_READING = (".u=", ".u =", ".miniCssF", ".p+", ".p +")

Part = Callable[[str], str | None]
"""What a part of the sum is for a chunk; None if the chunk is not in a table."""


class _Unknown(Exception):
    """The function is not one of those that name files."""


def chunk_addresses(script: str) -> tuple[list[str], list[str]]:
    """The files that a script can load by its own tables: those relative to the script, or absolute, and
    those relative to the page.
    """
    of_script: list[str] = []
    of_page: list[str] = []
    if not any(sign in script for sign in _WORTH_READING):
        return of_script, of_page
    folders = {folder[1]: folder for folder in _FOLDER.finditer(script)}
    for head in _HEAD.finditer(script):
        reader = _Sum(script, head.end(), head["a"] or head["b"] or head["c"])
        try:
            parts = reader.read()
        except _Unknown:
            continue
        ids = reader.ids or dict.fromkeys(_LOADED.findall(script))
        names = [name for chunk in islice(ids, MOST_CHUNKS) if (name := _join(parts, chunk)) is not None]
        folder = folders.get(head["object"] or head["old"])
        if folder is None:
            continue
        start = folder[2] if folder[2] is not None else folder[3]
        if start is None:  # the folder of the script, or one above it
            of_script += [f"{folder[4] or './'}{name}" for name in names]
        elif start.startswith(("/", "http:", "https:")):
            of_script += [start + name for name in names]
        else:
            of_page += [start + name for name in names]
    return of_script, of_page


def _join(parts: list[Part], chunk: str) -> str | None:
    values = [part(chunk) for part in parts]
    texts = [value for value in values if value is not None]
    return "".join(texts) if len(texts) == len(values) else None


class _Sum:
    """Reads `part + part + …` from a place in a script."""

    def __init__(self, script: str, place: int, parameter: str) -> None:
        self._script, self._place, self._parameter = script, place, parameter
        self.ids: dict[str, None] = {}
        """The ids of all chunks in the tables."""

    def read(self, depth: int = 0) -> list[Part]:
        parts = [self._part(depth)]
        while self._take("+"):
            parts.append(self._part(depth))
        return parts

    def _part(self, depth: int) -> Part:
        token = self._next()
        if token["text"] is not None:
            text = token["text"][1:-1]
            return lambda chunk: text
        if token["table"] is not None:
            return self._lookup(token["table"])
        if token["name"] == self._parameter:
            return lambda chunk: chunk
        if token["name"] is not None and self._take("==="):
            return self._choice(token["name"])
        if token["sign"] == "(" and depth < MOST_DEPTH:
            return self._bracket(depth)
        raise _Unknown

    def _bracket(self, depth: int) -> Part:
        table = _TOKEN.match(self._script, self._place)
        if table is not None and table["table"] is not None:
            before, self._place = self._place, table.end()
            if self._take(")"):
                return self._lookup(table["table"])  # ({…})[e]
            self._place = before
        parts = self.read(depth + 1)
        if self._take("||"):
            if self._next()["name"] != self._parameter or len(parts) != 1:
                raise _Unknown
            first = parts[0]
            parts = [lambda chunk: first(chunk) or chunk]
        if not self._take(")"):
            raise _Unknown
        return lambda chunk: _join(parts, chunk)

    def _lookup(self, table: str) -> Part:
        """`{…}[e]`"""
        values = {a or b or c: d or e for a, b, c, d, e in _ENTRY.findall(table)}
        self.ids.update(dict.fromkeys(values))
        if not (self._take("[") and self._next()["name"] == self._parameter and self._take("]")):
            raise _Unknown
        return values.get

    def _choice(self, number: str) -> Part:
        """`48===e?"name":…`, a table of one."""
        if self._next()["name"] != self._parameter or not self._take("?"):
            raise _Unknown
        name = self._next()["text"]
        if name is None or not self._take(":"):
            raise _Unknown
        otherwise = self._part(0)
        self.ids[number] = None
        return lambda chunk: name[1:-1] if chunk == number else otherwise(chunk)

    def _next(self) -> re.Match[str]:
        token = _TOKEN.match(self._script, self._place)
        if token is None:
            raise _Unknown
        self._place = token.end()
        return token

    def _take(self, sign: str) -> bool:
        token = _TOKEN.match(self._script, self._place)
        if token is None or token["sign"] != sign:
            return False
        self._place = token.end()
        return True
