"""Small pictures of archived pictures, made behind a guard (`guard.py`): their bytes may be hostile.

Only formats that the web has, only pictures of at most `MOST_PIXELS`, only the first frame. The answer is
always a JPEG that we made ourselves: nothing of the original but its pixels goes on.
"""

import base64
import io
import sys
from collections.abc import Iterator

from webdepot.formats import guard
from webdepot.formats.batch import Batch, PayloadSlice
from webdepot.formats.guard import Guard, Limits, Message
from webdepot.model import Finding

SIZE_PIXELS = (240, 180)
MOST_PIXELS = 60_000_000
LARGEST_INPUT_BYTES = 32 << 20
MIME = "image/jpeg"
_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP")
_LIMITS = Limits(time_s=3.0, longest_s=8.0, memory_bytes=384 << 20)


class Thumbnailer:
    """Makes one after another. One thread at a time; close it."""

    def __init__(self) -> None:
        self._guard = Guard(__name__, limits=_LIMITS)

    def make(self, picture: bytes) -> bytes | None:
        """A JPEG; None for what is no picture, or one that costs too much."""
        with Batch([picture]) as batch:
            (answer,) = self._guard.ask_many([{"place": batch.places[0]}], batch.descriptor)
        if isinstance(answer, Finding) or not answer["jpeg"]:
            return None
        return base64.b64decode(answer["jpeg"])

    def close(self) -> None:
        self._guard.close()


# --- in the child ---


def _begin(arguments: list[str]) -> tuple[guard.Work, Message]:
    from PIL import Image

    Image.preinit()
    memory_bytes = int(arguments[0])

    def work(questions: list[Message], descriptor: int, _: bool) -> Iterator[Message]:
        guard.limit_memory(memory_bytes)
        try:
            for each in questions:
                offset, size_bytes = each["place"]
                yield {
                    "jpeg": _made(PayloadSlice(descriptor=descriptor, offset=offset, size_bytes=size_bytes))
                }
        finally:
            guard.limit_memory(None)

    return work, {}


def _made(piece: PayloadSlice) -> str:
    from PIL import Image

    try:
        with piece.opened() as stream, Image.open(stream, formats=_FORMATS) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                return ""
            picture.draft("RGB", (SIZE_PIXELS[0] * 2, SIZE_PIXELS[1] * 2))
            picture.thumbnail(SIZE_PIXELS)
            made = io.BytesIO()
            _on_white(picture).save(made, "JPEG", quality=82)
    except (MemoryError, RecursionError):
        return ""
    except Exception:
        # Whatever a library throws at hostile bytes says that there is no picture in them.
        return ""
    return base64.b64encode(made.getvalue()).decode("ascii")


def _on_white(picture: "Image.Image") -> "Image.Image":  # type: ignore[name-defined]  # noqa: F821 - imported in the child alone
    from PIL import Image

    shown = picture.convert("RGBA")
    ground = Image.new("RGBA", shown.size, "white")
    ground.alpha_composite(shown)
    return ground.convert("RGB")


if __name__ == "__main__":
    guard.serve(sys.argv[1:], _begin)
