"""Every kind of database keeps the same promises: one writer at a time, one moment for a reader, commits noticed."""

import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, make_url, text

from databases import Databases
from migration import import_all_tables
from webdepot import query_budget
from webdepot.archive import Archive
from webdepot.database import Database, metadata
from webdepot.errors import ConfigError, NotFound, RemoteError, TooExpensive
from webdepot.query_budget import QueryBudget
from webdepot.services.admin import setup

Opener = Callable[[], Database]
SLOW = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "postgresql": "SELECT pg_sleep(60)",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'webdepot.db'}"
    databases: Databases = request.getfixturevalue("databases")
    return databases.create()


@pytest.fixture
def open_database(url: str) -> Iterator[Opener]:
    """Opens the same database again and again, as several processes do. It has a table of facts."""
    opened: list[Database] = []

    def open_once() -> Database:
        opened.append(Database(url))
        return opened[-1]

    with open_once().transaction() as connection:
        connection.execute(text("CREATE TABLE facts (value INTEGER, words TEXT)"))
        connection.execute(text("INSERT INTO facts VALUES (1, 'first')"))
    yield open_once
    for database in opened:
        database.close()


def value_in(connection: Connection) -> int:
    value: int = connection.execute(text("SELECT value FROM facts")).scalar_one()
    return value


def set_value(database: Database, value: int) -> None:
    with database.transaction() as connection:
        connection.execute(text("UPDATE facts SET value = :value"), {"value": value})


def eventually(database: Database, value: int) -> bool:
    until_s = time.monotonic() + 20
    while database.remembered("fact", value_in) != value:
        if time.monotonic() > until_s:
            return False
        time.sleep(0.01)
    return True


