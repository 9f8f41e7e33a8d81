"""Making an archive: its folder, a commented configuration file and the database."""

import os
from pathlib import Path

from webdepot import config as configuration
from webdepot.archive import DATABASE_NAME, Archive
from webdepot.config import FILE_NAME, iter_settings
from webdepot.errors import Conflict
from webdepot.provenance import Event, append
from webdepot.times import Clock, utc_now


def found(home: Path, *, clock: Clock = utc_now, agent: str = "", settings: str = "") -> bool:
    """Make the archive, or bring the database of an existing one up to date; whether it is new.

    `settings` is TOML put at the head of the new configuration file. Conflict when the folder holds something
    else.
    """
    is_new = not (home / DATABASE_NAME).exists()
    if is_new:
        if home.exists() and not home.is_dir():
            raise Conflict(f"{home} is a file. Name a folder for the archive.")
        if home.exists() and any(entry.name != FILE_NAME for entry in home.iterdir()):
            raise Conflict(f"{home} is not empty and holds no archive. Name an empty or a new folder.")
        home.mkdir(parents=True, exist_ok=True)
        if not (home / FILE_NAME).exists():
            _write_config(home, settings)
    archive = Archive(configuration.read(home), clock=clock, agent=agent)
    try:
        archive.database.upgrade()
        archive.harvests_folder.mkdir(exist_ok=True)
        archive.index_folder.mkdir(exist_ok=True)
        if is_new:
            with archive.database.transaction() as connection:
                append(
                    connection,
                    Event(
                        at=clock(),
                        agent=archive.agent,
                        action="founded",
                        subject_kind="archive",
                        subject=home.name,
                    ),
                )
    finally:
        archive.close()
    return is_new


def _write_config(home: Path, settings: str) -> None:
    """Every key with its documentation and default, commented out: the file is its own manual."""
    lines = ["# The configuration of this archive. Take the # off a line to change it.", ""]
    if settings:
        lines += [settings, ""]
    given = configuration.from_tree(home, _parsed(settings), environment={}, origin=FILE_NAME)
    section = ""
    for setting in iter_settings(given):
        name, _, key = setting.name.partition(".")
        if name != section:
            section = name
            # A section given in `settings` stands there already; TOML allows it only once.
            lines += ["", f"# [{name}]" if f"[{name}]" in settings else f"[{name}]"]
        lines += [f"# {setting.doc}", f"# {key} = {toml_of(setting.default)}"]
    partial = home / f".{FILE_NAME}.partial"
    with partial.open("w", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    partial.rename(home / FILE_NAME)


def _parsed(settings: str) -> dict[str, object]:
    import tomllib

    return tomllib.loads(settings)


def toml_of(value: object) -> str:
    """A value of the configuration as TOML spells it."""
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
