"""The files of containers: in the working folder of a harvest, in the depot and its copies, in the working
place of a cluster, or with their owner (used in place).

Those that are not on this machine are read in parts (`open`), or fetched into a cache when a whole file is
needed (`path`).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from webdepot.container import locations
from webdepot.database import Database
from webdepot.depot.store import cache
from webdepot.depot.store.wrappers import ReadableStore, open_seekable
from webdepot.errors import NotFound, NotPermitted, RemoteError
from webdepot.model import Container, ContainerState
from webdepot.ports.object_store import ObjectStore

if TYPE_CHECKING:
    from webdepot.depot.store.in_place import Elsewhere


class ContainerFiles:
    """Finds containers by name and reads them. Threads may share it."""

    def __init__(
        self,
        *,
        home: Path,
        database: Database,
        depot: Callable[[], ObjectStore],
        places: Callable[[], Mapping[str, ObjectStore]],
        work: Callable[[], ObjectStore],
        may_be_in_work: bool,
        cache_bytes: int,
    ) -> None:
        """`places` are all places of the depot, `may_be_in_work` says whether harvesters of other machines
        put containers into the working place.
        """
        self._home, self._database = home, database
        self._depot, self._places, self._work = depot, places, work
        self._may_be_in_work, self._cache_bytes = may_be_in_work, cache_bytes

    def path(self, name: str) -> Path:
        """The file of a container, fetched from a remote place if necessary. NotFound if it is unknown or
        lost.
        """
        return self._path_of(name, self.find(name))

    def _path_of(self, name: str, container: Container | None) -> Path:
        path = None
        if container is not None and container.state is ContainerState.ELSEWHERE:
            return self._path_elsewhere(container)
        if container is not None and container.state is not ContainerState.KEPT:
            path = self._home / container.place
            if path.exists():
                return path
            if self._may_be_in_work and self._work().size(container.place) is not None:
                return self._fetch(self._work(), container.place, container)
        elif container is not None:
            for store in self._stores_with(container):
                if (local := store.local_path(container.place)) is not None:
                    return local
                return self._fetch(store, container.place, container)
            path = self._depot().local_path(container.place) or path
            if path is not None and path.exists():
                return path  # its size is wrong, but part of it may be readable
        raise NotFound(f"Container {name} is not where the database says it is. Run: webdepot doctor")

    def _path_elsewhere(self, container: Container) -> Path:
        source = _elsewhere(container.place)
        if source.path is None:
            fetched = self.cached_path(container)
            if fetched.exists():
                return fetched
            return self._fetch(source, "", container, length=container.size_bytes)
        if not source.path.exists():
            raise NotFound(
                f"Container {container.name} is used in place at {container.place}, which no longer exists. "
                "Restore the file, or give its new location with: webdepot import --in-place PATH"
            )
        return source.path

    def _fetch(
        self, store: ReadableStore, key: str, container: Container, *, length: int | None = None
    ) -> Path:
        return cache.fetch(
            self.cache_folder,
            store,
            key,
            name=container.name,
            sha256=container.sha256,
            limit_bytes=self._cache_bytes,
            length=length,
        )

    @property
    def cache_folder(self) -> Path:
        return self._home / "cache" / "containers"

    def cached_path(self, container: Container) -> Path:
        """The path of a remote container in the cache."""
        return self.cache_folder / cache.name_of(container.name, container.sha256)

    def find_local(self, name: str) -> Path | None:
        """The file of a container if it is on this machine and has the size in the database; None otherwise.
        Fetches nothing.
        """
        container, path = self._find_placed(name)
        if container is None or path is None:
            return None
        try:
            return path if os.stat(path).st_size == container.size_bytes else None  # noqa: PTH116 - on every request
        except OSError:
            return None

    def size(self, container: Container) -> int | None:
        """Current size of the file of a container in bytes; None if it is lost."""
        if container.state is ContainerState.KEPT:
            return self._depot().size(container.place)
        if container.state is ContainerState.ELSEWHERE:
            source = _elsewhere(container.place)
            size = source.size()
            return (
                container.size_bytes
                if size is not None and source.is_member and size >= container.size_bytes
                else size
            )
        path = self._home / container.place
        return path.stat().st_size if path.exists() else None

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """A seekable stream of a container's bytes, from the first place that has it."""
        local = self.find_local(name)
        if local is not None:
            # Unbuffered, because record readers read exactly the bytes they need.
            with local.open("rb", buffering=0) as file:
                yield file
            return
        container = self.find(name)
        if container is not None and container.state is ContainerState.ELSEWHERE:
            source = _elsewhere(container.place)
            if source.path is not None:
                self._path_elsewhere(container)
            with source.stream(container.size_bytes) as away:
                yield away
            return
        store = (
            next(self._stores_with(container), None)
            if container is not None and container.state is ContainerState.KEPT
            else None
        )
        if container is None or store is None or store.local_path(container.place) is not None:
            with self._path_of(name, container).open("rb") as stream:
                yield stream
        else:
            with open_seekable(store, container.place, container.size_bytes) as remote:
                yield remote

    def find(self, name: str) -> Container | None:
        return self._find_placed(name)[0]

    def _find_placed(self, name: str) -> tuple[Container | None, Path | None]:
        """A container, and the path its file should have on this machine, if any."""
        return self._database.remembered(
            f"container {name}", lambda connection: self._placed(locations.find(connection, name))
        )

    def _placed(self, container: Container | None) -> tuple[Container | None, Path | None]:
        if container is None or (
            container.state is ContainerState.ELSEWHERE and not container.place.startswith("/")
        ):
            return container, None
        return container, self._depot().local_path(
            container.place
        ) if container.state is ContainerState.KEPT else self._home / container.place

    def _stores_with(self, container: Container) -> Iterator[ObjectStore]:
        """Places that have a container of the depot in full size. Unreachable places are skipped."""
        if (
            self._depot().local_path(container.place) is None
            or self._depot().size(container.place) != container.size_bytes
        ):
            candidates = list(self._places().values())
        else:
            candidates = [self._depot()]
        for store in candidates:
            try:
                if store.size(container.place) == container.size_bytes:
                    yield store
            except (RemoteError, NotPermitted, OSError):
                continue


def _elsewhere(place: str) -> "Elsewhere":
    from webdepot.depot.store.in_place import Elsewhere

    return Elsewhere(place)
