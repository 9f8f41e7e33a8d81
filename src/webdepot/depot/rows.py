"""Files of compressed rows in a package: `index/captures.cdxj.gz`, `index/formats.jsonl.gz`,
`index/findings.jsonl.gz`.

A package has one row for each record instead of one XML section, because no tool can read a million sections.
CDXJ is the format that pywb, warcio and WACZ read (`webdepot.cdxj` writes its lines), here sorted by bytes.
gzip members may be concatenated, so the rows of several containers are joined without unpacking them. Equal
rows give equal bytes.

Sorting needs a limited amount of memory: runs of lines are sorted, written to temporary files and merged.
"""

import gzip
import heapq
import itertools
import json
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import IO, Any, BinaryIO

from webdepot import cdxj
from webdepot.errors import CorruptData, cause_of
from webdepot.model import Capture, Finding, Severity
from webdepot.reasons import from_plain, to_plain

MOST_RUNS = 64
RUN_BYTES = 8 << 20
"""How many bytes of lines are sorted in memory at once."""
LONGEST_LINE_BYTES = 4 << 20
_FINDING = tuple(each.name for each in fields(Finding))
_WRITE_BYTES = 256 << 10
_RESTORE = "Restore it from another copy."
_OBJECT_BYTES = 41
"""What a line takes in memory besides its bytes."""


def write_captures(path: Path, captures: Iterable[Capture], *, run_bytes: int = RUN_BYTES) -> int:
    """Write captures, given in any order, as sorted CDXJ; return their number."""
    return _write_lines(path, _sorted(map(_line, captures), run_bytes))


def read_captures(stream: BinaryIO, *, where: str) -> Iterator[Capture]:
    for line in _lines(stream, where):
        yield _capture(line, where)


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> int:
    """Write one JSON object on each line; return their number."""
    return _write_lines(
        path,
        (
            json.dumps(dict(row), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
            for row in rows
        ),
    )


def read_rows(stream: BinaryIO, *, where: str) -> Iterator[dict[str, Any]]:
    for line in _lines(stream, where):
        yield _object(line, where)


def write_findings(path: Path, findings: Iterable[Finding]) -> int:
    return write_rows(
        path,
        (
            {name: value for name in _FINDING if (value := getattr(each, name)) or name != "facts"}
            | ({"facts": to_plain(each.facts)} if each.facts else {})
            for each in findings
        ),
    )


def read_findings(stream: BinaryIO, *, where: str) -> Iterator[Finding]:
    for row in read_rows(stream, where=where):
        try:
            facts = from_plain(row.get("facts") or {})
            yield Finding(**row | {"severity": Severity(row["severity"]), "facts": facts})
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise CorruptData(
                f"{where} has a row that is not a finding: {cause_of(error)}. {_RESTORE}", where=where
            ) from error


def _line(capture: Capture) -> bytes:
    return cdxj.line(capture).encode("ascii", "replace")


def _capture(line: bytes, where: str) -> Capture:
    try:
        return cdxj.parse(line.decode(errors="replace"))
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise CorruptData(
            f"{where} has a line that is not a capture: {cause_of(error)}. {_RESTORE}", where=where
        ) from error


def _object(data: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptData(f"{where} has a line that is not JSON: {error}. {_RESTORE}", where=where) from error
    if not isinstance(row, dict):
        raise CorruptData(f"{where} has a line that is not a JSON object. {_RESTORE}", where=where)
    return row


def _lines(stream: BinaryIO, where: str) -> Iterator[bytes]:
    unpacked = gzip.GzipFile(fileobj=stream)
    try:
        while line := unpacked.readline(LONGEST_LINE_BYTES):
            yield line.rstrip(b"\n")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorruptData(f"{where} is damaged: {error}. {_RESTORE}", where=where) from error


def _write_lines(path: Path, lines: Iterable[bytes]) -> int:
    count = 0
    with (
        path.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed,
    ):
        for batch in _batches(lines, _WRITE_BYTES):
            packed.write(b"".join(line + b"\n" for line in batch))
            count += len(batch)
    return count


def _sorted(lines: Iterable[bytes], run_bytes: int) -> Iterator[bytes]:
    """The lines in order. `MOST_RUNS` runs are merged into one of the next level, so that the number of open
    files does not grow with the number of lines either.
    """
    levels: list[list[Iterator[bytes]]] = [[]]
    for run in _batches(lines, run_bytes):
        run.sort()
        levels[0].append(_spooled(run))
        for number, level in enumerate(levels):
            if len(level) < MOST_RUNS:
                break
            if number + 1 == len(levels):
                levels.append([])
            levels[number + 1].append(_spooled(heapq.merge(*level)))
            level.clear()
    return heapq.merge(*itertools.chain.from_iterable(levels))


def _batches(lines: Iterable[bytes], size_bytes: int) -> Iterator[list[bytes]]:
    """The lines in lists that take about this much memory."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line) + _OBJECT_BYTES
        if size >= size_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _spooled(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, from a temporary file that is written now."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it has been read
    file.writelines(line + b"\n" for line in lines)
    file.seek(0)
    return _read_once(file)


def _read_once(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        yield from (line[:-1] for line in file)
