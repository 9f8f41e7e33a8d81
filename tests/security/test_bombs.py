"""Small files that unpack to gigabytes: PDF, tar and ZIP. Each ends a guarded process at its limit, and costs the program nothing else."""

import gzip
import io
import json
import lzma
import os
import resource
import subprocess
import sys
import tarfile
import zipfile
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha512

import pikepdf
import pytest

from webdepot import times
from webdepot.container.conversion import har
from webdepot.container.http import HttpHead
from webdepot.depot.bundle import unpacking
from webdepot.depot.ocfl import validation
from webdepot.errors import InputError
from webdepot.exchange.metadata import markup
from webdepot.harvest.links import bodies, extract, pdf
from webdepot.services.intake import mirrors
from webdepot.url import Url

MB = 1 << 20


def deflated(size_mb: int, *, filling: bytes = b" ") -> bytes:
    packer = zlib.compressobj(9)
    block = filling * MB
    return b"".join(packer.compress(block) for _ in range(size_mb)) + packer.flush()


def pdf_bomb(size_mb: int) -> bytes:
    """A PDF whose pages are in an object stream that unpacks to this size, compressed twice."""
    inner = b"2 0 << /Type /Pages /Kids [] /Count 0 >> "
    packer = zlib.compressobj(9)
    once = b"".join(
        [packer.compress(inner), *(packer.compress(b" " * MB) for _ in range(size_mb)), packer.flush()]
    )
    twice = zlib.compress(once, 9)
    parts = [b"%PDF-1.5\n"]
    places = {}

    def add(number: int, body: bytes) -> None:
        places[number] = sum(map(len, parts))
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, body))

    add(1, b"<< /Type /Catalog /Pages 2 0 R >>")
    add(
        3,
        b"<< /Type /ObjStm /N 1 /First 4 /Filter [/FlateDecode /FlateDecode] /Length %d >>\n"
        b"stream\n%s\nendstream" % (len(twice), twice),
    )
    start = sum(map(len, parts))
    rows = [(0, 0, 255), (1, places[1], 0), (2, 3, 0), (1, places[3], 0), (1, start, 0)]
    table = b"".join(bytes([kind]) + place.to_bytes(4) + bytes([extra]) for kind, place, extra in rows)
    add(
        4,
        b"<< /Type /XRef /Size 5 /W [1 4 1] /Root 1 0 R /Length %d >>\nstream\n%s\nendstream"
        % (len(table), table),
    )
    parts.append(b"startxref\n%d\n%%%%EOF\n" % start)
    return b"".join(parts)


def links_of(data: bytes) -> extract.Extracted:
    head = HttpHead(version="HTTP/1.1", status=200, reason="", headers=(("Content-Type", "application/pdf"),))
    return extract.extract(Url("http://a.example/x.pdf"), head, io.BytesIO(data), bodies.LinkLimits())


