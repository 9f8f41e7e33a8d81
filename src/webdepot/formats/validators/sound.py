"""WAVE: an own small reader of RIFF, since decoders play what is left of a broken file without a word.

Multimedia Programming Interface 1.0 (RIFF), and https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html. Chunks are
`id, size, bytes`, padded to an even length; `fmt ` comes before `data`.
"""

import struct
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validity import Validity
from webdepot.model import Finding

MOST_CHUNKS = 10_000
_PCM = 1


def check_wave(stream: BinaryIO) -> tuple[Validity, list[Finding]]:
    size_bytes = stream.seek(0, 2)
    stream.seek(0)
    header = stream.read(12)
    if header[:4] in (b"RF64", b"BW64"):
        return Validity.NOT_CHECKED, [finding("too-large", detail="RF64 is not read by this check")]
    if len(header) < 12 or header[:4] != b"RIFF" or header[8:] != b"WAVE":
        return _damaged("it has no RIFF header")
    problem = _problem(stream, size_bytes, int.from_bytes(header[4:8], "little") + 8)
    if problem:
        return _damaged(problem)
    rest = size_bytes - (int.from_bytes(header[4:8], "little") + 8)
    return Validity.VALID, [finding("trailing-bytes", detail=rest)] if rest > 1 else []


def _problem(stream: BinaryIO, size_bytes: int, promised: int) -> str:
    if promised > size_bytes:
        return f"it promises {promised} bytes and has {size_bytes}"
    block_bytes = 0
    for _ in range(MOST_CHUNKS):
        here = stream.tell()
        if here + 8 > promised:
            return "it has no sound data"
        kind, length = struct.unpack("<4sI", stream.read(8))
        if here + 8 + length > size_bytes:
            return f"chunk {kind.decode('latin-1')!r} is longer than the file"
        if kind == b"fmt ":
            problem, block_bytes = _format(stream.read(min(length, 40)))
            if problem:
                return problem
        if kind == b"data":
            if not block_bytes:
                return "its sound stands before its format, or it has no format"
            return "its sound ends within a sample" if length % block_bytes else ""
        stream.seek(here + 8 + length + length % 2)
    return "it has too many chunks"


def _format(data: bytes) -> tuple[str, int]:
    if len(data) < 16:
        return "its format is too short", 0
    tag, channels, rate, bytes_a_second, block_bytes, bits = struct.unpack("<HHIIHH", data[:16])
    if not channels or not rate or not block_bytes:
        return "its format has no channels, no rate or no sample size", 0
    if tag == _PCM and (block_bytes != channels * ((bits + 7) // 8) or bytes_a_second != rate * block_bytes):
        return "the numbers of its format contradict each other", 0
    return "", block_bytes


def _damaged(detail: str) -> tuple[Validity, list[Finding]]:
    return Validity.NOT_VALID, [finding("wave-damaged", detail=detail)]
