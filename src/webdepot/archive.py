"""Composition: `Archive` opens everything named in the configuration, and chooses the implementations.

HOME/
  webdepot.toml            the configuration
  webdepot.db              the database: decisions, states, events (unless it is on a PostgreSQL server)
  harvests/ID/             working folder of a harvest: containers, log, queue; removed after the deposit
  depot/                   main place of the depot (OCFL); from it and the database all else can be rebuilt
  cache/containers/        containers fetched from a remote depot
  jobs/                    files of running jobs for workers of a cluster (unless [work] place is elsewhere)
  quarantine/              refused submissions, unchanged
  signatures/              installed sets of PRONOM signatures
  index/captures.db        the capture index (unless it is on a PostgreSQL server)
  index/text/              the text index
  .PURPOSE-…               temporary folder of a running process
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import TracebackType

from webdepot import durable
from webdepot.config import config as configuration
from webdepot.config.settings import Config
from webdepot.database import Database
from webdepot.depot import places
from webdepot.depot.store.container_files import ContainerFiles
from webdepot.depot.store.stored_file import StoredFile
from webdepot.errors import ConfigError, NotFound
from webdepot.model import ContainerState
from webdepot.ports.captures import CaptureIndex
from webdepot.ports.engine import Engine
from webdepot.ports.formats import FormatIdentifier
from webdepot.ports.object_store import ObjectStore
from webdepot.ports.search import TextIndex
from webdepot.provenance import Event, Outcome
from webdepot.times import Clock, utc_now
from webdepot.version import VERSION

DATABASE_NAME = "webdepot.db"
WORK = "work"
"""Name of the working place, for its credentials."""


class ScratchPurpose(StrEnum):
    """Purposes of temporary folders in the home; the value is the prefix of the folder's name."""

    UNPACK = ".unpacking-"
    TAKE_OVER = ".taking-"
    MIGRATE = ".migrating-"
    EXTRACT = ".extracting-"
    SORT = ".sorting-"
    CHECK = ".checking-"
    IDENTIFY = ".identifying-"
    REPORT = ".reporting-"
    EXPORT = ".exporting-"
    SCHEDULE = ".scheduling-"
    TEST = ".testing-"
    UPLOAD = ".uploading-"
    PICTURE = ".picturing-"


def open_database(config: Config) -> Database:
    """The database of an archive: on the configured server, or the file in its home."""
    if config.database.url:
        return Database(config.database.url, password=config.database.password)
    return Database.in_file(config.home / DATABASE_NAME)


def is_founded(config: Config) -> bool:
    """Whether the database of an archive exists and has tables."""
    if not config.database.url:
        return (config.home / DATABASE_NAME).exists()
    with closing(open_database(config)) as database:
        return database.revision() is not None


