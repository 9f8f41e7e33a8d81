"""The entries of a HAR file, one after another, without reading the whole file into memory.

A HAR file is one JSON object; its entries are in the list `log.entries`. Only strings and brackets are looked
at until an entry is complete, then the entry alone is parsed. The size of an entry and the number of values
in it are limited: JSON of a few megabytes can become gigabytes of objects.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from webdepot.errors import InputError

LONGEST_ENTRY = 96 << 20
MOST_VALUES = 500_000
MOST_ENTRIES = 1_000_000
_CHUNK_BYTES = 1 << 20
_DEEPEST = 100
_TOKEN = re.compile(rb'["{}\[\]]')
_STRING_END = re.compile(rb'["\\]')
_LIST_BEGINS = re.compile(rb"\s*:\s*\[")
_ENTRIES_DEPTH = 3
"""Depth inside the list of entries: the file, `log`, `entries`."""


def iter_entries(stream: BinaryIO) -> Iterator[dict[str, Any]]:
    """Every entry in order; InputError if the file is not a HAR, is cut off, or has an entry that is too
    large. Entries that were complete before that have been returned.
    """
    scanner = _Scanner(stream)
    for count, raw in enumerate(scanner.iter_objects()):
        if count >= MOST_ENTRIES:
            raise InputError(f"it has more than {MOST_ENTRIES:,} entries. Split it into parts.")
        if raw.count(b",") + raw.count(b"{") + raw.count(b"[") > MOST_VALUES:
            raise InputError(f"entry {count + 1} has too many values for one request.")
        try:
            entry = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise InputError(f"entry {count + 1} is not valid JSON: {error}.") from error
        yield entry


class _Scanner:
    """Finds the objects in `log.entries`. Keeps only the entry that is being read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._data = bytearray()
        self._at = 0

    def iter_objects(self) -> Iterator[bytes]:
        depth, begin, in_entries, in_log, has_entries = 0, -1, False, False, False
        while (mark := self._next(_TOKEN, begin)) is not None:
            if mark == b'"':
                text = self._string(begin)
                in_log = in_log or (depth == 1 and text == b"log")
                if depth == 2 and in_log and not has_entries and text == b"entries" and self._opens_list():
                    depth, in_entries, has_entries = depth + 1, True, True
            elif mark in b"{[":
                depth += 1
                if depth > _DEEPEST:
                    raise InputError("it is nested too deeply for a HAR file.")
                if in_entries and depth == _ENTRIES_DEPTH + 1:
                    begin = self._at - 1
            else:
                depth -= 1
                if in_entries and depth == _ENTRIES_DEPTH and begin >= 0:
                    yield bytes(self._data[begin : self._at])
                    self._forget()
                    begin = -1
                elif in_entries and depth < _ENTRIES_DEPTH:
                    in_entries = False
            if begin < 0:
                self._forget()
        if not has_entries:
            raise InputError("it is not a HAR file: it has no list `log.entries`.")
        if depth:
            raise InputError("it is cut off: the list of entries does not end.")

    def _next(self, pattern: re.Pattern[bytes], begin: int) -> bytes | None:
        """The next token; the position is after it. None at the end of the file."""
        while (match := pattern.search(self._data, self._at)) is None:
            self._at = len(self._data)
            if not self._fill(begin):
                return None
        self._at = match.end()
        return match[0]

    def _string(self, begin: int) -> bytes:
        """The rest of a string whose quote was read, up to a kilobyte; the position is after it."""
        start = bytearray()
        while True:
            before = self._at
            mark = self._next(_STRING_END, begin)
            if mark is None:
                raise InputError("it is cut off inside a string.")
            if len(start) < 1024:
                start += self._data[before : self._at - 1][:1024]
            if mark == b'"':
                return bytes(start)
            if self._at >= len(self._data):  # the escaped character is in the next chunk
                self._fill(begin)
            self._at += 1

    def _opens_list(self) -> bool:
        while len(self._data) - self._at < 64 and self._fill(-1):
            pass
        match = _LIST_BEGINS.match(self._data, self._at)
        if match:
            self._at = match.end()
        return match is not None

    def _fill(self, begin: int) -> bool:
        """Read one more chunk; False at the end of the file."""
        if len(self._data) - max(begin, 0) > LONGEST_ENTRY:
            raise InputError(f"an entry or a string in it is larger than {LONGEST_ENTRY >> 20} MB.")
        chunk = self._stream.read(_CHUNK_BYTES)
        self._data += chunk
        return bool(chunk)

    def _forget(self) -> None:
        """Drop what was read; not inside an entry."""
        if self._at > _CHUNK_BYTES or self._at == len(self._data):
            del self._data[: self._at]
            self._at = 0
