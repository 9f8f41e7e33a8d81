"""One pass over a container derives the same as each step alone; the steps read what was derived, or the
container if it is gone.
"""

import gzip
import hashlib
import shutil
import uuid
from base64 import b32encode
from pathlib import Path

import pytest

from databases import copy_home
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot import package, package_content
from webdepot.formats import survey
from webdepot.harvest import harvest_rows
from webdepot.index import capture_from_record
from webdepot.index.content import text
from webdepot.model import Container, Harvest
from webdepot.services.admin import setup
from webdepot.services.depot import deposit, examination
from webdepot.services.harvest import harvests
from webdepot.services.index import derive, derived_files, indexer
from webdepot.services.intake import ingest, warc_files
from webdepot.services.progress import unwatched
from webdepot.services.quality import harvest_check, identification

SITE = "http://derived.example"
PAGE = b"<title>One</title><p>Words of a page</p><a href='/two'>Second</a><img src='/missing.png'>"
LARGE = b"x" * (5 << 20)
"""More than a record that is held in memory."""


def record(kind: str, url: str, block: bytes, content_type: str, **fields: str) -> bytes:
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <{uuid.uuid4().urn}>\r\n"
        f"WARC-Date: 2024-05-17T12:30:00Z\r\nWARC-Target-URI: {url}\r\nContent-Type: {content_type}\r\n"
        f"{more}Content-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", 1)


def response(path: str, body: bytes, *, mime: str = "text/html", **fields: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n".encode()
    return record("response", SITE + path, head + body, "application/http; msgtype=response", **fields)


def write(path: Path) -> Path:
    stated = "sha1:" + b32encode(hashlib.sha1(PAGE).digest()).decode()
    damaged = bytearray(response("/damaged", b"<p>lost</p>"))
    damaged[-12] ^= 255
    path.write_bytes(
        response("/", PAGE, WARC_Payload_Digest=stated)
        + record("revisit", SITE + "/again", b"", "application/http", WARC_Payload_Digest=stated)
        + response("/two", b"<p>Other words</p>", WARC_Payload_Digest=stated)
        + response("/cut", b"<p>Half", WARC_Truncated="length")
        + bytes(damaged)
        + record("resource", f"urn:view:{SITE}/", b"\x89PNG\r\n\x1a\n", "image/png")
        + response("/large", LARGE, mime="text/html")
        + response("/data.bin", LARGE, mime="application/octet-stream")
    )
    return path


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an import that is not identified yet."""
    folder = tmp_path_factory.mktemp("derived")
    setup.create(folder / "home")
    with Archive.open(folder / "home") as archive:
        warc_files.take_files(archive, [write(folder / "x.warc.gz")], collection="c", watch=unwatched)
    return folder / "home"


@pytest.fixture
def home(taken: Path, tmp_path: Path) -> Path:
    copy_home(taken, tmp_path / "home")
    return tmp_path / "home"


def imported(archive: Archive) -> tuple[Harvest, Container]:
    (harvest,) = harvests.latest(archive, 5)
    with archive.database.reading() as connection:
        (container,) = locations.of_harvest(connection, harvest.id)
        return harvest_rows.get(connection, harvest.id), container


def test_one_pass_derives_what_each_step_derives_alone(home: Path, tmp_path: Path):
    with Archive.open(home) as archive:
        harvest, container = imported(archive)
        path = archive.containers.path(container.name)
        identification.identify(archive, harvest)
        extracted = derived_files.find_extract(archive, container)
        assert extracted is not None
        alone = list(
            text.read_container(
                path,
                container.name,
                "c",
                archive.config.archive.languages,
                archive.config.index.limit_text_bytes,
                on_finding=lambda _: None,
            )
        )
        captures = list(capture_from_record.of_container(path, container.name, on_finding=lambda _: None))
        assert list(derived_files.iter_captures(archive, container)) == captures
        assert [capture for capture, _ in alone] == captures and len(captures) == 6
        facts = list(derived_files.iter_facts(archive, container))
        assert facts == list(derive.facts_of(path, container.name, has_links=False))
        assert {type(fact).__name__ for fact in facts} == {"RecordFacts", "Finding", "Screenshot"}
        rows = identification.rows_folder(archive, harvest) / f"{container.name}.jsonl.gz"
        survey.of_container(path, container.name, rows=tmp_path / "alone.gz", workers=1)
        assert list(survey.read_rows(rows)) == list(survey.read_rows(tmp_path / "alone.gz"))


def outcome(archive: Archive) -> tuple[object, ...]:
    """All results of the steps after identification."""
    harvest, container = imported(archive)
    harvest_check.note_screenshots(archive, harvest)
    checked = harvest_check.check(archive, harvest)
    kept = deposit.keep(archive, harvest)
    indexed = indexer.index_harvest(archive, harvest.id)
    captures = [capture for _, capture in archive.captures.of_container(container.name)]
    findings = [(each.code, each.subject, each.place) for each in checked.findings]
    assert kept.harvest == harvest.id
    return indexed.captures, indexed.pages, captures, sorted(findings), checked.counts


def test_the_steps_read_what_was_derived_instead_of_the_container(home: Path, tmp_path: Path):
    copy_home(home, tmp_path / "other")
    with Archive.open(tmp_path / "other") as archive:
        identification.identify(archive, imported(archive)[0])
        shutil.rmtree(archive.home / "derived")
        alone = outcome(archive)
    with Archive.open(home) as archive:
        harvest, container = imported(archive)
        identification.identify(archive, harvest)
        path = archive.containers.path(container.name)
        facts, captures = (
            derived_files.iter_facts(archive, container),
            derived_files.iter_captures(archive, container),
        )
        data = path.read_bytes()
        path.write_bytes(b"")  # a step that reads the container would fail
        assert len(list(facts)) == 8 and len(list(captures)) == 6
        checked = harvest_check.check(archive, harvest)
        path.write_bytes(data)
        assert (*outcome(archive)[:4], checked.counts) == alone
        assert not list((archive.home / "derived").rglob("*.*"))
        kept = package.read(archive.store, package_content.id_of(harvest.id))
        assert kept.tools["formats"] == kept.surveys[0]["engine"]
        assert "siegfried" in kept.tools["formats"]
        assert "identifier" not in vars(archive)  # the engine was not started to ask for its name


def test_an_interrupted_derivation_is_not_used(home: Path):
    with Archive.open(home) as archive:
        harvest, container = imported(archive)
        identification.identify(archive, harvest)
        (complete,) = (archive.home / "derived").rglob("complete")
        complete.unlink()
        for path in complete.parent.rglob("*.*"):
            path.write_bytes(b"half")
        assert derived_files.find_extract(archive, container) is None
        report = ingest.take_in(archive, harvest, deposit=True)
        assert report.captures == 6
        assert not complete.parent.exists()
        # A kept harvest is checked again from its containers.
        again = examination.check_again(archive, harvests.get(archive, harvest.id))
        assert again.counts == report.finding_counts


def test_nothing_derived_is_left_of_a_harvest_that_leaves_the_archive(home: Path):
    with Archive.open(home) as archive:
        harvest, container = imported(archive)
        identification.identify(archive, harvest)
        assert derived_files.find_extract(archive, container) is not None
        indexer.forget_harvest(archive, harvest)
        assert not [path for path in (archive.home / "derived").rglob("*") if path.is_file()]
