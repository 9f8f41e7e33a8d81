"""Turn a picture into PNG: `python -m webdepot.depot.picture INPUT OUTPUT`. A program of its own, run with limits by `migration`."""

import sys
from pathlib import Path

from PIL import Image


def convert(source: Path, output: Path) -> None:
    with Image.open(source) as picture:
        picture.save(output, "PNG")


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
