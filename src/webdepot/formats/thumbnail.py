"""Thumbnails of archived images, made in a guarded process (`guard/process.py`), since the images may be
hostile.

Only image formats of the web, at most `MOST_PIXELS`, only the first frame. The result is always a new JPEG:
nothing of the original is passed on except its pixels.
"""

import base64
import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from webdepot.guard import child
from webdepot.guard.batch import Batch, PayloadSlice
from webdepot.guard.child import Message
from webdepot.guard.process import Guard, GuardFailure, Limits

if TYPE_CHECKING:
    from PIL import Image

SIZE_PIXELS = (240, 180)
"""Width and height into which a thumbnail fits."""
MOST_PIXELS = 60_000_000
LARGEST_INPUT_BYTES = 32 << 20
MIME = "image/jpeg"
_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP")
_LIMITS = Limits(time_s=3.0, longest_s=8.0, memory_bytes=384 << 20)


class Thumbnailer:
    """Makes thumbnails, one after another. One thread at a time; close it."""

    def __init__(self) -> None:
        self._guard = Guard(__name__, limits=_LIMITS)

    def make(self, picture: bytes, *, cut_to: tuple[int, int] | None = None) -> bytes | None:
        """The thumbnail as a JPEG; None if it is not an image, or exceeds a limit. With `cut_to` it has just
        that size and shows the top of the image.
        """
        with Batch([picture]) as batch:
            question = {"place": batch.places[0], "cut_to": cut_to}
            (answer,) = self._guard.ask_many([question], batch.descriptor)
        if isinstance(answer, GuardFailure) or not answer["jpeg"]:
            return None
        return base64.b64decode(answer["jpeg"])

    def close(self) -> None:
        self._guard.close()


# --- in the child ---


def _begin(arguments: list[str]) -> tuple[child.Work, Message]:
    from PIL import Image

    Image.preinit()
    memory_bytes = int(arguments[0])

    def work(questions: list[Message], descriptor: int, _: bool) -> Iterator[Message]:
        child.limit_memory(memory_bytes)
        try:
            for each in questions:
                offset, size_bytes = each["place"]
                piece = PayloadSlice(descriptor=descriptor, offset=offset, size_bytes=size_bytes)
                yield {"jpeg": _thumbnail(piece, each["cut_to"])}
        finally:
            child.limit_memory(None)

    return work, {}


def _thumbnail(piece: PayloadSlice, cut_to: list[int] | None) -> str:
    from PIL import Image

    try:
        with piece.opened() as stream, Image.open(stream, formats=_FORMATS) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                return ""
            jpeg = io.BytesIO()
            _on_white(_cut(picture, *cut_to) if cut_to else _fitted(picture)).save(jpeg, "JPEG", quality=82)
    except (MemoryError, RecursionError):
        return ""
    except Exception:
        # Any exception of the library on hostile bytes means that there is no usable image.
        return ""
    return base64.b64encode(jpeg.getvalue()).decode("ascii")


def _fitted(picture: "Image.Image") -> "Image.Image":
    picture.draft("RGB", (SIZE_PIXELS[0] * 2, SIZE_PIXELS[1] * 2))
    picture.thumbnail(SIZE_PIXELS)
    return picture


def _cut(picture: "Image.Image", width: int, height: int) -> "Image.Image":
    from PIL import Image

    shown_height = round(picture.width * height / width)
    top = picture.crop((0, 0, picture.width, min(picture.height, shown_height)))
    ground = Image.new("RGB", (picture.width, shown_height), "white")
    ground.paste(_on_white(top))
    return ground.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=2.0)


def _on_white(picture: "Image.Image") -> "Image.Image":
    from PIL import Image

    shown = picture.convert("RGBA")
    ground = Image.new("RGBA", shown.size, "white")
    ground.alpha_composite(shown)
    return ground.convert("RGB")


if __name__ == "__main__":
    child.serve(sys.argv[1:], _begin)
