"""Fonts: OpenType and TrueType (https://learn.microsoft.com/typography/opentype/spec/otff), WOFF 1 and 2
(W3C), EOT.

Checks the table directory, offsets and checksums of tables, the tables that every font needs, and in WOFF
that all tables can be unpacked.
"""

import struct
import zlib
from itertools import pairwise
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, DamagedFile, Property, Validity, judge

MOST_BYTES = 32 << 20
MOST_UNPACKED_BYTES = 64 << 20
_FLAVOURS = {b"\0\1\0\0": "TrueType", b"true": "TrueType", b"OTTO": "CFF", b"typ1": "Type 1"}
_NEEDED = {b"cmap", b"head", b"hhea", b"hmtx", b"maxp"}
_OUTLINES = (
    {b"glyf", b"loca"},
    {b"CFF "},
    {b"CFF2"},
    {b"CBDT", b"CBLC"},
    {b"EBDT", b"EBLC"},
    {b"sbix"},
    {b"SVG "},
    {b"bdat", b"bloc"},
)
_HEAD_MAGIC = 0x5F0F3CF5


def check(stream: BinaryIO) -> CheckResult:
    data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        return CheckResult(
            validity=Validity.NOT_CHECKED,
            findings=[finding("too-large", detail=f"more than {MOST_BYTES} bytes")],
        )
    properties: dict[str, Property] = {}
    readers = {b"wOFF": _woff, b"wOF2": _woff2, b"ttcf": _collection}
    try:
        if data[:4] in readers:
            readers[data[:4]](data, properties)
        elif data[34:36] == b"LP":
            _embedded(data, properties)
        else:
            _sfnt(data, 0, properties)
    except DamagedFile as error:
        return judge([finding("font-damaged", place=f"byte {error.place}", detail=error)], properties)
    except (struct.error, IndexError):
        return judge(
            [finding("font-damaged", place=f"byte {len(data)}", detail="it ends in the middle of a table")],
            properties,
        )
    except zlib.error as error:
        return judge([finding("font-damaged", detail=error)], properties)
    return judge([], properties)


def _sfnt(data: bytes, at: int, properties: dict[str, Property]) -> None:
    flavour, count = data[at : at + 4], struct.unpack(">H", data[at + 4 : at + 6])[0]
    if flavour not in _FLAVOURS:
        raise DamagedFile("it does not begin like a font", at)
    if not count:
        raise DamagedFile("it has no tables", at + 4)
    tables: dict[bytes, bytes] = {}
    for number in range(count):
        place = at + 12 + 16 * number
        tag, checksum, start, length = struct.unpack(">4sIII", data[place : place + 16])
        if tag in tables:
            raise DamagedFile(f"table {tag.decode('latin-1')} occurs twice", place)
        if start + length > len(data):
            raise DamagedFile(f"table {tag.decode('latin-1')} ends after the end of the file", place)
        tables[tag] = data[start : start + length]
        # The table `head` contains a checksum of the whole file, which counts as zero here.
        body = tables[tag] if tag != b"head" else tables[tag][:8] + b"\0\0\0\0" + tables[tag][12:]
        if _checksum(body) != checksum:
            raise DamagedFile(f"table {tag.decode('latin-1')} does not match its checksum", place)
    properties["flavour"] = _FLAVOURS[flavour]
    _tables(tables, properties)


def _collection(data: bytes, properties: dict[str, Property]) -> None:
    (count,) = struct.unpack(">I", data[8:12])
    if not 0 < count <= 1000:
        raise DamagedFile(f"it is a collection of {count} fonts", 8)
    for place in struct.unpack(f">{count}I", data[12 : 12 + 4 * count]):
        _sfnt(data, place, properties)
    properties["fonts"] = count


def _tables(tables: dict[bytes, bytes], properties: dict[str, Property]) -> None:
    if missing := sorted(_NEEDED - set(tables)):
        raise DamagedFile(f"table {missing[0].decode()} is missing")
    if not any(each <= set(tables) for each in _OUTLINES):
        raise DamagedFile("it has no glyph outlines")
    head = tables[b"head"]
    if len(head) < 54 or struct.unpack(">I", head[12:16])[0] != _HEAD_MAGIC:
        raise DamagedFile("its table head is damaged")
    (units,) = struct.unpack(">H", head[18:20])
    if not 16 <= units <= 16384:
        raise DamagedFile(f"it has {units} units per em")
    (glyphs,) = struct.unpack(">H", tables[b"maxp"][4:6])
    properties |= {"glyphs": glyphs, "units": units}
    _sizes(tables, glyphs, head)
    if name := _family(tables.get(b"name", b"")):
        properties["family"] = name


def _sizes(tables: dict[bytes, bytes], glyphs: int, head: bytes) -> None:
    """Check tables whose length follows from other tables."""
    if not glyphs:
        raise DamagedFile("it has no glyphs")
    (metrics,) = struct.unpack(">H", tables[b"hhea"][34:36])
    if not metrics or metrics > glyphs or len(tables[b"hmtx"]) < 4 * metrics + 2 * (glyphs - metrics):
        raise DamagedFile("its table hmtx is too short for its glyphs")
    if b"loca" in tables and b"glyf" in tables:
        is_long = struct.unpack(">h", head[50:52])[0]
        loca = tables[b"loca"]
        if len(loca) < (glyphs + 1) * (4 if is_long else 2):
            raise DamagedFile("its table loca is too short for its glyphs")
        size = 4 if is_long else 2
        places = struct.unpack(f">{glyphs + 1}{'I' if is_long else 'H'}", loca[: (glyphs + 1) * size])
        places = places if is_long else tuple(2 * place for place in places)
        if any(first > second for first, second in pairwise(places)) or places[-1] > len(tables[b"glyf"]):
            raise DamagedFile("its table loca points outside the table glyf")


