"""Facts remembered until somebody commits: never stale, whoever commits, and cheap once the files have come to rest."""

import os
import time
from pathlib import Path

import pytest
from sqlalchemy import text

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


def settle(path: Path) -> None:
    """As if the last commit had been a while ago."""
    past = time.time() - 60
    for file in path.parent.iterdir():
        os.utime(file, (past, past))


def test_a_fact_is_read_once_until_another_process_commits(path: Path):
    database, other = Database.in_file(path), Database.in_file(path)
    asked = []

    def read(connection) -> int:
        asked.append(1)
        return connection.execute(text("SELECT value FROM facts")).scalar_one()

    settle(path)
    assert [database.remembered("fact", read) for _ in range(3)] == [1, 1, 1]
    assert len(asked) == 1
    with other.transaction() as connection:
        connection.execute(text("UPDATE facts SET value = 2"))
    assert database.remembered("fact", read) == 2
    database.close()
    other.close()


def test_right_after_a_commit_nothing_is_remembered(path: Path):
    """Two commits within one tick of the file system's clock look alike."""
    database = Database.in_file(path)
    for value in range(2, 30):
        with database.transaction() as connection:
            connection.execute(text("UPDATE facts SET value = :value"), {"value": value})
        assert database.remembered("fact", lambda connection: connection.execute(text("SELECT value FROM facts")).scalar_one()) == value
    database.close()


def test_names_are_kept_apart(path: Path):
    database = Database.in_file(path)
    settle(path)
    assert database.remembered("one", lambda connection: 1) == 1
    assert database.remembered("two", lambda connection: 2) == 2
    assert database.remembered("one", lambda connection: 3) == 1
    database.close()
