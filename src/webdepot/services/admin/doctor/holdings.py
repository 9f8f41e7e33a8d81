"""Checks of what the archive holds: harvests, containers, packages, left-over folders, indexes."""

from collections.abc import Iterable
from contextlib import suppress

from webdepot import digest
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot import holdings, package
from webdepot.errors import CorruptData, NotFound, RemoteError, WebdepotError
from webdepot.harvest import harvest_rows
from webdepot.harvest.parts import harvester_rows
from webdepot.model import Container, ContainerState, HarvestState, PackageId
from webdepot.services.admin.doctor.health_check import HealthCheck
from webdepot.services.depot import versions
from webdepot.services.harvest import harvests
from webdepot.services.index import visible_harvests
from webdepot.services.progress import Phase, Progress, Watch


def check_harvests(archive: Archive) -> HealthCheck:
    """Harvests in the state running or stopped without a process, and harvests not yet in the depot."""
    if archive.config.cluster.harvesters:
        with archive.database.reading() as connection:
            live = [each for each in harvester_rows.every(connection) if each.is_live]
        if not live:
            return HealthCheck(
                name="harvests",
                state="warning",
                message="they wait: no harvester is running on any machine",
                remedy="webdepot harvester",
            )
    with archive.database.reading() as connection:
        unfinished = harvest_rows.in_states(connection, [HarvestState.RUNNING, HarvestState.STOPPED])
        waiting = harvest_rows.in_states(connection, [HarvestState.FINISHED])
    dead = [harvest for harvest in unfinished if not harvests.is_locked(archive, harvest)]
    if dead:
        names = ", ".join(harvest.id for harvest in dead[:3])
        return HealthCheck(
            name="harvests",
            state="warning",
            message=f"{len(dead)} can be resumed: {names}",
            remedy=f"webdepot harvest resume {dead[0].id}",
        )
    if waiting:
        return HealthCheck(
            name="harvests",
            state="warning",
            message=f"{len(waiting)} are not yet in the depot",
            remedy=f"webdepot harvest keep {waiting[0].id}",
        )
    return HealthCheck(name="harvests", state="ok", message="none is unfinished")


def check_containers(archive: Archive) -> HealthCheck:
    """Whether every container in the database exists with its size."""
    count, wrong, remedy = 0, [], "webdepot depot audit --older-than 0"
    with archive.database.reading() as connection:
        for container in locations.iter_all(connection):
            count += 1
            size = _size_now(archive, container)
            if size != container.size_bytes and container.state is ContainerState.ELSEWHERE:
                remedy = "Give their new location: webdepot import --in-place PATH"
            if size != container.size_bytes:
                actual = "missing" if size is None else f"{size} instead of {container.size_bytes} bytes"
                wrong.append(f"{container.name} ({actual})")
    if wrong:
        return HealthCheck(
            name="containers",
            state="error",
            message=f"{len(wrong)} of {count} are missing or have the wrong size: {', '.join(wrong[:3])}",
            remedy=remedy,
        )
    return HealthCheck(name="containers", state="ok", message=f"all {count} are there")


def _size_now(archive: Archive, container: Container) -> int | None:
    try:
        return archive.containers.size(container)
    except (WebdepotError, OSError):
        return None  # the place that it is read from cannot be reached


def check_depot(archive: Archive) -> HealthCheck:
    """Whether every package in the database is in the depot, and the other way round."""
    with archive.database.reading() as connection:
        known = set(holdings.iter_ids(connection))
    held = set(package.iter_packages(archive.store))
    if missing := known - held:
        return HealthCheck(
            name="depot",
            state="error",
            message=f"{len(missing)} packages are missing, beginning with {min(missing)}",
            remedy="webdepot depot audit --older-than 0",
        )
    if extra := held - known:
        return HealthCheck(
            name="depot",
            state="warning",
            message=f"{len(extra)} packages are not in the database, beginning with {min(extra)}",
            remedy="webdepot doctor --mend",
        )
    if behind := packages_behind(archive, known):
        return HealthCheck(
            name="depot",
            state="warning",
            message=f"{len(behind)} packages have a newer version than the database, beginning with "
            f"{behind[0]}",
            remedy="webdepot doctor --mend",
        )
    return HealthCheck(name="depot", state="ok", message=f"{len(known)} packages")


def packages_behind(archive: Archive, packages: Iterable[PackageId]) -> list[PackageId]:
    """Packages whose newest version was written by a process that was killed before it wrote the rows."""
    behind = []
    for identifier in sorted(packages):
        with suppress(CorruptData, NotFound):  # an audit reports and repairs these
            if versions.is_behind(archive, identifier):
                behind.append(identifier)
    return behind


def check_leftovers(archive: Archive) -> HealthCheck:
    """Folders of processes that were killed: temporary ones, and working folders of kept harvests."""
    left = [*archive.abandoned_folders(), *harvests.finished_folders(archive)]
    if left:
        names = ", ".join(folder.relative_to(archive.home).as_posix() for folder in left[:3])
        return HealthCheck(
            name="leftovers",
            state="warning",
            message=f"{len(left)} folders of ended processes: {names}",
            remedy="webdepot doctor --mend",
        )
    return HealthCheck(name="leftovers", state="ok", message="ended processes left no folders")


def check_captures(archive: Archive) -> HealthCheck:
    return _indexed(archive, "capture index", {name for name, _ in archive.captures.containers()})


def check_texts(archive: Archive) -> HealthCheck:
    try:
        indexed = archive.texts.containers()
    except RemoteError as error:
        return HealthCheck(name="text index", state="error", message=str(error))
    return _indexed(archive, "text index", indexed)


def _indexed(archive: Archive, name: str, indexed: frozenset[str] | set[str]) -> HealthCheck:
    known = {container.name for container in visible_harvests.containers(archive)}
    if missing := known - indexed:
        return HealthCheck(
            name=name,
            state="error",
            message=f"{len(missing)} containers are not indexed",
            remedy="webdepot index update",
        )
    if extra := indexed - known:
        return HealthCheck(
            name=name,
            state="error",
            message=f"{len(extra)} containers are indexed that are gone or not yet shown to readers",
            remedy="webdepot index update",
        )
    return HealthCheck(name=name, state="ok", message=f"{len(known)} containers")


def check_checksums(archive: Archive, watch: Watch) -> HealthCheck:
    """Read all containers and compare checksums; only with `--deep`."""
    with archive.database.reading() as connection:
        all_containers = list(locations.iter_all(connection))
    damaged = []
    for number, container in enumerate(all_containers, start=1):
        watch(Progress(phase=Phase.CHECK, done=number, total=len(all_containers), note=container.name))
        try:
            if digest.of_file(archive.containers.path(container.name)).value.hex() != container.sha256:
                damaged.append(container.name)
        except (OSError, WebdepotError):
            damaged.append(container.name)
    if damaged:
        return HealthCheck(
            name="checksums",
            state="error",
            message=f"{len(damaged)} containers are damaged: {', '.join(damaged[:3])}",
            remedy="webdepot depot audit --older-than 0",
        )
    return HealthCheck(
        name="checksums", state="ok", message=f"all {len(all_containers)} containers match their checksums"
    )
