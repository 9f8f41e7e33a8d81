"""The database: upgrades of every earlier schema, transactions and events."""

import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta, timezone

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from migration import import_all_tables
from webdepot import database, provenance
from webdepot.archive import Archive
from webdepot.database import Database, metadata
from webdepot.errors import Conflict, NotFound
from webdepot.provenance import Event, Outcome


def revisions() -> list[str]:
    with_engine = database._alembic(Database("sqlite://").engine)
    return [script.revision for script in ScriptDirectory.from_config(with_engine).walk_revisions()]


@pytest.mark.parametrize("start", [None, *revisions()])
def test_every_earlier_schema_upgrades_to_the_one_in_the_code(tmp_path, start):
    import alembic.command

    base = Database.in_file(tmp_path / "old.db")
    if start is not None:
        alembic.command.upgrade(database._alembic(base.engine), start)
    base.upgrade()
    import_all_tables()
    with base.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    base.close()


def test_a_home_of_a_newer_version_is_refused_and_left_alone(archive, home):
    with archive.database.transaction() as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
    archive.close()
    before = (home / "webdepot.db").read_bytes()
    with pytest.raises(Conflict, match="newer version"):
        Archive.open(home)
    assert (home / "webdepot.db").read_bytes() == before


def test_a_folder_without_an_archive_is_reported_with_the_remedy(tmp_path):
    with pytest.raises(NotFound, match="init"):
        Archive.open(tmp_path)


def test_a_failed_transaction_leaves_nothing(archive):
    event = Event(at=datetime.now(UTC), agent="test", action="tried", subject_kind="thing", subject="1")
    with pytest.raises(RuntimeError, match="stop"), archive.database.transaction() as connection:
        provenance.append(connection, event)
        raise RuntimeError("stop")
    with archive.database.reading() as connection:
        assert list(provenance.iter_of(connection, "thing", "1")) == []


def test_a_committed_transaction_outlives_a_kill(home):
    script = textwrap.dedent(
        f"""
        import os, signal
        from datetime import datetime, UTC
        from pathlib import Path
        from webdepot.archive import Archive
        from webdepot.provenance import Event, append
        archive = Archive.open(Path({str(home)!r}))
        with archive.database.transaction() as connection:
            append(connection, Event(at=datetime.now(UTC), agent="test", action="kept", subject_kind="thing", subject="1"))
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    with Archive.open(home) as archive, archive.database.reading() as connection:
        assert [event.action for event in provenance.iter_of(connection, "thing", "1")] == ["kept"]


def test_events_come_back_as_they_were_in_order(archive):
    zone = timezone(timedelta(hours=2))
    first = Event(
        at=datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=zone),
        agent="anna",
        action="sealed",
        subject_kind="container",
        subject="x.warc.gz",
        outcome=Outcome.WARNING,
        message="ünïcode",
        detail={"bytes": 12},
    )
    second = Event(
        at=datetime(2020, 1, 1, tzinfo=UTC),
        agent="bob",
        action="kept",
        subject_kind="container",
        subject="x.warc.gz",
    )
    with archive.database.transaction() as connection:
        provenance.append(connection, first)
        provenance.append(connection, second)
    with archive.database.reading() as connection:
        assert list(provenance.iter_of(connection, "container", "x.warc.gz")) == [first, second]
        assert provenance.latest(connection, 1) == [second]
