"""When a visit becomes a revisit, with a real capture index."""

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from webdepot.container import revisit
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.model import Candidate, Capture, Failure, Location, RecordKind, Visit
from webdepot.url import Url

DIGEST = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def capture_of(url: str, kind: RecordKind, timestamp: str = "20190304050607") -> Capture:
    return Capture(
        key="org,example)/",
        timestamp=timestamp,
        url=url,
        kind=kind,
        status=200,
        mime="text/html",
        digest=DIGEST,
        location=Location(container="old.warc.gz", offset=0, length=10),
    )


def visit_of(**facts: object) -> Visit:
    settings = {
        "candidate": Candidate(url=Url("http://example.org/")),
        "at": datetime(2026, 11, 15, tzinfo=UTC),
        "duration_s": 0.1,
        "head": b"HTTP/1.1 200 OK\r\n\r\n",
        "body": io.BytesIO(b"body"),
        "body_bytes": 4,
        "status": 200,
    }
    return Visit(**settings | facts)  # type: ignore[arg-type]


@pytest.fixture
def captures(tmp_path: Path):
    index = SqliteCaptureIndex(tmp_path / "captures.db")
    yield index
    index.close()


def test_the_same_payload_is_found(captures: SqliteCaptureIndex):
    earlier = capture_of("http://example.org/", RecordKind.RESPONSE)
    captures.add("old.warc.gz", [earlier], collection="c")
    other = "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    asked = [(visit_of(), other), (visit_of(body_bytes=0), DIGEST), (visit_of(), DIGEST)]
    new, empty, found = revisit.find(asked, captures)
    assert new is None and empty is None and found is not None
    assert (found.url, found.timestamp) == (earlier.url, earlier.timestamp)


def test_a_revisit_is_never_revisited(captures: SqliteCaptureIndex):
    captures.add("old.warc.gz", [capture_of("http://example.org/", RecordKind.REVISIT)], collection="c")
    assert revisit.find([(visit_of(), DIGEST)], captures) == [None]


@pytest.mark.parametrize("facts", [{"truncated": "length"}, {"failure": Failure.TIMEOUT}, {"body_bytes": 0}])
def test_what_is_not_whole_or_empty_is_kept_as_it_is(captures: SqliteCaptureIndex, facts: dict[str, object]):
    captures.add("old.warc.gz", [capture_of("http://example.org/", RecordKind.RESPONSE)], collection="c")
    assert revisit.find([(visit_of(**facts), DIGEST)], captures) == [None]
