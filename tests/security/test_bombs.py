"""Small files that unpack to gigabytes: PDF, tar and ZIP. Each costs a guarded process its limit, and us
nothing.
"""

import io
import lzma
import resource
import subprocess
import sys
import tarfile
import zipfile
import zlib

import pikepdf
import pytest

from webdepot.container.http import HttpHead
from webdepot.depot.bundle import unpacking, zipped
from webdepot.harvest.links import bodies, extract, pdf
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


def test_a_zip_with_too_many_members_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    central = b"PK\x01\x02" + bytes([20, 3, 20, 0]) + bytes(6) + bytes(14) + b"\1\0" + bytes(16) + b"x"
    count = zipped.MOST_MEMBERS + 1
    directory = central * count
    end = b"PK\x05\x06" + bytes(4) + b"\xff\xff\xff\xff" + len(directory).to_bytes(4, "little")
    path.write_bytes(directory + end + bytes(6))
    found = unpacking.look(path, tmp_path / "out")
    assert "more than" in found.reasons[0]


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
