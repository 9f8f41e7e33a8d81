"""Checks of the program and its machine: Python, packages, browser files, sandbox, browser."""

import sys
from importlib.util import find_spec

from webdepot import browser_files
from webdepot.archive import Archive
from webdepot.config.settings import Config
from webdepot.errors import ConfigError
from webdepot.guard import walls
from webdepot.guard.probe import probe
from webdepot.harvest.browser import launch
from webdepot.services.admin.doctor.health_check import HealthCheck
from webdepot.services.harvest import options, profiles
from webdepot.services.harvest.options import HarvestOptions
from webdepot.version import VERSION

NEWEST_PYTHON = (3, 14)
"""The newest version that Webdepot was tested with."""


def check_python() -> HealthCheck:
    """The interpreter and the program; a Python that is newer than those of our tests may break something."""
    version = ".".join(map(str, sys.version_info[:3]))
    message = f"{version} ({sys.executable}), Webdepot {VERSION}"
    if sys.version_info[:2] <= NEWEST_PYTHON:
        return HealthCheck(name="python", state="ok", message=message)
    newest = ".".join(map(str, NEWEST_PYTHON))
    return HealthCheck(
        name="python",
        state="warning",
        message=f"{message}; it was not tested with this Python",
        remedy=f"pipx install --python python{newest} webdepot-{VERSION}-py3-none-any.whl",
    )


def check_driver(config: Config) -> HealthCheck:
    """The optional package for a database on PostgreSQL; without it the archive cannot be opened."""
    if not config.database.url or find_spec("psycopg"):
        return HealthCheck(
            name="packages", state="ok", message="everything that this configuration needs is installed"
        )
    return HealthCheck(
        name="packages",
        state="error",
        message="the driver for PostgreSQL ([database] url) is missing",
        remedy=f"{sys.executable} -m pip install 'psycopg[binary]'",
    )


def check_browser_files() -> HealthCheck:
    """Replay needs the service worker, which the package contains and `make install` fetches."""
    wrong = browser_files.find_wrong()
    if not wrong:
        return HealthCheck(name="replay", state="ok", message="the browser files are installed and unchanged")
    return HealthCheck(
        name="replay",
        state="error",
        message=f"browser files are missing or changed: {', '.join(wrong)}",
        remedy=browser_files.remedy(),
    )


def check_walls() -> HealthCheck:
    """Which protections confine the processes that read hostile files, tested from inside one of them."""
    try:
        probed = probe()
    except OSError as error:
        return HealthCheck(name="walls", state="error", message=str(error))
    missing = [name for name in walls.ALL if name not in probed.walls]
    if walls.NETWORK in missing and walls.CALLS not in missing:
        missing.remove(walls.NETWORK)  # sockets are refused anyway
    held = f"processes that read hostile files are confined by {', '.join(probed.walls)}"
    if not missing and not probed.connects:
        return HealthCheck(name="walls", state="ok", message=held)
    return HealthCheck(
        name="walls",
        state="warning",
        message=f"{held}; this system lacks {', '.join(missing)}",
        remedy="use a kernel from 5.13 on with Landlock and seccomp, on x86_64 or aarch64; in a container, "
        "allow these system calls",
    )


def check_browser(archive: Archive) -> HealthCheck:
    """The browser for harvests; it is an error only if the configuration or a profile needs one."""
    config = archive.config.harvest
    user = _find_browser_user(archive)
    try:
        program = launch.get_program(config.browser, sandbox=config.browser_sandbox)
    except ConfigError as error:
        if user:
            return HealthCheck(
                name="browser", state="error", message=f"{user} needs a browser", remedy=str(error)
            )
        if launch.find_program(config.browser) is None:
            message = "there is no Chromium, so pages made by scripts are archived without what scripts show"
            return HealthCheck(name="browser", state="ok", message=message, remedy=launch.HOW_TO_INSTALL)
        return HealthCheck(
            name="browser", state="ok", message=f"pages can only be fetched without a browser. {error}"
        )
    return HealthCheck(name="browser", state="ok", message=f"pages can be opened in {program}")


def _find_browser_user(archive: Archive) -> str:
    """The first setting or profile that needs a browser; empty if there is none."""
    if options.wants_browser(HarvestOptions.from_config(archive.config)):
        return "[harvest] fetch"
    for profile in profiles.every(archive)[0]:
        if options.wants_browser(profiles.options_of(archive, profile.name)):
            return f"profile {profile.name}"
    return ""
