"""Everything again from the depot alone: configuration, database, catalogue, indexes.

1. An empty home is founded with the configuration out of the register, and the given depot as its main place.
   What a configuration file that is there already says counts more; a home where nothing has happened since
   `init` is as good as an empty one.
2. What people decided comes back out of the register, with the numbers it had.
3. Each package gives back its target, harvest, containers, findings, formats and events; each tombstone what
   was withdrawn.
4. Rows that stand only beside a harvest follow, and the events that no package has.
5. The indexes are made from the containers.

Every step can be repeated. A package that is damaged is told and stops no other.
"""

import json
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, MetaData, select

from webdepot import config as configuration
from webdepot.archive import DATABASE_NAME, Archive
from webdepot.config import FILE_NAME
from webdepot.depot import copies, layout, places, register, tombstone
from webdepot.depot.places import MAIN
from webdepot.errors import Conflict, InputError
from webdepot.exchange import catalogue
from webdepot.model import PackageId
from webdepot.ports import ObjectStore
from webdepot.provenance import Event, Outcome, append
from webdepot.provenance import iter_all as iter_events
from webdepot.reasons import from_kept
from webdepot.selection import targets
from webdepot.services.admin import setup
from webdepot.services.depot import deposit, deposit_records
from webdepot.services.index import indexer
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.times import Clock, from_iso, utc_now


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    packages: int
    tombstones: int
    rows: int
    """Decisions of people and other rows out of the register."""
    captures: int
    pages: int
    failed: tuple[str, ...]
    """What could not be brought back, with the reason."""


def rebuild(
    home: Path, source: str = "", *, clock: Clock = utc_now, agent: str = "", watch: Watch = unwatched
) -> Rebuilt:
    """Make an archive again from a depot; `source` is its folder or address, by default the one that the
    home's configuration names.
    """
    if source and _is_blank(home):
        _require_depot(places.open_store(MAIN, places.normal_address(source)), source)
        _clear(home)
    if not (home / DATABASE_NAME).exists():
        _found(home, source, clock=clock, agent=agent)
    with Archive.open(home, clock=clock, agent=agent) as archive:
        if source and places.normal_address(source) != archive.depot_address:
            raise Conflict(
                f"The archive at {home} has its depot at {archive.depot_address}. Name an empty home to rebuild from another one."
            )
        return _rebuild(archive, watch)


def _is_blank(home: Path) -> bool:
    """Whether a home was founded and nothing came of it: no row, no harvest, no depot of its own, nor
    anything else.
    """
    made = {FILE_NAME, DATABASE_NAME, "harvests", "index"}
    if not (home / DATABASE_NAME).exists() or {path.name for path in home.iterdir()} != made:
        return False
    with Archive.open(home) as archive:
        if "depot.place" in archive.config.sources or any(archive.harvests_folder.iterdir()):
            return False
        with archive.database.reading() as connection:
            happened = [event for event in iter_events(connection) if event.action != "founded"]
            return not happened and not any(_has_rows(connection))


def _has_rows(connection: Connection) -> Iterator[bool]:
    """Of each table that is not filled by founding."""
    known = MetaData()
    known.reflect(connection)
    for table in known.sorted_tables:
        if table.name not in ("alembic_version", "events"):
            yield connection.execute(select(table).limit(1)).first() is not None


def _clear(home: Path) -> None:
    """Away with what `init` made but the configuration: an empty database and empty folders."""
    for path in home.glob(f"{DATABASE_NAME}*"):
        path.unlink()
    (home / "harvests").rmdir()
    shutil.rmtree(home / "index")


def _found(home: Path, source: str, *, clock: Clock, agent: str) -> None:
    """A home for what comes back. What a configuration that is there says counts; the rest is the register's,
    with the new place.
    """
    file = home / FILE_NAME
    configuration.read(home)  # says in words what is wrong with it
    given = file.read_text(encoding="utf-8") if file.exists() else ""
    own = tomllib.loads(given)
    if file.exists() and (not source or own.get("depot", {}).get("place")):
        setup.found(home, clock=clock, agent=agent)
        return
    if not source:
        raise InputError(
            f"There is no archive at {home}. Name the depot to rebuild from: webdepot depot rebuild --from PLACE"
        )
    address = places.normal_address(source)
    store = places.open_store(MAIN, address)
    _require_depot(store, address)
    known = register.find(store, clock().year)
    tree = tomllib.loads(register.read_config(store, known)) if known is not None else {}
    tree.setdefault("depot", {})["place"] = address
    for section, keys in own.items():
        tree[section] = tree.get(section, {}) | keys
    file.unlink(missing_ok=True)
    setup.found(home, clock=clock, agent=agent, settings=_toml(tree))
    if any(own.values()):
        file.with_name(f"{FILE_NAME}.before").write_text(given, encoding="utf-8")  # for the remarks in it


def _rebuild(archive: Archive, watch: Watch) -> Rebuilt:
    store = archive.store
    _require_depot(store, archive.depot_address)
    known = register.find(store, archive.clock().year)
    count = 0
    if known is not None:
        with archive.database.transaction() as connection:
            count += register.restore_tables(store, known, connection)
    failed: list[str] = []
    adopted = 0
    for each in deposit.iter_adopted(archive, on_failure=failed.append):
        adopted += 1
        watch(Progress(phase=Phase.KEEP, done=adopted, errors=len(failed), note=each.title))
    withdrawn = _restore_tombstones(archive)
    with archive.database.transaction() as connection:
        if known is not None:
            count += register.restore_tables(store, known, connection)
            count += _restore_events(store, connection, archive.clock().year)
            catalogue.restore_derived(connection)
            targets.restore_words(connection)
            copies.expect(
                connection, PackageId(known.id), version=known.head, size_bytes=0, now=archive.clock()
            )
        event = Event(
            at=archive.clock(),
            agent=archive.agent,
            action="rebuilt",
            subject_kind="archive",
            subject=archive.home.name,
            outcome=Outcome.WARNING if failed else Outcome.SUCCESS,
            message=f"{adopted} packages from {archive.depot_address}",
        )
        append(connection, event)
    indexed = indexer.rebuild(archive, watch=watch)
    failed += [f"{name}: {words}" for name, words in indexed.failed.items()]
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
        stays = tombstone.read_catalogued(archive.store, stone.package)
        with archive.database.transaction() as connection:
            if stays:
                deposit_records.restore_withdrawn(
                    connection, catalogue.from_document(stays, where=stone.package)[0]
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


def _restore_events(store: ObjectStore, connection: Connection, year: int) -> int:
    """Events that no package had. Those that came back with packages are not told twice."""
    seen = {_facts(event) for event in iter_events(connection)}
    count = 0
    for row in register.iter_events(store, year):
        event = _event(row)
        if _facts(event) not in seen:
            seen.add(_facts(event))
            append(connection, event)
            count += 1
    return count


def _event(row: Mapping[str, Any]) -> Event:
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


def _toml(tree: Mapping[str, Any]) -> str:
    lines = []
    for section, keys in tree.items():
        lines += [f"[{section}]", *(f"{key} = {setup.toml_of(value)}" for key, value in keys.items()), ""]
    return "\n".join(lines)
