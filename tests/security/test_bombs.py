"""Small files that unpack to gigabytes: PDF, tar and ZIP. Each costs a guarded process its limit, and us
nothing.
"""

import io
import subprocess
import sys
import zlib

import pikepdf
import pytest

from webdepot.container.http import HttpHead
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
