"""The doctor: is the archive healthy, and if not, what mends it? Each check is one function that looks and
says.

`mend` does what loses nothing and needs nobody: recovers containers of killed harvests, brings the indexes up
to date.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from sqlalchemy import text

from webdepot import config as configuration
from webdepot import digest
from webdepot.archive import DATABASE_NAME, Archive
from webdepot.container import shelf
from webdepot.depot import holdings, package
from webdepot.errors import ConfigError, WebdepotError
from webdepot.harvest import runs
from webdepot.harvest.browser import launch
from webdepot.model import Container, ContainerState, HarvestState
from webdepot.services.harvest import harvests, options, profiles, runner
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.progress import Phase, Progress, Watch, unwatched

LOW_DISK_BYTES = 2_000_000_000
State = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    state: State
    message: str
    remedy: str = ""


def examine(
    home: Path, *, deep: bool = False, mend: bool = False, agent: str = "", watch: Watch = unwatched
) -> list[Check]:
    """Every check in order. What cannot be opened ends the list with the reason; the doctor itself never
    fails.
    """
    checks = [_python(), _browser_files()]
    if not (home / DATABASE_NAME).exists():
        return [
            *checks,
            Check(
                name="home",
                state="error",
                message=f"there is no archive at {home}",
                remedy=f"webdepot init {home}",
            ),
        ]
    try:
        with Archive.open(home, agent=agent) as archive:
            if mend:
                checks += _mended(archive, watch)
            for check in (
                _configuration,
                _browser,
                _home,
                _disk,
                _database,
                _harvests,
                _containers,
                _depot,
                _captures,
                _texts,
            ):
                checks.append(check(archive))
            if deep:
                checks.append(_checksums(archive, watch))
    except (WebdepotError, OSError) as error:
        checks.append(Check(name="home", state="error", message=str(error)))
    return checks


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check(name="python", state="ok", message=version)


def _browser_files() -> Check:
    """Replay needs the service worker that set-up fetches."""
    if (resources.files("webdepot") / "web" / "vendor" / "sw.js").is_file():
        return Check(name="replay", state="ok", message="the browser files are installed")
    return Check(
        name="replay",
        state="error",
        message="the browser files for replay are missing",
        remedy="make install",
    )


def _configuration(archive: Archive) -> Check:
    set_keys = [
        setting.name for setting in configuration.iter_settings(archive.config) if setting.source != "default"
    ]
    return Check(
        name="configuration", state="ok", message=f"read; {len(set_keys)} keys differ from their defaults"
    )


def _browser(archive: Archive) -> Check:
    """What opens pages for a harvest; needed only where the configuration or a profile says so."""
    given = archive.config.harvest
    wanting = _wanting_browser(archive)
    try:
        program = launch.get_program(given.browser, sandbox=given.browser_sandbox)
    except ConfigError as error:
        if wanting:
            return Check(
                name="browser", state="error", message=f"{wanting} opens pages in one", remedy=str(error)
            )
        return Check(name="browser", state="ok", message=f"pages can only be fetched plainly. {error}")
    return Check(name="browser", state="ok", message=f"pages can be opened in {program}")


def _wanting_browser(archive: Archive) -> str:
    """The first that asks for a browser; empty when nothing does."""
    if options.wants_browser(HarvestOptions.from_config(archive.config)):
        return "[harvest] fetch"
    for profile in profiles.every(archive)[0]:
        if options.wants_browser(profiles.options_of(archive, profile.name)):
            return f"profile {profile.name}"
    return ""


def _home(archive: Archive) -> Check:
    if os.access(archive.home, os.W_OK):
        return Check(name="home", state="ok", message=f"{archive.home} can be written")
    return Check(
        name="home",
        state="error",
        message=f"{archive.home} is read-only",
        remedy=f"give yourself write permission on {archive.home}",
    )


def _disk(archive: Archive) -> Check:
    free = shutil.disk_usage(archive.home).free
    words = f"{free / 1e9:,.1f} GB free"
    if free < LOW_DISK_BYTES:
        return Check(
            name="disk",
            state="warning",
            message=words,
            remedy="make room before the next harvest, or move the home to a larger disk",
        )
    return Check(name="disk", state="ok", message=words)


def _database(archive: Archive) -> Check:
    if archive.database.engine.dialect.name == "sqlite":
        with archive.database.reading() as connection:
            answer = connection.execute(text("PRAGMA integrity_check(5)")).scalars().all()
        if answer != ["ok"]:
            return Check(
                name="database",
                state="error",
                message=f"is damaged: {answer[0]}",
                remedy="restore webdepot.db from your last backup",
            )
    return Check(name="database", state="ok", message=f"is sound (schema {archive.database.revision()})")


def _harvests(archive: Archive) -> Check:
    """Harvests that nobody works on although they say they run."""
    with archive.database.reading() as connection:
        unfinished = runs.in_states(connection, [HarvestState.RUNNING, HarvestState.STOPPED])
        waiting = runs.in_states(connection, [HarvestState.FINISHED])
    dead = [harvest for harvest in unfinished if not harvests.is_locked(archive, harvest)]
    if dead:
        names = ", ".join(harvest.id for harvest in dead[:3])
        return Check(
            name="harvests",
            state="warning",
            message=f"{len(dead)} can be resumed: {names}",
            remedy=f"webdepot harvest resume {dead[0].id}",
        )
    if waiting:
        return Check(
            name="harvests",
            state="warning",
            message=f"{len(waiting)} wait for the depot",
            remedy=f"webdepot harvest keep {waiting[0].id}",
        )
    return Check(name="harvests", state="ok", message="none is left in the middle")


def _containers(archive: Archive) -> Check:
    """Every container the database names is there, with its size."""
    count, wrong, remedy = 0, [], "webdepot depot audit --older-than 0"
    with archive.database.reading() as connection:
        for container in shelf.iter_all(connection):
            count += 1
            size = _size_now(archive, container)
            if size != container.size_bytes and container.state is ContainerState.ELSEWHERE:
                remedy = "Say where they are now: webdepot import --in-place PATH"
            if size != container.size_bytes:
                wrong.append(
                    f"{container.name} ({'missing' if size is None else f'{size} instead of {container.size_bytes} bytes'})"
                )
    if wrong:
        return Check(
            name="containers",
            state="error",
            message=f"{len(wrong)} of {count} are not what they were: {', '.join(wrong[:3])}",
            remedy=remedy,
        )
    return Check(name="containers", state="ok", message=f"all {count} are in their places")


def _size_now(archive: Archive, container: Container) -> int | None:
    try:
        return archive.container_size(container)
    except (WebdepotError, OSError):
        return None  # where it is read in place from cannot be reached


def _depot(archive: Archive) -> Check:
    """Every package the database names has its inventory, and the depot holds no package that it does not
    name.
    """
    with archive.database.reading() as connection:
        known = set(holdings.iter_ids(connection))
    held = set(package.iter_packages(archive.store))
    if missing := known - held:
        return Check(
            name="depot",
            state="error",
            message=f"{len(missing)} packages are missing, {min(missing)} first",
            remedy="webdepot depot audit --older-than 0",
        )
    if extra := held - known:
        return Check(
            name="depot",
            state="warning",
            message=f"{len(extra)} packages are not in the database, {min(extra)} first",
            remedy="webdepot doctor --mend",
        )
    return Check(name="depot", state="ok", message=f"{len(known)} packages")


def _captures(archive: Archive) -> Check:
    return _indexed(archive, "addresses", {name for name, _ in archive.captures.containers()})


def _texts(archive: Archive) -> Check:
    return _indexed(archive, "words", archive.texts.containers())


def _indexed(archive: Archive, name: str, indexed: frozenset[str] | set[str]) -> Check:
    with archive.database.reading() as connection:
        known = {container.name for container in shelf.iter_all(connection)}
    if missing := known - indexed:
        return Check(
            name=f"index of {name}",
            state="error",
            message=f"{len(missing)} containers are not indexed",
            remedy="webdepot index update",
        )
    if extra := indexed - known:
        return Check(
            name=f"index of {name}",
            state="error",
            message=f"{len(extra)} containers are indexed but gone",
            remedy="webdepot index rebuild",
        )
    return Check(name=f"index of {name}", state="ok", message=f"{len(known)} containers")


def _checksums(archive: Archive, watch: Watch) -> Check:
    """Read everything and compare: what only `--deep` does."""
    with archive.database.reading() as connection:
        all_containers = list(shelf.iter_all(connection))
    damaged = []
    for number, container in enumerate(all_containers, start=1):
        watch(Progress(phase=Phase.CHECK, done=number, total=len(all_containers), note=container.name))
        try:
            if digest.of_file(archive.container_path(container.name)).value.hex() != container.sha256:
                damaged.append(container.name)
        except (OSError, WebdepotError):
            damaged.append(container.name)
    if damaged:
        return Check(
            name="checksums",
            state="error",
            message=f"{len(damaged)} containers are damaged: {', '.join(damaged[:3])}",
            remedy="webdepot depot audit --older-than 0",
        )
    return Check(
        name="checksums", state="ok", message=f"all {len(all_containers)} containers are as they were written"
    )


def _mended(archive: Archive, watch: Watch) -> Iterator[Check]:
    from webdepot.services.index import indexer

    with archive.database.reading() as connection:
        unfinished = runs.in_states(connection, [HarvestState.RUNNING])
    for harvest in unfinished:
        if not harvests.is_locked(archive, harvest):
            said = runner.recover(archive, harvest)
            yield Check(
                name="recovery",
                state="ok",
                message=f"{harvest.id}: {said}",
                remedy=f"webdepot harvest resume {harvest.id}",
            )
    done = indexer.update(archive, watch=watch)
    if done.captures or done.pages:
        yield Check(
            name="indexes", state="ok", message=f"{done.captures} captures and {done.pages} pages were added"
        )
