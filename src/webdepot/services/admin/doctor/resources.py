"""Checks of the home and of what the archive works with: configuration, disk, database, other machines."""

import os
import shutil
import stat

from sqlalchemy import text

from webdepot.archive import Archive
from webdepot.config import config as configuration
from webdepot.engine import process_rows
from webdepot.errors import WebdepotError
from webdepot.services.admin.doctor.health_check import HealthCheck

LOW_DISK_BYTES = 2_000_000_000
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_configuration(archive: Archive) -> HealthCheck:
    set_keys = [
        setting.name for setting in configuration.iter_settings(archive.config) if setting.source != "default"
    ]
    return HealthCheck(
        name="configuration", state="ok", message=f"valid; {len(set_keys)} settings are not the default"
    )


def check_home(archive: Archive) -> HealthCheck:
    if os.access(archive.home, os.W_OK):
        return HealthCheck(name="home", state="ok", message=f"{archive.home} is writable")
    return HealthCheck(
        name="home",
        state="error",
        message=f"{archive.home} is read-only",
        remedy=f"give yourself write permission on {archive.home}",
    )


def check_privacy(archive: Archive) -> HealthCheck:
    """Other users of this machine must not read password hashes, tokens, complaints or closed pages."""
    home = archive.home
    if not home.stat().st_mode & _OTHERS:
        return HealthCheck(name="privacy", state="ok", message="only its own user can read the archive")
    return HealthCheck(
        name="privacy",
        state="warning",
        message=f"other users of this machine can read {home}",
        remedy=f"chmod -R go= {home}",
    )


def check_disk(archive: Archive) -> HealthCheck:
    free = shutil.disk_usage(archive.home).free
    message = f"{free / 1e9:,.1f} GB free"
    if free < LOW_DISK_BYTES:
        return HealthCheck(
            name="disk",
            state="warning",
            message=message,
            remedy="free some disk space before the next harvest, or move the home to a larger disk",
        )
    return HealthCheck(name="disk", state="ok", message=message)


def check_database(archive: Archive) -> HealthCheck:
    if archive.database.engine.dialect.name == "sqlite":
        with archive.database.reading() as connection:
            result = connection.execute(text("PRAGMA integrity_check(5)")).scalars().all()
        if result != ["ok"]:
            return HealthCheck(
                name="database",
                state="error",
                message=f"is damaged: {result[0]}",
                remedy="restore webdepot.db from your last backup",
            )
        return HealthCheck(
            name="database", state="ok", message=f"is intact (schema {archive.database.revision()})"
        )
    return _server(archive)


def check_workers(archive: Archive) -> HealthCheck:
    """Who reads containers, and whether they can share files with this machine."""
    try:
        cluster = archive.cluster
        count = cluster.workers if cluster is not None else 0
    except WebdepotError as error:
        return HealthCheck(name="workers", state="error", message=str(error))
    if cluster is None:
        return HealthCheck(name="workers", state="ok", message="processes of this machine read containers")
    message = f"{count} workers of {archive.config.engine.scheduler} read containers"
    local = [
        key
        for key, address in (("[work] place", archive.work_address), ("[depot] place", archive.depot_address))
        if not address.startswith("s3:")
    ]
    if local:
        return HealthCheck(
            name="workers",
            state="warning",
            message=f"{message}; they must have the folder of {' and '.join(local)} at the same path",
            remedy="set them to s3:// addresses, or mount the folders on all machines",
        )
    return HealthCheck(name="workers", state="ok", message=message)


def check_machines(archive: Archive) -> HealthCheck:
    """Whether everything that several machines must share is at an address that all can reach."""
    config, name = archive.config, "machines"
    with archive.database.reading() as connection:
        seen = {row.machine for row in process_rows.every(connection) if row.is_alive(archive.clock())}
    if len(seen) <= 1 and not config.cluster.harvesters and config.engine.kind == "processes":
        return HealthCheck(name=name, state="ok", message="the archive is on one machine")
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
        return HealthCheck(
            name=name, state="ok", message="several machines share database, depot and working place"
        )
    return HealthCheck(
        name=name,
        state="error" if len(seen) > 1 else "warning",
        message=f"several machines are to work here, but only this one has {' and '.join(here)}",
        remedy="set them to addresses that all machines can reach: docs/how-to/several-machines.md",
    )


def check_working_place(archive: Archive) -> HealthCheck:
    """Whether the place for files of running work answers."""
    name = "working place"
    try:
        next(iter(archive.work.keys("harvests/")), None)
    except (WebdepotError, OSError) as error:
        return HealthCheck(
            name=name,
            state="error",
            message=str(error),
            remedy="start its server, or correct [work] place in webdepot.toml",
        )
    return HealthCheck(name=name, state="ok", message=f"{archive.work_address} answers")


def _server(archive: Archive) -> HealthCheck:
    """The PostgreSQL server and its version."""
    with archive.database.reading() as connection:
        version = connection.execute(text("SHOW server_version")).scalar_one()
    message = f"PostgreSQL {version} answers (schema {archive.database.revision()})"
    return HealthCheck(name="database", state="ok", message=message)
