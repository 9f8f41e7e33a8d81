"""An archive moves from its files to PostgreSQL and S3 and back, and is the same each time."""

import subprocess

import pytest

import opensearch
from databases import copy_home, needs_file
from ports import free_port
from small_warcs import write_warc
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.errors import ConfigError, Conflict, CorruptData, InputError, RemoteError
from webdepot.model import HarvestState
from webdepot.ports.search import Facet
from webdepot.provenance import append, iter_all
from webdepot.services import pipeline
from webdepot.services.access import lookup, search
from webdepot.services.cluster import capture_copy, depot_copy, move, table_copy
from webdepot.services.harvest import harvests
from webdepot.services.progress import Phase

pytestmark = needs_file
LONG = "https://x.example/long?" + "&".join(f"name{number}=value{number}" for number in range(250))
PAGES = {
    "https://x.example/": b"<!doctype html><title>Mill</title><p>the windmill",
    "https://x.example/2": b"<!doctype html><title>Two</title><p>another windmill",
    LONG: b"<!doctype html><title>Long</title><p>a long address",
} | {
    f"https://{number % 5}.example/{number}": b"<!doctype html><title>Page %d</title><p>the mill w%d of harbour %d"
    % (number, number, number % 7)
    for number in range(47)
}
QUERIES = [
    *(f"w{number}" for number in range(40)),
    *(f"harbour {number}" for number in range(7)),
    '"a long"',
    "mill*",
    "-mill windmill",
]


@pytest.fixture(scope="module")
def original(empty_home, tmp_path_factory):
    """An archive with packages, captures, events and rows of several kinds."""
    tmp_path = tmp_path_factory.mktemp("original")
    home = copy_home(empty_home, tmp_path / "home")
    with Archive.open(home, agent="anna") as archive:
        for name, pages in (("z", PAGES), ("a", {"https://x.example/": b"<!doctype html><p>changed"})):
            write_warc(tmp_path / f"{name}.warc.gz", pages)
            pipeline.import_files(archive, [tmp_path / f"{name}.warc.gz"], collection=name)
        with archive.database.transaction() as connection:
            append(
                connection,
                archive.event("noted", "archive", "x", message="with NUL \0", detail={"ü": [1.5, None]}),
            )
    return home


@pytest.fixture
def filled(original, tmp_path):
    return copy_home(original, tmp_path / "home")


