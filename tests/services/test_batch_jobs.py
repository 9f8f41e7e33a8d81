"""Containers read by workers of a Dask cluster, whose files travel through the working place."""

import shutil
from io import BytesIO

import pytest

from databases import copy_home
from small_warcs import write_warc
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.errors import ConfigError, RemoteError
from webdepot.services.admin.doctor import doctor
from webdepot.services.depot import deposit
from webdepot.services.harvest import harvests
from webdepot.services.index import batch_jobs, derived_files, indexer
from webdepot.services.intake import warc_files
from webdepot.services.progress import unwatched
from webdepot.services.quality import harvest_check, identification

PAGES = {
    f"http://{host}.example.org/{page}": f"<title>{host}</title><p>The lighthouse {page} of {host}".encode()
    for host in ("one", "two")
    for page in range(3)
}


def fill(archive, folder):
    """A harvest of two containers, which are identified by the workers; what was found out about its files."""
    files = [
        write_warc(folder / f"{host}.warc.gz", {url: body for url, body in PAGES.items() if host in url})
        for host in ("one", "two")
    ]
    taken = warc_files.take_files(archive, files, collection="c", watch=unwatched)
    harvest = harvests.get(archive, taken.harvest.id)
    identification.identify(archive, harvest)
    with archive.database.reading() as connection:
        containers = locations.of_harvest(connection, harvest.id)
        rows = connection.exec_driver_sql(
            "SELECT digest, engine, puid, size_bytes, verdict FROM identifications"
        )
        known = sorted(tuple(row) for row in rows)
    facts = [list(derived_files.iter_facts(archive, each)) for each in containers]
    assert all(derived_files.find_extract(archive, each) is not None for each in containers)
    return harvest, (known, facts)


def index_again(archive):
    """Everything in the indexes, read from the containers."""
    done = indexer.rebuild(archive)
    assert (done.captures, done.failed) == (len(PAGES), {})
    return list(archive.captures.scan("", "\U0010ffff")), archive.texts.containers(), archive.texts.total()


@pytest.fixture(scope="module")
def expected(empty_home, tmp_path_factory):
    """What the processes of one machine find out."""
    folder = tmp_path_factory.mktemp("embedded")
    home = copy_home(empty_home, folder / "home")
    with Archive.open(home, agent="test") as archive:
        _, found = fill(archive, folder)
        return found, index_again(archive)


@pytest.fixture
def on_cluster(monkeypatch, dask_scheduler):
    monkeypatch.setenv("WEBDEPOT_ENGINE_KIND", "dask")
    monkeypatch.setenv("WEBDEPOT_ENGINE_SCHEDULER", dask_scheduler)


@pytest.mark.usefixtures("on_cluster")
def test_workers_find_out_what_processes_do_and_leave_nothing_behind(expected, home, tmp_path):
    with Archive.open(home, agent="test") as archive:
        _, found = fill(archive, tmp_path)
        assert (found, index_again(archive)) == expected
        assert index_again(archive) == expected[1]
    assert not (home / "jobs").exists()


@pytest.mark.usefixtures("on_cluster")
def test_containers_and_results_travel_through_a_bucket(expected, home, tmp_path, seaweed, monkeypatch):
    for place in ("MAIN", "WORK"):
        monkeypatch.setenv(f"WEBDEPOT_PLACE_{place}_ACCESS_KEY", seaweed.access_key)
        monkeypatch.setenv(f"WEBDEPOT_PLACE_{place}_SECRET_KEY", seaweed.secret_key)
    monkeypatch.setenv("WEBDEPOT_DEPOT_PLACE", seaweed.new_address())
    monkeypatch.setenv("WEBDEPOT_WORK_PLACE", seaweed.new_address())
    with Archive.open(home, agent="test") as archive:
        harvest, found = fill(archive, tmp_path)
        assert (found, index_again(archive)) == expected
        harvest_check.check(archive, harvest)
        deposit.keep(archive, harvests.get(archive, harvest.id))
        shutil.rmtree(archive.containers.cache_folder, ignore_errors=True)
        assert index_again(archive)[0] == expected[1][0]
        assert not archive.containers.cache_folder.exists()  # nobody has read them on this machine
        assert list(archive.work.keys()) == []


@pytest.mark.usefixtures("on_cluster")
def test_a_lost_container_and_a_folder_that_is_not_shared_are_reported(home, tmp_path, monkeypatch):
    with Archive.open(home, agent="test") as archive:
        harvest, _ = fill(archive, tmp_path)
        index_again(archive)  # from what was derived, which is forgotten then
        next(harvests.folder_of(archive, harvest).rglob("one.warc.gz")).unlink()
        archive.work.put("jobs/20000101000000-left/containers/old.warc.gz", BytesIO(b"of a killed starter"))
        done = indexer.rebuild(archive)
        assert (done.captures, list(done.failed)) == (3, ["one.warc.gz"])
        assert "does not exist on this machine" in done.failed["one.warc.gz"]
        assert not (home / "jobs").exists()
        monkeypatch.setattr(batch_jobs, "_BEGUN", "another name")  # as if the worker saw another folder
        done = indexer.rebuild(archive)
        assert "is not that of the archive" in done.failed["two.warc.gz"]


def test_an_engine_without_an_address_or_an_answer_is_named(home, monkeypatch):
    pytest.importorskip("distributed", reason="Dask is not installed: make install-test")
    from webdepot.engine import dask_engine

    monkeypatch.setenv("WEBDEPOT_ENGINE_KIND", "dask")
    with pytest.raises(ConfigError, match=r"Set \[engine\] scheduler"):
        Archive.open(home)
    monkeypatch.setenv("WEBDEPOT_ENGINE_SCHEDULER", "http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="must be an address such as tcp://"):
        Archive.open(home)
    monkeypatch.setenv("WEBDEPOT_ENGINE_SCHEDULER", "tcp://127.0.0.1:1")
    monkeypatch.setattr(dask_engine, "_PATIENCE_S", 0.5)
    with Archive.open(home) as archive, pytest.raises(RemoteError, match="does not answer"):
        list(archive.cluster.map(abs, [1]))
    checks = {check.name: check for check in doctor.examine(home)}
    assert checks["workers"].state == "error"
    assert "does not answer" in checks["workers"].message
