"""Long files are known by their excerpts as they are known whole, wherever the bytes lie that say what they
are.
"""

import struct
import zlib
from pathlib import Path

import pytest
from format_samples import image
from hypothesis import given
from hypothesis import strategies as st

from webdepot.formats.excerpt import excerpt_of
from webdepot.formats.identify import SiegfriedIdentifier
from webdepot.formats.sniff import HEAD_BYTES
from webdepot.guard.batch import Batch, PayloadSlice
from webdepot.model import FormatVerdict

NOISE = b"".join(zlib.crc32(str(number).encode()).to_bytes(4) for number in range(40_000))
PROSE = b"So it was written down, and nobody asked again who had seen it. " * 400


def box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", len(content) + 8, name) + content


def long_box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4sQ", 1, name, len(content) + 16) + content


def film(brand: bytes, *boxes: bytes) -> bytes:
    return box(b"ftyp", brand + bytes(4) + brand) + b"".join(boxes)


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    made = [b"\x89PNG\r\n\x1a\n"]
    header = (b"IHDR", struct.pack(">IIBBBBB", 200, 200, 8, 2, 0, 0, 0))
    for name, content in (header, *chunks, (b"IEND", b"")):
        made.append(
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )
    return b"".join(made)


def riff(kind: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    body = b"".join(
        name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2) for name, content in chunks
    )
    return b"RIFF" + struct.pack("<I", len(body) + 4) + kind + body


INDEX = box(b"moov", box(b"mvhd", bytes(100)) + box(b"trak", NOISE[:50_000]))
PCM = (b"fmt ", struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16))
DATA = (b"IDAT", NOISE[:60_000])
HEADERS = [
    b"Received: from a.example",
    b"DKIM-Signature: " + b"a" * 9000,
    b"From: a@a.example",
    b"To: b@a.example",
]
HEADERS += [b"Date: Mon, 1 Jan 2001 00:00:00 +0000", b"MIME-Version: 1.0", b"Content-Type: text/plain", b""]
LONG = {
    "index-at-end.mp4": (film(b"isom", box(b"free", b""), box(b"mdat", NOISE), INDEX), "fmt/199"),
    "long-data.mp4": (film(b"mp42", long_box(b"mdat", NOISE), INDEX), "fmt/199"),
    "index-at-end.mov": (box(b"wide", b"") + box(b"mdat", NOISE) + INDEX, "x-fmt/384"),
    "words-behind.png": (png(DATA, (b"iTXt", b"Comment\0\0\0\0\0" + b"x" * 9000)), "fmt/13"),
    "profile-behind.png": (png((b"tEXt", b"Comment\0" + b"x" * 30_000), (b"sRGB", b"\0"), DATA), "fmt/12"),
    "plain.png": (png((b"tEXt", b"Comment\0" + b"x" * 30_000), DATA), "fmt/11"),
    "note-behind.wav": (
        riff(b"WAVE", PCM, (b"data", NOISE[:80_001]), (b"bext", bytes(602)), (b"LIST", bytes(9000))),
        "fmt/703",
    ),
    "padded.avi": (
        riff(
            b"AVI ",
            (b"LIST", b"hdrlavih" + bytes(100)),
            (b"JUNK", bytes(40_000)),
            (b"LIST", b"movi" + NOISE[:60_000]),
        ),
        "fmt/5",
    ),
    "appended.jpg": (image("JPEG", size=(400, 400)) + b"appended" * 4000, "fmt/43"),
    "letter.eml": (b"\r\n".join([*HEADERS, PROSE]), "fmt/950"),
    "scene.gltf": (
        b'{"nodes": [%b1], "asset": {"version": "2.0"}, "meshes": [%b1]}'
        % (b"1, " * 20_000, b"1, " * 20_000),
        "fmt/1315",
    ),
}


@pytest.fixture(scope="module")
def whole():
    with SiegfriedIdentifier() as opened:
        yield opened


@pytest.mark.parametrize("name", LONG)
def test_an_excerpt_says_as_much_as_the_whole_file(identifier, whole, name, tmp_path: Path):
    data, puid = LONG[name]
    (tmp_path / name).write_bytes(data)
    matches = whole._scanner.identify(str(tmp_path / name), detailed=True)["files"][0]["matches"]
    assert [match["id"] for match in matches] == [puid]
    for payload in (data, tmp_path / name):
        found = identifier.identify(payload, name=name, mime="")
        assert (found.puid, found.verdict) == (puid, FormatVerdict.RECOGNISED)


def excerpt(data: bytes) -> bytes | None:
    with Batch([data]) as batch:
        piece = PayloadSlice(descriptor=batch.descriptor, offset=0, size_bytes=len(data))
        return excerpt_of(piece, piece.read(HEAD_BYTES))


def test_excerpts_are_short():
    assert all(
        len(excerpt(data) or b"") < 40_000
        for name, (data, _) in LONG.items()
        if name.endswith((".mp4", ".mov", ".png", ".wav"))
    )


@given(
    st.sampled_from([b"\0\0\0\x08ftyp", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WAVE", b"\xff\xd8\xff\0"]),
    st.lists(
        st.sampled_from(
            [
                b"\0\0\0\0",
                b"\0\0\0\1",
                b"\xff\xff\xff\xff",
                b"moov",
                b"IDAT",
                b"iTXt",
                b"data",
                b"bext",
                bytes(9),
            ]
        )
    ),
    st.integers(0, 30_000),
)
def test_lying_lengths_end(start: bytes, words: list[bytes], filling: int):
    data = start + b"".join(words) + bytes(filling)
    found = excerpt(data)
    assert found is not None
    assert len(found) <= 2 * len(data) + 16 * 8192
