"""Everything except the depot is lost and rebuilt: same search results, same bytes, same catalogue."""

import shutil
from pathlib import Path

import pytest
from depot_samples import write_warc
from sqlalchemy import MetaData, select

from databases import configure
from webdepot.access.policy import ANYONE
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.depot import register
from webdepot.depot.ocfl import objects
from webdepot.errors import Conflict, InputError
from webdepot.services import pipeline
from webdepot.services.access import search
from webdepot.services.access.replay import replay
from webdepot.services.admin import rebuild, setup
from webdepot.services.depot import audit, storage_places

PAGES = {
    "https://museum.example/": b"<!doctype html><title>Museum</title>"
    b"<p>The windmill exhibition opens in spring.",
    "https://museum.example/mill": b"<!doctype html><title>The mill</title>"
    b"<p>A windmill of 1742 with four sails.",
    "https://museum.example/tram": b"<!doctype html><title>The tram</title><p>The steam tram.",
}
_CHANGING = {"alembic_version", "sessions", "depot_growth"}


def catalogue(archive: Archive) -> dict[str, list[tuple]]:
    """Every row of every table, without what a rebuild may change: numbers of events and dates of checks."""
    known = MetaData()
    found = {}
    with archive.database.reading() as connection:
        known.reflect(connection)
        for table in known.sorted_tables:
            if table.name in _CHANGING:
                continue
            moments = table.name in ("identifications", "surveys", "judgements", "copies")
            columns = [
                column
                for column in table.c
                if column.name != "password_hash" and not (moments and column.name.endswith("_at"))
            ]
            if table.name == "events":
                columns = [table.c.at, table.c.action, table.c.subject_kind, table.c.subject, table.c.message]
            rows = [tuple(map(str, row)) for row in connection.execute(select(*columns))]
            found[table.name] = sorted(row for row in rows if "rebuilt" not in row)
    return found


def answers(archive: Archive) -> list[object]:
    """The search results and pages that readers see."""
    seen: list[object] = []
    for text in ("windmill", '"steam tram"', "nothing"):
        page = search.search(archive, text, reader=ANYONE)
        seen.append([(hit.url, hit.title, hit.snippet, hit.timestamp, hit.versions) for hit in page.hits])
    for url in PAGES:
        opened = replay.open_capture(archive, url, "20240517123001", collection="all", reader=ANYONE)
        seen.append((opened.status, opened.payload.read()))
        opened.close()
    return seen


@pytest.fixture
def filled(home: Path, tmp_path: Path) -> Path:
    configure(home, '[archive]\nname = "Town archive"\n[exchange]\nurn_namespace = "urn:nbn:nl:ui:99-"\n')
    with Archive.open(home, agent="anna") as archive:
        write_warc(tmp_path / "museum.warc.gz", PAGES)
        report = pipeline.import_files(archive, [tmp_path / "museum.warc.gz"], collection="museum")
        assert report.taken is not None
        assert report.taken.package is not None
        accounts.add(archive.database, "piet", "a long password", [Role.CURATOR], archive.clock())
        storage_places.add_place(archive, "second", str(tmp_path / "second"))
        assert audit.audit(archive, older_than_days=0).alarms == []
        assert storage_places.write_register(archive), "the audit itself made events"
    return home


@pytest.mark.parametrize("place", ["main", "second"])
def test_rebuilt_on_an_empty_machine_all_is_as_it_was(filled, tmp_path, place):
    with Archive.open(filled) as archive:
        storage_places.fill(archive)
        before, seen = catalogue(archive), answers(archive)
    depot = tmp_path / "rescued"
    (filled / "depot" if place == "main" else tmp_path / "second").rename(depot)
    shutil.rmtree(filled)
    new = tmp_path / "new-home"
    done = rebuild.rebuild(new, str(depot))
    assert (done.packages, done.captures, done.failed) == (1, 3, ())
    with Archive.open(new) as archive:
        assert archive.config.archive.name == "Town archive"
        assert archive.config.exchange.urn_namespace == "urn:nbn:nl:ui:99-"
        assert answers(archive) == seen
        after = catalogue(archive)
        for name in before:
            # The copies in the other place must be checked again.
            if name in ("copies", "copy_tallies", "events"):
                continue
            assert after[name] == before[name], name
        assert set(before["events"]) <= set(after["events"]) | {
            row for row in before["events"] if row[1] in ("copied", "audited", "filled")
        }
    again = rebuild.rebuild(new)
    assert (again.packages, again.failed) == (0, ())


