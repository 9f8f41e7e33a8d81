"""Move an archive to another configuration: from the files of one machine to engines of a cluster, or back.

The home stays, with its keys, profiles and working folders. What moves is what the configuration names:

1. Refuse if a harvest or a job runs, or if another process uses the archive.
2. Depot: copy each object to the new main place, then read every byte there.
3. Database: hold the lock of the old one, so that nothing can change; copy what came into the depot
   meanwhile; copy all tables in one transaction, and compare them row by row.
4. Capture index: copy it container by container, and compare.
5. Write the new configuration. Only now is the archive at the new place; the old one is kept.
6. Text index: if it is another engine, build what is missing.

Each step can be killed and repeated. Nothing of the old archive is removed; `webdepot.db` is renamed, so that
nobody writes to it by mistake.
"""

import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from webdepot import durable
from webdepot.archive import DATABASE_NAME, Archive
from webdepot.config import config as configuration
from webdepot.config.config import FILE_NAME
from webdepot.config.settings import Config
from webdepot.engine import job_queue
from webdepot.engine.job_queue import JobState
from webdepot.errors import Conflict, InputError
from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.model import HarvestState
from webdepot.provenance import Event, append, difference
from webdepot.services.cluster import capture_copy, depot_copy, machines, table_copy
from webdepot.services.cluster.capture_copy import CapturesDigest
from webdepot.services.cluster.table_copy import TableDigest
from webdepot.services.depot import storage_places
from webdepot.services.harvest import harvests
from webdepot.services.index import indexer
from webdepot.services.progress import Watch, unwatched

BEFORE = "webdepot-before-move.toml"
"""The configuration before the last move; give it to move back."""
_JOURNAL = "moving.toml"
"""A copy of the new configuration, while a move is under way."""
_MOVED = ".moved"
_LARGEST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """What was moved and compared; None or empty where it stayed in its place."""

    settings: Mapping[str, tuple[object, object]]
    """Every setting that changes: before and after."""
    tables: Mapping[str, TableDigest]
    objects: int | None
    captures: CapturesDigest | None
    words_indexed: int
    failed: Mapping[str, str]
    """Containers whose words could not be indexed."""


def move(
    home: Path, file: Path, *, agent: str = "", replace: bool = False, watch: Watch = unwatched
) -> MoveReport:
    """Move an archive to the configuration in this file. Conflict if it is in use, or if something else is at
    the new place and `replace` is not given.
    """
    text, new = _read(home, file)
    with Archive.open(home, agent=agent) as source:
        settings = _changes(source.config, new)
        if not settings:
            _finish(home)
            raise Conflict(
                f"The archive at {home} already has the settings of {file}. There is nothing to move."
            )
        _refuse_if_used(source)
        # What a move to the same place left before it was killed is ours.
        journal = home / _JOURNAL
        replace = replace or (journal.exists() and journal.read_text(encoding="utf-8") == text)
        durable.write_whole(journal, text.encode(), mode=0o600)
        with Archive(new, clock=source.clock, agent=agent) as target, storage_places.locked(source):
            report = _Move(source, target, replace=replace, watch=watch).run(settings)
            _switch(home, text)
    _finish(home)
    with Archive.open(home, agent=agent) as moved:
        indexed = indexer.update(moved, watch=watch)
    return MoveReport(
        settings=settings,
        tables=report.tables,
        objects=report.objects,
        captures=report.captures.digest if report.captures else None,
        words_indexed=indexed.pages,
        failed=indexed.failed,
    )


@dataclass(slots=True)
class _Moved:
    tables: Mapping[str, TableDigest]
    objects: int | None = None
    captures: capture_copy.CapturesCopy | None = None


