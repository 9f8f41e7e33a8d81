"""The register: what people decided, kept in the depot beside the packages, so that an empty machine gets it
back too.

One OCFL object a year, `info:webdepot/register/YEAR`, so that its inventory stays small:

    tables/NAME.jsonl.gz               every row of a table, as it is now (older states are older versions of the object)
    events/FIRST-LAST.jsonl.gz         events by their number, each written once
    webdepot.toml                      the configuration

Tables are taken from the database as it is, so a room that adds one need not think of the register. Left out
are those that packages and tombstones give back themselves, and sessions. Whatever is called a password,
secret or token stays empty: places hold no secrets.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, MetaData, String, Table, insert, select
from sqlalchemy.exc import IntegrityError

from webdepot.depot import ocfl, rows
from webdepot.depot.inventory import Inventory
from webdepot.depot.ocfl import Source
from webdepot.depot.package import OWN_OBJECTS
from webdepot.ports import ObjectStore

CONFIG = "webdepot.toml"
OLDEST_YEAR = 2020
_NOT_TAKEN = frozenset(
    (
        *("alembic_version", "sessions", "events"),
        *(
            "harvests",
            "containers",
            "packages",
            "copies",
            "copy_tallies",
            "depot_growth",
            "tombstones",
            "conversions",
        ),
        *("findings", "judgements", "identifications", "surveys", "format_counts"),
        *("partner_runs", "partner_records", "catalogue_sets", "catalogue_words"),
    )
)
_SECRET = re.compile(r"password|secret|token|api_?key")
_BATCH = 500


def id_of(year: int) -> str:
    return f"{OWN_OBJECTS}register/{year}"


def write(
    store: ObjectStore, connection: Connection, *, config: str, user: str, created: datetime
) -> Inventory | None:
    """Put the present state into the register; the object as it is then, or None when nothing had changed."""
    before = ocfl.find_inventory(store, id_of(created.year))
    with tempfile.TemporaryDirectory(prefix="webdepot-register-") as folder:
        files: dict[str, Source] = {CONFIG: _without_secrets(config).encode()}
        files |= {f"tables/{path.name}": path for path in _write_tables(Path(folder), connection)}
        events = _write_events(Path(folder), connection, after=_last_event(store, created.year))
        files |= {f"events/{path.name}": path for path in events}
        after = ocfl.put_version(
            store, id_of(created.year), files, message="Register", user=user, created=created
        )
    return None if before is not None and before.head == after.head else after


def find(store: ObjectStore, year: int) -> Inventory | None:
    """The newest register, of this year or an earlier one."""
    return next((found for found in _years(store, year)), None)


def read_config(store: ObjectStore, inventory: Inventory) -> str:
    with store.open(ocfl.content_key(inventory, CONFIG)) as stream:
        return stream.read().decode(errors="replace")


def restore_tables(store: ObjectStore, inventory: Inventory, connection: Connection) -> int:
    """Put back the rows that are not there and that can stand (what they refer to is there); how many.

    Called twice by a rebuild, before and after the packages: some rows stand only beside a harvest.
    """
    tables = _tables(connection)
    return sum(
        _put_back(connection, table, _rows(store, inventory, f"tables/{table.name}.jsonl.gz"))
        for table in tables
        if f"tables/{table.name}.jsonl.gz" in inventory.files()
    )


def iter_events(store: ObjectStore, year: int) -> Iterator[Mapping[str, Any]]:
    """All registered events in their order, as rows of the table."""
    for inventory in reversed(list(_years(store, year))):
        for path in sorted(inventory.files()):
            if path.startswith("events/"):
                yield from _rows(store, inventory, path)


def _years(store: ObjectStore, year: int) -> Iterator[Inventory]:
    for each in range(year, OLDEST_YEAR - 1, -1):
        found = ocfl.find_inventory(store, id_of(each))
        if found is not None:
            yield found


def _tables(connection: Connection) -> list[Table]:
    """The tables to be kept, parents before children, as the database itself knows them."""
    known = MetaData()
    known.reflect(connection)
    return [table for table in known.sorted_tables if table.name not in _NOT_TAKEN]


def _write_tables(folder: Path, connection: Connection) -> Iterator[Path]:
    for table in _tables(connection):
        path = folder / f"{table.name}.jsonl.gz"
        chosen = select(table).order_by(*table.primary_key.columns)
        found = connection.execute(chosen.execution_options(yield_per=_BATCH)).mappings()
        if rows.write_rows(
            path,
            ({name: "" if _SECRET.search(name) else value for name, value in row.items()} for row in found),
        ):
            yield path


def _write_events(folder: Path, connection: Connection, *, after: int) -> list[Path]:
    known = MetaData()
    table = Table("events", known, autoload_with=connection)
    chosen = select(table).where(table.c.id > after).order_by(table.c.id)
    path = folder / "events.jsonl.gz"
    last = first = 0

    def noted() -> Iterator[Mapping[str, object]]:
        nonlocal first, last
        for row in connection.execute(chosen.execution_options(yield_per=_BATCH)).mappings():
            first, last = first or row["id"], row["id"]
            yield dict(row)

    if not rows.write_rows(path, noted()):
        return []
    return [path.rename(folder / f"{first:012d}-{last:012d}.jsonl.gz")]


def _last_event(store: ObjectStore, year: int) -> int:
    """The number of the last event that a register has."""
    for inventory in _years(store, year):
        files = [path for path in inventory.files() if path.startswith("events/")]
        if files:
            return int(max(files).removesuffix(".jsonl.gz").rpartition("-")[2])
    return 0


def _rows(store: ObjectStore, inventory: Inventory, path: str) -> Iterator[dict[str, Any]]:
    with store.open(ocfl.content_key(inventory, path)) as stream:
        yield from rows.read_rows(stream, where=f"{inventory.id} {path}")


def _put_back(connection: Connection, table: Table, found: Iterator[dict[str, Any]]) -> int:
    put = 0
    for row in found:
        values = {name: value for name, value in row.items() if name in table.c}
        for (
            column
        ) in table.c:  # a column that the register does not know yet, of a later version of the program
            if (
                column.name not in values
                and not column.nullable
                and column.default is None
                and isinstance(column.type, String)
            ):
                values[column.name] = ""
        try:
            with connection.begin_nested():
                connection.execute(insert(table).values(**values))
            put += 1
        except IntegrityError:  # it is there already, or what it refers to is not
            continue
    return put


def _without_secrets(config: str) -> str:
    return "".join(
        line
        for line in config.splitlines(keepends=True)
        if not _SECRET.search(line.partition("=")[0].lower())
    )