def good_pdf(count: int) -> bytes:
    document = pikepdf.new()
    page = document.add_blank_page()
    page.obj["/Annots"] = pikepdf.Array(
        [
            pikepdf.Dictionary(
                Type=pikepdf.Name.Annot,
                Subtype=pikepdf.Name.Link,
                A=pikepdf.Dictionary(S=pikepdf.Name.URI, URI=f"http://a.example/{number}"),
            )
            for number in range(count)
        ]
    )
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_a_pdf_bomb_costs_the_harvester_no_memory_and_the_next_pdf_is_read():
    bomb = pdf_bomb(600)
    assert len(bomb) < 10_000
    program = (
        "import resource, sys\nsys.path[:0] = [sys.argv[1]]\n"
        "import test_bombs\nbomb = sys.stdin.buffer.read()\n"
        "test_bombs.links_of(test_bombs.good_pdf(1))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "found = test_bombs.links_of(bomb)\nassert not found.links and 'linksFailed' in found.note, found\n"
        "assert len(test_bombs.links_of(test_bombs.good_pdf(3)).links) == 3\n"
        "test_bombs.pdf._idle[0].close()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, __file__.rpartition("/")[0]],
        input=bomb,
        capture_output=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr.decode()
    ours_kb, child_kb = map(int, done.stdout.split())
    assert ours_kb < 30_000
    assert child_kb < (pdf.LIMITS.memory_bytes >> 10) + 200_000


def test_many_links_of_a_pdf_are_all_found_and_no_more_than_wanted():
    assert len(links_of(good_pdf(5_000)).links) == 5_000
    assert len(pdf.references(good_pdf(100), most=7)) == 7


def test_a_damaged_pdf_is_a_note_in_the_log():
    assert links_of(b"%PDF-1.4 nonsense").note == "linksFailed:UnreadPdf"
    with pytest.raises(pdf.UnreadPdf, match="PdfError"):
        pdf.references(b"%PDF-1.4 nonsense", most=10)


# --- tar and ZIP ---


def long_name(size_mb: int, *, pax: bool = False) -> bytes:
    """A .tar.xz with a member whose name is this long."""
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = (tarfile.XHDTYPE if pax else tarfile.GNUTYPE_LONGNAME), size_mb * MB
    packer = lzma.LZMACompressor(preset=0)
    parts = [packer.compress(head.tobuf(tarfile.GNU_FORMAT))]
    parts += [packer.compress(b"a" * MB) for _ in range(size_mb)]
    member = tarfile.TarInfo("a.warc").tobuf(tarfile.GNU_FORMAT)
    return b"".join([*parts, packer.compress(member + bytes(1024)), packer.flush()])


@pytest.mark.parametrize("pax", [False, True])
def test_a_tar_with_a_name_of_gigabytes_is_refused_within_the_memory_of_its_process(tmp_path, pax):
    path = tmp_path / "a.tar.xz"
    path.write_bytes(long_name(1200, pax=pax))
    assert path.stat().st_size < MB
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = unpacking.unpack(path, tmp_path / "out")
    assert found.kind == "tar"
    assert "memory" in found.reasons[0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100_000
    assert list((tmp_path / "out").iterdir()) == []


def test_a_zip_of_many_small_bombs_is_refused(tmp_path):
    """Each member is below the size from which its own ratio counts."""
    path = tmp_path / "a.zip"
    data = bytes(60 * MB)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(3):
            archive.writestr(f"{number}.warc", data)
    found = unpacking.unpack(path, tmp_path / "out")
    assert found.kind == "zip" and found.reasons[0].startswith("it would unpack to more than")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_zip_that_lies_about_its_sizes_writes_no_more_than_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "SMALL_BYTES", 3 * MB)
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.warc", bytes(30 * MB))
    lie = path.read_bytes().replace((30 * MB).to_bytes(4, "little"), (2 * MB).to_bytes(4, "little"))
    path.write_bytes(lie)
    found = unpacking.unpack(path, tmp_path / "out")
    assert found.reasons
    assert sum(each.stat().st_size for each in (tmp_path / "out").rglob("*") if each.is_file()) <= 3 * MB


@pytest.mark.parametrize("packing", ["zip", "zip64", "zip that states fewer", "tar"])
def test_too_many_members_are_refused_before_anything_is_unpacked(tmp_path, packing):
    count = 70_000 if packing == "zip64" else 30
    path = tmp_path / ("a.tar" if packing == "tar" else "a.zip")
    with tarfile.open(path, "w") if packing == "tar" else zipfile.ZipFile(path, "w") as archive:
        for number in range(count):
            if isinstance(archive, tarfile.TarFile):
                archive.addfile(tarfile.TarInfo(f"{number}.txt"))
            else:
                archive.writestr(f"{number}.txt", b"")
    if packing == "zip that states fewer":
        stated = (30).to_bytes(2, "little") * 2
        assert path.read_bytes().count(stated) == 1
        path.write_bytes(path.read_bytes().replace(stated, (3).to_bytes(2, "little") * 2))
    out = tmp_path / "out"
    found = unpacking.unpack(path, out, most_members=count - 1)
    assert found.reasons == (f"it contains more than {count - 1:,} files and folders (depot.import_members)",)
    assert list(out.iterdir()) == []
    assert unpacking.look(path, out, most_members=count).reasons == ()


def test_good_packed_files_are_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/a.warc", b"one")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.zip", arcname="./in/a.zip")
    (tmp_path / "a.warc").write_bytes(b"WARC/1.0\r\n")
    found = unpacking.unpack(tmp_path / "a.zip", tmp_path / "zip")
    assert (found.kind, found.members, found.reasons) == ("zip", {"archive/a.warc": 3}, ())
    assert (tmp_path / "zip/archive/a.warc").read_bytes() == b"one"
    assert unpacking.unpack(tmp_path / "a.tar.gz", tmp_path / "tar").kind == "tar"
    assert (tmp_path / "tar/in/a.zip").read_bytes() == (tmp_path / "a.zip").read_bytes()
    assert unpacking.unpack(tmp_path / "a.warc", tmp_path / "warc").kind == ""