def _woff(data: bytes, properties: dict[str, Property]) -> None:
    flavour, length, count, _, total = struct.unpack(">4sIHHI", data[4:20])
    if length != len(data):
        raise DamagedFile(f"it states {length} bytes, but has {len(data)}", 8)
    if not count or total > MOST_UNPACKED_BYTES:
        raise DamagedFile(f"it states {total} bytes in {count} tables", 12)
    tables = {}
    for number in range(count):
        place = 44 + 20 * number
        tag, start, packed, size, checksum = struct.unpack(">4sIIII", data[place : place + 20])
        if start + packed > len(data) or packed > size:
            raise DamagedFile(f"table {tag.decode('latin-1')} ends after the end of the file", place)
        body = data[start : start + packed]
        if packed < size:
            unpacker = zlib.decompressobj()
            body = unpacker.decompress(body, size + 1)
        if len(body) != size:
            raise DamagedFile(f"table {tag.decode('latin-1')} has the wrong length when unpacked", place)
        plain = body if tag != b"head" else body[:8] + b"\0\0\0\0" + body[12:]
        if _checksum(plain) != checksum:
            raise DamagedFile(f"table {tag.decode('latin-1')} does not match its checksum", place)
        tables[tag] = body
    properties["flavour"] = _FLAVOURS.get(flavour, "other")
    _tables(tables, properties)


def _woff2(data: bytes, properties: dict[str, Property]) -> None:
    """Check the header and the compressed stream of all tables. Glyphs are stored in a transformed format, so
    the tables themselves are not checked.
    """
    import brotli

    flavour, length, count, _, total, packed = struct.unpack(">4sIHHII", data[4:24])
    if length != len(data):
        raise DamagedFile(f"it states {length} bytes, but has {len(data)}", 8)
    if not count or total > MOST_UNPACKED_BYTES:
        raise DamagedFile(f"it states {total} bytes in {count} tables", 12)
    at = 48
    stored = 0
    for _ in range(count):
        flags = data[at]
        at += 1 + (4 if flags & 63 == 63 else 0)
        size, at = _base128(data, at)
        is_changed = (flags & 63 in (10, 11) and flags >> 6 == 0) or (
            flags & 63 not in (10, 11) and flags >> 6 != 0
        )
        if is_changed:
            size, at = _base128(data, at)
        stored += size
    if flavour == b"ttcf":
        return  # the directory of a collection follows, which is not read
    if at + packed > len(data):
        raise DamagedFile("its tables are cut off", at)
    unpacker, size = brotli.Decompressor(), 0
    try:
        for place in range(at, at + packed, 1 << 14):
            size += len(unpacker.process(data[place : min(place + (1 << 14), at + packed)]))
            if size > MOST_UNPACKED_BYTES:
                raise DamagedFile(f"its tables unpack to more than {MOST_UNPACKED_BYTES} bytes", at)
    except brotli.error as error:
        raise DamagedFile(f"its tables cannot be unpacked ({error})", at) from error
    if size != stored or not unpacker.is_finished():
        raise DamagedFile("its unpacked tables have the wrong length", at)
    properties |= {"flavour": _FLAVOURS.get(flavour, "other"), "tables": count}


def _base128(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for number in range(5):
        byte = data[at + number]
        value = value << 7 | byte & 127
        if not byte & 128:
            return value, at + number + 1
    raise DamagedFile("a number in its directory is damaged", at)


def _embedded(data: bytes, properties: dict[str, Property]) -> None:
    length, font_bytes, version, flags = struct.unpack("<IIII", data[:16])
    if length != len(data):
        raise DamagedFile(f"it states {length} bytes, but has {len(data)}", 0)
    if font_bytes > len(data) or version not in (0x00010000, 0x00020001, 0x00020002):
        raise DamagedFile("its header has values that are not valid", 4)
    # 0x4 is MicroType Express, 0x10000000 is XOR: neither is a plain font.
    if not flags & 0x10000004:
        _sfnt_at_end(data, font_bytes, properties)


def _sfnt_at_end(data: bytes, font_bytes: int, properties: dict[str, Property]) -> None:
    _sfnt(data[len(data) - font_bytes :], 0, properties)


def _checksum(body: bytes) -> int:
    padded = body + b"\0" * (-len(body) % 4)
    words: tuple[int, ...] = struct.unpack(f">{len(padded) // 4}I", padded)
    return sum(words) & 0xFFFFFFFF


def _family(table: bytes) -> str:
    """The family name from the table of names; empty if there is none."""
    if len(table) < 6:
        return ""
    _, count, strings = struct.unpack(">HHH", table[:6])
    for number in range(min(count, 200)):
        platform, _, _, name, length, start = struct.unpack(">6H", table[6 + 12 * number : 18 + 12 * number])
        if name == 1:
            raw = table[strings + start : strings + start + length]
            return raw.decode("utf-16-be" if platform in (0, 3) else "latin-1", "replace")[:100]
    return ""
