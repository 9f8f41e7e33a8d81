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
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from webdepot import cdxj
from webdepot.errors import CorruptData
from webdepot.model import Capture, Finding, Severity

RUN_LINES = 200_000
LONGEST_LINE_BYTES = 4 << 20


def write_captures(path: Path, captures: Iterable[Capture], *, run_lines: int = RUN_LINES) -> int:
    """Write captures, given in any order, as sorted CDXJ; return their number."""
    with ExitStack() as files:
        runs = [_write_run(files, run) for run in _batches(map(_line, captures), run_lines)]
        return _write_lines(path, heapq.merge(*runs))


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
            {name: value for name, value in asdict(each).items() if name != "facts" or value}
            for each in findings
        ),
    )


def read_findings(stream: BinaryIO, *, where: str) -> Iterator[Finding]:
    for row in read_rows(stream, where=where):
        try:
            yield Finding(**row | {"severity": Severity(row["severity"])})
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CorruptData(f"{where} has a row that is not a finding: {error}.", where=where) from error


def _line(capture: Capture) -> bytes:
    return cdxj.line(capture).encode("ascii", "replace")


def _capture(line: bytes, where: str) -> Capture:
    try:
        return cdxj.parse(line.decode(errors="replace"))
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise CorruptData(f"{where} has a line that is not a capture: {error}.", where=where) from error


def _object(data: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptData(f"{where} has a line that is not JSON: {error}.", where=where) from error
    if not isinstance(row, dict):
        raise CorruptData(f"{where} has a line that is not a JSON object.", where=where)
    return row


def _lines(stream: BinaryIO, where: str) -> Iterator[bytes]:
    unpacked = gzip.GzipFile(fileobj=stream)
    try:
        while line := unpacked.readline(LONGEST_LINE_BYTES):
            yield line.rstrip(b"\n")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorruptData(
            f"{where} is damaged: {error}. Restore it from another copy.", where=where
        ) from error


def _write_lines(path: Path, lines: Iterable[bytes]) -> int:
    count = 0
    with (
        path.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed,
    ):
        for batch in _batches(lines, 1000):
            packed.write(b"".join(line + b"\n" for line in batch))
            count += len(batch)
    return count


def _write_run(files: ExitStack, lines: list[bytes]) -> Iterator[bytes]:
    """The lines sorted, read from a temporary file."""
    file = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    file.writelines(line + b"\n" for line in sorted(lines))
    file.seek(0)
    return (line[:-1] for line in file)


def _batches(lines: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    iterator = iter(lines)
    while batch := list(itertools.islice(iterator, size)):
        yield batch
