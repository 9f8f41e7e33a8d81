"""Composition: `Archive` opens everything named in the configuration once. The only place that picks
implementations.

HOME/
  webdepot.toml            the configuration
  webdepot.db              the database: decisions, states, events
  harvests/ID/             working folder of a harvest: containers, crawl log, frontier; removed once it is kept
  depot/                   long-term keeping (OCFL), its main place; everything else can be rebuilt from it and the database
  cache/containers/        containers fetched from a depot that is not on this machine
  quarantine/              submissions that were refused, as they came
  signatures/              sets of PRONOM signatures that were put in
  index/captures.db        which versions exist
  index/text/              words and time
"""

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

from webdepot import config as configuration
from webdepot.container import shelf
from webdepot.database import Database
from webdepot.depot import places
from webdepot.depot.store import cache
from webdepot.depot.store.wrapped import Seekable
from webdepot.errors import NotFound, NotPermitted, RemoteError
from webdepot.model import Container, ContainerState
from webdepot.ports import CaptureIndex, Engine, FormatIdentifier, ObjectStore, TextIndex
from webdepot.provenance import Event, Outcome
from webdepot.settings import Config
from webdepot.times import Clock, utc_now
from webdepot.version import VERSION

DATABASE_NAME = "webdepot.db"


class Archive:
    """The whole installation, opened. Parts are opened when first used and closed together."""

    def __init__(self, config: Config, *, clock: Clock = utc_now, agent: str = "") -> None:
        self.config = config
        self.home = config.home
        self.clock = clock
        self.agent = agent or f"webdepot {VERSION}"
        """Who acts, for provenance: a person's name, or this program."""
        self.database = Database.in_file(self.home / DATABASE_NAME)
        self._places: dict[tuple[str, str], ObjectStore] = {}

    @classmethod
    def open(cls, home: Path, *, clock: Clock = utc_now, agent: str = "") -> "Archive":
        """Open an existing home, bring its schema up to date; NotFound when there is none."""
        if not (home / DATABASE_NAME).exists():
            raise NotFound(f"There is no archive at {home}. Make one: webdepot --home {home} init")
        archive = cls(configuration.read(home), clock=clock, agent=agent)
        archive.database.upgrade()
        return archive

    def event(
        self,
        action: str,
        kind: str,
        subject: str,
        *,
        message: str = "",
        outcome: Outcome = Outcome.SUCCESS,
        detail: Mapping[str, object] | None = None,
        by: str = "",
    ) -> Event:
        """What happens now, by whoever acts here unless `by` says who; `provenance.append` keeps it."""
        return Event(
            at=self.clock(),
            agent=by or self.agent,
            action=action,
            subject_kind=kind,
            subject=subject,
            outcome=outcome,
            message=message,
            detail=detail or {},
        )

    @property
    def user_agent(self) -> str:
        """The User-Agent header of every request: the program, the institution, and where to complain."""
        given = self.config
        contact = given.archive.contact or given.web.portal_url
        own = f"Webdepot/{VERSION} ({f'+{contact}; ' if contact else ''}{given.archive.name})"
        return given.harvest.user_agent or own

    @property
    def harvests_folder(self) -> Path:
        return self.home / "harvests"

    @property
    def signatures_folder(self) -> Path:
        return self.home / "signatures"

    @property
    def index_folder(self) -> Path:
        return self.home / "index"

    @cached_property
    def captures(self) -> CaptureIndex:
        from webdepot.index.captures import SqliteCaptureIndex

        return SqliteCaptureIndex(self.index_folder / "captures.db")

    @property
    def texts_folder(self) -> Path:
        return self.index_folder / (
            "text" if self.config.index.engine == "tantivy" else f"text-{self.config.index.engine}"
        )

    @cached_property
    def texts(self) -> TextIndex:
        # Each engine by itself: one works where the other cannot be installed.
        if self.config.index.engine == "sqlite":
            from webdepot.index.text.sqlite_index import SqliteTextIndex

            return SqliteTextIndex(self.texts_folder)
        from webdepot.index.text.tantivy_index import TantivyTextIndex

        return TantivyTextIndex(self.texts_folder, memory_bytes=self.config.index.memory_bytes)

    @cached_property
    def store(self) -> ObjectStore:
        return self._open_place(places.MAIN, self.depot_address)

    @property
    def depot_address(self) -> str:
        """Folder or s3:// address of the depot's main place."""
        place = self.config.depot.place
        return place if place.startswith("s3:") else str(self.home / place)

    def stores(self) -> dict[str, ObjectStore]:
        """Every place of the depot by its name, the main one first."""
        with self.database.reading() as connection:
            others = places.every(connection)
        return {places.MAIN: self.store} | {
            place.name: self._open_place(place.name, place.address) for place in others
        }

    def _open_place(self, name: str, address: str) -> ObjectStore:
        opened = self._places.get((name, address))
        if opened is None:
            opened = self._places[name, address] = places.open_store(name, address)
        return opened

    @cached_property
    def engine(self) -> Engine:
        from webdepot.engine.local import ProcessEngine

        return ProcessEngine(workers=self.config.index.workers)

    @cached_property
    def identifier(self) -> FormatIdentifier:
        from webdepot.formats.examine import FileExaminer

        return FileExaminer(self.signatures())

    def signatures(self) -> Path | None:
        """The set of signatures that was put in last; None while the one that came with the program is in
        use.
        """
        from webdepot.formats import signatures

        with self.database.reading() as connection:
            newest = signatures.find_newest(connection)
        return self.signatures_folder / newest.file_name if newest else None

    def container_path(self, name: str) -> Path:
        """The file of a container, wherever it is now; fetched from another machine if need be. NotFound when
        it is unknown or gone.
        """
        return self._path_of(name, self._find_container(name))

    def _path_of(self, name: str, found: Container | None) -> Path:
        path = None
        if found is not None and found.state is ContainerState.ELSEWHERE:
            return self._path_elsewhere(found)
        if found is not None and found.state is not ContainerState.KEPT:
            path = self.home / found.place
            if path.exists():
                return path
        elif found is not None:
            for store in self._stores_with(found):
                if (local := store.local_path(found.place)) is not None:
                    return local
                limit_bytes = self.config.depot.cache_bytes
                return cache.fetch(
                    self.cache_folder,
                    store,
                    found.place,
                    name=name,
                    sha256=found.sha256,
                    limit_bytes=limit_bytes,
                )
            path = self.store.local_path(found.place) or path
            if path is not None and path.exists():
                return path  # of another size than it was: what can be read of it is better than nothing
        raise NotFound(f"Container {name} is not where the database says. Run: webdepot doctor")

    def _path_elsewhere(self, found: Container) -> Path:
        from webdepot.depot.store.elsewhere import Elsewhere

        source = Elsewhere(found.place)
        if source.path is None:
            fetched = self.cached_path(found)
            if fetched.exists():
                return fetched
            limit_bytes = self.config.depot.cache_bytes
            part = cast(ObjectStore, source)
            return cache.fetch(
                self.cache_folder,
                part,
                "",
                name=found.name,
                sha256=found.sha256,
                limit_bytes=limit_bytes,
                length=found.size_bytes,
            )
        if not source.path.exists():
            raise NotFound(
                f"Container {found.name} is read in place from {found.place}, which is not there any more. "
                "Bring it back, or say where it is now: webdepot import --in-place PATH"
            )
        return source.path

    @property
    def cache_folder(self) -> Path:
        return self.home / "cache" / "containers"

    def cached_path(self, container: Container) -> Path:
        """Where a container from afar lies while it is in the cache."""
        return self.cache_folder / cache.name_of(container.name, container.sha256)

    def find_local(self, name: str) -> Path | None:
        """The file of a container where it stands on a disk of this machine as the database says; None
        otherwise. Fetches nothing.
        """
        found, path = self._find_placed(name)
        try:
            is_whole = found is not None and path is not None and os.stat(path).st_size == found.size_bytes  # noqa: PTH116 - on every request
        except OSError:
            return None
        return path if is_whole else None

    def container_size(self, container: Container) -> int | None:
        """Bytes of a container's file as it is now; None when it is gone."""
        if container.state is ContainerState.KEPT:
            return self.store.size(container.place)
        if container.state is ContainerState.ELSEWHERE:
            from webdepot.depot.store.elsewhere import Elsewhere

            source = Elsewhere(container.place)
            size = source.size()
            return (
                container.size_bytes
                if size is not None and source.is_member and size >= container.size_bytes
                else size
            )
        path = self.home / container.place
        return path.stat().st_size if path.exists() else None

    @contextmanager
    def open_container(self, name: str) -> Iterator[BinaryIO]:
        """A seekable stream of a container's bytes, from the first place that has it."""
        local = self.find_local(name)
        if local is not None:
            # Readers of records fetch just what they need: a buffer would only read what nobody asked for.
            with local.open("rb", buffering=0) as file:
                yield file
            return
        found = self._find_container(name)
        if found is not None and found.state is ContainerState.ELSEWHERE:
            from webdepot.depot.store.elsewhere import Elsewhere

            if Elsewhere(found.place).path is not None:
                self._path_elsewhere(found)
            with Elsewhere(found.place).stream(found.size_bytes) as away:
                yield away
            return
        store = (
            next(self._stores_with(found), None)
            if found is not None and found.state is ContainerState.KEPT
            else None
        )
        if found is None or store is None or store.local_path(found.place) is not None:
            with self._path_of(name, found).open("rb") as stream:
                yield stream
        else:
            raw = cast(io.RawIOBase, Seekable(store, found.place, found.size_bytes))
            with io.BufferedReader(raw, 64 << 10) as remote:
                yield remote

    def _find_container(self, name: str) -> Container | None:
        return self._find_placed(name)[0]

    def _find_placed(self, name: str) -> tuple[Container | None, Path | None]:
        """A container, and where its file should stand on a disk of this machine, if on any."""
        return self.database.remembered(
            f"container {name}", lambda connection: self._placed(shelf.find(connection, name))
        )

    def _placed(self, found: Container | None) -> tuple[Container | None, Path | None]:
        if found is None or (found.state is ContainerState.ELSEWHERE and not found.place.startswith("/")):
            return found, None
        return found, self.store.local_path(
            found.place
        ) if found.state is ContainerState.KEPT else self.home / found.place

    def _stores_with(self, container: Container) -> Iterator[ObjectStore]:
        """Places that show a kept container at its full size. One that is away, or whose copy is damaged, is
        passed over.
        """
        if (
            self.store.local_path(container.place) is None
            or self.store.size(container.place) != container.size_bytes
        ):
            candidates = list(self.stores().values())
        else:
            candidates = [self.store]
        for store in candidates:
            try:
                if store.size(container.place) == container.size_bytes:
                    yield store
            except (RemoteError, NotPermitted, OSError):
                continue

    def close(self) -> None:
        for name in ("captures", "texts", "engine", "identifier"):
            part = self.__dict__.pop(name, None)
            if part is not None:
                part.close()
        self.database.close()

    def __enter__(self) -> "Archive":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
