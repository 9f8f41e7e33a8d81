"""`webdepot doctor`: check whether the archive is healthy, and say how to repair it. Each check is one
function.

`repair` makes the repairs that lose nothing and need no decision: it recovers containers of killed harvests,
adds packages and versions of the depot to the database, removes the folders of ended processes, and brings
the indexes up to date.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from webdepot.archive import Archive, is_founded
from webdepot.config import config as configuration
from webdepot.depot import holdings
from webdepot.errors import WebdepotError
from webdepot.harvest import harvest_rows
from webdepot.model import HarvestState
from webdepot.services.admin.doctor.health_check import HealthCheck
from webdepot.services.admin.doctor.holdings import (
    check_captures,
    check_checksums,
    check_containers,
    check_depot,
    check_harvests,
    check_leftovers,
    check_texts,
    packages_behind,
)
from webdepot.services.admin.doctor.installation import (
    check_browser,
    check_browser_files,
    check_driver,
    check_python,
    check_walls,
)
from webdepot.services.admin.doctor.resources import (
    check_configuration,
    check_database,
    check_disk,
    check_home,
    check_machines,
    check_privacy,
    check_workers,
    check_working_place,
)
from webdepot.services.admin.doctor.web_servers import check_proxies, check_site_hosts
from webdepot.services.depot import deposit, versions
from webdepot.services.harvest import harvests, runner
from webdepot.services.index import indexer
from webdepot.services.progress import Watch, unwatched


def examine(
    home: Path, *, deep: bool = False, repair: bool = False, agent: str = "", watch: Watch = unwatched
) -> list[HealthCheck]:
    """The results of all checks, in order. If the archive cannot be opened, the list ends with the reason;
    this function never raises.
    """
    checks = [check_python(), check_browser_files(), check_walls()]
    try:
        config = configuration.read(home)
        checks.append(check_driver(config))
        if not is_founded(config):
            return [
                *checks,
                HealthCheck(
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
                check_configuration,
                check_proxies,
                check_site_hosts,
                check_browser,
                check_home,
                check_privacy,
                check_disk,
                check_database,
                check_workers,
                check_machines,
                check_working_place,
                check_harvests,
                check_containers,
                check_depot,
                check_leftovers,
                check_captures,
                check_texts,
            ):
                checks.append(_checked(check, archive))
            if deep:
                checks.append(check_checksums(archive, watch))
    except (WebdepotError, OSError) as error:
        checks.append(HealthCheck(name="home", state="error", message=str(error)))
    return checks


def _checked(check: Callable[[Archive], HealthCheck], archive: Archive) -> HealthCheck:
    """The result of a check; the error that ended it, so that the other checks are made anyway."""
    try:
        return check(archive)
    except (WebdepotError, OSError) as error:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        return HealthCheck(name=name, state="error", message=str(error))


def _repair(archive: Archive, watch: Watch) -> Iterator[HealthCheck]:
    with archive.database.reading() as connection:
        unfinished = harvest_rows.in_states(connection, [HarvestState.RUNNING])
    for harvest in unfinished:
        if not harvests.is_locked(archive, harvest):
            message = runner.recover(archive, harvest)
            yield HealthCheck(
                name="recovery",
                state="ok",
                message=f"{harvest.id}: {message}",
                remedy=f"webdepot harvest resume {harvest.id}",
            )
    adopted = deposit.adopt(archive)
    if adopted:
        yield HealthCheck(
            name="depot", state="ok", message=f"{len(adopted)} packages were added to the database"
        )
    with archive.database.reading() as connection:
        known = list(holdings.iter_ids(connection))
    behind = packages_behind(archive, known)
    for identifier in behind:
        versions.catch_up(archive, identifier)
    if behind:
        yield HealthCheck(
            name="depot", state="ok", message=f"{len(behind)} packages were updated in the database"
        )
    removed = archive.remove_abandoned()
    for folder in harvests.finished_folders(archive):
        shutil.rmtree(folder, ignore_errors=True)
        removed += 1
    if removed:
        yield HealthCheck(
            name="leftovers", state="ok", message=f"{removed} folders of ended processes were removed"
        )
    done = indexer.update(archive, watch=watch)
    if done.captures or done.pages:
        yield HealthCheck(
            name="indexes", state="ok", message=f"{done.captures} captures and {done.pages} pages were added"
        )
