"""ZipNum: a sorted CDXJ in gzip members of some thousand lines, and a small list of where each begins, as
pywb and WACZ have it.

    NAME.cdxj.gz    members of LINES lines each
    NAME.idx        first key and timestamp of a member TAB part TAB offset TAB length TAB number
    NAME.loc        part TAB path of the file

https://pywb.readthedocs.io/en/latest/manual/indexing.html#zipnum-sharded-index
"""

import gzip
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from webdepot import cdxj
from webdepot.model import Capture

LINES = 3000
PART = "part-00000"


def write(captures: Iterable[Capture], path: Path) -> int:
    """Write captures, given in the order of keys, as `path` (which ends in .cdxj.gz) with its .idx and .loc;
    returns how many.
    """
    stem = path.name.removesuffix(".gz").removesuffix(".cdxj")
    lines = iter(captures)
    total = offset = number = 0
    temporary = {name: path.with_name(f"{name}.part") for name in (path.name, f"{stem}.idx", f"{stem}.loc")}
    with (
        temporary[path.name].open("wb") as data,
        temporary[f"{stem}.idx"].open("w", encoding="ascii") as index,
    ):
        while batch := [cdxj.line(capture) for capture in islice(lines, LINES)]:
            member = gzip.compress(("\n".join(batch) + "\n").encode("ascii"), mtime=0)
            data.write(member)
            number += 1
            index.write(
                f"{' '.join(batch[0].split(' ', 2)[:2])}\t{PART}\t{offset}\t{len(member)}\t{number}\n"
            )
            offset += len(member)
            total += len(batch)
        for file in (data, index):
            file.flush()
            os.fsync(file.fileno())
    temporary[f"{stem}.loc"].write_text(f"{PART}\t{path.name}\n", encoding="utf-8")
    for name, made in temporary.items():
        made.replace(path.with_name(name))
    return total


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text file, whether it is compressed or not."""
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    with (
        gzip.open(path, "rt", encoding="utf-8", errors="replace")
        if is_gzip
        else path.open(encoding="utf-8", errors="replace") as text
    ):
        while line := text.readline(cdxj.LONGEST_LINE + 1):
            yield line
