"""`webdepot doctor`: check whether the archive is healthy, and say how to repair it. Each check is one
function.

`repair` makes the repairs that lose nothing and need no decision: it recovers containers of killed harvests,
adds packages and versions of the depot to the database, removes the folders of ended processes, and brings
the indexes up to date.
"""

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from sqlalchemy import text

from webdepot import browser_files, digest
from webdepot.access.replay.site_hosts import SiteHosts
from webdepot.archive import Archive, is_founded
from webdepot.config import config as configuration
from webdepot.config.settings import Config
from webdepot.container import locations
from webdepot.depot import holdings, package
from webdepot.engine import workers
from webdepot.errors import ConfigError, CorruptData, NotFound, RemoteError, WebdepotError
from webdepot.guard import walls
from webdepot.guard.probe import probe
from webdepot.harvest import runs
from webdepot.harvest.browser import launch
from webdepot.harvest.parts import harvester_rows
from webdepot.model import Container, ContainerState, HarvestState, PackageId
from webdepot.services.admin import proxy_probe
from webdepot.services.admin.proxy_probe import ProbeResult
from webdepot.services.depot import deposit, versions
from webdepot.services.harvest import harvests, options, profiles, runner
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.index import indexer, shown
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.version import VERSION

LOW_DISK_BYTES = 2_000_000_000
NEWEST_PYTHON = (3, 14)
"""The newest version that Webdepot was tested with."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
State = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    state: State
    message: str
    remedy: str = ""


def examine(
    home: Path, *, deep: bool = False, repair: bool = False, agent: str = "", watch: Watch = unwatched
) -> list[Check]:
    """The results of all checks, in order. If the archive cannot be opened, the list ends with the reason;
    this function never raises.
    """
    checks = [_python(), _browser_files(), _walls()]
    try:
        config = configuration.read(home)
        checks.append(_driver(config))
        if not is_founded(config):
            return [
                *checks,
                Check(
                    name="home",
                    state="error",
                    message=f"there is no archive at {home}",
                    remedy=f"webdepot init {home}",
                ),
            ]
        with Archive.open(home, agent=agent) as archive:
            if repair:
                checks += _repair(archive, watch)
            for check in (
                _configuration,
                _proxies,
                _site_hosts,
                _browser,
                _home,
                _privacy,
                _disk,
                _database,
                _workers,
                _machines,
                _harvests,
                _containers,
                _depot,
                _leftovers,
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
    """The interpreter and the program; a Python that is newer than those of our tests may break something."""
    version = ".".join(map(str, sys.version_info[:3]))
    message = f"{version} ({sys.executable}), Webdepot {VERSION}"
    if sys.version_info[:2] <= NEWEST_PYTHON:
        return Check(name="python", state="ok", message=message)
    newest = ".".join(map(str, NEWEST_PYTHON))
    return Check(
        name="python",
        state="warning",
        message=f"{message}; it was not tested with this Python",
        remedy=f"pipx install --python python{newest} webdepot-{VERSION}-py3-none-any.whl",
    )


def _driver(config: Config) -> Check:
    """The optional package for a database on PostgreSQL; without it the archive cannot be opened."""
    if not config.database.url or find_spec("psycopg"):
        return Check(
            name="packages", state="ok", message="everything that this configuration needs is installed"
        )
    return Check(
        name="packages",
        state="error",
        message="the driver for PostgreSQL ([database] url) is missing",
        remedy=f"{sys.executable} -m pip install 'psycopg[binary]'",
    )


def _browser_files() -> Check:
    """Replay needs the service worker, which the package contains and `make install` fetches."""
    wrong = browser_files.find_wrong()
    if not wrong:
        return Check(name="replay", state="ok", message="the browser files are installed and unchanged")
    return Check(
        name="replay",
        state="error",
        message=f"browser files are missing or changed: {', '.join(wrong)}",
        remedy=browser_files.remedy(),
    )


def _walls() -> Check:
    """Which walls stand around the processes that read hostile files, tried from inside one."""
    try:
        probed = probe()
    except OSError as error:
        return Check(name="walls", state="error", message=str(error))
    missing = [name for name in walls.ALL if name not in probed.walls]
    if walls.NETWORK in missing and walls.CALLS not in missing:
        missing.remove(walls.NETWORK)  # sockets are refused anyway
    held = f"hostile files are read behind {', '.join(probed.walls)}"
    if not missing and not probed.connects:
        return Check(name="walls", state="ok", message=held)
    return Check(
        name="walls",
        state="warning",
        message=f"{held}; this system lacks {', '.join(missing)}",
        remedy="use a kernel from 5.13 on with Landlock and seccomp, on x86_64 or aarch64; in a container, "
        "allow these system calls",
    )


def _configuration(archive: Archive) -> Check:
    set_keys = [
        setting.name for setting in configuration.iter_settings(archive.config) if setting.source != "default"
    ]
    return Check(
        name="configuration", state="ok", message=f"valid; {len(set_keys)} settings are not the default"
    )


def _proxies(archive: Archive) -> Check:
    """Whether a reader can claim another address: asks the running portal and replay with a forged one."""
    config, name = archive.config.web, "addresses of readers"
    if not config.portal_url:
        return Check(name=name, state="ok", message="there is no web server in front of the portal")
    advice = (
        "in [web] name only your own web servers as trusted_proxies, and let them replace the header: "
        "proxy_set_header X-Forwarded-For $remote_addr; (docs/how-to/behind-nginx.md)"
    )
    if not config.trusted_proxies and proxy_probe.is_proxied(config):
        message = "[web] trusted_proxies is empty, so all readers have the address of the web server in front"
        return Check(name=name, state="warning", message=message, remedy=advice)
    results = {url: proxy_probe.probe(url) for url in (config.portal_url, config.replay_url)}
    for url, result in results.items():
        if result is ProbeResult.FORGED:
            message = f"anybody can claim any address at {url}: a forged X-Forwarded-For was believed"
            return Check(name=name, state="error", message=message, remedy=advice)
        if result is ProbeResult.UNKNOWN:
            message = f"the web server in front of {url} does not send the addresses of readers"
            return Check(name=name, state="error", message=message, remedy=advice)
    missing = [url for url, result in results.items() if result is None]
    if missing:
        message = f"could not be checked, because there was no answer from {', '.join(missing)}"
        remedy = "start the portal, then: webdepot doctor"
        return Check(name=name, state="warning", message=message, remedy=remedy)
    return Check(name=name, state="ok", message="a forged X-Forwarded-For is not believed")


def _site_hosts(archive: Archive) -> Check:
    """Whether browsers keep archived sites apart; asks the running replay server by the name of a site."""
    config, name = archive.config.web, "host names of sites"
    is_on = config.host_per_site == "on" or (config.host_per_site == "auto" and not config.portal_url)
    if not is_on:
        message = (
            "all archived sites share one host name: while two are open, one can change what the scripts of "
            "the other have stored"
        )
        remedy = 'set host_per_site = "on" in [web] (docs/how-to/behind-nginx.md)'
        return Check(name=name, state="warning", message=message, remedy=remedy)
    if config.portal_url:
        replay_url = config.replay_url.rstrip("/")
        url = SiteHosts(replay_url=replay_url, parent_url=replay_url).url_for("http://site.example/")
        if proxy_probe.probe(replay_url) is None:
            message = f"could not be checked, because there was no answer from {replay_url}"
            remedy = "start the portal, then: webdepot doctor"
            return Check(name=name, state="warning", message=message, remedy=remedy)
        if proxy_probe.probe(url) is None:
            message = f"readers cannot see archived pages: no answer from {url}"
            remedy = (
                f"let all names below {urlsplit(replay_url).hostname} lead to the replay server: in the name "
                "service, the certificate and the web server (docs/how-to/behind-nginx.md)"
            )
            return Check(name=name, state="error", message=message, remedy=remedy)
    return Check(name=name, state="ok", message="each archived site has a host name of its own")


def _browser(archive: Archive) -> Check:
    """The browser for harvests; it is an error only if the configuration or a profile needs one."""
    config = archive.config.harvest
    user = _find_browser_user(archive)
    try:
        program = launch.get_program(config.browser, sandbox=config.browser_sandbox)
    except ConfigError as error:
        if user:
            return Check(name="browser", state="error", message=f"{user} needs a browser", remedy=str(error))
        if launch.find_program(config.browser) is None:
            message = "there is no Chromium, so pages made by scripts are archived without what scripts show"
            return Check(name="browser", state="ok", message=message, remedy=launch.HOW_TO_INSTALL)
        return Check(
            name="browser", state="ok", message=f"pages can only be fetched without a browser. {error}"
        )
    return Check(name="browser", state="ok", message=f"pages can be opened in {program}")


def _find_browser_user(archive: Archive) -> str:
    """The first setting or profile that needs a browser; empty if there is none."""
    if options.wants_browser(HarvestOptions.from_config(archive.config)):
        return "[harvest] fetch"
    for profile in profiles.every(archive)[0]:
        if options.wants_browser(profiles.options_of(archive, profile.name)):
            return f"profile {profile.name}"
    return ""


def _home(archive: Archive) -> Check:
    if os.access(archive.home, os.W_OK):
        return Check(name="home", state="ok", message=f"{archive.home} is writable")
    return Check(
        name="home",
        state="error",
        message=f"{archive.home} is read-only",
        remedy=f"give yourself write permission on {archive.home}",
    )


def _privacy(archive: Archive) -> Check:
    """Other users of this machine must not read password hashes, tokens, complaints or closed pages."""
    home = archive.home
    if not home.stat().st_mode & _OTHERS:
        return Check(name="privacy", state="ok", message="only its own user can read the archive")
    return Check(
        name="privacy",
        state="warning",
        message=f"other users of this machine can read {home}",
        remedy=f"chmod -R go= {home}",
    )


def _disk(archive: Archive) -> Check:
    free = shutil.disk_usage(archive.home).free
    message = f"{free / 1e9:,.1f} GB free"
    if free < LOW_DISK_BYTES:
        return Check(
            name="disk",
            state="warning",
            message=message,
            remedy="free some disk space before the next harvest, or move the home to a larger disk",
        )
    return Check(name="disk", state="ok", message=message)


def _database(archive: Archive) -> Check:
    if archive.database.engine.dialect.name == "sqlite":
        with archive.database.reading() as connection:
            result = connection.execute(text("PRAGMA integrity_check(5)")).scalars().all()
        if result != ["ok"]:
            return Check(
                name="database",
                state="error",
                message=f"is damaged: {result[0]}",
                remedy="restore webdepot.db from your last backup",
            )
        return Check(name="database", state="ok", message=f"is intact (schema {archive.database.revision()})")
    return _server(archive)


def _workers(archive: Archive) -> Check:
    """Who reads containers, and whether they can share files with this machine."""
    try:
        cluster = archive.cluster
        count = cluster.workers if cluster is not None else 0
    except WebdepotError as error:
        return Check(name="workers", state="error", message=str(error))
    if cluster is None:
        return Check(name="workers", state="ok", message="processes of this machine read containers")
    message = f"{count} workers of {archive.config.engine.scheduler} read containers"
    local = [
        key
        for key, address in (("[work] place", archive.work_address), ("[depot] place", archive.depot_address))
        if not address.startswith("s3:")
    ]
    if local:
        return Check(
            name="workers",
            state="warning",
            message=f"{message}; they must have the folder of {' and '.join(local)} at the same path",
            remedy="set them to s3:// addresses, or mount the folders on all machines",
        )
    return Check(name="workers", state="ok", message=message)


def _machines(archive: Archive) -> Check:
    """Whether everything that several machines must share is at an address that all can reach."""
    config, name = archive.config, "machines"
    with archive.database.reading() as connection:
        seen = {row.machine for row in workers.every(connection) if row.is_alive(archive.clock())}
    if len(seen) <= 1 and not config.cluster.harvesters and config.engine.kind == "processes":
        return Check(name=name, state="ok", message="the archive is on one machine")
    # A folder with a whole path may be mounted on all machines; one below the home is not.
    here = [
        key
        for key, place in (
            ("[database] url", config.database.url),
            ("[work] place", config.work.place),
            ("[depot] place", config.depot.place),
        )
        if not place.startswith(("postgresql:", "s3:", "/"))
    ]
    if not here:
        return Check(
            name=name, state="ok", message="several machines share database, depot and working place"
        )
    return Check(
        name=name,
        state="error" if len(seen) > 1 else "warning",
        message=f"several machines are to work here, but only this one has {' and '.join(here)}",
        remedy="set them to addresses that all machines can reach: docs/how-to/cluster.md",
    )


def _server(archive: Archive) -> Check:
    """The PostgreSQL server: its version, and whether everything else of the archive can be shared, too."""
    with archive.database.reading() as connection:
        version = connection.execute(text("SHOW server_version")).scalar_one()
    message = f"PostgreSQL {version} answers (schema {archive.database.revision()})"
    if not archive.config.depot.place.startswith("s3:"):
        return Check(
            name="database",
            state="warning",
            message=f"{message}, but the depot is a folder of this machine",
            remedy="set [depot] place to an s3:// address before a second machine joins",
        )
    return Check(name="database", state="ok", message=message)


def _harvests(archive: Archive) -> Check:
    """Harvests in the state running or stopped without a process, and harvests not yet in the depot."""
    if archive.config.cluster.harvesters:
        with archive.database.reading() as connection:
            live = [each for each in harvester_rows.every(connection) if each.is_live]
        if not live:
            return Check(
                name="harvests",
                state="warning",
                message="they wait: no harvester is running on any machine",
                remedy="webdepot harvester",
            )
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
            message=f"{len(waiting)} are not yet in the depot",
            remedy=f"webdepot harvest keep {waiting[0].id}",
        )
    return Check(name="harvests", state="ok", message="none is unfinished")


def _containers(archive: Archive) -> Check:
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
        return Check(
            name="containers",
            state="error",
            message=f"{len(wrong)} of {count} are missing or have the wrong size: {', '.join(wrong[:3])}",
            remedy=remedy,
        )
    return Check(name="containers", state="ok", message=f"all {count} are there")


def _size_now(archive: Archive, container: Container) -> int | None:
    try:
        return archive.container_size(container)
    except (WebdepotError, OSError):
        return None  # the place that it is read from cannot be reached


def _depot(archive: Archive) -> Check:
    """Whether every package in the database is in the depot, and the other way round."""
    with archive.database.reading() as connection:
        known = set(holdings.iter_ids(connection))
    held = set(package.iter_packages(archive.store))
    if missing := known - held:
        return Check(
            name="depot",
            state="error",
            message=f"{len(missing)} packages are missing, beginning with {min(missing)}",
            remedy="webdepot depot audit --older-than 0",
        )
    if extra := held - known:
        return Check(
            name="depot",
            state="warning",
            message=f"{len(extra)} packages are not in the database, beginning with {min(extra)}",
            remedy="webdepot doctor --mend",
        )
    if behind := _behind(archive, known):
        return Check(
            name="depot",
            state="warning",
            message=f"{len(behind)} packages have a newer version than the database, beginning with "
            f"{behind[0]}",
            remedy="webdepot doctor --mend",
        )
    return Check(name="depot", state="ok", message=f"{len(known)} packages")


def _behind(archive: Archive, packages: Iterable[PackageId]) -> list[PackageId]:
    """Packages whose newest version was written by a process that was killed before it wrote the rows."""
    behind = []
    for identifier in sorted(packages):
        with suppress(CorruptData, NotFound):  # an audit reports and repairs these
            if versions.is_behind(archive, identifier):
                behind.append(identifier)
    return behind


def _leftovers(archive: Archive) -> Check:
    """Folders of processes that were killed: temporary ones, and working folders of kept harvests."""
    left = [*archive.abandoned_folders(), *harvests.finished_folders(archive)]
    if left:
        names = ", ".join(folder.relative_to(archive.home).as_posix() for folder in left[:3])
        return Check(
            name="leftovers",
            state="warning",
            message=f"{len(left)} folders of ended processes: {names}",
            remedy="webdepot doctor --mend",
        )
    return Check(name="leftovers", state="ok", message="ended processes left no folders")


def _captures(archive: Archive) -> Check:
    return _indexed(archive, "addresses", {name for name, _ in archive.captures.containers()})


def _texts(archive: Archive) -> Check:
    try:
        indexed = archive.texts.containers()
    except RemoteError as error:
        return Check(name="index of words", state="error", message=str(error))
    return _indexed(archive, "words", indexed)


def _indexed(archive: Archive, name: str, indexed: frozenset[str] | set[str]) -> Check:
    known = {container.name for container in shown.containers(archive)}
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
            message=f"{len(extra)} containers are indexed that are gone or not yet shown to readers",
            remedy="webdepot index update",
        )
    return Check(name=f"index of {name}", state="ok", message=f"{len(known)} containers")


def _checksums(archive: Archive, watch: Watch) -> Check:
    """Read all containers and compare checksums; only with `--deep`."""
    with archive.database.reading() as connection:
        all_containers = list(locations.iter_all(connection))
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
        name="checksums", state="ok", message=f"all {len(all_containers)} containers match their checksums"
    )


def _repair(archive: Archive, watch: Watch) -> Iterator[Check]:
    with archive.database.reading() as connection:
        unfinished = runs.in_states(connection, [HarvestState.RUNNING])
    for harvest in unfinished:
        if not harvests.is_locked(archive, harvest):
            message = runner.recover(archive, harvest)
            yield Check(
                name="recovery",
                state="ok",
                message=f"{harvest.id}: {message}",
                remedy=f"webdepot harvest resume {harvest.id}",
            )
    adopted = deposit.adopt(archive)
    if adopted:
        yield Check(name="depot", state="ok", message=f"{len(adopted)} packages were added to the database")
    with archive.database.reading() as connection:
        known = list(holdings.iter_ids(connection))
    behind = _behind(archive, known)
    for identifier in behind:
        versions.catch_up(archive, identifier)
    if behind:
        yield Check(name="depot", state="ok", message=f"{len(behind)} packages were updated in the database")
    removed = archive.remove_abandoned()
    for folder in harvests.finished_folders(archive):
        shutil.rmtree(folder, ignore_errors=True)
        removed += 1
    if removed:
        yield Check(
            name="leftovers", state="ok", message=f"{removed} folders of ended processes were removed"
        )
    done = indexer.update(archive, watch=watch)
    if done.captures or done.pages:
        yield Check(
            name="indexes", state="ok", message=f"{done.captures} captures and {done.pages} pages were added"
        )
