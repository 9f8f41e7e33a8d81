"""Which visits become revisits, when several arrive together: with a real frontier and capture index."""

import io
from datetime import UTC, datetime

from webdepot import digest
from webdepot.container.writer import ContainerWriter
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.model import Candidate, Capture, Location, RecordKind, Visit
from webdepot.services.harvest.container_keeper import ContainerKeeper
from webdepot.times import utc_now
from webdepot.url import Url
from webdepot.url import key as key_of


def visit(url, body):
    return Visit(
        candidate=Candidate(url=Url(url)),
        at=datetime(2026, 11, 18, tzinfo=UTC),
        duration_s=0.1,
        head=b"HTTP/1.1 200 OK\r\n\r\n",
        body=io.BytesIO(body),
        body_bytes=len(body),
        status=200,
        request=b"GET / HTTP/1.1\r\n\r\n",
    )


def test_visits_that_arrive_together_are_compared_with_each_other_and_with_all_before(tmp_path):
    captures = SqliteCaptureIndex(tmp_path / "captures.db")
    old = Capture(
        key=key_of("http://old.org/"),
        timestamp="20200101000000",
        url="http://old.org/",
        kind=RecordKind.RESPONSE,
        status=200,
        mime="text/html",
        digest=str(digest.sha1(b"old")),
        location=Location(container="old.warc.gz", offset=0, length=10),
    )
    captures.add("old.warc.gz", [old], collection="c")
    frontier = LmdbFrontier(tmp_path / "frontier")
    writer = ContainerWriter(
        tmp_path, prefix="K", size_bytes=1 << 20, info={}, clock=utc_now, on_sealed=lambda sealed: None
    )
    keeper = ContainerKeeper(writer, captures, frontier)
    asked = []
    find = captures.find_digests
    captures.find_digests = lambda payloads: asked.append(list(payloads)) or find(payloads)
    bodies = [b"new", b"old", b"", b"new", b"other"]
    kept = keeper.keep([visit(f"http://{number}.org/", body) for number, body in enumerate(bodies)])
    assert [one.duplicate for one in kept] == [False, True, False, True, False]
    assert [one.digest for one in kept] == [str(digest.sha1(body)) for body in bodies]
    assert len(asked) == 1 and len(asked[0]) == 4  # one question for all; nobody asks for nothing
    (again,) = keeper.keep([visit("http://again.org/", b"other")])
    assert again.duplicate and len(asked) == 1  # this harvest has it
    assert [
        header for record in kept[3].records for header in record.fields if "Refers-To-Target" in header[0]
    ] == [("WARC-Refers-To-Target-URI", "http://0.org/")]
    frontier.close()
    captures.close()
