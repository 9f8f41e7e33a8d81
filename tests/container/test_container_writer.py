"""Every reader reads the same from what we write; a new file is started when one is full."""

import hashlib
import io
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import warcio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from written_containers import (
    NOW,
    fastwarc_blocks,
    group_of,
    read_blocks,
    visit_of,
    warcio_blocks,
    writer_in,
)

from webdepot import digest
from webdepot.container.detect import Compression, detect
from webdepot.container.members import IN_MEMORY_BYTES
from webdepot.container.new_records import NewRecord, from_visit, payload_digest
from webdepot.container.new_records import resource as resource_record
from webdepot.container.reader import iter_records, read_record
from webdepot.container.writer import Sealed
from webdepot.model import Capture, Location, RecordKind

# --- what is written ---

BODIES = st.one_of(st.binary(max_size=400), st.binary(max_size=20).map(lambda data: data * 997))
PATHS = st.text(
    st.characters(codec="utf-8", exclude_characters=" \r\n\0\t", exclude_categories=("Cs", "Cc", "Z")),
    max_size=20,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.tuples(PATHS, BODIES), min_size=1, max_size=6))
def test_what_is_written_is_read_again_by_every_reader(tmp_path: Path, pages: list[tuple[str, bytes]]):
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    sealed: list[Sealed] = []
    writer = writer_in(folder, sealed)
    places: list[Location] = []
    for path, body in pages:
        places += writer.write(group_of(visit_of(f"http://www.example.org/{path}", body)))
    writer.close()
    (container,) = sealed
    assert (container.name, container.size_bytes) == ("H-00000.warc.gz", container.path.stat().st_size)
    assert container.sha256 == hashlib.sha256(container.path.read_bytes()).hexdigest()
    blocks = read_blocks(container.path)
    assert blocks == warcio_blocks(container.path) == fastwarc_blocks(container.path)
    assert [kind for kind, _ in blocks] == ["warcinfo", *["request", "response", "metadata"] * len(pages)]
    assert container.records == len(blocks)
    with container.path.open("rb") as stream:
        assert detect(stream).compression is Compression.RECORD
        for number, (path, body) in enumerate(pages):
            response = read_record(stream, places[number * 3 + 1])
            assert response.url == f"http://www.example.org/{path}"
            assert response.payload_digest == str(digest.sha1(body))
            assert response.payload().read() == body


