"""Create an archive: its folder, a commented configuration file and the database."""

import tomllib
from pathlib import Path

from webdepot import durable
from webdepot.archive import DATABASE_NAME, Archive
from webdepot.config import config
from webdepot.config.config import FILE_NAME, iter_settings
from webdepot.errors import Conflict
from webdepot.provenance import append, iter_all
from webdepot.times import Clock, utc_now


def found(home: Path, *, clock: Clock = utc_now, agent: str = "", settings: str = "") -> bool:
    """Create the archive, or upgrade the database of an existing one; True if it is new.

    `settings` is TOML for the top of a new configuration file, which replaces an existing one. Conflict if
    the folder contains something else.
    """
    is_new = not (home / DATABASE_NAME).exists()
    if is_new:
        if home.exists() and not home.is_dir():
            raise Conflict(f"{home} is a file. Give a folder for the archive.")
        if home.exists() and any(entry.name != FILE_NAME for entry in home.iterdir()):
            raise Conflict(f"{home} is not empty and is not an archive. Give an empty or new folder.")
        durable.make_folders(home)
        home.chmod(0o700)  # also a folder that was there before, and whatever the umask
        if settings or not (home / FILE_NAME).exists():
            _write_config(home, settings)
    archive = Archive(config.read(home), clock=clock, agent=agent)
    try:
        archive.database.upgrade()
        durable.make_folders(archive.harvests_folder)
        durable.make_folders(archive.index_folder)
        with archive.database.transaction() as connection:
            if next(iter_all(connection), None) is None:  # it is new, or its founding was interrupted
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
