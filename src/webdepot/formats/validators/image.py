"""Raster images: decoded to the last pixel by Pillow, plus the end marks that decoders do not ask for.

An image that would need more memory than is allowed is not decoded; its header alone can promise terabytes.
"""

import struct
import warnings
import zlib
from collections.abc import Callable
from typing import BinaryIO

from PIL import Image, UnidentifiedImageError

from webdepot.formats.texts import finding
from webdepot.formats.validity import Validity
from webdepot.model import Finding

MOST_PIXELS = 40_000_000
MOST_FRAMES = 500
_TAIL_BYTES = 65_536
_Result = tuple[Validity, list[Finding]]


def check(stream: BinaryIO, kind: str) -> _Result:
    """`kind` is Pillow's name of the format that the signature promised: PNG, JPEG, GIF, WEBP, TIFF, BMP."""
    ending = _ENDINGS.get(kind, _no_ending)(stream)
    if any(each.severity.value == "error" for each in ending):
        return Validity.NOT_VALID, ending
    stream.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(stream, formats=[kind]) as image:
                validity, findings = _decode(image)
    except Image.DecompressionBombError as error:
        return Validity.NOT_CHECKED, [finding("too-large", detail=error)]
    except UnidentifiedImageError:
        return Validity.NOT_VALID, [finding("image-damaged", detail="its header cannot be read")]
    # Pillow's decoders raise almost anything on broken input.
    except (
        OSError,
        ValueError,
        SyntaxError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        OverflowError,
        EOFError,
        struct.error,
        zlib.error,
    ) as error:
        return Validity.NOT_VALID, [finding("image-damaged", detail=error)]
    return validity, findings + ending


def _decode(image: Image.Image) -> _Result:
    frames = 0
    while frames < MOST_FRAMES:
        if image.width * image.height > MOST_PIXELS:
            return Validity.NOT_CHECKED, [finding("too-large", detail=f"{image.width} × {image.height} pixels")]
        image.load()
        frames += 1
        try:
            image.seek(image.tell() + 1)
        except EOFError:
            return Validity.VALID, []
    return Validity.NOT_CHECKED, [finding("too-large", detail=f"more than {MOST_FRAMES} frames")]


def _png_ending(stream: BinaryIO) -> list[Finding]:
    """Every chunk against its checksum, IEND at the end; Pillow stops at the first image data it can use."""
    stream.seek(8)
    seen: set[bytes] = set()
    while True:
        header = stream.read(8)
        if len(header) < 8:
            return [finding("image-cut-off")]
        length, kind = int.from_bytes(header[:4], "big"), header[4:]
        found, read = _checksum(stream, length, zlib.crc32(kind))
        stated = stream.read(4)
        if read < length or len(stated) < 4:
            return [finding("image-cut-off")]
        if found != int.from_bytes(stated, "big"):
            return [finding("image-damaged", detail=f"chunk {kind.decode('latin-1')} does not match its checksum")]
        if kind == b"PLTE" and b"IDAT" in seen:
            return [finding("image-damaged", detail="the palette stands behind the pixels")]
        if kind == b"IHDR" and seen:
            return [finding("image-damaged", detail="it has two headers")]
        seen.add(kind)
        if kind == b"IEND":
            return _trailing(stream)


def _checksum(stream: BinaryIO, length: int, value: int) -> tuple[int, int]:
    read = 0
    while read < length and (chunk := stream.read(min(1 << 20, length - read))):
        value = zlib.crc32(chunk, value)
        read += len(chunk)
    return value, read


def _gif_ending(stream: BinaryIO) -> list[Finding]:
    tail = _tail(stream).rstrip(b"\0\r\n ")
    return [] if tail.endswith(b"\x3b") else [finding("image-cut-off")]


def _jpeg_ending(stream: BinaryIO) -> list[Finding]:
    return [] if b"\xff\xd9" in _tail(stream) else [finding("image-cut-off")]


def _webp_ending(stream: BinaryIO) -> list[Finding]:
    stream.seek(0)
    header = stream.read(12)
    size_bytes = stream.seek(0, 2)
    promised = int.from_bytes(header[4:8], "little") + 8
    return [finding("image-cut-off")] if size_bytes < promised else []


def _no_ending(stream: BinaryIO) -> list[Finding]:
    return []


def _trailing(stream: BinaryIO) -> list[Finding]:
    here = stream.tell()
    rest = stream.seek(0, 2) - here
    return [finding("trailing-bytes", detail=rest)] if rest else []


def _tail(stream: BinaryIO) -> bytes:
    size_bytes = stream.seek(0, 2)
    stream.seek(max(0, size_bytes - _TAIL_BYTES))
    return stream.read(_TAIL_BYTES)


_ENDINGS: dict[str, Callable[[BinaryIO], list[Finding]]] = {
    "PNG": _png_ending,
    "GIF": _gif_ending,
    "JPEG": _jpeg_ending,
    "WEBP": _webp_ending,
}
