"""Composition: `Archive` opens everything named in the configuration once. The only place that picks implementations.

HOME/
  webdepot.toml            the configuration
  webdepot.db              the database: decisions, states, events
  harvests/ID/             working folder of a harvest: containers, crawl log, frontier; removed once it is kept
  depot/                   long-term keeping (OCFL); everything else can be rebuilt from it and the database
  index/captures.db        which versions exist
  index/text/              words and time
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from sqlalchemy import select

from webdepot import config as configuration
from webdepot.config import Config
from webdepot.container.tables import containers
from webdepot.database import Database
from webdepot.errors import NotFound
from webdepot.model import Container, ContainerState
from webdepot.ports import CaptureIndex, Engine, FormatIdentifier, ObjectStore, TextIndex
from webdepot.times import Clock, utc_now

VERSION = version("webdepot")
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

    @classmethod
    def open(cls, home: Path, *, clock: Clock = utc_now, agent: str = "") -> "Archive":
        """Open an existing home, bring its schema up to date; NotFound when there is none."""
        if not (home / DATABASE_NAME).exists():
            raise NotFound(f"There is no archive at {home}. Make one: webdepot --home {home} init")
        archive = cls(configuration.read(home), clock=clock, agent=agent)
        archive.database.upgrade()
        return archive

    @property
    def harvests_folder(self) -> Path:
        return self.home / "harvests"

    @property
    def index_folder(self) -> Path:
        return self.home / "index"

    @cached_property
    def captures(self) -> CaptureIndex:
        from webdepot.index.captures import SqliteCaptureIndex

        return SqliteCaptureIndex(self.index_folder / "captures.db")

    @cached_property
    def texts(self) -> TextIndex:
        from webdepot.index.fulltext import TantivyTextIndex

        return TantivyTextIndex(self.index_folder / "text", memory_bytes=self.config.index.memory_bytes)

    @cached_property
    def store(self) -> ObjectStore:
        from webdepot.depot.folder import FolderStore

        return FolderStore(self.home / self.config.depot.place)

    @cached_property
    def engine(self) -> Engine:
        from webdepot.engine.local import ProcessEngine

        return ProcessEngine(workers=self.config.index.workers)

    @cached_property
    def identifier(self) -> FormatIdentifier:
        from webdepot.formats.identify import SiegfriedIdentifier

        return SiegfriedIdentifier()

    def container_path(self, name: str) -> Path:
        """The file of a container, wherever it is now; NotFound when it is unknown or gone."""
        with self.database.reading() as connection:
            row = connection.execute(select(containers.c.state, containers.c.place).where(containers.c.name == name)).one_or_none()
        path = None
        if row is not None:
            path = self.store.local_path(row.place) if row.state == "kept" else self.home / row.place
        if path is None or not path.exists():
            raise NotFound(f"Container {name} is not where the database says. Run: webdepot doctor")
        return path

    def container_size(self, container: Container) -> int | None:
        """Bytes of a container's file as it is now; None when it is gone."""
        if container.state is ContainerState.KEPT:
            return self.store.size(container.place)
        path = self.home / container.place
        return path.stat().st_size if path.exists() else None

    @contextmanager
    def open_container(self, name: str) -> Iterator[BinaryIO]:
        """A seekable stream of a container's bytes."""
        with self.container_path(name).open("rb") as stream:
            yield stream

    def close(self) -> None:
        for name in ("captures", "texts", "engine"):
            part = self.__dict__.pop(name, None)
            if part is not None:
                part.close()
        self.database.close()

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
