"""Convert a picture to PNG: `python -m webdepot.depot.png_conversion INPUT OUTPUT`. A separate program, which
`migration_tools` runs with limits, and which restricts itself (`guard/walls.py`).

X bitmaps are C source. Files of the 1990s are formatted in every way that C allows, so only these tokens are
read: width, height, then bytes (or 16-bit words, X10), with the leftmost pixel in the lowest bit and 1 for
black.
"""

import re
import sys
from pathlib import Path

from PIL import Image

from webdepot.guard.walls import View, raise_walls

LARGEST_BYTES = 64 << 20
LARGEST_OUTPUT_BYTES = 1 << 30
_SIZE = re.compile(rb"#\s*define\s+\S*?(width|height)\s+(\d+)")
_BITS = re.compile(rb"(char|short)\s++\S*?bits\s*+\[\s*+\d*+\s*+\]\s*+=\s*+\{([^{}]*+)\}", re.DOTALL)
_NUMBER = re.compile(rb"0[xX]([0-9a-fA-F]+)|\b(\d+)\b")


def convert(source: Path, output: Path) -> None:
    with source.open("rb") as stream:
        data = stream.read(LARGEST_BYTES)
    picture = _x_bitmap(data)
    if picture is None:
        with Image.open(source) as opened:
            opened.save(output, "PNG")
    else:
        picture.save(output, "PNG")


def _x_bitmap(data: bytes) -> Image.Image | None:
    pixels = _BITS.search(data)
    size = {match[1]: int(match[2]) for match in _SIZE.finditer(data)}
    if pixels is None or size.keys() != {b"width", b"height"}:
        return None
    numbers = [int(match[1], 16) if match[1] else int(match[2]) for match in _NUMBER.finditer(pixels[2])]
    step = 2 if pixels[1] == b"short" else 1
    width, height = size[b"width"], size[b"height"]
    bits = b"".join((number & (1 << 8 * step) - 1).to_bytes(step, "little") for number in numbers)
    row_bytes = -(-width // (8 * step)) * step
    if width < 1 or height < 1 or len(bits) < row_bytes * height:
        raise SystemExit(f"the bitmap declares {width} x {height} pixels but has {len(bits)} bytes")
    # Pillow expects rows that end on a byte; rows of 16-bit words may have one byte more, which is cut off.
    rows = b"".join(bits[at * row_bytes :][: -(-width // 8)] for at in range(height))
    return Image.frombytes("1", (width, height), rows, "raw", "1;IR")


def main(source: Path, output: Path) -> None:
    raise_walls(View(readable=[source], writable=[output.parent], largest_file_bytes=LARGEST_OUTPUT_BYTES))
    convert(source, output)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
