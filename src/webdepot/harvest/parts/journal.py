"""The journal of a frontier: every change of its LMDB databases between two commits, so that the frontier can
be built again on another machine.

A journal is a sequence of entries, compressed as a whole (zlib). All numbers are big-endian:

    kind (1: 0 put, 1 delete) | database (1) | length of key (2) | length of value (4) | key | value

Entries describe bytes and not what they mean. Replaying all journals of a harvest in their order gives the
same databases, and replaying one twice changes nothing.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import Any

from webdepot.errors import CorruptData

_HEAD = struct.Struct(">BBHI")
_PUT, _DELETE = 0, 1


class Journal:
    """Collects changes. `take` returns them and begins the next journal."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []

    def note_put(self, database: int, key: bytes, value: bytes) -> None:
        self._entries.append(_HEAD.pack(_PUT, database, len(key), len(value)) + key + value)

    def note_delete(self, database: int, key: bytes) -> None:
        self._entries.append(_HEAD.pack(_DELETE, database, len(key), 0) + key)

    def take(self) -> bytes:
        entries, self._entries = self._entries, []
        return zlib.compress(b"".join(entries), 1)


class JournaledTransaction:
    """A write transaction of LMDB whose changes are noted."""

    def __init__(self, transaction: Any, journal: Journal, databases: Sequence[Any]) -> None:
        self._transaction = transaction
        self._journal = journal
        self._numbers = {id(database): number for number, database in enumerate(databases)}
        self.get = transaction.get
        self.cursor = transaction.cursor
        self.stat = transaction.stat
        self.commit = transaction.commit
        self.abort = transaction.abort

    def put(self, key: bytes, value: bytes, *, overwrite: bool = True, db: Any) -> bool:
        is_put: bool = self._transaction.put(key, value, overwrite=overwrite, db=db)
        if is_put:
            self._journal.note_put(self._numbers[id(db)], key, value)
        return is_put

    def delete(self, key: bytes, *, db: Any) -> bool:
        is_deleted: bool = self._transaction.delete(key, db=db)
        if is_deleted:
            self._journal.note_delete(self._numbers[id(db)], key)
        return is_deleted


def replay(journal: bytes, transaction: Any, databases: Sequence[Any]) -> None:
    """Make the changes of a journal; CorruptData if it is damaged."""
    try:
        entries, at = zlib.decompress(journal), 0
        while at < len(entries):
            kind, number, key_bytes, value_bytes = _HEAD.unpack_from(entries, at)
            key_at = at + _HEAD.size
            at = key_at + key_bytes + value_bytes
            if at > len(entries):
                raise ValueError("it ends within an entry")
            key = entries[key_at : key_at + key_bytes]
            if kind == _PUT:
                transaction.put(key, entries[key_at + key_bytes : at], db=databases[number])
            else:
                transaction.delete(key, db=databases[number])
    except (ValueError, IndexError, zlib.error, struct.error) as error:
        raise CorruptData(f"The journal of a harvest is damaged: {error}.", where="journal") from error
