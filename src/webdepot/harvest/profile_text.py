"""Set one key, or the rules, in the text of a profile, which is TOML (https://toml.io/en/v1.0.0); the
comments and the layout of a person are kept.

The text is cut into statements: a key with its value, a header, or a line with nothing but a comment. Only
strings, comments and brackets decide where a statement ends, since the text is valid. The parser of the
standard library interprets each statement and checks the result.
"""

import copy
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from webdepot.errors import InputError


class _Statement(NamedTuple):
    begin: int
    comment: int
    """Where its comment begins; its line end if there is none."""
    end: int


Value = str | bool | int | float | list[str]


def with_key(text: str, key: str, value: Value | None) -> str:
    """The text with a key of the profile set, or with None removed; everything else stays as it was written.
    The keys are at the top level, or below [profiles.NAME].

    Text that is not valid TOML is returned unchanged, since its next reader reports what is wrong. InputError
    if the key is written in a way that this function cannot change.
    """
    try:
        before = tomllib.loads(text)
    except (ValueError, RecursionError):
        return text
    changed = _set(text, before, key, value)
    expected = copy.deepcopy(before)
    if value is None:
        _table_of(expected).pop(key, None)
    else:
        _table_of(expected)[key] = value
    if not _has_values(changed, expected):
        line = f"{key} = {_written(value)}" if value is not None else f"without {key}"
        raise InputError(f"`{key}` could not be set in this text. Write it yourself: {line}")
    return changed


def with_rules(text: str, tables: Sequence[Mapping[str, object]]) -> str:
    """The text with these rules instead of its own; rules with the same meaning stay as they were written.
    InputError if it has comments among its rules, or rules that are not written as [[rules]]: a person must
    change those.
    """
    before = tomllib.loads(text)
    expected = copy.deepcopy(before)
    own = _table_of(expected)
    if _plain({"rules": own.get("rules", [])}) == _plain({"rules": list(tables)}):
        return text
    own.pop("rules", None)
    if tables:
        own["rules"] = [dict(table) for table in tables]
    prefix = "" if _table_of(before) is before else f"profiles.{_key(next(iter(before['profiles'])))}."
    blocks = _rule_blocks(text)
    kept, begin, first = "", 0, len(text)
    for block in blocks:
        kept, begin = kept + text[begin : block.begin], block.end
        first = min(first, len(kept))
    kept += text[begin:]
    before_rules, after_rules = kept[:first].rstrip("\n"), kept[first:].lstrip("\n")
    rules = "\n".join(_rule(f"{prefix}rules", table) for table in tables)
    parts = [part for part in (before_rules, rules.rstrip("\n"), after_rules) if part]
    changed = "\n\n".join(parts)
    changed = changed if not changed or changed.endswith("\n") else f"{changed}\n"
    if any("#" in text[block.begin : block.end] for block in blocks) or not _has_values(changed, expected):
        raise InputError("The rules of this text can only be changed in the text itself: they have comments.")
    return changed


def can_have_rules(text: str) -> bool:
    """Whether `with_rules` can change the rules of this text."""
    try:
        with_rules(text, [{"reject": "url_contains", "of": [f"{len(text)} other"]}])
    except (InputError, ValueError, RecursionError):
        return False
    return True


def _rule_blocks(text: str) -> list[_Statement]:
    """The blocks of rules, each from [[rules]] to the next header."""
    blocks: list[_Statement] = []
    begin: int | None = None
    for statement in _statements(text):
        written = text[statement.begin : statement.comment].strip()
        if written.startswith("["):
            if begin is not None:
                blocks.append(_Statement(begin, statement.begin, statement.begin))
            table = _table_of(tomllib.loads(written)) if written.startswith("[[") else {}
            begin = statement.begin if "rules" in table else None
    if begin is not None:
        blocks.append(_Statement(begin, len(text), len(text)))
    return blocks


def _rule(name: str, table: Mapping[str, object]) -> str:
    lines = [f"[[{name}]]", *(f"{key} = {_written(value)}" for key, value in table.items())]
    return "".join(f"{line}\n" for line in lines)


def _has_values(text: str, expected: dict[str, Any]) -> bool:
    try:
        return _plain(tomllib.loads(text)) == _plain(expected)
    except ValueError:
        return False


def _table_of(tree: dict[str, Any]) -> dict[str, Any]:
    """The table with the keys of the profile."""
    profiles = tree.get("profiles")
    if len(tree) == 1 and isinstance(profiles, dict) and len(profiles) == 1:
        (table,) = profiles.values()
        if isinstance(table, dict):
            return table
    return tree


def _set(text: str, tree: dict[str, Any], key: str, value: Value | None) -> str:
    line_end = "\r\n" if "\r\n" in text else "\n"
    new = f"{key} = {_written(value)}" if value is not None else ""
    begin, is_inside = 0, _table_of(tree) is tree
    for statement in _statements(text):
        written = text[statement.begin : statement.comment]
        values = tomllib.loads(written)
        if written.lstrip().startswith("["):
            if is_inside:
                break
            is_inside = values.keys() == {"profiles"} and _table_of(values) == {}
            begin = statement.end if is_inside else 0
        elif is_inside and key in values:
            comment = text[statement.comment : statement.end]
            if value is None and not comment.startswith("#"):
                comment = ""
            gap = " " if new and comment.startswith("#") else ""
            return f"{text[: statement.begin]}{new}{gap}{comment}{text[statement.end :]}"
    if value is None:
        return text
    before = text[:begin] if not begin or text[:begin].endswith("\n") else f"{text[:begin]}{line_end}"
    return f"{before}{new}{line_end}{text[begin:]}"


def _plain(tree: dict[str, Any]) -> str:
    """A text for comparing values: `nan` is not equal to itself."""
    return json.dumps(tree, sort_keys=True, default=repr)


def _written(value: object) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_written, value))}]"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else _quoted(name)


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
    """The end of the string that begins at `at`."""
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