class _Move:
    """The steps between two open archives."""

    def __init__(self, source: Archive, target: Archive, *, replace: bool, watch: Watch) -> None:
        self._source, self._target = source, target
        self._replace, self._watch = replace, watch

    def run(self, settings: Mapping[str, tuple[object, object]]) -> _Moved:
        moved = _Moved(tables={})
        moves_depot = self._source.depot_address != self._target.depot_address
        moves_tables = self._source.database.url != self._target.database.url
        if self._source.config.index.engine != self._target.config.index.engine:
            self._target.texts.total()  # RemoteError now if its server does not answer
        if moves_depot:
            self._copy_depot()
            depot_copy.check(self._target.store, watch=self._watch)
        if moves_tables:
            self._require_room()
        with self._source.database.transaction() as before:
            if moves_depot:
                moved.objects = self._copy_depot()  # what was deposited meanwhile
            if moves_tables:
                moved.tables = self._copy_tables(before)
            if _captures_of(self._source.config) != _captures_of(self._target.config):
                moved.captures = self._copy_captures()
            if not moves_tables:
                append(before, self._event(settings))
        if moves_tables:
            with self._target.database.transaction() as after:
                append(after, self._event(settings))
        return moved

    def _copy_depot(self) -> int:
        copied = depot_copy.copy(
            self._source.store, self._target.store, replace=self._replace, watch=self._watch
        )
        return copied.objects

    def _require_room(self) -> None:
        target = self._target.database
        with target.reading() as connection:
            is_blank = table_copy.is_blank(connection)
        if not is_blank and not self._replace:
            raise Conflict(
                f"The database {target.engine.url.render_as_string()} is not empty. Give an empty one, or "
                "--replace to delete what is in it."
            )
        target.upgrade()
        table_copy.check_schemas(self._source.database, target)

    def _copy_tables(self, before: Connection) -> Mapping[str, TableDigest]:
        target = self._target.database
        with target.transaction() as after:
            table_copy.clear(after)
            tables = table_copy.copy(before, after)
            target.restart_ids(after)
        return tables

    def _copy_captures(self) -> capture_copy.CapturesCopy:
        known = [name for name, _ in self._source.captures.containers()]
        there = [name for name, _ in self._target.captures.containers()]
        if there != known[: len(there)]:
            self._target.discard_captures()  # something else; the order of containers matters
        copied = capture_copy.copy(self._source.captures, self._target.captures, watch=self._watch)
        for name in copied.again:
            self._target.captures.remove(name)  # `indexer.update` reads it again
        return copied

    def _event(self, settings: Mapping[str, tuple[object, object]]) -> Event:
        before = {name: value[0] for name, value in settings.items()}
        after = {name: value[1] for name, value in settings.items()}
        detail = difference(before, after)
        return self._source.event("moved", "archive", self._source.home.name, detail=detail)


def _read(home: Path, file: Path) -> tuple[str, Config]:
    try:
        with file.expanduser().open("rb") as stream:
            raw = stream.read(_LARGEST_BYTES + 1)
        text = raw.decode()
        tree = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not a configuration file (TOML): {error}.") from error
    return text, configuration.from_tree(home, tree, environment=os.environ, origin=str(file))


def _changes(old: Config, new: Config) -> dict[str, tuple[object, object]]:
    before = {setting.name: setting.value for setting in configuration.iter_settings(old)}
    after = {setting.name: setting.value for setting in configuration.iter_settings(new)}
    changed = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    if old.profiles != new.profiles:
        changed["profiles"] = (sorted(old.profiles), sorted(new.profiles))
    return changed


def _captures_of(config: Config) -> tuple[str, str]:
    kind = config.index.captures
    return kind, config.database.url if kind == "postgresql" else ""


def _refuse_if_used(archive: Archive) -> None:
    running = harvests.list_page(archive, HarvestFilter(state=HarvestState.RUNNING)).rows
    if busy := [harvest.id for harvest in running if harvests.is_locked(archive, harvest)]:
        raise Conflict(
            f"The harvest {busy[0]} is running. Wait for it, or stop it: webdepot harvest stop {busy[0]}"
        )
    with archive.database.reading() as connection:
        working = [job for job in job_queue.open_jobs(connection) if job.state is JobState.RUNNING]
    if working:
        raise Conflict(
            f"Job {working[0].id} ({working[0].kind}) is running. Wait until it has ended: webdepot job list"
        )
    with archive.database.reading() as connection:
        seen = machines.alive(connection, archive.clock())
    if seen:
        raise Conflict(
            f"The {seen[0].role} on {seen[0].machine} is using the archive. Stop it and all others."
        )
    if users := _users(archive.home):
        pid, command = users[0]
        raise Conflict(f"The process {pid} ({command}) is using the archive. Stop it and all others.")


def _users(home: Path) -> list[tuple[int, str]]:
    """Other processes of this machine that have files of a home open."""
    users = []
    inside = f"{home.resolve()}/"
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) == os.getpid():
            continue
        with suppress(OSError):
            links = [os.readlink(link) for link in (folder / "fd").iterdir()]  # noqa: PTH115 - may be no path
            if any(link.startswith(inside) and not link.startswith(f"{inside}cluster/") for link in links):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                users.append((int(folder.name), command.strip()[:100]))
    return users


def _switch(home: Path, text: str) -> None:
    """Write the new configuration: from here on, the archive is at its new place."""
    current = home / FILE_NAME
    durable.write_whole(home / BEFORE, current.read_bytes() if current.exists() else b"", mode=0o600)
    durable.write_whole(current, text.encode(), mode=0o600)


def _finish(home: Path) -> None:
    """Rename the old database file, which nobody has open; a move that was killed may not have done so."""
    if not (home / _JOURNAL).exists():
        return
    if configuration.read(home).database.url:
        for path in home.glob(f"{DATABASE_NAME}*"):
            if not path.name.endswith(_MOVED):
                path.replace(path.with_name(path.name + _MOVED))
    (home / _JOURNAL).unlink()
    durable.sync_folder(home)
