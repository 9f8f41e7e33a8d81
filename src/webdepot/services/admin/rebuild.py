"""Rebuild an archive from its depot alone: configuration, database, catalogue, indexes.

1. Create an archive in an empty home, with the configuration from the register and the given depot as its
   main place. Settings in an existing configuration file take precedence. A home where nothing has happened
   since `init` counts as empty. The address of a database server is taken only from that file.
2. Restore people's decisions from the register, with their original ids.
3. Restore target, harvest, containers, findings, formats and events from each package, and withdrawals from
   each tombstone.
4. Restore rows that depend on a harvest, and the events that are in no package.
5. Build the indexes from the containers.

Every step can be repeated. A damaged package is reported and does not stop the others.
"""

import json
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, MetaData, select

from webdepot.archive import DATABASE_NAME, Archive, is_founded, open_database
from webdepot.config import config
from webdepot.config.config import FILE_NAME
from webdepot.depot import copies, places, register, tombstone
from webdepot.depot.ocfl import layout
from webdepot.depot.places import MAIN
from webdepot.errors import Conflict, InputError
from webdepot.exchange import catalogue
from webdepot.model import PackageId
from webdepot.ports.object_store import ObjectStore
from webdepot.provenance import Event, Outcome, append
from webdepot.provenance import iter_all as iter_events
from webdepot.reasons import from_kept
from webdepot.selection import target_words
from webdepot.services.admin import setup
from webdepot.services.depot import deposit, deposit_records
from webdepot.services.index import indexer
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.times import Clock, from_iso, utc_now

BATCH = 500
"""Rows of one transaction: other processes write between two."""
_INITIAL = {FILE_NAME, "harvests", "index"}
"""What `init` leaves in a home, besides the file of the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    packages: int
    tombstones: int
    rows: int
    """People's decisions and other rows from the register."""
    captures: int
    pages: int
    failed: tuple[str, ...]
    """What could not be restored, with the reason."""


def rebuild(
    home: Path, source: str = "", *, clock: Clock = utc_now, agent: str = "", watch: Watch = unwatched
) -> Rebuilt:
    """Rebuild an archive from a depot; `source` is its folder or address, by default the one in the home's
    configuration.
    """
    if source and _is_blank(home):
        _require_depot(places.open_store(MAIN, places.normal_address(source)), source)
        _clear(home)
    if not setup.is_complete(home):
        _found(home, source, clock=clock, agent=agent)
    with Archive.open(home, clock=clock, agent=agent) as archive:
        if source and places.normal_address(source) != archive.depot_address:
            raise Conflict(
                f"The archive at {home} has its depot at {archive.depot_address}. "
                "Give an empty home to rebuild from another depot."
            )
        return _rebuild(archive, watch)


def _is_blank(home: Path) -> bool:
    """Whether a home is as `init` leaves it: without rows, harvests, a depot or other files."""
    if not home.exists() or {path.name for path in home.iterdir()} - {DATABASE_NAME} != _INITIAL:
        return False
    if not is_founded(config.read(home)):
        return False
    with Archive.open(home) as archive:
        if "depot.place" in archive.config.sources or any(archive.harvests_folder.iterdir()):
            return False
        with archive.database.reading() as connection:
            happened = [event for event in iter_events(connection) if event.action != "founded"]
            return not happened and not any(_has_rows(connection))


def _has_rows(connection: Connection) -> Iterator[bool]:
    """For each table that `init` leaves empty: whether it has rows."""
    known = MetaData()
    known.reflect(connection)
    for table in known.sorted_tables:
        if table.name not in ("alembic_version", "events"):
            yield connection.execute(select(table).limit(1)).first() is not None


def _clear(home: Path) -> None:
    """Remove what `init` created, except the configuration: an empty database and empty folders."""
    settings = config.read(home)
    if settings.database.url:
        with closing(open_database(settings)) as database, database.transaction() as connection:
            known = MetaData()
            known.reflect(connection)
            known.drop_all(connection)
    for path in home.glob(f"{DATABASE_NAME}*"):
        path.unlink()
    (home / "harvests").rmdir()
    shutil.rmtree(home / "index")


