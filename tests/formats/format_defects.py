"""Small files with one planted defect each, and the good files they were made from; all made here.

A little over 500 lines: one catalogue, read from top to bottom by the test that counts it.
"""

# Longer than other modules because it is a table of samples, one family after the other.

import gzip
import io
import struct
import zipfile
import zlib

from format_samples import docx, image, wav, zipped


def pdf_of(
    objects: dict[int, bytes], *, trailer: bytes = b"", header: bytes = b"%PDF-1.4\n", size: int = 0
) -> bytes:
    """A PDF with a right table of cross-references over these objects."""
    data, places = header, {}
    for number, body in objects.items():
        places[number] = len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start, last = len(data), max(objects)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (last + 1)
    data += b"".join(
        b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 00000 f \n"
        for number in range(1, last + 1)
    )
    return data + b"trailer\n<< /Size %d /Root 1 0 R %s>>\nstartxref\n%d\n%%%%EOF\n" % (
        size or last + 1,
        trailer,
        start,
    )


def stream(data: bytes, more: bytes = b"") -> bytes:
    return b"<< /Length %d %s>>\nstream\n%s\nendstream" % (len(data), more, data)


def objects() -> dict[int, bytes]:
    packed = zlib.compress(b"BT /F1 12 Tf 72 700 Td (Hello) Tj ET")
    return {
        1: b"<< /Type /Catalog /Pages 2 0 R /Outlines 7 0 R /Names << /Dests << /Names [(a) [3 0 R /Fit]] >> >> /Metadata 11 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 5 0 R >> >> /Contents 6 0 R"
        b" /Annots [10 0 R] >>",
        4: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << >> >>",
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        6: stream(packed, b"/Filter /FlateDecode "),
        7: b"<< /Type /Outlines /First 8 0 R /Last 9 0 R /Count 2 >>",
        8: b"<< /Title (One) /Parent 7 0 R /Next 9 0 R /Dest [3 0 R /Fit] >>",
        9: b"<< /Title (Two) /Parent 7 0 R /Prev 8 0 R /Dest [4 0 R /XYZ 0 0 0] >>",
        10: b"<< /Type /Annot /Subtype /Link /Rect [0 0 10 10] /Dest (a) >>",
        11: stream(b"<?xpacket begin='' id='W5M0'?><x:xmpmeta xmlns:x='adobe:ns:meta/'/><?xpacket end='w'?>", b"/Type /Metadata "),
        12: b"<< /Title (A title) /CreationDate (D:20240517123000+02'00') /Producer (tests) >>",
    }  # fmt: skip


def with_object(number: int, old: bytes, new: bytes, **options) -> bytes:
    changed = objects()
    assert old in changed[number]
    changed[number] = changed[number].replace(old, new)
    return pdf_of(changed, trailer=b"/Info 12 0 R ", **options)


GOOD_PDF = pdf_of(objects(), trailer=b"/Info 12 0 R ")


