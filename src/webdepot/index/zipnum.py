"""ZipNum: a sorted CDXJ in gzip members of some thousand lines, and a small list of where each begins, for
pywb and WACZ.

    NAME.cdxj.gz    members of LINES lines each
    NAME.idx        first key and timestamp of a member TAB part TAB offset TAB length TAB number
    NAME.loc        part TAB path of the file

https://pywb.readthedocs.io/en/latest/manual/indexing.html#zipnum-sharded-index
"""

import gzip
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from webdepot import cdxj
from webdepot.durable import whole_file
from webdepot.model import Capture

LINES = 3000
PART = "part-00000"


def write(captures: Iterable[Capture], path: Path) -> int:
    """Write captures, sorted by key, as `path` (which ends in .cdxj.gz) with its .idx and .loc. Returns their
    number.
    """
    stem = path.name.removesuffix(".gz").removesuffix(".cdxj")
    lines = iter(captures)
    total = offset = number = 0
    with (
        whole_file(path.with_name(f"{stem}.loc")) as places,
        whole_file(path.with_name(f"{stem}.idx")) as index,
        whole_file(path) as data,
    ):
        places.write(f"{PART}\t{path.name}\n".encode())
        while batch := [cdxj.line(capture) for capture in islice(lines, LINES)]:
            member = gzip.compress(("\n".join(batch) + "\n").encode("ascii"), mtime=0)
            data.write(member)
            number += 1
            first = " ".join(batch[0].split(" ", 2)[:2])
            index.write(f"{first}\t{PART}\t{offset}\t{len(member)}\t{number}\n".encode("ascii"))
            offset += len(member)
            total += len(batch)
    return total


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text file, compressed or not."""
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    with (
        gzip.open(path, "rt", encoding="utf-8", errors="replace")
        if is_gzip
        else path.open(encoding="utf-8", errors="replace") as text
    ):
        while line := text.readline(cdxj.LONGEST_LINE + 1):
            yield line
