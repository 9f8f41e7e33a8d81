"""Style sheets: characters, and the syntax of blocks, strings and comments
(https://www.w3.org/TR/css-syntax-3/).

Browsers correct everything, so only errors that certainly lose something are reported: a comment, string or
block that never ends, or an extra bracket. Names and values are not checked: no list of them is complete.
"""

import re
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, Validity
from webdepot.formats.validators import text
from webdepot.model import Finding

LONGEST_BYTES = 16 << 20
_TOKEN = re.compile(
    r"""/\*(?s:.*?)(?:\*/|(?P<comment>\Z))
    |"(?:[^"\\\n]|\\(?s:.))*+"|'(?:[^'\\\n]|\\(?s:.))*+'|(?P<string>["'])
    |\\(?s:.)|url\(\s*+[^"'\s)][^)]*+(?:\)|(?P<url>\Z))|(?P<open>[{(\[])|(?P<close>[})\]])""",
    re.VERBOSE | re.IGNORECASE,
)
_PAIRS = {"}": "{", ")": "(", "]": "["}


def check(stream: BinaryIO) -> CheckResult:
    result = text.check(stream)
    if result.validity is Validity.NOT_VALID:
        return result
    stream.seek(0)
    data = stream.read(LONGEST_BYTES + 1)
    if len(data) > LONGEST_BYTES:
        return result
    problem = _find_problem(data.decode("latin-1"))
    rules = data.count(b"{")
    properties = {**result.properties, "rules": rules}
    if problem is None:
        return CheckResult(validity=result.validity, findings=result.findings, properties=properties)
    return CheckResult(
        validity=Validity.NOT_VALID, findings=[*result.findings, problem], properties=properties
    )


def _find_problem(sheet: str) -> Finding | None:
    waiting: list[tuple[str, int]] = []
    for token in _TOKEN.finditer(sheet):
        kind = token.lastgroup
        if kind == "comment":
            return _about(sheet, token.start(), "a comment never ends")
        if kind == "string":
            return _about(sheet, token.start(), "a string never ends")
        if kind == "url":
            return _about(sheet, token.start(), "a bracket ( is never closed")
        if kind == "open":
            waiting.append((token[0], token.start()))
        elif kind == "close":
            if not waiting or waiting[-1][0] != _PAIRS[token[0]]:
                return _about(sheet, token.start(), f"a bracket {token[0]} has no opening bracket")
            waiting.pop()
    return _about(sheet, waiting[0][1], f"a bracket {waiting[0][0]} is never closed") if waiting else None


def _about(sheet: str, at: int, detail: str) -> Finding:
    return finding("css-error", place=f"line {sheet.count(chr(10), 0, at) + 1}", detail=detail)
