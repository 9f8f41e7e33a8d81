"""GIF 87a and 89a (https://www.w3.org/Graphics/GIF/spec-gif89a.txt): all blocks up to the trailer; decoders
stop at the last image.
"""

import struct
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import Property
from webdepot.model import Finding

MOST_BLOCKS = 100_000


def structure(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    """Findings about the blocks; `image` decodes the pixels."""
    stream.seek(0)
    try:
        return _walk(stream, properties)
    except EOFError:
        return [finding("image-cut-off", place=f"byte {stream.tell()}")]


def _walk(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    head = _take(stream, 13)
    width, height, packed = struct.unpack("<HHB", head[6:11])
    if head[:6] not in (b"GIF87a", b"GIF89a"):
        return [_damaged("it does not begin like a GIF", 0)]
    properties |= {"width": width, "height": height, "colour": "palette"}
    if not width or not height:
        return [_damaged(f"its size is {width} × {height}", 6)]
    has_palette = bool(packed & 0x80)
    _take(stream, 3 << ((packed & 7) + 1) if has_palette else 0)
    frames = 0
    for _ in range(MOST_BLOCKS):
        place = stream.tell()
        mark = stream.read(1)
        if mark == b"\x3b":
            properties["frames"] = frames
            return _ending(stream, frames)
        if mark == b"\x21":
            _take(stream, 1)
        elif mark == b"\x2c":
            problem = _image(stream, has_palette)
            if problem:
                return [_damaged(problem, place)]
            frames += 1
        elif mark == b"\0" and frames:
            continue  # an empty block between images, from old writers; decoders ignore it
        elif not mark:
            raise EOFError
        else:
            return [_damaged(f"no block can begin with byte {mark[0]}", place)]
        _skip_sub_blocks(stream)
    return [_damaged("it has more blocks than can be read", stream.tell())]


def _image(stream: BinaryIO, has_palette: bool) -> str:
    _, _, width, height, packed = struct.unpack("<HHHHB", _take(stream, 9))
    if not width or not height:
        return f"the size of an image is {width} × {height}"
    if packed & 0x80:
        _take(stream, 3 << ((packed & 7) + 1))
    elif not has_palette:
        return "an image has no palette"
    code_bits = _take(stream, 1)[0]
    return "" if 1 <= code_bits <= 11 else f"its pixels have codes of {code_bits} bits"


def _skip_sub_blocks(stream: BinaryIO) -> None:
    while length := _take(stream, 1)[0]:
        _take(stream, length)


def _ending(stream: BinaryIO, frames: int) -> list[Finding]:
    here = stream.tell()
    rest = stream.seek(0, 2) - here
    if not frames:
        return [_damaged("it has no image", here)]
    return [finding("trailing-bytes", place=f"byte {here}", detail=rest)] if rest else []


def _take(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def _damaged(detail: str, place: int) -> Finding:
    return finding("image-damaged", place=f"byte {place}", detail=detail)
