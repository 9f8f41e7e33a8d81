"""Archives that earlier versions made are upgraded, and everything in them still works.

The archives in `tests/corpus/archives` were made by the code of their time: the first one with a schema (0001),
and that of version 0.1 (0010). Each has an imported site in the depot and in the indexes, an access rule and an
account.
"""

import zipfile
from pathlib import Path

import pytest
from sqlalchemy import inspect

from small_warcs import write_warc
from webdepot.access.policy import ANYONE
from webdepot.accounts import accounts
from webdepot.archive import Archive
from webdepot.depot import holdings
from webdepot.errors import Closed, Conflict, WebdepotError
from webdepot.services import pipeline
from webdepot.services.access import rules, search
from webdepot.services.access.replay import replay
from webdepot.services.admin import setup
from webdepot.services.admin.doctor import doctor
from webdepot.services.depot import audit, export
from webdepot.services.depot.export import PackageForm
from webdepot.services.index import indexer

ARCHIVES = Path(__file__).resolve().parents[1] / "corpus" / "archives"
STAMP = "20240101000000"


@pytest.fixture(params=["0001", "0010"])
def old_home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


def unpack(schema: str, folder: Path) -> Path:
    with zipfile.ZipFile(ARCHIVES / f"schema-{schema}.zip") as packed:
        packed.extractall(folder)
    return folder / f"schema-{schema}"


def test_an_old_archive_is_upgraded_and_everything_in_it_works(old_home: Path, tmp_path: Path):
    assert setup.create(old_home) is False, "it is the same archive"
    with Archive.open(old_home, agent="test") as archive:
        tables = set(inspect(archive.database.engine).get_table_names())
        assert {"access_rules", "target_lists", "page_ratings"} <= tables
        indexer.rebuild(archive)  # the text index has a version of its own
        found = search.search(archive, "turns", reader=ANYONE)
        assert [hit.url for hit in found.hits] == ["https://mill.example/"]
        shown = replay.open_capture(
            archive, "https://mill.example/", STAMP, collection="mills", reader=ANYONE
        )
        assert b"It turns in the wind." in replay.content_of(shown).read()
        shown.close()
        with pytest.raises(Closed, match="Closed"):
            replay.open_capture(archive, "https://mill.example/news", STAMP, collection="all", reader=ANYONE)
        assert [rules.pattern_of(rule) for rule in rules.every(archive)] == ["mill.example/news"]
        assert accounts.has_password(archive.database, "anna", "secret-pass-123")
        checked = audit.audit(archive, older_than_days=0)
        assert not checked.problems and checked.size_bytes
        again = write_warc(
            tmp_path / "new.warc.gz", {"https://brook.example/": b"<title>The brook</title>runs"}
        )
        report = pipeline.import_files(archive, [again], collection="mills")
        assert report.taken is not None and report.taken.package is not None
        assert search.search(archive, "runs", reader=ANYONE).hits
        with archive.database.reading() as connection:
            packages = list(holdings.iter_ids(connection))
        assert len(packages) == 2
        for number, package in enumerate(packages):
            export.export(archive, package, PackageForm.WACZ, tmp_path / f"{number}.wacz")
    bad = [check for check in doctor.examine(old_home) if check.state == "error"]
    assert not bad


def test_without_a_rebuild_the_index_says_what_to_do(tmp_path: Path):
    home = unpack("0001", tmp_path)
    setup.create(home)
    with Archive.open(home) as archive, pytest.raises(WebdepotError, match="webdepot index rebuild"):
        search.search(archive, "turns", reader=ANYONE)


def test_an_older_program_does_not_open_a_newer_database(home: Path):
    with Archive.open(home) as archive, archive.database.transaction() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Conflict, match="newer version"):
        setup.create(home)