def test_what_a_writer_reads_stays_true_until_it_writes(open_database: Opener):
    def add_one(database: Database) -> None:
        for _ in range(20):
            with database.transaction() as connection:
                before = value_in(connection)
                time.sleep(0.0005)
                connection.execute(text("UPDATE facts SET value = :value"), {"value": before + 1})

    threads = [threading.Thread(target=add_one, args=(open_database(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open_database().reading() as connection:
        assert value_in(connection) == 1 + 4 * 20


def test_a_reader_sees_one_moment_and_does_not_wait_for_writers(open_database: Opener):
    reader, writer = open_database(), open_database()
    with reader.reading() as connection:
        assert value_in(connection) == 1
        set_value(writer, 2)
        assert value_in(connection) == 1
    with reader.reading() as connection:
        assert value_in(connection) == 2
    with writer.transaction() as writing:
        writing.execute(text("UPDATE facts SET value = 3"))
        with reader.reading() as connection:
            assert value_in(connection) == 2


def test_a_failed_transaction_changes_nothing_and_lets_others_write(open_database: Opener):
    database = open_database()
    with pytest.raises(RuntimeError, match="stop"), database.transaction() as connection:
        connection.execute(text("UPDATE facts SET value = 9"))
        raise RuntimeError("stop")
    set_value(open_database(), 2)
    with database.reading() as connection:
        assert value_in(connection) == 2


def test_what_was_only_tried_is_rolled_back_in_its_transaction(open_database: Opener):
    database = open_database()
    with database.transaction() as connection:
        connection.execute(text("UPDATE facts SET value = 9"))
        connection.rollback()
    set_value(open_database(), 2)
    with database.reading() as connection:
        assert value_in(connection) == 2


def test_own_commits_are_seen_at_once_and_those_of_others_soon(open_database: Opener):
    here, elsewhere = open_database(), open_database()
    for value in range(2, 30):
        set_value(here, value)
        assert here.remembered("fact", value_in) == value
    set_value(elsewhere, 99)
    assert eventually(here, 99)
    values: list[int] = []

    def read(connection: Connection) -> int:
        values.append(value_in(connection))
        return values[-1]

    for _ in range(100):
        assert here.remembered("another", read) == 99
    assert len(values) < 50  # a late notification costs a reading more, not an old value


def test_commits_are_noticed_after_the_connection_that_reports_them_was_cut(databases: Databases):
    here, elsewhere = Database(url := databases.create()), Database(url)
    try:
        with here.transaction() as connection:
            connection.execute(text("CREATE TABLE facts (value INTEGER)"))
            connection.execute(text("INSERT INTO facts VALUES (1)"))
        assert here.remembered("fact", value_in) == 1
        for value in range(2, 6):
            databases.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE query LIKE 'LISTEN%' OR query = 'SELECT 1'"
            )
            set_value(elsewhere, value)
            assert eventually(here, value)
    finally:
        here.close()
        elsewhere.close()


def test_an_old_value_is_not_used_although_the_connection_that_reports_commits_is_silent(
    databases: Databases,
):
    elsewhere = Database(url := databases.create())
    with _Relay(url) as relay:
        here = Database(relay.url)
        try:
            with elsewhere.transaction() as connection:
                connection.execute(text("CREATE TABLE facts (value INTEGER)"))
                connection.execute(text("INSERT INTO facts VALUES (1)"))
            assert here.remembered("fact", value_in) == 1
            relay.is_silent.set()
            set_value(elsewhere, 2)
            time.sleep(0.1)
            cut = threading.Timer(0.5, relay.cut)  # as the operating system does after some seconds
            cut.start()
            assert here.remembered("fact", value_in) == 2
            cut.join()
        finally:
            here.close()
            elsewhere.close()


class _Relay:
    """Stands between a program and PostgreSQL. If it is silent, the program gets nothing more on connections that
    listen for notifications, and no error either: as if a firewall had forgotten them.
    """

    def __init__(self, url: str) -> None:
        address = make_url(url)
        name = f".s.PGSQL.{address.port or 5432}"
        self._server = f"{address.query['host']}/{name}"
        self._folder = Path(tempfile.mkdtemp(dir="/tmp"))  # the paths of sockets must be short
        self.url = address.update_query_dict({"host": str(self._folder)}).render_as_string()
        self.is_silent = threading.Event()
        self._listening: list[socket.socket] = []
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(self._folder / name))
        self._door.listen()

    def __enter__(self) -> "_Relay":
        self._run(self._accept)
        return self

    def __exit__(self, *_error: object) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(10)
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for each in (self._door, *self._sockets):
            each.close()
        shutil.rmtree(self._folder)

    def cut(self) -> None:
        for each in self._listening:
            each.shutdown(socket.SHUT_RDWR)

    def _run(self, function: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=function, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):  # it was shut down
            while True:
                client, server = self._door.accept()[0], socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                server.connect(self._server)
                for source, sink in ((client, server), (server, client)):
                    self._run(self._copy, source, sink)

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if b"LISTEN " in data:
                    self._listening.append(source)
                if not (self.is_silent.is_set() and sink in self._listening):
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)


def test_a_text_with_a_nul_is_stored_and_asked_for_without_an_error(open_database: Opener):
    database = open_database()
    with database.transaction() as connection:
        connection.execute(text("UPDATE facts SET words = :words"), {"words": "a\0b"})
    with database.reading() as connection:
        question = text("SELECT value FROM facts WHERE words = :words")
        assert connection.execute(question, {"words": "a\0b"}).scalar_one() == 1
        assert connection.execute(question, {"words": "\0"}).scalar() is None


def test_a_question_ends_with_the_budget_of_its_request(open_database: Opener):
    database = open_database()
    question = SLOW[database.engine.dialect.name]
    with (
        pytest.raises(TooExpensive, match="takes too long"),
        query_budget.spending(QueryBudget(0.05)),
        database.reading() as connection,
    ):
        connection.execute(text(question))
    with database.reading() as connection:
        assert value_in(connection) == 1


def test_several_processes_upgrade_a_database_at_once(url: str):
    script = "import sys; from webdepot.database import Database; d = Database(sys.argv[1]); d.upgrade(); d.close()"
    processes = [
        subprocess.Popen([sys.executable, "-c", script, url], stderr=subprocess.PIPE, text=True)
        for _ in range(5)
    ]
    assert [process.communicate()[1] for process in processes] == [""] * 5
    import_all_tables()
    database = Database(url)
    try:
        with database.engine.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    finally:
        database.close()


def test_new_rows_follow_rows_that_were_inserted_with_ids(url: str):
    columns = "at, agent, action, subject_kind, subject, outcome, message, detail"
    values = "'2026', 'a', 'b', 'c', 'd', 'success', '', '{}'"
    database = Database(url)
    try:
        database.upgrade()
        with database.transaction() as connection:
            connection.exec_driver_sql(f"INSERT INTO events (id, {columns}) VALUES (7, {values})")
            database.restart_ids(connection)
            connection.exec_driver_sql(f"INSERT INTO events ({columns}) VALUES ({values})")
            assert connection.execute(text("SELECT max(id) FROM events")).scalar_one() == 8
    finally:
        database.close()


def test_a_server_that_does_not_answer_and_a_missing_database_are_named(databases: Databases):
    away = Database("postgresql://webdepot@127.0.0.1:1/archive", password="hidden-word")
    with pytest.raises(RemoteError, match="does not answer") as error, away.reading():
        pass
    assert error.value.retry and "hidden-word" not in str(error.value)
    away.close()
    wrong = Database(databases.create().replace("/archive_", "/no_archive_"))
    with pytest.raises(ConfigError, match="createdb"), wrong.reading():
        pass
    wrong.close()


def test_two_machines_share_the_archive_of_one_database(tmp_path: Path, databases: Databases):
    section = f'[database]\nurl = "{databases.create()}"\n'
    first, second = tmp_path / "first", tmp_path / "second"
    for home in (first, second):
        home.mkdir()
        (home / "webdepot.toml").write_text(section)
    with pytest.raises(NotFound, match="init"):
        Archive.open(first)
    assert setup.create(first) is True
    assert setup.create(second) is False
    assert not list(tmp_path.rglob("webdepot.db"))
    with Archive.open(first) as here, Archive.open(second) as there:
        assert here.database.revision() == there.database.revision()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("mysql://x@y/z", "must begin with postgresql://"),
        ("postgresql://me:word@server/archive", "must not contain the password"),
    ],
)
def test_a_wrong_address_of_the_database_is_refused_with_the_reason(tmp_path: Path, wrong: str, reason: str):
    (tmp_path / "webdepot.toml").write_text(f'[database]\nurl = "{wrong}"\n')
    with pytest.raises(ConfigError, match=reason):
        Archive.open(tmp_path)
