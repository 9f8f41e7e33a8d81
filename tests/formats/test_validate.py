"""Validation: no false alarm on good files, planted defects found, hostile files end in time at the cost of
one finding.
"""

import gzip
import io
import os
import signal
import struct
import time
import zipfile
import zlib

import pikepdf
import pytest
from format_samples import HTML, docx, good_files, image, pdf, slow_zip, wav, zipped
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from webdepot.formats import validate
from webdepot.formats.examine import FileExaminer
from webdepot.formats.validation_result import CheckResult, Validity
from webdepot.guard.process import Limits
from webdepot.model import Basis, Format, FormatVerdict, Severity

GOOD = good_files()


def of(mime: str) -> Format:
    return Format(
        puid="", name="", version="", mime=mime, basis=Basis.SIGNATURE, verdict=FormatVerdict.RECOGNISED
    )


@pytest.mark.parametrize("name", GOOD)
def test_good_files_raise_no_alarm(identifier, examiner, name):
    data, _, expected = GOOD[name]
    format = identifier.identify(data, name=name, mime="")
    found = examiner.examine(data, name=name, mime="", subject=name)
    assert found.format == format
    assert (found.validity.value, found.findings) == (
        expected,
        [each for each in found.findings if each.severity is Severity.NOTE],
    )
    assert validate.check(data, format, subject=name) == CheckResult(
        validity=found.validity, findings=found.findings, properties=found.properties
    )


MANIFEST = (
    b'<?xml version="1.0"?><!DOCTYPE manifest:manifest PUBLIC "-//OpenOffice.org//DTD Manifest 1.0//EN" "Manifest.dtd">'
    b'<manifest:manifest><manifest:file-entry manifest:full-path="/"/></manifest:manifest>'
)
ODD_BUT_GOOD = {
    "page.html": b'<?xml version="1.0"?><html><head><title>a</title></head><body><br/><p>written as XML</p></body></html>',
    "by-type.svg": b'<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.0//EN" "svg10.dtd"><svg width="1" height="1"><g/></svg>',
    "manifest.xml": MANIFEST,
    "fragments.txt": b"<a>one</a>\n<b>two</b>\n",
    "readme.md": b"<p align='center'>A picture\n\n# Title\n",
    "japanese.txt": "日本語のテキストです。これは古い符号化方式で書かれています。".encode("shift_jis"),
    "chinese.txt": "这是用旧编码写成的中文文本，不是损坏的文件。".encode("gb18030"),
}


@pytest.mark.parametrize("name", ODD_BUT_GOOD)
def test_odd_files_that_are_right_raise_no_alarm(examiner, name):
    found = examiner.examine(ODD_BUT_GOOD[name], name=name, mime="", subject=name)
    assert found.validity.value in ("valid", "well-formed"), found
    assert [each for each in found.findings if each.severity is not Severity.NOTE] == []


def codes(done):
    return [each.code for each in done.findings]


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


def with_wrong_crc() -> bytes:
    data = bytearray(zipped({"a.txt": b"x" * 500}))
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        crc = struct.pack("<I", archive.infolist()[0].CRC)
    return bytes(data).replace(crc, b"\1\2\3\4")


