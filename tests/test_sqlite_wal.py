"""A new file that another process is just preparing: the second process waits and is not refused."""

import sqlite3
import threading
from datetime import UTC, datetime

import pytest

from webdepot.database import Database
from webdepot.dialects import sqlite_wal
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.selection.domains.lookup.answer_cache import KeptAnswers


def open_index(path):
    index = SqliteCaptureIndex(path)
    found = list(index.containers())
    index.close()
    return found == []


def open_database(path):
    database = Database(f"sqlite:///{path}")
    found = database.revision()
    database.close()
    return found is None


def open_answers(path):
    answers = KeptAnswers(path, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    found = answers.find("host", "example.org")
    answers.close()
    return found is None


@pytest.fixture
def prepared(tmp_path):
    """A new file that another process writes for a moment: meanwhile SQLite refuses to turn the log on,
    without waiting.
    """
    path = tmp_path / "new.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE other (value)")
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, lambda: other.execute("COMMIT"))
    timer.start()
    yield path
    timer.join()
    other.close()


@pytest.mark.parametrize("opened", [open_index, open_database, open_answers])
def test_who_comes_second_waits(prepared, opened):
    assert opened(prepared)


def test_patience_has_an_end(tmp_path):
    other = sqlite3.connect(tmp_path / "new.db", isolation_level=None)
    other.execute("CREATE TABLE other (value)")
    other.execute("BEGIN IMMEDIATE")
    waiting = sqlite3.connect(tmp_path / "new.db", isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite_wal.turn_on(waiting, patience_s=0.05)
    waiting.close()
    other.close()
