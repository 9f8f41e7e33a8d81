"""WAVE and AIFF, read chunk by chunk, since decoders silently play what is left of a damaged file.

Multimedia Programming Interface 1.0 (RIFF),
https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html, EBU Tech 3306 (RF64) and AIFF 1.3
(https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/AIFF/AIFF.html). Chunks are `id, size, bytes`, padded
to an even length.
"""

import math
import struct
from collections.abc import Iterator
from typing import BinaryIO, Literal

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, DamagedFile, Property
from webdepot.formats.validators.structure import check_structure
from webdepot.model import Finding

MOST_CHUNKS = 10_000
_WAVE_CODECS = {
    1: "PCM",
    2: "ADPCM",
    3: "floating point",
    6: "A-law",
    7: "µ-law",
    17: "IMA ADPCM",
    85: "MP3",
    0xFFFE: "extensible",
}
_PCM = 1
_FOR_RF64 = 0xFFFFFFFF


def check_wave(stream: BinaryIO) -> CheckResult:
    return check_structure(stream, _wave, code="wave-damaged", part="a chunk")


def check_aiff(stream: BinaryIO) -> CheckResult:
    return check_structure(stream, _aiff, code="aiff-damaged", part="a chunk")


def _wave(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    size_bytes = stream.seek(0, 2)
    stream.seek(0)
    header = stream.read(12)
    is_large = header[:4] in (b"RF64", b"BW64")
    if len(header) < 12 or (header[:4] != b"RIFF" and not is_large) or header[8:] != b"WAVE":
        raise DamagedFile("it has no RIFF header")
    stated = int.from_bytes(header[4:8], "little")
    end = size_bytes if is_large and stated == _FOR_RF64 else stated + 8
    if end > size_bytes + (stated % 2):
        raise DamagedFile(f"its header states {end} bytes, but it has {size_bytes}", 4)
    block_bytes = bytes_a_second = sound_bytes = -1
    data_bytes = 0
    for kind, at, length in _chunks(stream, 12, min(end, size_bytes), size_bytes, "little"):
        if kind == b"ds64":
            data_bytes = struct.unpack("<Q", stream.read(16)[8:])[0]
        elif kind == b"fmt ":
            if block_bytes > 0:
                raise DamagedFile("it has two formats", at)
            block_bytes, bytes_a_second = _wave_format(stream.read(min(length, 40)), at, properties)
        elif kind == b"data":
            if block_bytes < 0:
                raise DamagedFile("its sound data come before its format, or it has no format", at)
            if sound_bytes >= 0:
                raise DamagedFile("it has two chunks of sound data", at)
            sound_bytes = data_bytes if is_large and data_bytes else length
            if sound_bytes % block_bytes:
                raise DamagedFile("its sound ends within a sample", at)
    if sound_bytes < 0:
        raise DamagedFile("it has no sound data", min(end, size_bytes))
    properties["duration_s"] = round(sound_bytes / bytes_a_second, 3) if bytes_a_second else 0.0
    rest = size_bytes - end
    return [finding("trailing-bytes", place=f"byte {end}", detail=rest)] if rest > 1 else []


def _wave_format(data: bytes, at: int, properties: dict[str, Property]) -> tuple[int, int]:
    if len(data) < 16:
        raise DamagedFile("its format is too short", at)
    tag, channels, rate, bytes_a_second, block_bytes, bits = struct.unpack("<HHIIHH", data[:16])
    properties |= {
        "channels": channels,
        "sample_rate": rate,
        "bit_depth": bits,
        "codec": _WAVE_CODECS.get(tag, f"{tag:#06x}"),
    }
    if not channels or not rate or not block_bytes:
        raise DamagedFile("its format has no channels, no rate or no sample size", at)
    if tag == _PCM and (
        not bits or block_bytes != channels * ((bits + 7) // 8) or bytes_a_second != rate * block_bytes
    ):
        raise DamagedFile("the numbers of its format contradict each other", at)
    if tag == 0xFFFE and len(data) < 40:
        raise DamagedFile("its format is extensible, but has no extension", at)
    return block_bytes, bytes_a_second


def _aiff(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    size_bytes = stream.seek(0, 2)
    stream.seek(0)
    header = stream.read(12)
    if len(header) < 12 or header[:4] != b"FORM" or header[8:] not in (b"AIFF", b"AIFC"):
        raise DamagedFile("it has no FORM header")
    end = int.from_bytes(header[4:8], "big") + 8
    if end > size_bytes + 1:
        raise DamagedFile(f"its header states {end} bytes, but it has {size_bytes}", 4)
    frames = block_bytes = sound_bytes = -1
    is_packed = False
    for kind, at, length in _chunks(stream, 12, min(end, size_bytes), size_bytes, "big"):
        if kind == b"COMM":
            if frames >= 0:
                raise DamagedFile("it has two formats", at)
            frames, block_bytes, is_packed = _aiff_format(
                stream.read(min(length, 300)), header[8:], at, properties
            )
        elif kind == b"SSND":
            if sound_bytes >= 0:
                raise DamagedFile("it has two chunks of sound data", at)
            if length < 8:
                raise DamagedFile("its sound is too short", at)
            sound_bytes = length - 8 - struct.unpack(">I", stream.read(4))[0]
    if frames < 0:
        raise DamagedFile("it has no format", 12)
    if frames and sound_bytes < 0:
        raise DamagedFile("it has no sound data", 12)
    if not is_packed and sound_bytes >= 0 and frames * block_bytes > sound_bytes:
        raise DamagedFile(f"it states {frames} samples, but has {sound_bytes // block_bytes}", 12)
    rest = size_bytes - end
    return [finding("trailing-bytes", place=f"byte {end}", detail=rest)] if rest > 1 else []


def _aiff_format(data: bytes, kind: bytes, at: int, properties: dict[str, Property]) -> tuple[int, int, bool]:
    if len(data) < 18 or (kind == b"AIFC" and len(data) < 23):
        raise DamagedFile("its format is too short", at)
    channels, frames, bits = struct.unpack(">hIh", data[:8])
    rate = _extended(data[8:18])
    codec = data[18:22] if kind == b"AIFC" else b"NONE"
    properties |= {
        "channels": channels,
        "sample_rate": round(rate),
        "bit_depth": bits,
        "codec": codec.decode("latin-1").strip(),
    }
    if channels < 1 or not 1 <= bits <= 64 or rate <= 0:
        raise DamagedFile("its format has no channels, no rate or no sample size", at)
    properties["duration_s"] = round(frames / rate, 3)
    return frames, channels * ((bits + 7) // 8), codec not in (b"NONE", b"sowt", b"twos", b"raw ")


def _extended(data: bytes) -> float:
    """An 80-bit extended floating-point number."""
    exponent, mantissa = struct.unpack(">HQ", data)
    try:
        return math.ldexp(mantissa, (exponent & 0x7FFF) - 16383 - 63) * (-1 if exponent & 0x8000 else 1)
    except OverflowError:
        return 0.0


def _chunks(
    stream: BinaryIO, at: int, end: int, size_bytes: int, order: Literal["little", "big"]
) -> Iterator[tuple[bytes, int, int]]:
    """Name, offset and length of each chunk, with the stream at its content; DamagedFile if a chunk is longer
    than the file.
    """
    for _ in range(MOST_CHUNKS):
        if at + 8 > end:
            return
        stream.seek(at)
        head = stream.read(8)
        kind, length = head[:4], int.from_bytes(head[4:], order)
        if not all(0x20 <= byte < 0x7F for byte in kind):
            raise DamagedFile(f"{kind!r} is not a chunk name", at)
        if kind == b"data" and length == _FOR_RF64:
            length = size_bytes - at - 8
        if at + 8 + length > size_bytes:
            raise DamagedFile(f"chunk {kind.decode('latin-1')!r} is longer than the file", at)
        yield kind, at, length
        at += 8 + length + length % 2
    raise DamagedFile("it has too many chunks", at)