PNG, JPEG, GIF, TIFF, WEBP, WAV = (
    image("PNG"),
    image("JPEG"),
    image("GIF", mode="P"),
    image("TIFF"),
    image("WEBP"),
    wav(),
)
DEFECTS = {
    "png cut": ("image/png", PNG[:-30]),
    "png without end": ("image/png", PNG[:-12]),
    "png flipped pixel": ("image/png", flipped(PNG, len(PNG) // 2)),
    "png flipped header": ("image/png", flipped(PNG, 20)),
    "jpeg cut": ("image/jpeg", JPEG[: len(JPEG) // 2]),
    "jpeg without end": ("image/jpeg", JPEG[:-2]),
    "gif cut": ("image/gif", GIF[:-40]),
    "gif without trailer": ("image/gif", GIF[:-1]),
    "tiff cut": ("image/tiff", TIFF[: len(TIFF) // 2]),
    "webp cut": ("image/webp", WEBP[:-10]),
    "pdf cut": ("application/pdf", pdf()[:-200]),
    "pdf without end mark": ("application/pdf", pdf().replace(b"%%EOF", b"")),
    "pdf wrong cross-reference": ("application/pdf", pdf().replace(b"startxref\n", b"startxref\n9")),
    "pdf no pages": ("application/pdf", pdf(pages=0)),
    "xml unclosed": ("application/xml", b"<a><b></a>"),
    "xml two roots": ("application/xml", b"<a/><b/>"),
    "xml unknown entity": ("application/xml", b"<a>&x;</a>"),
    "xml wrong bytes": ("application/xml", b'<?xml version="1.0" encoding="utf-8"?><a>\xff</a>'),
    "xml empty": ("application/xml", b"  "),
    "svg cut": ("image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg"><g>'),
    "html cut in tag": ("text/html", HTML[:-4]),
    "html cut in comment": ("text/html", HTML + b"<!-- "),
    "json trailing comma": ("application/json", b'{"a":1,}'),
    "json cut": ("application/json", b'{"a":[1,2'),
    "json NaN": ("application/json", b"[NaN]"),
    "json wrong bytes": ("application/json", b'{"a":"\xff"}'),
    "json two values": ("application/json", b"{} {}"),
    "utf-8 overlong": ("text/plain", b"abc \xc0\xaf def"),
    "utf-8 surrogate": ("text/plain", b"abc \xed\xa0\x80 def"),
    "utf-8 cut": ("text/plain", "Grüße €".encode()[:-1]),
    "utf-16 odd": ("text/plain", "abc".encode("utf-16")[:-1]),
    "zip cut": ("application/zip", zipped({"a": b"x" * 50})[:-10]),
    "zip wrong checksum": ("application/zip", with_wrong_crc()),
    "docx broken part": (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        docx(b"<w:document>"),
    ),
    "gzip cut": ("application/gzip", gzip.compress(b"hello" * 100)[:-5]),
    "gzip wrong checksum": (
        "application/gzip",
        flipped(gzip.compress(b"hello" * 100), -6 + len(gzip.compress(b"hello" * 100))),
    ),
    "wave cut": ("audio/x-wav", WAV[:-5]),
    "wave without data": ("audio/x-wav", b"RIFF" + struct.pack("<I", 28) + WAV[8:36]),
    "wave wrong numbers": ("audio/x-wav", WAV[:22] + b"\x07\x00" + WAV[24:]),
    "wave data first": ("audio/x-wav", WAV[:12] + WAV[36:] + WAV[12:36]),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_planted_defects_are_found(examiner, name):
    mime, data = DEFECTS[name]
    done = examiner.check(data, of(mime), subject=name)
    assert done.validity is Validity.NOT_VALID
    assert done.findings
    assert {each.subject for each in done.findings} == {name}
    assert all(each.code.startswith("formats.") and each.message for each in done.findings)


def laughs() -> bytes:
    entities = b"".join(
        b'<!ENTITY l%d "%s">' % (number, b"&l%d;" % (number - 1) * 10 if number else b"lol")
        for number in range(10)
    )
    return b'<?xml version="1.0"?><!DOCTYPE l [' + entities + b']><l a="&l9;">&l9;</l>'


def white(width: int, height: int, kind: str, mode: str = "1") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (width, height)).save(buffer, kind)
    return buffer.getvalue()


def png_that_promises(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return PNG[:8] + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header)) + PNG[33:]


def looping_pdf() -> bytes:
    return (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[2 0 R]/Count 1>>endobj\nxref\n0 3\n"
        b"0000000000 65535 f \n0000000009 00000 n \n0000000052 00000 n \ntrailer<</Root 1 0 R/Size 3/Prev 106>>\nstartxref\n106\n%%EOF"
    )


def zip_that_promises(size_bytes: int) -> bytes:
    """A member whose entry in the central directory promises that many bytes."""
    data = zipped({"a": bytes(1000)})
    at = data.index(b"PK\x01\x02") + 24
    return data[:at] + struct.pack("<I", size_bytes) + data[at + 4 :]


HOSTILE = {
    "billion laughs": ("application/xml", laughs),
    "deep xml": ("application/xml", lambda: b"<a>" * 300_000),
    "deep json": ("application/json", lambda: b"[" * 500_000 + b"]" * 500_000),
    "deep html": ("text/html", lambda: b"<div>" * 300_000),
    "many attributes": ("text/html", lambda: b"<p " + b" ".join(b"a%d" % n for n in range(100_000)) + b">"),
    "png that promises terabytes": ("image/png", lambda: png_that_promises(1_000_000, 1_000_000)),
    "png of 39 megapixels promised": ("image/png", lambda: png_that_promises(6_500, 6_000)),
    "tiff bomb": ("image/tiff", lambda: white(14_000, 14_000, "TIFF")),
    "looping pdf": ("application/pdf", looping_pdf),
    "zip that promises gigabytes": ("application/zip", lambda: zip_that_promises(4_000_000_000)),
    "wave of endless chunks": ("audio/x-wav", lambda: WAV[:36] + b"abcd\0\0\0\0" * 100_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_end(examiner, name):
    mime, make = HOSTILE[name]
    data = make()
    started = time.monotonic()
    done = examiner.check(data, of(mime), subject=name)
    assert time.monotonic() - started < 60  # a hang would be endless; the guard's own limit is 5 s
    assert done.validity is not Validity.VALID
    assert done.findings
    assert examiner.check(b"fine", of("text/plain")).validity is Validity.VALID


def test_a_check_that_takes_too_long_is_stopped_and_the_next_one_works():
    with FileExaminer(limits=Limits(time_s=0.2)) as impatient:
        slow = slow_zip()
        done = impatient.check(slow, of("application/zip"), subject="slow")
        assert (done.validity, codes(done)) == (Validity.NOT_CHECKED, ["formats.gave-up-time"])
        assert impatient.check(b"fine", of("text/plain")).validity is Validity.VALID


def test_a_check_that_needs_too_much_memory_is_stopped():
    with FileExaminer(limits=Limits(memory_bytes=40 << 20)) as frugal:
        done = frugal.check(white(4400, 4400, "TIFF", mode="RGB"), of("image/tiff"))
        assert (done.validity, codes(done)) == (Validity.NOT_CHECKED, ["formats.gave-up-memory"])
        assert frugal.check(b"fine", of("text/plain")).validity is Validity.VALID


def test_a_child_that_dies_costs_one_finding():
    with FileExaminer() as examiner:
        examiner.check(b"fine", of("text/plain"))
        os.kill(examiner._checking.pid, signal.SIGSEGV)
        done = examiner.check(b"fine", of("text/plain"), subject="s")
        assert (done.validity, codes(done)) == (Validity.NOT_CHECKED, ["formats.checker-died"])
        assert "SIGSEGV" in done.findings[0].message
        assert examiner.check(b"fine", of("text/plain")).validity is Validity.VALID


def test_encrypted_files_are_named(examiner):
    locked = pdf(encryption=pikepdf.Encryption(owner="secret", user="secret"))
    done = examiner.check(locked, of("application/pdf"))
    assert (done.validity, codes(done)) == (Validity.NOT_CHECKED, ["formats.encrypted"])


def test_what_has_no_check_is_said_so(examiner, tmp_path):
    assert examiner.check(b"x", of("video/x-unknown")) == CheckResult(
        validity=Validity.NOT_CHECKED, findings=[]
    )
    assert codes(examiner.check(b"", of("text/plain"))) == ["formats.empty"]
    path = tmp_path / "x"
    path.write_bytes(b"<a>")
    assert examiner.check(path, of("application/xml")).validity is Validity.NOT_VALID


@given(st.sampled_from(sorted(DEFECTS)), st.data())
@settings(max_examples=150, deadline=None)
def test_mutated_files_end_with_an_answer(examiner, name, draw):
    mime, data = DEFECTS[name]
    changed = bytearray(data[:20_000])
    for _ in range(draw.draw(st.integers(1, 8))):
        changed[draw.draw(st.integers(0, len(changed) - 1))] = draw.draw(st.integers(0, 255))
    done = examiner.check(bytes(changed), of(mime))
    assert "formats.checker-died" not in codes(done), done
    assert done.validity in Validity
