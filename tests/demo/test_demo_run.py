"""The demonstration run on the real services: editions one after the other, none twice, none incomplete."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.demo import site
from webdepot.demo.resource import HOST
from webdepot.demo.run import DemoClock, run
from webdepot.errors import Conflict
from webdepot.model import HarvestState
from webdepot.services.access import search
from webdepot.services.admin import setup
from webdepot.services.harvest import harvests as harvests_service
from webdepot.times import from_timestamp, to_timestamp
from webdepot.url import find_canonical, key

pytestmark = pytest.mark.slow
TWO = (site.EDITIONS[0], site.EDITIONS[-1])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demonstration with its first and its last edition."""
    folder = tmp_path_factory.mktemp("demo") / "home"
    run(folder, lambda line: None, editions=TWO)
    return folder


def _key(path: str) -> str:
    url = find_canonical(f"http://{HOST}{path}")
    assert url is not None
    return key(url)


def test_each_edition_is_kept_under_its_own_date(home: Path) -> None:
    with Archive.open(home) as archive:
        harvests = harvests_service.latest(archive, 10)
        versions = list(archive.captures.versions(_key("/")))
    assert [harvest.state for harvest in harvests] == [HarvestState.KEPT, HarvestState.KEPT]
    days = [from_timestamp(capture.timestamp).date() for capture in versions if capture.status == 200]
    assert days == [edition.date.date() for edition in TWO]
    assert archive.config.archive.demo


def test_what_robots_closes_is_not_harvested_and_missing_pages_are_recorded(home: Path) -> None:
    with Archive.open(home) as archive:
        assert archive.captures.count(_key("/intern/rooster.html")) == 0
        assert archive.captures.last(_key("/media/waterschap-lurze.svg")).status == 404
        assert archive.captures.last(_key("/collectie.html")).status == 301
        assert archive.captures.last(_key("/data/collectie.json")).status == 200


def test_every_resource_of_the_editions_was_harvested(home: Path) -> None:
    with Archive.open(home) as archive:
        for edition in TWO:
            resources = site.serve(edition).resources.values()
            wanted = {resource.url for resource in resources if not resource.path.startswith("/intern/")}
            missing = {url for url in wanted if not _has(archive, url, edition.name)}
            assert missing == set()


def _has(archive: Archive, url: str, year: str) -> bool:
    canonical = find_canonical(url)
    assert canonical is not None
    return any(capture.timestamp.startswith(year) for capture in archive.captures.versions(key(canonical)))


def test_words_of_one_edition_are_found_in_that_edition(home: Path) -> None:
    with Archive.open(home) as archive:
        reader = Reader()
        old = search.search(archive, "Guldens", reader=reader).hits
        new = search.search(archive, "zonnepanelen", reader=reader).hits
        german = search.search(archive, "Schmuggler", reader=reader).hits
    assert {hit.timestamp[:4] for hit in old} == {"2003"}
    assert {hit.timestamp[:4] for hit in new} == {"2024"}
    assert any("/de/" in hit.url for hit in german)


def test_a_second_run_changes_nothing(home: Path) -> None:
    files = sorted(path for path in (home / "depot").rglob("*") if path.is_file())
    before = {path: path.stat().st_mtime_ns for path in files}
    told: list[str] = []
    run(home, told.append, editions=TWO)
    assert sum("already archived" in line for line in told) == len(TWO)
    after = sorted(path for path in (home / "depot").rglob("*") if path.is_file())
    assert {path: path.stat().st_mtime_ns for path in after} == before
    assert any("damast" in line for line in told)


def test_an_archive_that_is_not_a_demonstration_is_not_changed(tmp_path: Path) -> None:
    setup.found(tmp_path / "own")
    with pytest.raises(Conflict, match="no"):
        run(tmp_path / "own", lambda line: None, editions=TWO)


def test_a_killed_run_is_resumed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    program = f"from pathlib import Path; from webdepot.demo import run, site; run.run(Path({str(home)!r}), print, editions=site.EDITIONS[:1])"
    process = subprocess.Popen([sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip().startswith("2003"):
            break
    _kill_when(process, home)
    process.stdout.close()
    process.wait()
    run(home, lambda line: None, editions=site.EDITIONS[:1])
    with Archive.open(home) as archive:
        assert [harvest.state for harvest in harvests_service.latest(archive, 10)] == [HarvestState.KEPT]
        resources = site.serve(site.EDITIONS[0]).resources.values()
        for resource in resources:
            if not resource.path.startswith("/intern/"):
                assert archive.captures.count(_key(resource.path)) == 1, resource.path


def _kill_when(process: "subprocess.Popen[str]", home: Path) -> None:
    """As soon as something was written to a container, or when the run ended before."""
    tick = threading.Event()
    while process.poll() is None:
        if any(path.stat().st_size > 2000 for path in home.glob("harvests/*/warc/*.open")):
            process.send_signal(signal.SIGKILL)
            return
        tick.wait(0.002)


def test_the_clock_starts_on_the_day_and_runs() -> None:
    clock = DemoClock()
    assert clock().year > 2024
    clock.set(TWO[0].date)
    first = clock()
    assert to_timestamp(first)[:8] == "20030514"
    assert clock() >= first
