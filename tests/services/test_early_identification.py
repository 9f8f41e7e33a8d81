"""Containers are identified as soon as they are sealed, while the harvest or the import is still running."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from small_sites import small_site
from small_warcs import write_warc
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.formats import results
from webdepot.model import HarvestId, HarvestState
from webdepot.services import pipeline
from webdepot.services.admin import setup
from webdepot.services.harvest import harvests
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.index import derived_files
from webdepot.services.intake.warc_files import FileOutcome, FileState
from webdepot.services.progress import Phase, Progress

SETTINGS = """[harvest]
allow_private = true
delay_s = 0
[container]
size_bytes = 2000
checkpoint_s = 0.05
[index]
workers = 1
"""
PAGES = 6


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Archive]:
    setup.create(tmp_path / "home", settings=SETTINGS)
    with Archive.open(tmp_path / "home") as archive:
        yield archive


def identified(archive: Archive) -> frozenset[str]:
    """The containers of the newest harvest that are identified."""
    with archive.database.reading() as connection:
        return results.surveyed(connection, HarvestId(harvests.latest(archive, 1)[0].id))


def pages_of(archive: Archive) -> list[str]:
    """The paths of the pages in the capture index."""
    captures = [
        capture
        for name in identified(archive)
        for _, capture in archive.captures.of_container(name)
        if capture.status == 200
    ]
    return sorted(capture.url.rpartition("/")[2] for capture in captures)


def comes_true(ask: Callable[[], object]) -> bool:
    ends_s = time.monotonic() + 30
    while time.monotonic() < ends_s:
        if ask():
            return True
        time.sleep(0.05)
    return False


def page(number: int) -> str:
    """A page with a link to the next one and so many different words that a container has a few pages."""
    time.sleep(0.2)  # longer than between two checkpoints, at the second of which a full container is sealed
    words = " ".join(f"word{number * 1000 + at}" for at in range(400))
    return f"<!doctype html><title>Page {number}</title><p>{words}</p><a href='/{number + 1}'>next</a>"


def options(archive: Archive) -> HarvestOptions:
    return HarvestOptions.from_config(archive.config)


def test_a_container_is_identified_before_the_harvest_has_ended(opened: Archive) -> None:
    waited: list[bool] = []

    def page_of(path: str) -> str:
        number = path.strip("/") or "0"
        if not number.isdigit() or int(number) > PAGES:
            return ""
        if int(number) == PAGES:  # the last page waits for the first container
            waited.append(comes_true(lambda: identified(opened)))
        return page(int(number))

    with small_site(page_of) as address:
        report = pipeline.archive_site(opened, [address], options(opened))
    assert waited == [True]
    assert report.harvest.state is HarvestState.KEPT
    assert pages_of(opened) == ["", *map(str, range(1, PAGES + 1))]
    with opened.database.reading() as connection:
        names = {each.name for each in locations.of_harvest(connection, report.harvest.id)}
    assert identified(opened) == names and len(names) > 1
    assert not [path for path in (opened.home / "derived").rglob("*") if path.is_file()]


def test_what_was_identified_before_a_crash_is_used_by_the_next_run(opened: Archive) -> None:
    crashed: list[bool] = []

    def page_of(path: str) -> str:
        number = path.strip("/") or "0"
        if not number.isdigit() or int(number) > PAGES:
            return ""
        if int(number) == PAGES:
            comes_true(lambda: crashed)
        return page(int(number))

    def crash(progress: Progress) -> None:
        if progress.phase is Phase.HARVEST and identified(opened):
            crashed.append(True)
            raise MemoryError("the crawl dies")

    with small_site(page_of) as address:
        with pytest.raises(MemoryError):
            pipeline.archive_site(opened, [address], options(opened), watch=crash)
        early = identified(opened)
        harvest = harvests.latest(opened, 1)[0]
        assert early and harvest.state is HarvestState.STOPPED
        with opened.database.reading() as connection:
            containers = [each for each in locations.of_harvest(connection, harvest.id) if each.name in early]
        assert all(derived_files.find_extract(opened, each) for each in containers)
        assert not opened.captures.having(early) and not opened.texts.having(early)
        report = pipeline.archive_site(opened, [address], options(opened))
    assert report.harvest.id == harvest.id and early < identified(opened)
    assert pages_of(opened) == ["", *map(str, range(1, PAGES + 1))]


def test_a_container_is_identified_while_the_next_files_are_imported(opened: Archive, tmp_path: Path) -> None:
    files = tmp_path / "warc"
    files.mkdir()
    for number in range(3):
        write_warc(files / f"{number}.warc.gz", {f"https://{number}.example/": page(number).encode()})
    waited: list[bool] = []

    def on_file(outcome: FileOutcome) -> None:
        assert outcome.state is FileState.IMPORTED
        if outcome.file.endswith("1.warc.gz"):
            waited.append(comes_true(lambda: identified(opened)))

    report = pipeline.import_files(opened, [files], collection="c", on_file=on_file)
    assert waited == [True]
    assert report.taken is not None and report.taken.captures == 3
    assert len(identified(opened)) == 3
