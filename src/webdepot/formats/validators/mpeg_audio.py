"""MP3 and other MPEG audio (ISO/IEC 11172-3, 13818-3): an ID3 tag (https://id3.org/id3v2.4.0-structure), then
one frame after another.

Players search for the next frame anywhere, so that even noise plays. Here frames must follow each other
directly.
"""

import re
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, Property, Validity, judge
from webdepot.model import Finding

_MANY = 100
MOST_BYTES = 64 << 20
"""How much is read; in a longer file, frames are counted up to there."""
_BITRATES = {
    (1, 1): (0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (1, 2): (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (1, 3): (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (2, 1): (0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (2, 2): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (2, 3): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
_SYNC = re.compile(rb"\xff[\xe0-\xff]")
_TAG = re.compile(rb"TAG|APETAGEX|LYRICSBEGIN|3DI|ID3|LYRICS200")
"""Tags that may follow the audio; players ignore a truncated frame before them."""
_LONGEST_FRAME_BYTES = 2881


def check(stream: BinaryIO) -> CheckResult:
    size_bytes = stream.seek(0, 2)
    stream.seek(0)
    data = stream.read(MOST_BYTES)
    properties: dict[str, Property] = {}
    at = _after_id3(data)
    if at < 0 or at > size_bytes:
        return judge(
            [finding("mp3-damaged", place="byte 0", detail="its ID3 tag is longer than the file")], properties
        )
    start = _first_frame(data, at)
    if start < 0:
        return judge([finding("mp3-damaged", place=f"byte {at}", detail="it has no sound")], properties)
    return _frames(data, start, size_bytes, properties)


def _after_id3(data: bytes) -> int:
    at = 0
    while data[at : at + 3] == b"ID3" and len(data) >= at + 10:
        size = data[at + 6 : at + 10]
        if any(byte & 0x80 for byte in size) or data[at + 3] in (0xFF,) or data[at + 4] == 0xFF:
            return -1
        length = size[0] << 21 | size[1] << 14 | size[2] << 7 | size[3]
        at += 10 + length + (10 if data[at + 5] & 0x10 else 0)
    return at


def _first_frame(data: bytes, at: int) -> int:
    """Where two frames follow each other, possibly after padding; -1 if nowhere."""
    for sync in _SYNC.finditer(data, at, at + (1 << 20)):
        first = _frame(data, sync.start())
        if first is not None and (
            sync.start() + first[0] >= len(data) or _frame(data, sync.start() + first[0]) is not None
        ):
            return sync.start()
    return -1


def _frames(data: bytes, at: int, size_bytes: int, properties: dict[str, Property]) -> CheckResult:
    start, count, duration_s = at, 0, 0.0
    findings: list[Finding] = []
    while at + 4 <= len(data):
        frame = _frame(data, at)
        if frame is None:
            if _TAG.search(data, at, at + _LONGEST_FRAME_BYTES) or not data[at : at + 4096].strip(b"\0"):
                break
            findings.append(
                finding("mp3-damaged", place=f"byte {at}", detail=f"no frame follows the first {count}")
            )
            break
        length, seconds, facts = frame
        properties.update(facts if not count else {})
        count, duration_s, at = count + 1, duration_s + seconds, at + length
    if at > size_bytes:
        stated = _stated_bytes(data, start)
        cut = stated > size_bytes - start if stated else count < _MANY
        place = f"byte {size_bytes}"
        findings.append(
            finding("mp3-damaged", place=place, detail="its last frame is cut off")
            if cut
            else finding("mp3-cut-off", place=place)
        )
    if size_bytes > len(data):
        duration_s *= size_bytes / max(1, len(data))
    properties |= {"frames": count, "duration_s": round(duration_s, 3)}
    return judge(findings, properties, best=Validity.VALID)


def _stated_bytes(data: bytes, start: int) -> int:
    """The length of the audio that encoders state in the first frame (Xing, Info or VBRI); 0 if it is not
    stated.
    """
    head = data[start : start + 200]
    if (at := max(head.find(b"Xing"), head.find(b"Info"))) >= 0:
        flags = int.from_bytes(head[at + 4 : at + 8], "big")
        place = at + 8 + (4 if flags & 1 else 0)
        return int.from_bytes(head[place : place + 4], "big") if flags & 2 else 0
    if (at := head.find(b"VBRI")) >= 0:
        return int.from_bytes(head[at + 10 : at + 14], "big")
    return 0


def _frame(data: bytes, at: int) -> tuple[int, float, dict[str, Property]] | None:
    """Length, seconds and properties of the frame that begins there; None if none does."""
    if at + 4 > len(data) or data[at] != 0xFF or data[at + 1] & 0xE0 != 0xE0:
        return None
    version, layer = data[at + 1] >> 3 & 3, 4 - (data[at + 1] >> 1 & 3)
    bitrate, rate = data[at + 2] >> 4, data[at + 2] >> 2 & 3
    if version == 1 or layer == 4 or bitrate in (0, 15) or rate == 3:
        return None
    kbit = _BITRATES[(1 if version == 3 else 2, layer)][bitrate]
    hertz, padding = _RATES[version][rate], data[at + 2] >> 1 & 1
    samples = 384 if layer == 1 else 576 if layer == 3 and version != 3 else 1152
    length = (12000 * kbit // hertz + padding) * 4 if layer == 1 else samples * 125 * kbit // hertz + padding
    facts: dict[str, Property] = {
        "codec": f"MPEG audio layer {layer}",
        "sample_rate": hertz,
        "channels": 1 if data[at + 3] >> 6 == 3 else 2,
        "bit_rate": kbit * 1000,
    }
    return length, samples / hertz, facts
