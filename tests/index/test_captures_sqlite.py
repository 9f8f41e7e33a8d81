"""Properties of the SQLite file: versions, damage, crashes, cost."""

import sqlite3
import subprocess
import sys
import textwrap
import threading

import pytest

from webdepot.errors import Conflict, CorruptData
from webdepot.index import sqlite_file
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.index.sqlite_file import discard
from webdepot.model import Capture, Location, RecordKind


def capture(at, *, key="org,example)/", container="a.warc.gz"):
    return Capture(
        key=key,
        timestamp=f"{20_000_101_000_000 + at:014d}",
        url="http://example.org/",
        kind=RecordKind.RESPONSE,
        status=200,
        mime="text/html",
        digest="sha1:" + "A" * 32,
        location=Location(container=container, offset=at, length=1),
    )


def steps_of(index, question):
    """How many steps of its virtual machine SQLite needs for a question: cost without a clock."""
    taken = 0

    def count():
        nonlocal taken
        taken += 1
        return 0

    question()
    connection = index._file._idle[-1]  # the one that the next question takes
    connection.set_progress_handler(count, 10)
    question()
    connection.set_progress_handler(None, 0)
    return taken


@pytest.mark.parametrize("collection", ["all", "few", "many", "none"])
def test_one_capture_of_twenty_thousand_costs_what_one_of_ten_costs(tmp_path, collection):
    index = SqliteCaptureIndex(tmp_path / "captures.db")
    index.add("few.warc.gz", [capture(at, container="few.warc.gz") for at in (1, 25_000)], collection="few")
    index.add(
        "many.warc.gz",
        (capture(at, container="many.warc.gz") for at in range(10_000, 30_000)),
        collection="many",
    )
    questions = [
        lambda: index.closest("org,example)/", "20000101005000", collection=collection),
        lambda: index.first("org,example)/", collection=collection),
        lambda: index.last("org,example)/", collection=collection),
        lambda: index.before("org,example)/", "20000101005000", collection=collection),
        lambda: index.after("org,example)/", "20000101005000", collection=collection),
        lambda: list(index.scan("org,", "org-", collection=collection, limit=1)),
        lambda: index.find_digests([("sha1:" + "A" * 32, "http://example.org/")]),
        lambda: index.find_digests([("sha1:" + "A" * 32, "http://other.org/")]),
        lambda: index.years(collection),
    ]
    costs = [steps_of(index, question) for question in questions]
    newest = steps_of(index, lambda: index.newest(3))
    index.close()
    # Walking 20,000 captures takes at least 60,000 steps, 6,000 counts. A few seeks take some tens of counts.
    assert max(costs) < 100
    assert newest < 1_500


def test_the_file_of_another_version_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / "captures.db"
    SqliteCaptureIndex(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = '0' WHERE name = 'key version'")
    connection.close()
    with pytest.raises(Conflict, match=r"made by another version.*webdepot index rebuild"):
        SqliteCaptureIndex(path)
    discard(path)
    SqliteCaptureIndex(path).close()


def test_a_damaged_file_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / "captures.db"
    path.write_bytes(b"this is no database" * 1000)
    with pytest.raises(CorruptData, match="webdepot index rebuild"):
        SqliteCaptureIndex(path)


def test_a_killed_writer_leaves_whole_containers(tmp_path):
    program = """
        import os, sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[2])
        from test_captures_sqlite import capture
        from webdepot.index.captures import SqliteCaptureIndex
        index = SqliteCaptureIndex(Path(sys.argv[1]))
        index.add("whole.warc.gz", [capture(at, container="whole.warc.gz") for at in range(100)], collection="c")
        def killed():
            for at in range(10_000):
                yield capture(at, container="torn.warc.gz")
            os.kill(os.getpid(), 9)
        index.add("torn.warc.gz", killed(), collection="c")
    """
    from pathlib import Path

    path = tmp_path / "captures.db"
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path), str(Path(__file__).parent)], check=False
    )
    assert ended.returncode == -9
    index = SqliteCaptureIndex(path)
    assert list(index.containers()) == [("whole.warc.gz", 100)]
    assert index.add("torn.warc.gz", [capture(1, container="torn.warc.gz")], collection="c") == 1
    index.close()


def test_a_closed_index_opens_again_on_use(tmp_path):
    index = SqliteCaptureIndex(tmp_path / "captures.db")
    index.add("a.warc.gz", [capture(1)], collection="c")
    index.close()
    assert index.total() == 1
    index.close()


def test_a_writer_waits_for_another_however_long_it_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "PATIENCE_S", 0)  # SQLite gives up at once
    path = tmp_path / "captures.db"
    one, other = SqliteCaptureIndex(path), SqliteCaptureIndex(path)
    added = []
    writer = threading.Thread(
        target=lambda: added.append(
            other.add("b.warc.gz", [capture(2, container="b.warc.gz")], collection="c")
        )
    )

    def slowly():
        yield capture(1)
        writer.start()
        writer.join(0.5)  # it fails at once if it does not wait

    one.add("a.warc.gz", slowly(), collection="c")
    writer.join()
    assert added == [1]
    assert list(one.containers()) == [("a.warc.gz", 1), ("b.warc.gz", 1)]


def test_an_index_is_opened_and_read_while_another_process_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "PATIENCE_S", 0)
    path = tmp_path / "captures.db"
    index = SqliteCaptureIndex(path)
    index.add("a.warc.gz", [capture(1)], collection="c")
    seen = []

    def slowly():
        yield capture(2, container="b.warc.gz")
        reader = SqliteCaptureIndex(path)
        seen.append(reader.total())
        reader.close()

    index.add("b.warc.gz", slowly(), collection="c")
    assert seen == [1]


def test_a_file_that_a_rebuild_replaced_is_left(tmp_path):
    path = tmp_path / "captures.db"
    reader = SqliteCaptureIndex(path)
    reader.add("a.warc.gz", [capture(1)], collection="c")
    discard(path)
    assert list(reader.containers()) == [("a.warc.gz", 1)]  # until there is another
    rebuilt = SqliteCaptureIndex(path)
    assert list(reader.containers()) == []
    reader.add("b.warc.gz", [capture(2, container="b.warc.gz")], collection="c")
    assert list(rebuilt.containers()) == list(reader.containers()) == [("b.warc.gz", 1)]


def test_a_writer_makes_the_tables_of_a_new_file(tmp_path):
    path = tmp_path / "captures.db"
    index = SqliteCaptureIndex(path)
    for number in range(2):
        discard(path)
        if number:
            path.touch()  # another process has opened it, and has not made its tables yet
        else:
            index.close()  # nothing is left that could read the old one
        assert index.add("a.warc.gz", [capture(1)], collection="c") == 1
        assert list(index.containers()) == [("a.warc.gz", 1)]
    index.close()


def test_a_file_without_counts_by_year_gets_them_with_its_next_container(tmp_path):
    path = tmp_path / "captures.db"
    index = SqliteCaptureIndex(path)
    index.add("a.warc.gz", [capture(1), capture(2)], collection="one")
    index.close()
    with sqlite3.connect(path) as connection:  # as an earlier version made it
        connection.execute("DROP TABLE years")
    index = SqliteCaptureIndex(path)
    assert dict(index.years()) == dict(index.years("one")) == {2000: 2}
    index.add("b.warc.gz", [capture(3, container="b.warc.gz")], collection="two")
    assert dict(index.years()) == {2000: 3}
    assert dict(index.years("two")) == {2000: 1}
    index.close()
