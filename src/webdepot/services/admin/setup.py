"""Create an archive: its folder, a commented configuration file and the database.

If several processes create the same archive, one does it and the others wait: the first entry in the folder
is a lock, which is removed when the archive is complete.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from webdepot import durable
from webdepot.archive import DATABASE_NAME, Archive, is_founded
from webdepot.config import config
from webdepot.config.config import FILE_NAME, iter_settings
from webdepot.errors import Conflict
from webdepot.provenance import append, latest
from webdepot.times import Clock, utc_now

_LOCK_NAME = ".creating"
_BEFORE_THE_DATABASE = frozenset({FILE_NAME, "cluster", FILE_NAME + durable.NEW_SUFFIX, _LOCK_NAME})
"""What a folder may contain before it becomes an archive: a configuration, the engines of `webdepot cluster
up`, and the two files that a killed process leaves."""


def create(home: Path, *, clock: Clock = utc_now, agent: str = "", settings: str = "") -> bool:
    """Create the archive, or upgrade the database of an existing one; return True if it is new.

    `settings` is TOML for the top of a new configuration file, which replaces an existing one. Conflict if
    the folder contains something else.
    """
    if home.exists() and not home.is_dir():
        raise Conflict(f"{home} is a file. Give a folder for the archive.")
    names = {entry.name for entry in home.iterdir()} if home.exists() else set()
    if home.exists() and is_complete(home):
        return _complete(home, clock, agent, settings)
    if not names & {DATABASE_NAME, _LOCK_NAME} and not names <= _BEFORE_THE_DATABASE:
        raise Conflict(f"{home} is not empty and is not an archive. Give an empty or new folder.")
    durable.make_folders(home)
    home.chmod(0o700)  # also a folder that was there before, and whatever the umask
    with durable.locked(home / _LOCK_NAME):
        try:
            return _complete(home, clock, agent, settings)
        finally:
            (home / _LOCK_NAME).unlink()
            durable.sync_folder(home)


def is_complete(home: Path) -> bool:
    """Whether there is an archive, and no process was killed while it created it."""
    return is_founded(config.read(home)) and not (home / _LOCK_NAME).exists()


def _complete(home: Path, clock: Clock, agent: str, settings: str) -> bool:
    """Create what is missing of an archive; return whether it has no database yet."""
    is_new = not is_founded(config.read(home))
    if (is_new and settings) or not (home / FILE_NAME).exists():
        _write_config(home, settings)
    archive = Archive(config.read(home), clock=clock, agent=agent)
    try:
        archive.database.upgrade()
        durable.make_folders(archive.harvests_folder)
        durable.make_folders(archive.index_folder)
        with archive.database.transaction() as connection:
            if not latest(connection, 1):  # it is new, or its creation was interrupted
                append(connection, archive.event("founded", "archive", home.name))
    finally:
        archive.close()
    return is_new


def _write_config(home: Path, settings: str) -> None:
    """Write a configuration file with every key, its documentation and its default, all commented out."""
    lines = ["# The configuration of this archive. To change a setting, remove the # in front of it.", ""]
    if settings:
        lines += [settings, ""]
    parsed = config.from_tree(home, tomllib.loads(settings), environment={}, origin=FILE_NAME)
    section = ""
    for setting in iter_settings(parsed):
        name, _, key = setting.name.partition(".")
        if name != section:
            section = name
            # A section in `settings` is already there; TOML allows each section only once.
            lines += ["", f"# [{name}]" if f"[{name}]" in settings else f"[{name}]"]
        lines += [f"# {setting.doc}", f"# {key} = {toml_of(setting.default)}"]
    durable.write_whole(home / FILE_NAME, ("\n".join(lines) + "\n").encode(), mode=0o600)


def toml_text(tree: Mapping[str, Any]) -> str:
    """A configuration file with these sections."""
    lines = []
    for section, keys in tree.items():
        lines += [f"[{section}]", *(f"{toml_of(key)} = {toml_of(value)}" for key, value in keys.items()), ""]
    return "\n".join(lines)


def toml_of(value: object) -> str:
    """A configuration value as TOML."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case tuple() | list():
            return "[" + ", ".join(toml_of(item) for item in value) + "]"
        case dict():
            return "{" + ", ".join(f'"{key}" = {toml_of(item)}' for key, item in value.items()) + "}"
        case _:
            return str(value)
