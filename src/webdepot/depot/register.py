"""The register: people's decisions, kept in the depot together with the packages, so that a rebuild on an
empty machine restores them too.

One OCFL object for each year, `info:webdepot/register/YEAR`, so that its inventory stays small:

    tables/NAME.jsonl.gz               every row of a table in its current state (earlier states are in
                                       earlier versions of the object)
    events/FIRST-LAST.jsonl.gz         events by their number, each written once
    webdepot.toml                      the configuration

The tables are read from the database, so a component that adds one need not change the register. Sessions are
left out, and tables that are restored from packages and tombstones. Columns and settings whose name contains
password, secret, token or API key are left empty: places contain no secrets.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, MetaData, String, Table, insert, select
from sqlalchemy.exc import IntegrityError

from webdepot import durable
from webdepot.depot import rows
from webdepot.depot.ocfl import objects
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.ocfl.objects import Source
from webdepot.depot.package import OWN_OBJECTS
from webdepot.ports.object_store import ObjectStore

CONFIG = "webdepot.toml"
OLDEST_YEAR = 2020
_LEFT_OUT = frozenset(
    (
        *("alembic_version", "sessions", "events", "workers", "takeovers"),
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
_WORD = re.compile(r"[A-Za-z0-9_-]{16,}")
_REMOVED = "[removed]"
_BATCH = 500


def id_of(year: int) -> str:
    return f"{OWN_OBJECTS}register/{year}"


def write(
    store: ObjectStore, connection: Connection, *, config: str, user: str, created: datetime
) -> Inventory | None:
    """Write the current state to the register; its new inventory, or None if nothing had changed."""
    before = objects.find_inventory(store, id_of(created.year))
    with durable.scratch_folder("webdepot-register-") as folder:
        files: dict[str, Source] = {CONFIG: _without_secrets(config).encode()}
        files |= {f"tables/{path.name}": path for path in _write_tables(folder, connection)}
        events = _write_events(folder, connection, after=_last_event(store, created.year))
        files |= {f"events/{path.name}": path for path in events}
        after = objects.put_version(
            store, id_of(created.year), files, message="Register", user=user, created=created
        )
    return None if before is not None and before.head == after.head else after


def find(store: ObjectStore, year: int) -> Inventory | None:
    """The newest register, of this year or an earlier one."""
    return next(_years(store, year), None)


def read_config(store: ObjectStore, inventory: Inventory) -> str:
    with store.open(objects.content_key(inventory, CONFIG)) as stream:
        return stream.read().decode(errors="replace")


def restore_tables(store: ObjectStore, inventory: Inventory, connection: Connection) -> int:
    """Insert the rows that are missing and whose references exist; return their number.

    A rebuild calls it twice, before and after the packages, because some rows refer to a harvest.
    """
    tables = _tables(connection)
    return sum(
        _insert_missing(connection, table, _rows(store, inventory, f"tables/{table.name}.jsonl.gz"))
        for table in tables
        if f"tables/{table.name}.jsonl.gz" in inventory.files()
    )


def iter_events(store: ObjectStore, year: int) -> Iterator[Mapping[str, Any]]:
    """All events of the register in their order, as rows of the table."""
    for inventory in reversed(list(_years(store, year))):
        for path in sorted(inventory.files()):
            if path.startswith("events/"):
                yield from _rows(store, inventory, path)


def _years(store: ObjectStore, year: int) -> Iterator[Inventory]:
    for each in range(year, OLDEST_YEAR - 1, -1):
        inventory = objects.find_inventory(store, id_of(each))
        if inventory is not None:
            yield inventory


def _tables(connection: Connection) -> list[Table]:
    """The tables to be kept, parents before children, reflected from the database."""
    known = MetaData()
    known.reflect(connection)
    return [table for table in known.sorted_tables if table.name not in _LEFT_OUT]


def _write_tables(folder: Path, connection: Connection) -> Iterator[Path]:
    for table in _tables(connection):
        path = folder / f"{table.name}.jsonl.gz"
        chosen = select(table).order_by(*table.primary_key.columns)
        values = connection.execute(chosen.execution_options(yield_per=_BATCH)).mappings()
        if rows.write_rows(
            path,
            (_without_tokens(dict(row)) for row in values),
        ):
            yield path


def _write_events(folder: Path, connection: Connection, *, after: int) -> list[Path]:
    known = MetaData()
    table = Table("events", known, autoload_with=connection)
    chosen = select(table).where(table.c.id > after).order_by(table.c.id)
    path = folder / "events.jsonl.gz"
    last = first = 0

    def iter_numbered() -> Iterator[Mapping[str, object]]:
        nonlocal first, last
        for row in connection.execute(chosen.execution_options(yield_per=_BATCH)).mappings():
            first, last = first or row["id"], row["id"]
            yield dict(row)

    if not rows.write_rows(path, iter_numbered()):
        return []
    return [path.rename(folder / f"{first:012d}-{last:012d}.jsonl.gz")]


def _last_event(store: ObjectStore, year: int) -> int:
    """The number of the last event in the register."""
    for inventory in _years(store, year):
        files = [path for path in inventory.files() if path.startswith("events/")]
        if files:
            return int(max(files).removesuffix(".jsonl.gz").rpartition("-")[2])
    return 0


def _rows(store: ObjectStore, inventory: Inventory, path: str) -> Iterator[dict[str, Any]]:
    with store.open(objects.content_key(inventory, path)) as stream:
        yield from rows.read_rows(stream, where=f"{inventory.id} {path}")


def _insert_missing(connection: Connection, table: Table, registered: Iterator[dict[str, Any]]) -> int:
    inserted = 0
    for row in registered:
        values = {name: value for name, value in row.items() if name in table.c}
        for column in table.c:  # columns that a later version of the program added are empty
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
            inserted += 1
        except IntegrityError:  # the row exists, or a row that it refers to does not
            continue
    return inserted


def _without_tokens(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without its secret columns, and without the token itself where a text contains it: the link in a
    letter that waits to be sent.
    """
    hashes = {value for name, value in row.items() if name.endswith("token_hash") and value}

    def shown(name: str, value: Any) -> Any:
        if _SECRET.search(name):
            return ""
        if hashes and isinstance(value, str):
            return _WORD.sub(lambda word: _REMOVED if _hash(word[0]) in hashes else word[0], value)
        return value

    return {name: shown(name, value) for name, value in row.items()}


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _without_secrets(config: str) -> str:
    """The configuration without the lines that contain secrets; nothing of it if a secret would remain in a
    table or in a string of several lines.
    """
    kept = "".join(
        line
        for line in config.splitlines(keepends=True)
        if not _SECRET.search(line.partition("=")[0].lower())
    )
    try:
        is_clean = not any(_iter_secrets(tomllib.loads(kept)))
    except tomllib.TOMLDecodeError:  # a string of several lines was cut
        is_clean = False
    return kept if is_clean else "# Not kept: it has secrets in tables or in strings of several lines.\n"


def _iter_secrets(tree: Mapping[str, Any]) -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _iter_secrets(value)
        elif isinstance(value, str) and _SECRET.search(name.lower()):
            yield value
