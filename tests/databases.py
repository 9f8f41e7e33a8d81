"""Databases of tests on a PostgreSQL server (`postgres`), and homes whose databases may be on one.

Tests copy and configure homes with `copy_home` and `configure`, so that they work with both kinds of database.
"""

import itertools
import os
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from webdepot.archive import DATABASE_NAME
from webdepot.config.config import FILE_NAME

IS_CHOSEN = os.environ.get("WEBDEPOT_TEST_DATABASE") == "postgresql"
"""Whether the archives of all tests have their databases on PostgreSQL."""

SEEN_AFTER_S = 0.1 if IS_CHOSEN else 0.0
"""How long after the commit of one process the requests begin for which it must count in all others."""

needs_file = pytest.mark.skipif(IS_CHOSEN, reason="is about the file of the database")
"""Marks tests of what the database is only without a server: a file in the home."""


class Databases:
    """The databases of a server, by their addresses for `[database] url`."""

    _numbers = itertools.count(1)

    def __init__(self, address: str) -> None:
        self._server = make_url(address).set(drivername="postgresql", database="postgres")

    def create(self, copy_of: str = "") -> str:
        """A new database: empty, or a copy of another one."""
        name, template = f"archive_{next(self._numbers)}", ""
        if copy_of:
            source = make_url(copy_of).database
            template = f" TEMPLATE {source}"
            # A database in use cannot be copied. Programs open their connections again.
            self.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{source}'")
        self.run(f"CREATE DATABASE {name}{template}")
        return self._server.set(database=name).render_as_string(hide_password=False)

    def run(self, statement: str) -> None:
        with psycopg.connect(
            self._server.render_as_string(hide_password=False), autocommit=True
        ) as connection:
            connection.execute(statement.encode())


def copy_home(source: Path, folder: Path) -> Path:
    """Copy the home of an archive; the copy has a database of its own."""
    shutil.copytree(source, folder)
    if address := address_of(source):
        _replace(folder / FILE_NAME, address, Databases(address).create(copy_of=address))
    return folder


def _replace(config: Path, address: str, other: str) -> None:
    config.write_text(config.read_text().replace(f'"{address}"', f'"{other}"'))


def save_database(home: Path, folder: Path) -> Callable[[], None]:
    """Save the database of a home; returns what brings it back to this moment. No archive may be open then."""
    if address := address_of(home):
        saved, file = Databases(address).create(copy_of=address), home / FILE_NAME
        return lambda: _replace(file, address, saved)

    file, copy = home / DATABASE_NAME, folder / "saved.db"
    shutil.copyfile(file, copy)

    def restore() -> None:
        for path in home.glob(f"{DATABASE_NAME}*"):
            path.unlink()
        shutil.copyfile(copy, file)

    return restore


def configure(home: Path, settings: str) -> None:
    """Write the configuration of a home; its database stays where it is."""
    (home / FILE_NAME).write_text(with_address(settings, address_of(home)))


def with_address(settings: str, address: str) -> str:
    """Settings that name a database on a server, unless the address is empty."""
    return f'{settings}\n[database]\nurl = "{address}"\n' if address else settings


def address_of(home: Path) -> str:
    """The address of the database of a home; empty if it is a file in it."""
    file = home / FILE_NAME
    found = (
        re.search(r'^url = "(postgresql:[^"]*)"$', file.read_text(), re.MULTILINE) if file.exists() else None
    )
    if found is None:
        return ""
    assert tomllib.loads(file.read_text())["database"]["url"] == found[1]
    return found[1]
