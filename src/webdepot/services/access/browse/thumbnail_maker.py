"""The guarded process that makes thumbnails: one for this process, for one request at a time."""

import atexit
import threading
from functools import lru_cache

from webdepot.formats.thumbnail import Thumbnailer


def make(image: bytes, *, cut_to: tuple[int, int] | None = None) -> bytes:
    """A small JPEG (see `Thumbnailer.make`); empty if none can be made."""
    return _maker().make(image, cut_to) or b""


class _Maker:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thumbnailer = Thumbnailer()
        atexit.register(self._thumbnailer.close)

    def make(self, image: bytes, cut_to: tuple[int, int] | None) -> bytes | None:
        with self._lock:
            return self._thumbnailer.make(image, cut_to=cut_to)


@lru_cache(maxsize=1)
def _maker() -> _Maker:
    return _Maker()
