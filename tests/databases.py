"""Databases of tests on a PostgreSQL server (`postgres`)."""

import itertools
import os
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from webdepot.config.config import FILE_NAME

IS_CHOSEN = os.environ.get("WEBDEPOT_TEST_DATABASE") == "postgresql"


class Databases:
    """The databases of a server, by their addresses for `[database] url`."""

    def __init__(self, address: str) -> None:
        self._server = make_url(address).set(drivername="postgresql")
        self._numbers = itertools.count(1)

    def create(self, copy_of: str = "") -> str:
        """A new database: empty, or a copy of another one that is not in use."""
        name = f"archive_{next(self._numbers)}"
        template = f" TEMPLATE {make_url(copy_of).database}" if copy_of else ""
        self.run(f"CREATE DATABASE {name}{template}")
        return self._server.set(database=name).render_as_string(hide_password=False)

    def run(self, statement: str) -> None:
        with psycopg.connect(
            self._server.render_as_string(hide_password=False), autocommit=True
        ) as connection:
            connection.execute(statement.encode())


def own_database(home: Path, databases: Databases) -> None:
    """Give the copy of a home a copy of its database."""
    file = home / FILE_NAME
    before, mark, rest = file.read_text().partition('\nurl = "postgresql')
    if mark:
        address, _, after = rest.partition('"')
        copied = databases.create(copy_of=f"postgresql{address}")
        file.write_text(f'{before}\nurl = "{copied}"{after}')
