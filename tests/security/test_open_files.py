"""A server that is asked while the archive grows must not keep more and more files open."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from museum import Warc, ask, make_home, serving

from webdepot.archive import Archive
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.index.sqlite_file import MOST_IDLE
from webdepot.model import Capture, Location, RecordKind
from webdepot.services.index import indexer
from webdepot.services.intake import warc_files
from webdepot.services.progress import unwatched

URL = "http://www.example.org/"
THREADS_END_S = 11
"""Threads of the server that have nothing to do end after ten seconds."""


def open_files(process: int, name: str = "") -> int:
    folder = Path(f"/proc/{process}/fd")
    count = 0
    for entry in folder.iterdir():
        try:
            count += name in str(entry.readlink())
        except FileNotFoundError:
            continue  # closed meanwhile
    return count


def capture(container: str) -> Capture:
    return Capture(
        key="org,example)/",
        timestamp="20200101000000",
        url=URL,
        kind=RecordKind.RESPONSE,
        status=200,
        mime="text/html",
        digest="sha1:" + "A" * 32,
        location=Location(container=container, offset=0, length=1),
    )


def test_threads_that_end_leave_no_open_files(tmp_path: Path) -> None:
    index = SqliteCaptureIndex(tmp_path / "captures.db")
    for number in range(60):
        index.add(f"{number}.warc.gz", [capture(f"{number}.warc.gz")], collection="some")
        reader = threading.Thread(target=lambda: index.last("org,example)/"))
        reader.start()
        reader.join()
    # One connection at a time was in use: one file, its log, and the memory they share.
    assert open_files(os.getpid(), str(tmp_path)) <= 3
    index.close()
    assert open_files(os.getpid(), str(tmp_path)) == 0


def test_many_readers_at_once_leave_only_a_few_connections(tmp_path: Path) -> None:
    index = SqliteCaptureIndex(tmp_path / "captures.db")
    index.add("a.warc.gz", [capture("a.warc.gz")], collection="some")
    together = threading.Barrier(3 * MOST_IDLE)

    def read(_: int) -> None:
        connection = index._file._take()
        together.wait(timeout=60)
        index._file._give_back(connection, index._file._generation)

    with ThreadPoolExecutor(max_workers=3 * MOST_IDLE) as pool:
        list(pool.map(read, range(3 * MOST_IDLE)))
    assert len(index._file._idle) == MOST_IDLE
    assert index.last("org,example)/") is not None
    index.close()


def test_a_connection_in_use_while_all_are_closed_is_closed_when_it_comes_back(tmp_path: Path) -> None:
    index = SqliteCaptureIndex(tmp_path / "captures.db")
    generation, connection = index._file._generation, index._file._take()
    index.close()
    index._file._give_back(connection, generation)
    assert open_files(os.getpid(), str(tmp_path)) == 0


@pytest.mark.slow
def test_open_files_do_not_grow_while_the_archive_is_written(tmp_path: Path) -> None:
    """Small harvests beside searches and replay. Between the rounds the threads of the server end, and others
    begin.
    """

    def harvest(number: int) -> None:
        warc = Warc(tmp_path / f"{number}.warc.gz")
        warc.response(URL, f"2020010100{number:04d}", f"<title>Page {number}</title>words".encode())
        taken = warc_files.take_files(archive, [warc.write()], collection="some", watch=unwatched)
        assert taken.harvest is not None
        indexer.index_harvest(archive, taken.harvest.id)

    def read(number: int) -> None:
        assert ask(f"{served.portal}/search?q=words").status == 200
        assert ask(f"{served.replay}/all/2020010100{number:04d}id_/{URL}").status == 200
        assert ask(f"{served.portal}/all/*/{URL}").status == 200
        assert ask(f"{served.portal}/all/cdx?url=www.example.org/&collapse=mime").status == 200

    first = Warc(tmp_path / "first.warc.gz")
    first.response(URL, "20200101000000", b"<title>First</title>words")
    home = make_home(tmp_path / "home", first.write())
    counts = []
    with serving(home) as served, Archive.open(home) as archive, ThreadPoolExecutor(12) as readers:
        for round_ in range(3):
            if round_:
                time.sleep(THREADS_END_S)
            for number in range(1 + 5 * round_, 6 + 5 * round_):
                harvest(number)
                list(readers.map(read, [number] * 24))
            counts.append(open_files(served.process.pid))
    assert max(counts) <= counts[0] + 12, counts
