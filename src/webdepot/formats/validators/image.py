"""Raster images: check the structure by the rules of each format, then decode all pixels with Pillow.

PNG needs no decoder: `png` unpacks every pixel itself. A JPEG is decoded at an eighth of its size, which
reads all of its data but keeps few pixels. An image that would need more memory than allowed is not decoded:
a header can claim terabytes.
"""

import struct
import warnings
import zlib
from collections.abc import Callable
from typing import BinaryIO

from PIL import Image, UnidentifiedImageError

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, Property, Validity, judge
from webdepot.formats.validators import gif, jpeg, jpeg2000, png, tiff
from webdepot.model import Finding, Severity

MOST_PIXELS = 20_000_000
MOST_FRAMES = 300
Structure = Callable[[BinaryIO, dict[str, Property]], list[Finding]]


def check(stream: BinaryIO, kind: str) -> CheckResult:
    """Check an image; `kind` is Pillow's name of the identified format."""
    if kind == "PNG":
        return png.check(stream)
    properties: dict[str, Property] = {}
    findings = _STRUCTURES[kind](stream, properties) if kind in _STRUCTURES else []
    if any(each.severity is Severity.ERROR for each in findings):
        return judge(findings, properties)
    decoded = (
        []
        if any(each.code == "formats.too-large" for each in findings)
        else _decoded(stream, kind, properties)
    )
    undecoded = any(
        each.code in ("formats.too-large", "formats.not-supported") for each in (*findings, *decoded)
    )
    return judge(
        [*findings, *decoded], properties, best=Validity.WELL_FORMED if undecoded else Validity.VALID
    )


def _decoded(stream: BinaryIO, kind: str, properties: dict[str, Property]) -> list[Finding]:
    stream.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(stream, formats=[kind]) as image:
                return _frames(image, kind, properties)
    except Image.DecompressionBombError as error:
        return [finding("too-large", detail=error)]
    except UnidentifiedImageError:
        return [finding("image-damaged", detail="its header cannot be read")]
    # Pillow's decoders raise almost anything on broken input.
    except (
        OSError, ValueError, SyntaxError, TypeError, KeyError, IndexError, AttributeError, OverflowError,
        EOFError, RuntimeError, struct.error, zlib.error,
    ) as error:  # fmt: skip
        # Pillow supports only the usual kinds of BMP.
        return [
            finding(
                "not-supported" if kind == "BMP" and "Unsupported" in str(error) else "image-damaged",
                detail=error,
            )
        ]


def _frames(image: Image.Image, kind: str, properties: dict[str, Property]) -> list[Finding]:
    properties.setdefault("width", image.width)
    properties.setdefault("height", image.height)
    properties.setdefault("colour", _MODES.get(image.mode, image.mode))
    pixels = 0
    for number in range(MOST_FRAMES):
        if kind == "JPEG":
            image.draft("L", (max(1, image.width // 8), max(1, image.height // 8)))
        pixels += image.width * image.height
        if image.width * image.height > MOST_PIXELS or pixels > 10 * MOST_PIXELS:
            return [finding("too-large", detail=f"{image.width} × {image.height} pixels")]
        image.load()
        try:
            image.seek(number + 1)
        except EOFError:
            return []
    return [finding("too-large", detail=f"more than {MOST_FRAMES} frames")]


def _webp(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    """RIFF chunks of WebP (RFC 9649)."""
    size_bytes = stream.seek(0, 2)
    stream.seek(0)
    head = stream.read(12)
    if head[:4] != b"RIFF" or head[8:] != b"WEBP":
        return [finding("image-damaged", place="byte 0", detail="it does not begin like a WebP")]
    end = int.from_bytes(head[4:8], "little") + 8
    if size_bytes < end:
        return [finding("image-cut-off", place=f"byte {size_bytes}")]
    at, kinds = 12, set()
    while at + 8 <= end:
        stream.seek(at)
        kind, length = struct.unpack("<4sI", stream.read(8))
        if at + 8 + length > end:
            return [
                finding(
                    "image-damaged",
                    place=f"byte {at}",
                    detail=f"chunk {kind.decode('latin-1')!r} is longer than the image",
                )
            ]
        kinds.add(kind)
        if kind in (b"VP8X", b"VP8L", b"VP8 ") and "width" not in properties:
            properties["width"], properties["height"] = _webp_size(kind, stream.read(10))
        at += 8 + length + length % 2
    if not kinds & {b"VP8 ", b"VP8L", b"ANMF"}:
        return [finding("image-damaged", detail="it has no pixels")]
    width, height = int(properties.get("width", 0)), int(properties.get("height", 0))
    if width * height > MOST_PIXELS:  # its decoder allocates the memory when the image is opened
        return [finding("too-large", detail=f"{width} × {height} pixels")]
    properties |= {"animated": b"ANMF" in kinds, "coding": "lossless" if b"VP8L" in kinds else "lossy"}
    return (
        [finding("trailing-bytes", place=f"byte {end}", detail=size_bytes - end)] if size_bytes > end else []
    )


def _webp_size(kind: bytes, body: bytes) -> tuple[int, int]:
    if kind == b"VP8X":
        return int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF


def _icon(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    """The directory of an icon: every image must be inside the file."""
    size_bytes = stream.seek(0, 2)
    stream.seek(4)
    count = int.from_bytes(stream.read(2), "little")
    entries = stream.read(16 * count)
    if not count or len(entries) < 16 * count:
        return [finding("image-cut-off", place=f"byte {size_bytes}")]
    for number in range(count):
        length, at = struct.unpack("<II", entries[16 * number + 8 : 16 * number + 16])
        if at + length > size_bytes:
            return [
                finding(
                    "image-damaged",
                    place=f"byte {6 + 16 * number}",
                    detail="an image ends after the end of the file",
                )
            ]
    properties["images"] = count
    return []


def _bitmap(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    size_bytes = stream.seek(0, 2)
    stream.seek(10)
    start = int.from_bytes(stream.read(4), "little")
    return (
        [finding("image-damaged", place="byte 10", detail="its pixels begin after the end of the file")]
        if start >= size_bytes
        else []
    )


_STRUCTURES: dict[str, Structure] = {
    "GIF": gif.structure,
    "JPEG": jpeg.structure,
    "TIFF": tiff.structure,
    "JPEG2000": jpeg2000.structure,
    "WEBP": _webp,
    "ICO": _icon,
    "BMP": _bitmap,
}
_MODES = {
    "RGB": "RGB",
    "RGBA": "RGB with alpha",
    "L": "grey",
    "LA": "grey with alpha",
    "P": "palette",
    "1": "black and white",
}
