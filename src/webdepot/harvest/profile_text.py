"""Set one key in the text of a profile, which is TOML (https://toml.io/en/v1.0.0) with the comments and the
layout of a person.

The text is cut into statements: a key with its value, a header, or a line with nothing but a comment. Only
strings, comments and brackets decide where a statement ends, since the text is valid. What a statement says,
the parser of the standard library decides, and it also checks the result.
"""

import copy
import json
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

from webdepot.errors import InputError


class _Statement(NamedTuple):
    begin: int
    comment: int
    """Where its comment begins; its line end if there is none."""
    end: int


def with_key(text: str, key: str, value: str) -> str:
    """The text with a key of the profile set to a string; everything else stays as it was written. The keys
    are at the top level, or below [profiles.NAME].

    Text that is not valid TOML is returned unchanged, since its next reader reports what is wrong. InputError
    if the key is written in a way that this function cannot change.
    """
    try:
        before = tomllib.loads(text)
    except (ValueError, RecursionError):
        return text
    changed = _set(text, before, key, value)
    expected = copy.deepcopy(before)
    _table_of(expected)[key] = value
    try:
        is_right = _plain(tomllib.loads(changed)) == _plain(expected)
    except ValueError:
        is_right = False
    if not is_right:
        raise InputError(
            f"`{key}` could not be set in this text. Write it yourself: {key} = {_quoted(value)}"
        )
    return changed


def _table_of(tree: dict[str, Any]) -> dict[str, Any]:
    """The table with the keys of the profile."""
    profiles = tree.get("profiles")
    if len(tree) == 1 and isinstance(profiles, dict) and len(profiles) == 1:
        (table,) = profiles.values()
        if isinstance(table, dict):
            return table
    return tree


def _set(text: str, tree: dict[str, Any], key: str, value: str) -> str:
    line_end = "\r\n" if "\r\n" in text else "\n"
    new = f"{key} = {_quoted(value)}"
    begin, is_inside = 0, _table_of(tree) is tree
    for statement in _statements(text):
        written = text[statement.begin : statement.comment]
        said = tomllib.loads(written)
        if written.lstrip().startswith("["):
            if is_inside:
                break
            is_inside = said.keys() == {"profiles"} and _table_of(said) == {}
            begin = statement.end if is_inside else 0
        elif is_inside and key in said:
            comment = text[statement.comment : statement.end]
            gap = " " if comment.startswith("#") else ""
            return f"{text[: statement.begin]}{new}{gap}{comment}{text[statement.end :]}"
    before = text[:begin] if not begin or text[:begin].endswith("\n") else f"{text[:begin]}{line_end}"
    return f"{before}{new}{line_end}{text[begin:]}"


def _plain(tree: dict[str, Any]) -> str:
    """For comparison: as values, `nan` differs from itself."""
    return json.dumps(tree, sort_keys=True, default=repr)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _statements(text: str) -> Iterator[_Statement]:
    """The statements of valid TOML, in order, without gaps between them."""
    begin = at = depth = 0
    comment: int | None = None
    while at < len(text):
        mark = text[at]
        if mark in "\"'":
            at = _string_end(text, at)
            continue
        if mark == "#":
            comment = at if depth == 0 else comment
            newline = text.find("\n", at)
            at = len(text) if newline < 0 else newline
            continue
        depth += (mark in "[{") - (mark in "]}")
        at += 1
        if mark == "\n" and depth == 0:
            line_end = at - 2 if text[at - 2 : at] == "\r\n" else at - 1
            yield _Statement(begin, line_end if comment is None else comment, at)
            begin, comment = at, None
    if begin < len(text):
        yield _Statement(begin, len(text) if comment is None else comment, len(text))


def _string_end(text: str, at: int) -> int:
    """Where the string ends that begins here."""
    quote = text[at]
    is_long = text.startswith(quote * 3, at)
    close = quote * 3 if is_long else quote
    at += len(close)
    while not text.startswith(close, at):
        at += 2 if text[at] == "\\" and quote == '"' else 1
    at += len(close)
    if is_long:  # up to two quotes of the string itself may be before the closing ones
        while text.startswith(quote, at):
            at += 1
    return at