def test_a_home_where_nothing_happened_since_it_was_made_is_as_good_as_none(filled, tmp_path):
    new = tmp_path / "new-home"
    setup.create(new)
    file = new / "webdepot.toml"
    file.write_text(
        file.read_text().replace("[web]\n", '[web]\nportal_url = "https://here.example/"  # ours\n')
    )
    with Archive.open(new) as archive:
        assert search.search(archive, "windmill", reader=ANYONE).hits == [], "looking makes it hold nothing"
    done = rebuild.rebuild(new, str(filled / "depot"))
    assert (done.packages, done.failed) == (1, ())
    with Archive.open(new) as archive:
        assert archive.config.archive.name == "Town archive", "out of the register"
        assert archive.config.web.portal_url == "https://here.example/", "as it was set here"
        assert archive.depot_address == str(filled / "depot")
        assert search.search(archive, "windmill", reader=ANYONE).hits
    assert "# ours" in file.with_name("webdepot.toml.before").read_text()
    assert rebuild.rebuild(new, str(filled / "depot")).packages == 0


@pytest.mark.parametrize("what", ["a person", "a harvest", "a depot"])
def test_a_home_that_holds_anything_is_left_alone(home, tmp_path, what):
    with Archive.open(home) as archive:
        if what == "a person":
            accounts.add(archive.database, "piet", "a long password", [Role.CURATOR], archive.clock())
        elif what == "a harvest":
            (archive.harvests_folder / "20260101").mkdir()
        else:
            (archive.home / "depot").mkdir()
    before = sorted((path, path.stat().st_mtime_ns) for path in home.rglob("*") if path.is_file())
    with pytest.raises(Conflict, match="has its depot at"):
        rebuild.rebuild(home, str(tmp_path / "elsewhere"))
    assert sorted((path, path.stat().st_mtime_ns) for path in home.rglob("*") if path.is_file()) == before


def test_the_register_holds_no_secrets(filled):
    for path in (filled / "depot").rglob("*"):
        assert not path.is_file() or b"argon2" not in path.read_bytes()
    with Archive.open(filled) as archive:
        store = archive.store
        inventory = register.find(store, archive.clock().year)
        rows = list(register._rows(store, inventory, "tables/people.jsonl.gz"))
        assert [(row["name"], row["password_hash"]) for row in rows] == [("piet", "")]


def test_a_register_that_says_nothing_new_adds_no_version(filled):
    with Archive.open(filled) as archive:
        before = objects.read_inventory(archive.store, register.id_of(archive.clock().year)).head
        assert not storage_places.write_register(archive)
        assert objects.read_inventory(archive.store, register.id_of(archive.clock().year)).head == before


def test_a_damaged_package_stops_no_other(filled, tmp_path):
    with Archive.open(filled, agent="anna") as archive:
        write_warc(tmp_path / "tram.warc.gz", {"https://tram.example/": b"<title>Tram</title>tram"})
        pipeline.import_files(archive, [tmp_path / "tram.warc.gz"], collection="tram")
    depot = tmp_path / "rescued"
    (filled / "depot").rename(depot)
    facts = next(path for path in depot.rglob("package.json") if b"museum" in path.read_bytes())
    facts.write_bytes(b"{")
    done = rebuild.rebuild(tmp_path / "new-home", str(depot))
    assert done.packages == 1
    assert len(done.failed) == 1
    assert "package.json" in done.failed[0]


def test_what_is_no_depot_is_said(tmp_path, home):
    with pytest.raises(InputError, match="no depot"):
        rebuild.rebuild(tmp_path / "new", str(tmp_path / "nothing"))
    with pytest.raises(InputError, match="--from"):
        rebuild.rebuild(tmp_path / "new")
    with pytest.raises(InputError, match="no depot"):
        rebuild.rebuild(home, str(tmp_path / "nothing"))
    assert setup.is_complete(home), "nothing is cleared for a depot that is none"
