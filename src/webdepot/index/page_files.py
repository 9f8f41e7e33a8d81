"""A file with the pages of one container, which passes them from the process that reads the container to
those that index them.

    NAME          the values of each page, pickled and compressed by itself
    NAME.index    a line for each page: two hexadecimal digits that depend on its key, and in JSON
                  [key, timestamp, digest, offset, length]

The lines are enough to sort pages, and the digits divide them into parts of which all captures of a page are
in the same: what is kept in memory is a line for each page of a part, never its text.
"""

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, TextIO
from zlib import crc32

from isal import isal_zlib

from webdepot.ports.search import PageText

MOST_PARTS = 256
_LEVEL = 1
_FIELDS = tuple(field.name for field in fields(PageText) if field.name != "links")
_values = attrgetter(*_FIELDS)
"""The values of a page; pickling them takes half the time of pickling the page."""


@dataclass(frozen=True, slots=True)
class PageLine:
    """Where a page is in its file."""

    key: str
    timestamp: str
    digest: str
    offset: int
    length: int


@contextmanager
def written(path: Path) -> Iterator[Callable[[PageText], None]]:
    """Open a new file of pages; the context is a function that writes one page. Links are left out."""
    with path.open("wb") as pages, _index(path).open("w", encoding="ascii") as lines:
        offset = 0

        def add(page: PageText) -> None:
            nonlocal offset
            packed = isal_zlib.compress(pickle.dumps(_values(page), pickle.HIGHEST_PROTOCOL), _LEVEL)
            pages.write(packed)
            write_line(lines, page.key, page.timestamp, page.digest, offset, len(packed))
            offset += len(packed)

        yield add


def lines_in(path: Path, part: int = 0, parts: int = 1) -> Iterator[PageLine]:
    """The lines of part `part` of `parts`."""
    return (PageLine(*values) for values in read_part(_index(path), part, parts))


def write_line(file: TextIO, key: str, *values: str | int) -> None:
    """Write a line about the page with this key."""
    digits = crc32(key.encode("utf-8", "surrogatepass")) % MOST_PARTS
    file.write(f"{digits:02x}{json.dumps([key, *values])}\n")


def read_part(path: Path, part: int, parts: int) -> Iterator[list[Any]]:
    """Keys and values of the lines of part `part` of `parts`."""
    wanted = frozenset(f"{digits:02x}" for digits in range(part, MOST_PARTS, parts))
    with path.open(encoding="ascii") as lines:
        for line in lines:
            if line[:2] in wanted:
                yield json.loads(line[2:])


def opened(path: Path) -> BinaryIO:
    return path.open("rb")


def page_at(file: BinaryIO, line: PageLine) -> PageText:
    file.seek(line.offset)
    plain = isal_zlib.decompress(file.read(line.length))
    values = pickle.loads(plain)  # noqa: S301 - our own file, written by our worker
    return PageText(**dict(zip(_FIELDS, values, strict=True)))


def pages_in(path: Path, formats: Callable[[Iterable[str]], Mapping[str, str]]) -> Iterator[PageText]:
    """All pages, with the formats that `formats` finds."""
    with opened(path) as file:
        lines = lines_in(path)
        while some := list(islice(lines, 500)):
            pages = (page_at(file, line) for line in some)
            yield from with_formats(pages, formats(line.digest for line in some))


def with_formats(pages: Iterable[PageText], formats: Mapping[str, str]) -> Iterator[PageText]:
    """The pages with the PRONOM identifier of their bytes, if there is one for their digest."""
    return (replace(page, format=formats[page.digest]) if page.digest in formats else page for page in pages)


def copy(path: Path, target: Path, change: Callable[[PageText], PageText]) -> None:
    """Write a file with the same pages, each changed by `change`."""
    with opened(path) as file, written(target) as add:
        for line in lines_in(path):
            add(change(page_at(file, line)))


def remove(path: Path) -> None:
    path.unlink()
    _index(path).unlink()


def _index(path: Path) -> Path:
    return path.with_name(f"{path.name}.index")
