"""The crawl.log of a Heritrix job as our own log (`report.log`), so that a check of the imported files knows
which addresses failed.

Columns, separated by spaces (https://heritrix.readthedocs.io/en/latest/operating.html#crawl-log):

    time written, status, size, address, hop path, referring page, type, thread, start+milliseconds, digest,
    source, annotations

A line that is not like this is left out and counted.
"""

import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from webdepot.harvest.report.log import JSON_NAME, LOG_NAME, LogLine, as_json
from webdepot.times import from_iso

_LONGEST_LINE_BYTES = 64 << 10
_COLUMNS = 12
_BEGUN = re.compile(r"([0-9]{14})([0-9]{3})\+([0-9]{1,9})", re.ASCII)
_STATUS = re.compile(r"-?[0-9]{1,5}", re.ASCII)
_TRIES = re.compile(r"([0-9]{1,3})t", re.ASCII)


def find_line(text: str) -> LogLine | None:
    """One line of a crawl.log; None if it is not one."""
    columns = text.split(None, _COLUMNS - 1)
    if len(columns) < _COLUMNS - 1 or not _STATUS.fullmatch(columns[1]):
        return None
    try:
        written = from_iso(columns[0])
    except ValueError:
        return None
    begun, duration_s = _begun(columns[8])
    notes = columns[11].strip() if len(columns) == _COLUMNS else ""
    notes = "" if notes == "-" else notes
    tries = _TRIES.match(notes)
    return LogLine(
        at=begun or written,
        status=int(columns[1]),
        size=int(columns[2]) if columns[2].isascii() and columns[2].isdigit() and len(columns[2]) < 16 else 0,
        url=columns[3],
        path=_plain(columns[4]),
        via=_plain(columns[5]),
        mime=columns[6],
        digest=_plain(columns[9]),
        duration_s=duration_s,
        server="",
        tries=int(tries[1]) if tries else int(begun is not None),
        note=notes[:500],
    )


def _plain(column: str) -> str:
    return "" if column == "-" else column


def _begun(column: str) -> tuple[datetime | None, float]:
    """When the request began, and how many seconds it took."""
    match = _BEGUN.fullmatch(column)
    if match is None:
        return None, 0.0
    try:
        begun = datetime.strptime(match[1], "%Y%m%d%H%M%S").replace(
            tzinfo=UTC, microsecond=int(match[2]) * 1000
        )
    except ValueError:
        return None, 0.0
    return begun, int(match[3]) / 1000


def take_over(source: Path, folder: Path) -> int:
    """Write the log of a job into the folder of a harvest, unchanged and in our format; return the number of
    lines that were left out. An existing log is replaced.
    """
    left_out = 0
    with source.open("rb") as log, (folder / JSON_NAME).open("wb") as ours:
        for raw in _iter_lines(log):
            line = find_line(raw.decode("utf-8", "replace"))
            if line is None:
                left_out += 1
            else:
                ours.write(as_json(line).encode("utf-8", "replace"))
    shutil.copyfile(source, folder / LOG_NAME)
    return left_out


def _iter_lines(log: BinaryIO) -> Iterator[bytes]:
    """Lines of bounded length; the rest of a longer one counts as a line that cannot be read."""
    while line := log.readline(_LONGEST_LINE_BYTES):
        if line.strip():
            yield line