class Archive:
    """The open archive. Parts are opened when first used, and closed together."""

    def __init__(self, config: Config, *, clock: Clock = utc_now, agent: str = "") -> None:
        self.config = config
        self.home = config.home
        self.clock = clock
        self.agent = agent or f"webdepot {VERSION}"
        """Who acts, for provenance: a person's name, or this program."""
        self.database = open_database(config)
        self._places: dict[tuple[str, str], ObjectStore] = {}

    @classmethod
    def open(cls, home: Path, *, clock: Clock = utc_now, agent: str = "") -> "Archive":
        """Open an existing archive, and bring its database schema up to date; NotFound if there is none."""
        config = configuration.read(home)
        if not is_founded(config):
            raise NotFound(f"There is no archive at {home}. Create one with: webdepot --home {home} init")
        archive = cls(config, clock=clock, agent=agent)
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
        """An event that happens now, by the agent of this archive unless `by` is given. It is not stored yet:
        see `provenance.append`.
        """
        return Event(
            at=self.clock(),
            agent=(by or self.agent)[:200],  # the length of the column
            action=action,
            subject_kind=kind,
            subject=subject,
            outcome=outcome,
            message=message,
            detail=detail or {},
        )

    @property
    def user_agent(self) -> str:
        """The User-Agent header of requests: the program, the contact of the institution, and its name."""
        contact = self.config.archive.contact or self.config.web.portal_url
        default = f"Webdepot/{VERSION} ({f'+{contact}; ' if contact else ''}{self.config.archive.name})"
        return self.config.harvest.user_agent or default

    @contextmanager
    def scratch_folder(self, purpose: ScratchPurpose) -> Iterator[Path]:
        """A folder for temporary files, removed at the end of the block. Folders left by processes that have
        ended are removed first.
        """
        self.remove_abandoned()
        with durable.scratch_folder(purpose.value, self.home) as folder:
            yield folder

    def abandoned_folders(self) -> list[Path]:
        """Temporary folders in the home that were left by processes that have ended."""
        return [
            folder
            for purpose in ScratchPurpose
            for folder in durable.abandoned_folders(self.home, purpose.value)
        ]

    def remove_abandoned(self) -> int:
        """Remove temporary folders in the home that ended processes have left; returns how many."""
        return sum(durable.remove_abandoned(self.home, purpose.value) for purpose in ScratchPurpose)

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
        # Import only the configured engine: the other one may not be installed.
        if self.config.index.captures == "postgresql":
            from webdepot.index.postgresql_captures import PostgresqlCaptureIndex

            return PostgresqlCaptureIndex(self.config.database.url, password=self.config.database.password)
        from webdepot.index.sqlite_captures import SqliteCaptureIndex

        return SqliteCaptureIndex(self._captures_file)

    def discard_captures(self) -> None:
        """Delete a capture index that is damaged or was written by another version; it is created again on
        next use.
        """
        opened: CaptureIndex | None = vars(self).pop("captures", None)
        vars(self).pop("capture_indexes", None)
        if opened is not None:
            opened.close()
        if self.config.index.captures == "postgresql":
            from webdepot.index import postgresql_captures

            postgresql_captures.remove_tables(
                self.config.database.url, password=self.config.database.password
            )
        else:
            from webdepot.index import sqlite_file

            sqlite_file.discard(self._captures_file)

    @property
    def _captures_file(self) -> Path:
        return self.index_folder / "captures.db"

    def with_captures(self, captures: CaptureIndex) -> "Archive":
        """A view of this archive that looks up addresses in another capture index. Close only the original
        archive.
        """
        view = copy(self)
        vars(view)["captures"] = captures
        view.capture_indexes = (captures, *self.capture_indexes)
        return view

    @cached_property
    def capture_indexes(self) -> Sequence[CaptureIndex]:
        """The capture indexes to search for the original of a repeated payload, in this order."""
        return (self.captures,)

    @property
    def texts_folder(self) -> Path:
        return self.index_folder / (
            "text" if self.config.index.engine == "tantivy" else f"text-{self.config.index.engine}"
        )

    @cached_property
    def texts(self) -> TextIndex:
        # Import only the configured engine: the other one may not be installed.
        if self.config.index.engine == "sqlite":
            from webdepot.index.text.sqlite_index import SqliteTextIndex

            return SqliteTextIndex(self.texts_folder)
        if self.config.index.engine == "opensearch":
            return self._opensearch_texts()
        from webdepot.index.text.tantivy_index import TantivyTextIndex

        return TantivyTextIndex(self.texts_folder, memory_bytes=self.config.index.memory_bytes)

    def _opensearch_texts(self) -> TextIndex:
        from webdepot.index.opensearch.client import ServerAddress
        from webdepot.index.opensearch.index import OpenSearchPlace, OpenSearchTextIndex

        config = self.config.index
        urls = tuple(url.strip().rstrip("/") for url in config.opensearch_url.split(","))
        place = OpenSearchPlace(
            address=ServerAddress(
                urls=urls, user=config.opensearch_user, password=config.opensearch_password
            ),
            name=config.opensearch_index,
            shards=config.opensearch_shards,
            replicas=config.opensearch_replicas,
        )
        return OpenSearchTextIndex(place, self.texts_folder)

    @cached_property
    def store(self) -> ObjectStore:
        return self._open_place(places.MAIN, self.depot_address)

    @property
    def depot_address(self) -> str:
        """Folder or s3:// address of the main place of the depot."""
        place = self.config.depot.place
        return place if place.startswith("s3:") else str(self.home / place)

    def stores(self) -> dict[str, ObjectStore]:
        """All places of the depot by name, the main one first."""
        with self.database.reading() as connection:
            others = places.every(connection)
        return {places.MAIN: self.store} | {
            place.name: self._open_place(place.name, place.address) for place in others
        }

    def _open_place(self, name: str, address: str) -> ObjectStore:
        store = self._places.get((name, address))
        if store is None:
            store = self._places[name, address] = places.open_store(name, address)
        return store

    @cached_property
    def engine(self) -> Engine:
        """The processes of this machine."""
        from webdepot.engine.process_pool import ProcessEngine

        return ProcessEngine(workers=self.config.index.workers)

    @cached_property
    def cluster(self) -> Engine | None:
        """The workers on other machines that read containers; None if this machine reads them itself."""
        if self.config.engine.kind == "processes":
            return None
        try:
            from webdepot.engine.dask_engine import DaskEngine
        except ImportError as error:
            raise ConfigError("Dask is not installed. Install it: pip install 'webdepot[cluster]'") from error
        return DaskEngine(self.config.engine.scheduler)

    @property
    def work(self) -> ObjectStore:
        """The working place, for files of jobs that other machines run."""
        return self._open_place(WORK, self.work_address)

    @property
    def work_address(self) -> str:
        """Folder or s3:// address of the working place."""
        place = self.config.work.place
        return place if place.startswith("s3:") else str(self.home / place)

    @cached_property
    def containers(self) -> ContainerFiles:
        """Access to the files of containers, wherever they are stored."""
        return ContainerFiles(
            home=self.home,
            database=self.database,
            depot=lambda: self.store,
            places=self.stores,
            work=lambda: self.work,
            may_be_in_work=self.config.cluster.harvesters,
            cache_bytes=self.config.depot.cache_bytes,
        )

    def find_stored(self, name: str) -> StoredFile | None:
        """Where any machine can read a container; None if only this machine has it. NotFound if the container
        is unknown.
        """
        container = self.containers.find(name)
        if container is None:
            raise NotFound(f"Container {name} is unknown. Run: webdepot doctor")
        is_at_home = container.state is ContainerState.SEALED and not self.config.work.place
        if container.state is not ContainerState.KEPT and not is_at_home:
            return None
        place, address = (WORK, self.work_address) if is_at_home else (places.MAIN, self.depot_address)
        return StoredFile(place=place, address=address, key=container.place, sha256=container.sha256)

    @cached_property
    def identifier(self) -> FormatIdentifier:
        from webdepot.formats.examine import FileExaminer

        return FileExaminer(self.signatures())

    def signatures(self) -> Path | None:
        """The signature file that was installed last; None if the signatures shipped with the program are
        used.
        """
        from webdepot.formats import signature_sets as signatures

        with self.database.reading() as connection:
            newest = signatures.find_newest(connection)
        return self.signatures_folder / newest.file_name if newest else None

    def close(self) -> None:
        for name in ("captures", "texts", "cluster", "engine", "identifier"):
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
