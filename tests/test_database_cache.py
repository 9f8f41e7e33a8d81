"""Facts cached until any process commits: never stale, and read once."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from webdepot.database import Database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "webdepot.db"
    database = Database.in_file(made)
    with database.transaction() as connection:
        connection.execute(text("CREATE TABLE facts (value INTEGER)"))
        connection.execute(text("INSERT INTO facts VALUES (1)"))
    database.close()
    return made


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    opened = Database.in_file(path)
    yield opened
    opened.close()


class Fact:
    """The remembered value, and how often it was read."""

    def __init__(self) -> None:
        self.read = 0

    def __call__(self, connection: Connection) -> int:
        self.read += 1
        value: int = connection.execute(text("SELECT value FROM facts")).scalar_one()
        return value


def change(database: Database, value: int) -> None:
    with database.transaction() as connection:
        connection.execute(text("UPDATE facts SET value = :value"), {"value": value})


def test_a_fact_is_read_once_until_another_process_commits(database: Database, path: Path):
    fact = Fact()
    assert [database.remembered("fact", fact) for _ in range(3)] == [1, 1, 1]
    assert fact.read == 1
    written = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('UPDATE facts SET value = 2'); c.commit(); c.close()"
    subprocess.run([sys.executable, "-c", written, str(path)], check=True)
    assert [database.remembered("fact", fact) for _ in range(3)] == [2, 2, 2]
    assert fact.read == 2


def test_commits_one_right_after_another_are_all_seen(database: Database):
    """Many commits fall into one tick of the file system's clock; each is followed by one reading."""
    fact = Fact()
    for value in range(2, 30):
        change(database, value)
        assert [database.remembered("fact", fact) for _ in range(2)] == [value, value]
    assert fact.read == 28


def test_the_times_of_files_do_not_count(database: Database, path: Path):
    """A commit is written to its file before it can be seen, by seconds where the disk is busy: the file's
    time tells neither.
    """

    def set_back() -> None:
        for file in path.parent.iterdir():
            os.utime(file, (1_000_000_000, 1_000_000_000))

    set_back()
    assert database.remembered("fact", Fact()) == 1
    other = Database.in_file(path)
    change(other, 2)
    other.close()
    set_back()
    assert database.remembered("fact", Fact()) == 2


def test_a_file_restored_from_a_backup_is_read_again(database: Database, path: Path, tmp_path: Path):
    copy = tmp_path / "backup.db"
    shutil.copy(path, copy)
    change(database, 2)
    assert database.remembered("fact", Fact()) == 2
    database.close()
    copy.replace(path)
    assert database.remembered("fact", Fact()) == 1


def test_without_a_file_nothing_is_remembered():
    database = Database("sqlite://")
    assert [database.remembered("fact", lambda connection, value=value: value) for value in (1, 2)] == [1, 2]
    database.close()


def test_names_are_kept_apart(database: Database):
    assert database.remembered("one", lambda connection: 1) == 1
    assert database.remembered("two", lambda connection: 2) == 2
    assert database.remembered("one", lambda connection: 3) == 1