def test_warcio_check_passes(tmp_path: Path):
    writer = writer_in(tmp_path)
    for number in range(20):
        writer.write(group_of(visit_of(f"http://www.example.org/{number}", b"page %d " % number * 300)))
    empty = visit_of("http://www.example.org/empty", b"")
    writer.write(from_visit(empty, payload_digest=payload_digest(empty)))
    writer.write([resource_record("urn:x:1", NOW, "text/plain", io.BytesIO(b"a file"), 6)])
    writer.close()
    result = subprocess.run(
        [Path(sys.executable).with_name("warcio"), "check", "-v", tmp_path / "H-00000.warc.gz"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("digest pass") == 21 * 2 + 20 + 1 + 1


def test_the_fields_of_a_visit(tmp_path: Path):
    writer = writer_in(tmp_path)
    visit = visit_of(
        "http://www.example.org/a", b"cut of", truncated="length", protocol="h2", server_address="2001:DB8::1"
    )
    writer.write(group_of(visit))
    writer.close()
    with (tmp_path / "H-00000.warc.gz").open("rb") as stream:
        info, request, response, about = (
            (dict(record.fields.pairs), record.block().read())
            for record in iter_records(stream, "H", on_finding=pytest.fail)
        )
    assert info[0]["WARC-Filename"] == "H-00000.warc.gz"
    assert info[1] == b"format: WARC File Format 1.1\r\nsoftware: webdepot\r\noperator: Sample Library\r\n"
    assert response[0]["WARC-IP-Address"] == request[0]["WARC-IP-Address"] == "2001:db8::1"
    assert response[0]["WARC-Protocol"] == "h2"
    assert response[0]["WARC-Truncated"] == "length"
    assert response[0]["WARC-Date"] == "2026-11-15T09:02:51Z"
    assert response[0]["WARC-Block-Digest"] == str(digest.sha1(visit.head + b"cut of"))
    assert request[0]["WARC-Concurrent-To"] == about[0]["WARC-Concurrent-To"] == response[0]["WARC-Record-ID"]
    assert request[1] == visit.request
    assert (
        about[1]
        == b"via: http://www.example.org/\r\nhopsFromSeed: LE\r\nfetchTimeMs: 250\r\noutlink: http://b.example/ L\r\n"
    )


def test_no_line_can_be_smuggled_into_a_header(tmp_path: Path):
    writer = writer_in(tmp_path)
    record = NewRecord(
        kind=RecordKind.RESOURCE,
        url="http://e.org/\r\nX-Evil: 1",
        date=NOW,
        content_type="text/plain",
        fields=(("X-A", "1\r\n\r\nB"),),
        head=b"x",
    )
    writer.write([record])
    writer.close()
    with (tmp_path / "H-00000.warc.gz").open("rb") as stream:
        found = list(iter_records(stream, "H", on_finding=pytest.fail))[1]
        assert "X-Evil" not in found.fields
        assert (found.fields.get("X-A"), found.block().read()) == ("1 B", b"x")


def test_chunked_answers_keep_their_bytes_and_share_a_digest(tmp_path: Path):
    """The payload has no chunks (ISO 28500, 6.3.2). `warcio check` wants them in the payload digest, so it is
    not asked here.
    """
    plain = visit_of("http://e.org/", b"hello world")
    chunked = visit_of(
        "http://e.org/", b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", headers=b"Transfer-Encoding: chunked\r\n"
    )
    assert payload_digest(chunked) == payload_digest(plain) == str(digest.sha1(b"hello world"))
    writer = writer_in(tmp_path)
    writer.write(from_visit(chunked, payload_digest=payload_digest(chunked)))
    writer.close()
    path = tmp_path / "H-00000.warc.gz"
    assert read_blocks(path)[2][1] == chunked.head + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    with path.open("rb") as stream:
        assert list(iter_records(stream, "H", on_finding=pytest.fail))[2].payload().read() == b"hello world"
    with path.open("rb") as stream:
        bodies = [
            record.content_stream().read()
            for record in warcio.ArchiveIterator(stream)
            if record.rec_type == "response"
        ]
    assert bodies == [b"hello world"]


def test_a_revisit_names_what_it_repeats(tmp_path: Path):
    earlier = Capture(
        key="org,example)/", timestamp="20191231235959", url="http://example.org/old", kind=RecordKind.RESPONSE, status=200,
        mime="text/html", digest="sha1:X", location=Location(container="c", offset=0, length=1),
    )  # fmt: skip
    visit = visit_of("http://example.org/", b"the same body as before")
    writer = writer_in(tmp_path)
    writer.write(from_visit(visit, payload_digest=payload_digest(visit), revisit_of=earlier))
    writer.close()
    path = tmp_path / "H-00000.warc.gz"
    with path.open("rb") as stream:
        record = list(iter_records(stream, "H", on_finding=pytest.fail))[2]
        assert record.kind is RecordKind.REVISIT
        assert (
            record.fields.get("WARC-Profile")
            == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
        )
        assert record.fields.get("WARC-Refers-To-Target-URI") == "http://example.org/old"
        assert record.fields.get("WARC-Refers-To-Date") == "2019-12-31T23:59:59Z"
        assert record.payload_digest == str(digest.sha1(b"the same body as before"))
        assert record.head is not None and record.head.status == 200
        assert record.payload().read() == b""
    assert [kind for kind, _ in warcio_blocks(path)] == ["warcinfo", "request", "revisit"]


def test_a_visit_without_an_answer_has_no_record():
    assert from_visit(visit_of("http://e.org/", b"", head=b""), payload_digest="") == []


def test_a_large_body_is_streamed(tmp_path: Path):
    body = random.Random(1).randbytes(1 << 20) * 6
    assert len(body) > IN_MEMORY_BYTES
    writer = writer_in(tmp_path)
    visit = visit_of("http://e.org/large", body)
    writer.write(group_of(visit))
    writer.close()
    path = tmp_path / "H-00000.warc.gz"
    assert warcio_blocks(path)[2] == ("response", visit.head + body)
    with path.open("rb") as stream:
        found = list(iter_records(stream, "H", on_finding=pytest.fail))[2]
        assert found.payload().read() == body


def test_a_body_shorter_than_said_is_refused_and_leaves_nothing(tmp_path: Path):
    writer = writer_in(tmp_path)
    writer.write(group_of(visit_of("http://e.org/1", b"one")))
    before = writer.sync()
    for size in (10, IN_MEMORY_BYTES + 10):
        wrong = visit_of("http://e.org/2", b"two", body_bytes=size)
        with pytest.raises(ValueError, match="ends after"):
            writer.write(from_visit(wrong, payload_digest=""))
    assert writer.sync() == before
    writer.write(group_of(visit_of("http://e.org/3", b"three")))
    writer.close()
    assert len(read_blocks(tmp_path / "H-00000.warc.gz")) == 7


# --- files ---


def test_groups_stay_together_and_files_roll(tmp_path: Path):
    sealed: list[Sealed] = []
    writer = writer_in(tmp_path, sealed, size_bytes=3000)
    names = []
    for number in range(40):
        places = writer.write(
            group_of(visit_of(f"http://e.org/{number}", random.Random(number).randbytes(500)))
        )
        assert len({place.container for place in places}) == 1
        names.append(places[0].container)
    writer.close()
    assert sorted(set(names)) == [container.name for container in sealed]
    assert len(sealed) > 5
    assert all(container.size_bytes >= 3000 for container in sealed[:-1])
    assert sorted(path.name for path in tmp_path.iterdir()) == [container.name for container in sealed]
    for container in sealed:
        blocks = read_blocks(container.path)
        assert blocks == warcio_blocks(container.path)
        assert blocks[0][0] == "warcinfo"


def test_a_full_file_is_sealed_only_when_an_earlier_sync_covered_it(tmp_path: Path):
    sealed: list[Sealed] = []
    writer = writer_in(tmp_path, sealed, size_bytes=1000)
    for number in range(3):
        writer.write(group_of(visit_of(f"http://e.org/{number}", random.Random(number).randbytes(2000))))
    assert sealed == []
    marks = writer.sync()
    assert list(marks) == [f"H-0000{number}.warc.gz.open" for number in range(3)]
    assert marks == {path.name: path.stat().st_size for path in sorted(tmp_path.iterdir())}
    assert sealed == []
    assert list(writer.sync()) == ["H-00002.warc.gz.open"]
    assert [container.name for container in sealed] == ["H-00000.warc.gz", "H-00001.warc.gz"]
    writer.close()
    assert [container.name for container in sealed] == [f"H-0000{number}.warc.gz" for number in range(3)]


def test_the_next_writer_continues_the_numbers(tmp_path: Path):
    (tmp_path / "H-00007.warc.gz").touch()
    (tmp_path / "H-00009.warc.gz.open").touch()
    (tmp_path / "H-other-00012.warc.gz").touch()
    writer = writer_in(tmp_path)
    assert writer.write(group_of(visit_of("http://e.org/", b"x")))[0].container == "H-00010.warc.gz"
    writer.close()


def test_nothing_written_leaves_no_file(tmp_path: Path):
    writer = writer_in(tmp_path)
    assert writer.write([]) == []
    assert writer.sync() == {}
    writer.close()
    assert list(tmp_path.iterdir()) == []