def test_xml_of_a_few_megabytes_cannot_become_gigabytes_of_elements():
    with pytest.raises(InputError, match="more than 6,000,000 elements"):
        markup.parse(b"<a>" + b"<b/>" * markup.MOST_NODES + b"</a>", what="The record")


@pytest.mark.parametrize("charset", ["punycode", "idna", "utf-7"])
def test_a_charset_of_a_har_file_that_takes_quadratic_time_is_not_used(tmp_path, charset):
    entry = {
        "startedDateTime": "2020-01-01T00:00:00Z",
        "request": {"method": "GET", "url": "http://a.example/"},
        "response": {
            "status": 200,
            "headers": [{"name": "Content-Type", "value": f"text/html; charset={charset}"}],
            "content": {"text": "ä"},
        },
    }
    source = io.BytesIO(json.dumps({"log": {"entries": [entry]}}).encode())
    now = datetime(2020, 1, 1, tzinfo=UTC)
    har.to_warc(source, tmp_path / "a.warc.gz", name="a.har", now=now, note=pytest.fail)
    written = gzip.decompress((tmp_path / "a.warc.gz").read_bytes())
    assert b"Content-Type: text/html; charset=utf-8\r\n" in written
    assert written.count("ä".encode()) == 1


def test_names_that_no_file_can_have_are_faults_of_an_ocfl_object(tmp_path):
    inventory = json.dumps(
        {
            "id": "urn:a",
            "type": "https://ocfl.io/1.1/spec/#inventory",
            "digestAlgorithm": "sha512",
            "head": "v1",
            "contentDirectory": "c" * 300,
            "manifest": {"a" * 128: ["v1/content/" + "b" * 300]},
            "versions": {
                "v1": {"created": "2020-01-01T00:00:00Z", "state": {"a" * 128: ["a"]}},
                "v" + "1" * 300: {},
            },
        }
    ).encode()
    (tmp_path / "v1").mkdir()
    (tmp_path / "0=ocfl_object_1.1").write_text("ocfl_object_1.1\n")
    (tmp_path / "inventory.json").write_bytes(inventory)
    (tmp_path / "inventory.json.sha512").write_text(f"{sha512(inventory).hexdigest()} inventory.json\n")
    assert any("is missing" in each.message for each in validation.check(tmp_path))


def test_an_inventory_with_millions_of_values_is_not_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(validation, "MOST_VALUES", 1000)
    (tmp_path / "0=ocfl_object_1.1").write_text("ocfl_object_1.1\n")
    (tmp_path / "inventory.json").write_text(json.dumps({"id": "a", "manifest": {"a": [[]] * 1001}}))
    assert any("too many values" in each.message for each in validation.check(tmp_path))


def test_a_path_with_very_many_steps_is_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a/" * 900 + "b", b"")
    assert "is not a path inside the file" in unpacking.look(tmp_path / "a.zip", tmp_path).reasons[0]


def test_a_line_of_megabytes_in_a_list_of_httrack_costs_no_quadratic_time(tmp_path):
    """Ten megabytes of steps would be compared with the files once for each step."""
    for name, text in (
        ("hts-cache/new.txt", "\t" * 8 + "/a" * 5_000_000),
        ("www.a.example/index.html", "<title>a</title>"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    payload = {name: tmp_path / name for name in ("hts-cache/new.txt", "www.a.example/index.html")}
    found = mirrors.find(payload)
    assert found is not None and found.urls == {"www.a.example/index.html": "http://www.a.example/"}


def test_a_file_of_the_year_200000_has_the_last_date_that_there_is(tmp_path):
    (tmp_path / "a").touch()
    with suppress(OverflowError, OSError):  # a system with smaller times
        os.utime(tmp_path / "a", (6e12, 6e12))
    assert times.written_at(tmp_path / "a") <= times.LATEST
