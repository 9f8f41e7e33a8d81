"""The answer for a file is the engine's answer for the complete file, wherever the bytes are that identify it.

The corpus: files made from PRONOM's signatures (`signature_files`), small real files of installed packages,
files with their landmarks in unusual places, and good samples.
"""

import os
import random
import signal
import struct
import sys
import sysconfig
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from format_samples import docx, good_files, image
from signature_files import byte_files, container_files

from webdepot.formats import sniff
from webdepot.formats.examine import Exhibit, FileExaminer
from webdepot.formats.format_verdict import Evidence, resolve
from webdepot.formats.identify import MOST_COPIED_BYTES, SiegfriedIdentifier, match_of
from webdepot.model import Format, FormatVerdict

REAL_FILES_OF_A_KIND, LARGEST_REAL_BYTES = 6, sniff.HEAD_BYTES
TOGETHER = 40
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
def engine():
    with SiegfriedIdentifier() as opened:
        yield opened._scanner


def real_files() -> Iterator[tuple[str, bytes]]:
    """Some files of each extension, from the packages of this Python and of the system."""
    by_extension: dict[str, list[Path]] = defaultdict(list)
    for root in (Path(sysconfig.get_path("purelib")), Path(sys.base_prefix) / "share"):
        for path in sorted(root.glob("**/*.*")):
            by_extension[path.suffix.lower()].append(path)
    chosen = random.Random(7)
    for _, paths in sorted(by_extension.items()):
        for path in chosen.sample(paths, min(REAL_FILES_OF_A_KIND, len(paths))):
            if path.is_file() and 0 < path.stat().st_size <= LARGEST_REAL_BYTES:
                yield path.name, path.read_bytes()


def corpus() -> Iterator[tuple[str, bytes]]:
    yield from ((each.name, each.data) for each in byte_files())
    yield from ((each.name, each.data) for each in container_files())
    yield from ((name, data) for name, (data, _) in LONG.items())
    yield from ((name, sample[0]) for name, sample in good_files().items())
    yield from real_files()


def answers_for_plain_files(engine, files: list[tuple[str, bytes]], folder: Path) -> list[Format]:
    """The engine on files on disk with their own names, and our resolver with all of their bytes."""
    paths = []
    for number, (name, data) in enumerate(files):
        (folder / str(number)).mkdir(exist_ok=True)
        paths.append(folder / str(number) / name)
        paths[-1].write_bytes(data)
    reports = engine.identify_many([str(path) for path in paths])["files"]
    for path in paths:
        path.unlink()
    return [
        resolve(
            Evidence(
                matches=[match for match in map(match_of, report["matches"]) if match],
                head=data,
                size_bytes=len(data),
                extension=name.rpartition(".")[2].lower() if name.rpartition(".")[2].isalnum() else "",
                mime="",
            )
        )
        for (name, data), report in zip(files, reports, strict=True)
    ]


def test_every_answer_is_that_for_the_complete_file(examiner, engine, tmp_path: Path):
    files = list(corpus())
    assert len(files) >= 4_000
    recognised = 0
    differing = []
    for start in range(0, len(files), TOGETHER):
        batch = files[start : start + TOGETHER]
        expected = answers_for_plain_files(engine, batch, tmp_path)
        found = examiner.examine_many(
            [Exhibit(payload=data, name=name, mime="") for name, data in batch], checked=False
        )
        for (name, _), ours, theirs in zip(batch, found, expected, strict=True):
            recognised += theirs.verdict is FormatVerdict.RECOGNISED
            if ours.format != theirs or ours.findings:
                differing.append((name, ours.format, theirs, ours.findings))
    assert not differing
    assert recognised > 3_000  # or the files do not test much


@pytest.mark.parametrize("name", LONG)
def test_landmarks_are_found_wherever_they_are(identifier, name, tmp_path: Path):
    data, puid = LONG[name]
    (tmp_path / name).write_bytes(data)
    for payload in (data, tmp_path / name):
        found = identifier.identify(payload, name=name, mime="")
        assert (found.puid, found.verdict) == (puid, FormatVerdict.RECOGNISED)


def test_a_file_too_large_for_memory_is_read_to_its_end(identifier, tmp_path: Path):
    """An Access database, with a hole between its first bytes and those that name its version."""
    database = next(each.data for each in byte_files() if each.name.startswith("x-fmt-239-0-far"))
    path = tmp_path / "large.mdb"
    with path.open("wb") as file:
        file.write(database[:40])
        file.seek(4 * MOST_COPIED_BYTES)  # more than the limit of memory, too
        file.write(database[40:])
    found = identifier.examine(path, name=path.name, mime="", checked=False)
    assert (found.format.puid, found.format.verdict, found.findings) == (
        "x-fmt/239",
        FormatVerdict.RECOGNISED,
        [],
    )


def test_a_busy_machine_gives_the_same_answer():
    """The child gets no processor time for longer than it may use: as if others had it."""
    with FileExaminer() as examiner:  # its child holds no memory of other tests' files
        assert examiner.engine
        pid = examiner._identifying.pid
        os.kill(pid, signal.SIGSTOP)
        later = threading.Timer(4, os.kill, (pid, signal.SIGCONT))
        later.start()
        found = examiner.examine(docx(), name="a.docx", mime="", checked=False)
        later.join()
    assert (found.format.puid, found.findings) == ("fmt/412", [])
