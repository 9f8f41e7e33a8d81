"""Copy all tables of one database to another and prove that they are equal, row by row.

Tables are read from the source's schema, parents before children, and written in one transaction: after a
kill the destination is as it was before. Then both are read, and for each table the number of rows and a sum
of the checksums of all rows are compared, which does not depend on the order in which a database returns
rows.

JSON is copied as its text, so that it is the same byte for byte. NUL in a text, which PostgreSQL does not
have, counts as U+FFFD (`dialects.postgresql`).
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    JSON,
    Connection,
    MetaData,
    Table,
    Text,
    bindparam,
    cast,
    delete,
    insert,
    inspect,
    select,
)
from sqlalchemy.exc import DBAPIError

from webdepot.database import Database
from webdepot.errors import Conflict, CorruptData

_NOT_COPIED = "alembic_version"
_BATCH = 500
_MODULUS = 1 << 256


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDigest:
    rows: int
    sha256: str
    """The sum of the checksums of its rows."""


def copy(source: Connection, destination: Connection) -> Mapping[str, TableDigest]:
    """Copy all rows into the empty tables of the destination, which has the same schema; return the digests
    of both.

    CorruptData if a row cannot be written there, or if they differ.
    """
    for table in _tables(source):
        for batch in _batches(source, table):
            try:
                destination.execute(_insertion(destination, table), batch)
            except DBAPIError as error:
                reason = " ".join(str(error.orig).split())
                text = f"A row of the table {table.name} cannot be stored in the other database: {reason}. "
                raise CorruptData(f"{text}Nothing was changed.", where=table.name) from error
    before, after = digests(source), digests(destination)
    wrong = [name for name in before if before[name] != after.get(name)]
    if wrong:
        text = f"These tables differ after copying: {', '.join(wrong)}. Nothing was changed."
        raise CorruptData(text, where=wrong[0])
    return after


def digests(connection: Connection) -> dict[str, TableDigest]:
    """What each table contains."""
    return {table.name: _digest(connection, table) for table in _tables(connection)}


def is_blank(connection: Connection) -> bool:
    """Whether there are no rows."""
    if not inspect(connection).has_table(_NOT_COPIED):
        return True
    return all(connection.execute(select(table).limit(1)).first() is None for table in _tables(connection))


def clear(connection: Connection) -> None:
    """Delete all rows, children before parents."""
    for table in reversed(_tables(connection)):
        connection.execute(delete(table))


def check_schemas(source: Database, destination: Database) -> None:
    """Conflict unless both were brought to the same version."""
    if source.revision() != destination.revision():
        raise Conflict(
            f"The databases have different schemas ({source.revision()}, {destination.revision()})."
        )


def _tables(connection: Connection) -> list[Table]:
    known = MetaData()
    known.reflect(connection)
    return [table for table in known.sorted_tables if table.name != _NOT_COPIED]


def _batches(connection: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    columns = [
        cast(column, Text).label(column.name) if isinstance(column.type, JSON) else column
        for column in table.columns
    ]
    rows = connection.execute(select(*columns).execution_options(yield_per=_BATCH)).mappings()
    for part in rows.partitions(_BATCH):
        yield [dict(row) for row in part]


def _insertion(connection: Connection, table: Table) -> Any:
    values: dict[str, Any]
    if connection.dialect.name == "sqlite":
        # There, JSON is text; a cast would look for numbers.
        values = {column.name: bindparam(column.name, type_=_plain(column.type)) for column in table.columns}
    else:
        values = {
            column.name: cast(bindparam(column.name, type_=Text()), JSON)
            if isinstance(column.type, JSON)
            else bindparam(column.name)
            for column in table.columns
        }
    return insert(table).values(values)


def _plain(kind: Any) -> Any:
    return Text() if isinstance(kind, JSON) else kind


def _digest(connection: Connection, table: Table) -> TableDigest:
    count = total = 0
    for batch in _batches(connection, table):
        count += len(batch)
        for row in batch:
            text = repr([(name, _same(row[name])) for name in sorted(row)])
            total += int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return TableDigest(rows=count, sha256=f"{total % _MODULUS:064x}")


def _same(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