def pdf_defects() -> dict[str, bytes]:
    good = GOOD_PDF
    without = objects()
    del without[6]
    loop = good.replace(b"trailer\n<<", b"trailer\n<< /Prev %d " % good.rindex(b"xref\n0"))
    return {
        "no header": good[9:],
        "impossible version": good.replace(b"%PDF-1.4", b"%PDF-9.9"),
        "bytes before the header": b"junk\n" + good,
        "bytes behind the end": good + b"<html>an error page of the server</html>",
        "no end mark": good.replace(b"%%EOF\n", b""),
        "no startxref": good.replace(b"startxref", b"startxxxx"),
        "wrong startxref": good.replace(b"startxref\n", b"startxref\n1"),
        "wrong offset": good.replace(
            b"%010d 00000 n" % good.index(b"3 0 obj"), b"%010d 00000 n" % (good.index(b"3 0 obj") + 3)
        ),
        "no trailer": good.replace(b"trailer\n", b"tr\n"),
        "wrong size": pdf_of(objects(), trailer=b"/Info 12 0 R ", size=5),
        "no root": good.replace(b"/Root 1 0 R", b"/Rxxt 1 0 R"),
        "catalog without type": with_object(1, b"/Type /Catalog", b""),
        "catalog without pages": with_object(1, b"/Pages 2 0 R", b""),
        "wrong count": with_object(2, b"/Count 2", b"/Count 7"),
        "no kids": with_object(2, b"/Kids [3 0 R 4 0 R]", b""),
        "page tree in a circle": with_object(2, b"4 0 R", b"2 0 R"),
        "page without parent": with_object(4, b"/Parent 2 0 R", b""),
        "page without size": with_object(4, b"/MediaBox [0 0 612 792]", b""),
        "size with three numbers": with_object(4, b"[0 0 612 792]", b"[0 0 612]"),
        "page without type": with_object(4, b"/Type /Page", b""),
        "font without kind": with_object(5, b"/Subtype /Type1", b""),
        "wrong stream length": with_object(6, b"/Length ", b"/Length 9"),
        "damaged stream": with_object(6, b"x\x9c", b"\x00\x00"),
        "unknown filter": with_object(6, b"/FlateDecode", b"/FlatDecode"),
        "missing content": pdf_of({**without, 6: b"42"}, trailer=b"/Info 12 0 R "),
        "outline in a circle": with_object(9, b"/Title (Two)", b"/Title (Two) /Next 8 0 R"),
        "outline without title": with_object(9, b"/Title (Two)", b""),
        "destination without page": with_object(9, b"[4 0 R", b"[5 0 R"),
        "destination of no kind": with_object(9, b"/XYZ 0 0 0", b"/Nowhere"),
        "annotation without place": with_object(10, b"/Rect [0 0 10 10]", b""),
        "annotation of no kind": with_object(10, b"/Subtype /Link", b""),
        "date that is none": with_object(12, b"D:20240517123000+02'00'", b"yesterday"),
        "date with month 13": with_object(12, b"D:20240517", b"D:20241317"),
        "metadata not well-formed": with_object(11, b"<x:xmpmeta", b"<x:xmpmxxx><x:xmpme"),
        "dictionary not closed": with_object(5, b">>", b""),
        "cut in the middle": good[: len(good) // 2],
        "cross-references in a circle": loop,
        "name tree with half a pair": with_object(1, b"[(a) [3 0 R /Fit]]", b"[(a)]"),
        "version in the catalog": with_object(1, b"/Type /Catalog", b"/Type /Catalog /Version /9.9"),
    }


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(*chunks: tuple[bytes, bytes]) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in chunks)