@pytest.fixture(params=["files", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def words(request):
    """Settings of the text index in the cluster."""
    if request.param == "files":
        return ""
    place = opensearch.new_place()
    return (
        f'engine = "opensearch"\nopensearch_url = "{",".join(place.address.urls)}"\n'
        f'opensearch_index = "{place.name}"\n'
    )


@pytest.fixture
def cluster_toml(cluster_settings, tmp_path):
    file = tmp_path / "cluster.toml"
    file.write_text(cluster_settings)
    return file


@pytest.fixture
def cluster_settings(databases, seaweed, monkeypatch):
    for kind, value in (("ACCESS", seaweed.access_key), ("SECRET", seaweed.secret_key)):
        monkeypatch.setenv(f"WEBDEPOT_PLACE_MAIN_{kind}_KEY", value)
    return (
        f'[database]\nurl = "{databases.create()}"\n[depot]\nplace = "{seaweed.new_address()}"\n'
        '[archive]\nname = "Mills"\n[index]\ncaptures = "postgresql"\n'
    )


def contents(home):
    """Everything that must be equal, but for the events that record moves."""
    with Archive.open(home) as archive:
        with archive.database.reading() as connection:
            tables = table_copy.digests(connection)
            events = [
                (
                    event.at,
                    event.action,
                    event.subject,
                    event.message.replace("\0", "\ufffd"),
                    dict(event.detail),
                )
                for event in iter_all(connection)
                if event.action != "moved"
            ]
        del tables["events"]
        found = [lookup.find_closest(archive, url, "2024", collection="all", reader=ANYONE) for url in PAGES]
        answers = [(capture.url, capture.timestamp, capture.location) for capture in found]
        assert len(answers) == len(QUERIES) == 50
        for query in QUERIES:
            page = search.search(archive, query, reader=ANYONE, limit=60, facets=(Facet.SITE,))
            hits = sorted((hit.url, hit.title, hit.timestamp) for hit in page.hits)
            answers.append((query, page.pages, hits, page.years, page.facets))
            assert hits
        return (
            tables,
            events,
            capture_copy.digest(archive.captures),
            depot_copy.inventories(archive.store),
            answers,
        )


def test_there_and_back_everything_is_equal(filled, cluster_toml, words):
    # No worker runs yet when an archive is moved to a cluster.
    engine = '[engine]\nkind = "dask"\nscheduler = "tcp://127.0.0.1:1"\n'
    cluster_toml.write_text(cluster_toml.read_text() + words + engine)
    before = contents(filled)
    assert before[0]["containers"].rows == 2 and before[2].captures == 51

    def stop(progress):
        if progress.phase is Phase.INDEX:  # the tables are written, the configuration is not
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move.move(filled, cluster_toml, watch=stop)
    assert contents(filled) == before
    report = move.move(filled, cluster_toml, agent="anna")
    assert report.tables["containers"] == before[0]["containers"]
    assert report.objects == len(before[3]) and report.captures == before[2]
    assert report.settings["archive.name"] == ("Web archive", "Mills")
    assert not (filled / "webdepot.db").exists() and (filled / "webdepot.db.moved").exists()
    assert contents(filled) == before
    with pytest.raises(Conflict, match="nothing to move"):
        move.move(filled, cluster_toml)
    # New rows get new numbers, and what happens there comes back, too.
    with Archive.open(filled) as archive, archive.database.transaction() as connection:
        append(connection, archive.event("noted", "archive", "y"))
    there = contents(filled)
    move.move(filled, filled / move.BEFORE)
    assert contents(filled) == there
    assert (filled / "webdepot.db").exists()
    # The long key was made from its URL again: PostgreSQL has only its beginning.
    with Archive.open(filled) as archive:
        assert (
            max(
                len(capture.key)
                for name, _ in archive.captures.containers()
                for _, capture in archive.captures.of_container(name)
            )
            > 2500
        )
    # A second time, the other database is not empty.
    with pytest.raises(Conflict, match="--replace"):
        move.move(filled, cluster_toml)
    move.move(filled, cluster_toml, replace=True)
    assert contents(filled) == there


def test_what_is_in_use_is_not_moved(filled, cluster_toml, tmp_path):
    with (filled / "open").open("wb") as file:
        other = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file)
    try:
        with pytest.raises(Conflict, match=f"process {other.pid} .* is using the archive"):
            move.move(filled, cluster_toml)
    finally:
        other.communicate()
    with Archive.open(filled) as archive:
        harvest = harvests.latest(archive, 1)[0]
        with archive.database.transaction() as connection:
            connection.exec_driver_sql(
                f"UPDATE harvests SET state = '{HarvestState.RUNNING.value}' WHERE id = '{harvest.id}'"
            )
        folder = harvests.folder_of(archive, harvest)
        folder.mkdir(parents=True, exist_ok=True)
        with harvests.locked(folder), pytest.raises(Conflict, match=f"harvest {harvest.id} is running"):
            move.move(filled, cluster_toml)
    for text in ("no toml", "[archive]\nnmae = 1"):
        (tmp_path / "wrong.toml").write_text(text)
        with pytest.raises((InputError, ConfigError), match=r"wrong\.toml"):
            move.move(filled, tmp_path / "wrong.toml")
    with pytest.raises(InputError, match="cannot be read"):
        move.move(filled, tmp_path / "missing.toml")


def test_a_row_that_the_other_database_refuses_ends_the_move_with_its_table(filled, cluster_toml):
    with Archive.open(filled) as archive, archive.database.transaction() as connection:
        connection.exec_driver_sql("UPDATE containers SET place = ? WHERE name LIKE '%z%'", ("x" * 5000,))
    with pytest.raises(CorruptData, match="table containers"):
        move.move(filled, cluster_toml)
    with Archive.open(filled) as archive:
        assert not archive.config.database.url


def test_nothing_is_moved_if_the_new_search_server_does_not_answer(filled, cluster_toml):
    server = f"http://127.0.0.1:{free_port()}"
    words = f'engine = "opensearch"\nopensearch_url = "{server}"\n'
    cluster_toml.write_text(cluster_toml.read_text() + words)
    with pytest.raises(RemoteError, match=f"The search server {server} does not answer"):
        move.move(filled, cluster_toml)
    with Archive.open(filled) as archive:
        assert not archive.config.database.url
