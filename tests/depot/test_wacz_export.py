"""A WACZ of a later harvest is complete, and other players find its members and pages."""

import gzip
import io
import json
import subprocess
import zipfile
import zlib
from datetime import UTC, datetime
from pathlib import Path

import bagit
import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from pywb_beside import PROGRAMS, needs_pywb
from small_warcs import write_warc
from webdepot import digest
from webdepot.archive import Archive, ScratchPurpose
from webdepot.model import Package
from webdepot.services import pipeline
from webdepot.services.access.export import wacz_index, warc_and_wacz
from webdepot.services.depot import export
from webdepot.services.depot.export import PackageForm

HOME = "https://mill.example/"
PAGE = b"<!doctype html><title>The mill</title><p>It turns."
NEWS = b"<!doctype html><title>News of 2025</title><p>It stands still."


@pytest.fixture
def later(archive: Archive, tmp_path: Path) -> Package:
    """A package with one new page and one that did not change since an earlier package."""
    write_warc(tmp_path / "first.warc.gz", {HOME: PAGE}, when=datetime(2024, 1, 1, tzinfo=UTC))
    write_warc(tmp_path / "second.warc.gz", {f"{HOME}news": NEWS}, when=datetime(2025, 1, 1, tzinfo=UTC))
    with (tmp_path / "second.warc.gz").open("ab") as file:
        writer = WARCWriter(file, gzip=True)
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
        revisit = writer.create_revisit_record(
            HOME,
            str(digest.sha1(PAGE)),
            HOME,
            "2024-01-01T00:00:00Z",
            http_headers=head,
            warc_headers_dict={"WARC-Date": "2025-01-01T00:00:00Z"},
        )
        writer.write_record(revisit)
    packages = []
    for name in ("first", "second"):
        pipeline.import_files(
            archive,
            [tmp_path / f"{name}.warc.gz"],
            collection="mills",
            on_package=lambda report: packages.append(report.package),
        )
    return packages[1]


def member_at_its_place(path: Path, member: zipfile.ZipInfo) -> bytes:
    """The bytes of a member where a reader looks that knows only the central directory, as wabac does."""
    data = path.read_bytes()
    assert not member.extra
    start = member.header_offset + 30 + len(member.filename)
    found = data[start : start + member.compress_size]
    return zlib.decompress(found, -15) if member.compress_type else found


def test_a_wacz_of_a_later_harvest_has_the_originals_and_every_page_by_its_title(archive, later, tmp_path):
    done = export.export(archive, later.id, PackageForm.WACZ, tmp_path / "a.wacz")
    assert (done.references.revisits, done.references.missing) == (1, 0)
    with zipfile.ZipFile(tmp_path / "a.wacz") as made:
        for member in made.infolist():
            assert member_at_its_place(tmp_path / "a.wacz", member) == made.read(member)
        lines = made.read("indexes/index.cdx").decode().splitlines()
        assert lines == sorted(lines) and len(lines) == 3
        stamps = [line.split(" ")[1] for line in lines]
        assert stamps == ["20240101000000", "20250101000000", "20250101000000"]
        pages = [json.loads(line) for line in made.read("pages/pages.jsonl").splitlines()[1:]]
        assert {(page["url"], page["title"]) for page in pages} == {
            (HOME, "The mill"),
            (f"{HOME}news", "News of 2025"),
        }
        (original,) = ArchiveIterator(io.BytesIO(made.read("archive/originals.warc.gz")))
        assert original.rec_headers["WARC-Date"] == "2024-01-01T00:00:00Z"


def test_containers_of_a_wacz_are_split_before_they_need_zip64(archive, later, tmp_path, monkeypatch):
    monkeypatch.setattr(wacz_index, "LARGEST_CONTAINER_BYTES", 1)
    with archive.scratch_folder(ScratchPurpose.EXPORT) as folder:
        index = wacz_index.WaczIndex(folder)
        captures = list(archive.captures.scan("", "\x7f"))
        parts = {
            member.name: b"".join(member.chunks)
            for member in index.containers(
                "data",
                (record for capture in captures for record in warc_and_wacz.iter_record(archive, capture)),
            )
        }
    assert list(parts) == ["archive/data.warc.gz", "archive/data-1.warc.gz", "archive/data-2.warc.gz"]
    assert all(gzip.decompress(data).startswith(b"WARC/1") for data in parts.values())


def test_a_bag_of_a_later_harvest_names_the_packages_that_it_needs(archive, later, tmp_path):
    done = export.export(archive, later.id, PackageForm.BAGIT, tmp_path / "bag")
    (needed,) = done.references.packages
    assert needed != later.id
    assert bagit.Bag(str(tmp_path / "bag")).info["Requires-Package"] == needed


@needs_pywb
def test_pywb_takes_in_a_wacz(archive, later, tmp_path):
    export.export(archive, later.id, PackageForm.WACZ, tmp_path / "a.wacz")
    for arguments in (["init", "x"], ["add", "--unpack-wacz", "x", str(tmp_path / "a.wacz")]):
        subprocess.run([str(PROGRAMS / "wb-manager"), *arguments], cwd=tmp_path, check=True, timeout=120)
    (index,) = (tmp_path / "collections" / "x" / "indexes").iterdir()
    assert index.read_text().count("\n") == 3