def png_defects() -> dict[str, bytes]:
    header = struct.pack(">IIBBBBB", 4, 2, 8, 3, 0, 0, 0)
    palette, pixels = bytes(range(12)), zlib.compress(b"\0\0\1\2\3" * 2)
    ihdr, plte, idat, iend = (b"IHDR", header), (b"PLTE", palette), (b"IDAT", pixels), (b"IEND", b"")
    good = png_of(ihdr, plte, idat, iend)
    return {
        "good": good,
        "no palette": png_of(ihdr, idat, iend),
        "late palette": png_of(ihdr, idat, plte, iend),
        "two palettes": png_of(ihdr, plte, plte, idat, iend),
        "odd palette": png_of(ihdr, (b"PLTE", palette[:-1]), idat, iend),
        "two headers": png_of(ihdr, ihdr, plte, idat, iend),
        "no header": png_of(plte, idat, iend),
        "width zero": png_of((b"IHDR", bytes(4) + header[4:]), plte, idat, iend),
        "impossible depth": png_of((b"IHDR", header[:8] + b"\x05" + header[9:]), plte, idat, iend),
        "no pixels": png_of(ihdr, plte, iend),
        "pixels damaged": png_of(ihdr, plte, (b"IDAT", pixels[:-6] + b"abcdef"), iend),
        "too few pixels": png_of(ihdr, plte, (b"IDAT", zlib.compress(b"\0\0\1\2\3")), iend),
        "filter that does not exist": png_of(ihdr, plte, (b"IDAT", zlib.compress(b"\x09\0\1\2\3" * 2)), iend),
        "wrong checksum": good[:-20] + bytes([good[-20] ^ 1]) + good[-19:],
        "no end": good[:-12],
        "cut": good[: len(good) // 2],
        "unknown necessary chunk": png_of(ihdr, (b"ABCD", b"x"), plte, idat, iend),
        "pixels in two places": png_of(
            ihdr, plte, (b"IDAT", pixels[:5]), (b"tEXt", b"a\0b"), (b"IDAT", pixels[5:]), iend
        ),
    }


def patched(data: bytes, at: int, new: bytes) -> bytes:
    at = at if at >= 0 else len(data) + at
    return data[:at] + new + data[at + len(new) :]


def gif_defects() -> dict[str, bytes]:
    good = image("GIF", mode="P")
    block = good.index(b"\x2c", 13 + 3 * 2 ** ((good[10] & 7) + 1))
    return {
        "good": good,
        "no trailer": good[:-1],
        "cut": good[: len(good) // 2],
        "unknown block": patched(good, block, b"\x99"),
        "width zero": patched(good, 6, b"\0\0"),
        "no picture": good[:block] + b"\x3b",
        "picture of no height": patched(good, block + 7, b"\0\0"),
    }


def jpeg_defects() -> dict[str, bytes]:
    good = image("JPEG")
    frame, scan, huffman = good.index(b"\xff\xc0"), good.index(b"\xff\xda"), good.index(b"\xff\xc4")
    tables = good[good.index(b"\xff\xdb") : frame]
    return {
        "good": good,
        "no end": good[:-2],
        "cut": good[: len(good) * 2 // 3],
        "height zero": patched(good, frame + 5, b"\0\0"),
        "no quantisation": good.replace(tables, b""),
        "no huffman": good[:huffman] + good[scan:],
        "wrong segment length": patched(good, huffman + 2, b"\xff\xff"),
        "scan of unknown component": patched(good, scan + 5, b"\x77"),
        "two frames": good[:frame] + good[frame:huffman] + good[frame:],
        "no pixels": good[:scan] + b"\xff\xd9",
    }


def tiff_defects() -> dict[str, bytes]:
    good = image("TIFF")
    (start,) = struct.unpack("<I", good[4:8])
    (count,) = struct.unpack("<H", good[start : start + 2])
    entries = {
        struct.unpack("<H", good[start + 2 + 12 * n : start + 4 + 12 * n])[0]: start + 2 + 12 * n
        for n in range(count)
    }
    end = start + 2 + 12 * count
    return {
        "good": good,
        "directories in a circle": patched(good, end, struct.pack("<I", start)),
        "directory behind the end": patched(good, 4, struct.pack("<I", len(good) + 100)),
        "no width": patched(good, entries[256], struct.pack("<H", 255)),
        "pixels behind the end": patched(good, entries[273] + 8, struct.pack("<I", len(good) * 2)),
        "width zero": patched(good, entries[256] + 8, b"\0\0"),
        "version 41": patched(good, 2, b"\x29\0"),
        "unsorted": patched(good, entries[257], struct.pack("<H", 65000)),
        "cut": good[: len(good) // 2],
    }


def wave_defects() -> dict[str, bytes]:
    good = wav()
    return {
        "good": good,
        "cut": good[:-5],
        "no data": b"RIFF" + struct.pack("<I", 28) + good[8:36],
        "numbers contradict": patched(good, 22, b"\x07\0"),
        "data first": good[:12] + good[36:] + good[12:36],
        "two formats": b"RIFF" + struct.pack("<I", len(good) - 8 + 24) + good[8:36] + good[12:36] + good[36:],
        "chunk too long": patched(good, 40, struct.pack("<I", 100_000)),
    }


def aiff() -> bytes:
    sound = bytes(400)
    common = b"COMM" + struct.pack(">IhIh", 18, 2, 100, 16) + struct.pack(">HQ", 16383 + 12, 8000 << 51)
    body = b"AIFF" + common + b"SSND" + struct.pack(">III", 8 + len(sound), 0, 0) + sound
    return b"FORM" + struct.pack(">I", len(body)) + body


def aiff_defects() -> dict[str, bytes]:
    good = aiff()
    return {
        "good": good,
        "cut": good[:-50],
        "no format": good.replace(b"COMM", b"COMX"),
        "no sound": good.replace(b"SSND", b"SSNX"),
        "too few samples": patched(good, 22, struct.pack(">I", 5000)),
    }


def jp2_defects() -> dict[str, bytes]:
    good = image("JPEG2000", size=(64, 48))
    return {
        "good": good,
        "cut": good[: len(good) // 2],
        "no end mark": good[:-2],
        "no header": good.replace(b"jp2h", b"xxxx"),
        "no size": patched(good, good.index(b"ihdr") + 4, bytes(8)),
        "no coding style": good.replace(b"\xff\x52", b"\xff\x64", 1),
    }


def frame(version: int = 0xFB) -> bytes:
    return bytes([0xFF, version, 0x90, 0x64]) + bytes(413)


def mp3_defects() -> dict[str, bytes]:
    good = b"ID3\x04\0\0\0\0\0\x0a" + bytes(10) + frame() * 20
    return {
        "good": good,
        "last frame cut": good[:-100],
        "noise between": good[:-417] + bytes([1, 2, 3, 4] * 30) + good[-417:],
        "tag too long": patched(good, 6, b"\x7f\x7f\x7f\x7f"),
        "no sound": good[:20] + b"no frames at all" * 30,
    }


def box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", 8 + len(body)) + kind + body


def mp4() -> bytes:
    """Two seconds of nothing in one track."""
    entry = box(b"avc1", bytes(24) + struct.pack(">HH", 320, 240) + bytes(50))
    table = box(b"stsd", struct.pack(">II", 0, 1) + entry) + box(b"stco", struct.pack(">III", 0, 1, 40))
    media = box(b"hdlr", bytes(8) + b"vide" + bytes(12)) + box(b"minf", box(b"stbl", table))
    movie = box(b"mvhd", struct.pack(">IIIII", 0, 0, 0, 1000, 2000) + bytes(80)) + box(
        b"trak", box(b"mdia", media)
    )
    return box(b"ftyp", b"isom\0\0\2\0isomiso2") + box(b"mdat", bytes(200)) + box(b"moov", movie)


def mp4_defects() -> dict[str, bytes]:
    good = mp4()
    return {
        "good": good,
        "cut": good[:-60],
        "no description": good.replace(b"moov", b"xxxx"),
        "box too long": patched(good, good.index(b"trak") - 4, b"\0\0\xff\xff"),
        "samples behind the end": patched(good, good.index(b"stco") + 12, b"\x7f\0\0\0"),
        "no scale": patched(good, good.index(b"mvhd") + 16, bytes(4)),
    }


def element(name: bytes, body: bytes) -> bytes:
    return name + bytes([0x10 | len(body) >> 24]) + struct.pack(">I", len(body))[1:] + body


def webm_defects() -> dict[str, bytes]:
    head = element(b"\x1a\x45\xdf\xa3", element(b"\x42\x82", b"webm"))
    track = element(
        b"\xae",
        element(b"\x86", b"V_VP8")
        + element(b"\xe0", element(b"\xb0", b"\x01\x40") + element(b"\xba", b"\xf0")),
    )
    info = element(b"\x15\x49\xa9\x66", element(b"\x44\x89", struct.pack(">d", 2000.0)))
    cluster = element(b"\x1f\x43\xb6\x75", bytes(60))
    tracks = element(b"\x16\x54\xae\x6b", track)
    good = head + element(b"\x18\x53\x80\x67", info + tracks + cluster)
    return {
        "good": good,
        "cut": good[:-20],
        "no tracks": head + element(b"\x18\x53\x80\x67", info + cluster),
        "no pictures": head + element(b"\x18\x53\x80\x67", info + tracks),
        "damaged element": patched(good, good.index(b"\x16\x54\xae\x6b"), bytes(4)),
    }


def ogg_page(number: int, flags: int, body: bytes, serial: int = 7) -> bytes:
    from webdepot.formats.validators.ogg import _checksum, _table

    head = b"OggS\0" + struct.pack("<BqIII", flags, number * 1000, serial, number, 0) + bytes([1, len(body)])
    return head[:22] + struct.pack("<I", _checksum(head + body, _table())) + head[26:] + body


def ogg_defects() -> dict[str, bytes]:
    first = ogg_page(0, 2, b"\x01vorbis" + struct.pack("<IBI", 0, 2, 44100) + bytes(14))
    pages = [first, ogg_page(1, 0, bytes(100)), ogg_page(2, 4, bytes(100))]
    good = b"".join(pages)
    return {
        "good": good,
        "cut": good[:-50],
        "page missing": pages[0] + pages[2],
        "wrong checksum": patched(good, len(first) + 60, b"\xff"),
        "noise behind": good + b"noise behind the last page of all",
    }


def font() -> bytes:
    """The smallest font: one empty letter."""
    head = struct.pack(">IIIIHH", 0x00010000, 0x00010000, 0, 0x5F0F3CF5, 0, 1000) + bytes(34)
    tables = {
        b"cmap": bytes(4),
        b"glyf": bytes(4),
        b"head": head,
        b"hhea": struct.pack(">I", 0x00010000) + bytes(30) + struct.pack(">H", 1),
        b"hmtx": bytes(4),
        b"loca": bytes(4),
        b"maxp": struct.pack(">IH", 0x00010000, 1) + bytes(26),
    }
    directory, body = b"\0\1\0\0" + struct.pack(">HHHH", len(tables), 64, 2, 48), b""
    for tag, data in tables.items():
        padded = data + b"\0" * (-len(data) % 4)
        checksum = sum(struct.unpack(f">{len(padded) // 4}I", padded)) & 0xFFFFFFFF
        directory += tag + struct.pack(">III", checksum, 12 + 16 * len(tables) + len(body), len(data))
        body += padded
    return directory + body


def font_defects() -> dict[str, bytes]:
    good = font()
    return {
        "good": good,
        "table behind the end": patched(good, 12 + 8, struct.pack(">I", 1 << 20)),
        "wrong checksum": patched(good, 12 + 4, b"\xff\xff\xff\xff"),
        "table missing": patched(good, 12, b"cmaq"),
        "cut": good[:-20],
        "no tables": patched(good, 4, b"\0\0"),
    }


def document_defects() -> dict[str, bytes]:
    body = b"<w:document xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'/>"
    good = docx()
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    relations = (
        b'<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        b'<Relationship Id="r1" Type="t" Target="word/elsewhere.xml"/></Relationships>'
    )
    return {
        "good": good,
        "part not well-formed": docx(body.replace(b"/>", b">")),
        "part missing": zipped(
            {"[Content_Types].xml": members["[Content_Types].xml"], "word/other.xml": b"<a/>"}
        ),
        "relation to nothing": zipped({**members, "_rels/.rels": relations}),
        "cut": good[:-30],
        "wrong checksum": _wrong_crc(good),
    }


def _wrong_crc(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        crc = struct.pack("<I", archive.infolist()[-1].CRC)
    return data.replace(crc, b"\1\2\3\4")


def zip_defects() -> dict[str, bytes]:
    good = zipped({"a.txt": b"x" * 500, "b.txt": b"y" * 300})
    return {
        "good": good,
        "cut": good[:-10],
        "wrong checksum": _wrong_crc(good),
        "no directory": good[: good.index(b"PK\x01\x02")],
    }


def webp_defects() -> dict[str, bytes]:
    good = image("WEBP")
    return {
        "good": good,
        "cut": good[:-10],
        "wrong size": patched(good, 4, struct.pack("<I", len(good) * 2)),
        "no pixels": good.replace(b"VP8", b"XP8"),
    }


def gzip_defects() -> dict[str, bytes]:
    good = gzip.compress(b"hello" * 100)
    return {
        "good": good,
        "cut": good[:-5],
        "wrong checksum": patched(good, -8, b"\0\0\0\0"),
        "wrong size": patched(good, -4, b"\7\7\7\7"),
    }


def xml_defects() -> dict[str, bytes]:
    dtd = b'<?xml version="1.0"?><!DOCTYPE a [<!ELEMENT a (b+)><!ELEMENT b EMPTY><!ATTLIST b c CDATA #REQUIRED>]>'
    return {
        "good": b'<?xml version="1.0" encoding="UTF-8"?><a><b c="d">e &amp; f</b></a>',
        "good with its own type": dtd + b'<a><b c="1"/></a>',
        "not closed": b'<?xml version="1.0"?><a><b></a>',
        "two roots": b'<?xml version="1.0"?><a/><b/>',
        "unknown entity": b'<?xml version="1.0"?><a>&x;</a>',
        "wrong bytes": b'<?xml version="1.0" encoding="utf-8"?><a>\xff</a>',
        "attribute twice": b'<?xml version="1.0"?><a b="1" b="2"/>',
        "attribute without quotes": b'<?xml version="1.0"?><a b=1/>',
        "against its own type": dtd + b"<a><b/></a>",
        "element against its own type": dtd + b'<a><c/><b c="1"/></a>',
        "unbound prefix": b'<?xml version="1.0"?><x:a/>',
        "cut": b'<?xml version="1.0"?><a><b>text',
    }


def html_defects() -> dict[str, bytes]:
    page = b'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>T</title></head><body><h1>H</h1>%s</body></html>\n'
    return {
        "good": page
        % b"<p>Words <b>and</b> <a href='x'>more</a><br><ul><li>a<li>b</ul><table><tr><td>c</table>",
        "not closed": page % b"<div><p>Words",
        "closes nothing": page % b"<p>Words</p></span>",
        "crossed": page % b"<p><b><i>Words</b></i></p>",
        "attribute twice": page % b"<p id='a' id='b'>Words</p>",
        "id twice": page % b"<p id='a'>Words</p><p id='a'>More</p>",
        "no title": (page % b"<p>Words</p>").replace(b"<title>T</title>", b""),
        "no document type": (page % b"<p>Words</p>").replace(b"<!DOCTYPE html>", b""),
        "comment not closed": page % b"<!-- Words",
        "cut in a tag": (page % b"<p>Words</p>")[:-12],
        "script not closed": page % b"<script>var a = 1",
        "block in a paragraph": page % b"<p><div>Words</div></p>",
    }


def json_defects() -> dict[str, bytes]:
    return {
        "good": b'{"a": [1, 2.5, null, "\\u00fc"]}',
        "trailing comma": b'{"a":1,}',
        "cut": b'{"a":[1,2',
        "NaN": b"[NaN]",
        "single quotes": b"{'a': 1}",
        "two values": b"{} {}",
        "wrong bytes": b'{"a":"\xff"}',
    }


def text_defects() -> dict[str, bytes]:
    return {
        "good": "Grüße aus Köln €".encode(),
        "overlong": b"abc \xc0\xaf def",
        "surrogate": b"abc \xed\xa0\x80 def",
        "cut character": "Grüße €".encode()[:-1],
        "lone byte": "Grüße aus Köln ".encode() + b"\x80 und mehr",
        "impossible byte": b"plain words\xffand more",
        "beyond Unicode": b"abc \xf5\x80\x80\x80 def",
    }


def css_defects() -> dict[str, bytes]:
    return {
        "good": b"@media print { a > b { color: red; content: '}' } } /* } */",
        "not closed": b"a { color: red",
        "closes nothing": b"a { color: red } }",
        "comment not closed": b"a { color: red } /* more",
        "string not closed": b"a { content: 'x\n }",
    }


def svg_defects() -> dict[str, bytes]:
    return {
        "good": b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><g/></svg>',
        "not closed": b'<svg xmlns="http://www.w3.org/2000/svg"><g></svg>',
        "no namespace": b'<svg viewBox="0 0 1 1"><g/></svg>',
    }


FAMILIES = {
    "a.pdf": lambda: {"good": GOOD_PDF} | pdf_defects(),
    "a.png": png_defects,
    "a.gif": gif_defects,
    "a.jpg": jpeg_defects,
    "a.tif": tiff_defects,
    "a.wav": wave_defects,
    "a.aiff": aiff_defects,
    "a.jp2": jp2_defects,
    "a.mp3": mp3_defects,
    "a.mp4": mp4_defects,
    "a.webm": webm_defects,
    "a.ogg": ogg_defects,
    "a.ttf": font_defects,
    "a.docx": document_defects,
    "a.zip": zip_defects,
    "a.webp": webp_defects,
    "a.gz": gzip_defects,
    "a.xml": xml_defects,
    "a.html": html_defects,
    "a.json": json_defects,
    "a.txt": text_defects,
    "a.css": css_defects,
    "a.svg": svg_defects,
}
"""Name of a file of the family, and its samples by what is planted in them; those called good have nothing
planted.
"""