def _found(home: Path, source: str, *, clock: Clock, agent: str) -> None:
    """Create the archive to restore into. Settings in an existing configuration file are kept; the others
    come from the register, with the new depot place.
    """
    file = home / FILE_NAME
    config.read(home)  # raises ConfigError with an explanation if the file is wrong
    given = file.read_text(encoding="utf-8") if file.exists() else ""
    own = tomllib.loads(given)
    if file.exists() and (not source or own.get("depot", {}).get("place")):
        setup.create(home, clock=clock, agent=agent)
        return
    if not source:
        raise InputError(
            f"There is no archive at {home}. "
            "Give the depot to rebuild from: webdepot depot rebuild --from PLACE"
        )
    address = places.normal_address(source)
    store = places.open_store(MAIN, address)
    _require_depot(store, address)
    known = register.find(store, clock().year)
    tree = tomllib.loads(register.read_config(store, known)) if known is not None else {}
    tree.pop("database", None)  # that of the archive that was lost, or still lives
    tree.setdefault("depot", {})["place"] = address
    for section, keys in own.items():
        tree[section] = tree.get(section, {}) | keys
    setup.create(home, clock=clock, agent=agent, settings=setup.toml_text(tree))
    if any(own.values()):
        file.with_name(f"{FILE_NAME}.before").write_text(given, encoding="utf-8")  # for its comments


def _rebuild(archive: Archive, watch: Watch) -> Rebuilt:
    store = archive.store
    _require_depot(store, archive.depot_address)
    known = register.find(store, archive.clock().year)
    count = 0
    if known is not None:
        with archive.database.transaction() as connection:
            count += register.restore_tables(store, known, connection)
            archive.database.restart_ids(connection)
    failed: list[str] = []
    adopted = 0
    received = {
        str(row["subject"])
        for row in (register.iter_events(store, archive.clock().year) if known is not None else ())
        if row["action"] == deposit.RECEIVING
    }
    for each in deposit.iter_adopted(archive, on_failure=failed.append, received=received):
        adopted += 1
        watch(Progress(phase=Phase.KEEP, done=adopted, errors=len(failed), note=each.title))
    withdrawn = _restore_tombstones(archive)
    if known is not None:
        with archive.database.transaction() as connection:
            count += register.restore_tables(store, known, connection)
            archive.database.restart_ids(connection)
            target_words.restore_words(connection)
            copies.expect(
                connection, PackageId(known.id), version=known.head, size_bytes=0, now=archive.clock()
            )
        count += _restore_events(archive)
        _restore_derived(archive)
    with archive.database.transaction() as connection:
        event = archive.event(
            "rebuilt",
            "archive",
            archive.home.name,
            outcome=Outcome.WARNING if failed else Outcome.SUCCESS,
            message=f"{adopted} packages from {archive.depot_address}",
        )
        append(connection, event)
    indexed = indexer.rebuild(archive, watch=watch)
    failed += [f"{name}: {reason}" for name, reason in indexed.failed.items()]
    return Rebuilt(
        packages=adopted,
        tombstones=withdrawn,
        rows=count,
        captures=indexed.captures,
        pages=indexed.pages,
        failed=tuple(failed),
    )


def _restore_tombstones(archive: Archive) -> int:
    count = 0
    for stone in tombstone.iter_all(archive.store):
        records = tombstone.read_catalogued(archive.store, stone.package)
        with archive.database.transaction() as connection:
            if records:
                deposit_records.restore_withdrawn(
                    connection, catalogue.from_document(records, where=stone.package)[0]
                )
            count += tombstone.record(connection, stone)
            copies.expect(
                connection,
                PackageId(tombstone.id_of(stone.package)),
                version=1,
                size_bytes=0,
                now=archive.clock(),
            )
    return count


def _restore_events(archive: Archive) -> int:
    """Restore the events that are in no package; return how many. Events restored with packages are not
    repeated.
    """
    with archive.database.reading() as connection:
        seen = {_facts(event) for event in iter_events(connection)}
    count = 0
    rows = iter(register.iter_events(archive.store, archive.clock().year))
    while batch := list(islice(rows, BATCH)):
        with archive.database.transaction() as connection:
            for event in map(_event, batch):
                if _facts(event) not in seen:
                    seen.add(_facts(event))
                    append(connection, event)
                    count += 1
    return count


def _restore_derived(archive: Archive) -> None:
    """Rebuild the sets and words of all records of the catalogue."""
    last: str | None = ""
    while last is not None:
        with archive.database.transaction() as connection:
            last = catalogue.restore_derived(connection, after=last, limit=BATCH)


def _event(row: Mapping[str, Any]) -> Event:  # a past event, so not `archive.event`, which says "now"
    detail = row["detail"] if isinstance(row["detail"], dict) else json.loads(row["detail"])
    return Event(
        at=from_iso(row["at"]),
        agent=row["agent"],
        action=row["action"],
        subject_kind=row["subject_kind"],
        subject=row["subject"],
        outcome=Outcome(row["outcome"]),
        message=from_kept(row["message"]),
        detail=detail,
    )


def _facts(event: Event) -> int:
    return hash((event.at, event.agent, event.action, event.subject_kind, event.subject, event.message))


def _require_depot(store: ObjectStore, address: str) -> None:
    if store.size(layout.ROOT_DECLARATION) is None:
        raise InputError(f"There is no depot at {address}: the file {layout.ROOT_DECLARATION} is missing.")
