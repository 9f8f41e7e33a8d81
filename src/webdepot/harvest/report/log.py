"""The crawl log: one line for each address, in Heritrix's crawl.log format, which existing tools read, and as
JSON lines.

crawl.log, columns separated by spaces (https://heritrix.readthedocs.io/en/latest/operating.html#crawl-log):

    2026-11-15T09:02:51.120Z   200       5120 https://a.example/x LLE https://a.example/ text/html #001
    20261115090251075+45 sha1:… - 2t                                                    (one line)

    time written, status, size, address, hop path, referring page, type, slot, start+milliseconds, digest,
    source, annotations

A status below 0 is a failure (`model.Failure`). crawl.jsonl has the same columns and more: `server`, and
always the `rule` that accepted or rejected the address, with its `reason`. A response that was fetched but
not kept because of its type has a status below 0 and a size. Before a harvest is resumed, both files are cut
back to their sizes at the last checkpoint (`cut`).
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from webdepot import durable
from webdepot.errors import NoSpace
from webdepot.model import Candidate, Failure, Verdict, Visit
from webdepot.times import to_iso_milliseconds

LOG_NAME = "crawl.log"
JSON_NAME = "crawl.jsonl"
MISSING = "soft404"
"""Annotation: the response is the page that its host shows for missing pages."""
PROBE = f"{MISSING}Probe"
"""Annotation: the address cannot exist and was only requested to see what its host answers."""
SOFTWARE = "software:"
"""Annotation, followed by the id of a software: the page is the first of its host that shows signs of it."""
_DIGITS = str.maketrans("", "", "-T:.Z")
_TAIL_BYTES = 64 << 10
_BUFFER_BYTES = 256 << 10
_TRUNCATED = {"length": "lenTrunc", "time": "timeTrunc", "disconnect": "discTrunc"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """The log entry of one address. The names are those of crawl.jsonl."""

    at: datetime
    """When the request started, or, without a request, when it was decided."""
    status: int
    """HTTP status, or the negative `Failure.status`."""
    size: int
    """Bytes of the response as received, with headers."""
    url: str
    path: str
    via: str
    mime: str
    digest: str
    duration_s: float
    server: str
    tries: int
    """Requests made for it, including this one; 0 if none was made."""
    rule: str = ""
    reason: str = ""
    note: str = ""
    """Annotations, separated by commas."""


class CrawlLog:
    """Appends to both files of a folder. For one thread; lines are durable after `sync`."""

    def __init__(self, folder: Path) -> None:
        durable.make_folders(folder)
        self._heritrix: BinaryIO = (folder / LOG_NAME).open("ab", buffering=_BUFFER_BYTES)
        self._json: BinaryIO = (folder / JSON_NAME).open("ab", buffering=_BUFFER_BYTES)
        durable.sync_folder(folder)

    def write(self, line: LogLine) -> None:
        try:
            self._heritrix.write(as_heritrix(line).encode("utf-8", "replace"))
            self._json.write(as_json(line).encode("utf-8", "replace"))
        except OSError as error:
            raise _no_space(self._heritrix.name, error) from error

    def sync(self) -> Mapping[str, int]:
        """Make all lines durable; return the size of each file."""
        try:
            for file in (self._heritrix, self._json):
                durable.sync_file(file)
        except OSError as error:
            raise _no_space(self._heritrix.name, error) from error
        return {LOG_NAME: self._heritrix.tell(), JSON_NAME: self._json.tell()}

    def free_bytes(self) -> int:
        """Free space on the disk of the log, which is also the disk of the harvest."""
        disk = os.fstatvfs(self._json.fileno())
        return disk.f_bavail * disk.f_frsize

    def close(self) -> None:
        """Close, even on a full disk: lines that were not synced need not survive."""
        for file in (self._heritrix, self._json):
            with suppress(OSError):
                file.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentLine:
    """A line of the log, as shown to people who watch the harvest."""

    at: str
    status: int
    url: str
    size: int
    mime: str
    reason: str

    @property
    def is_error(self) -> bool:
        return self.status < 0 or self.status >= 400


def recent(folder: Path, limit: int) -> list[RecentLine]:
    """The last lines of a log that is being written, newest first. Skips lines that are not complete."""
    try:
        with (folder / JSON_NAME).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _TAIL_BYTES, 0))
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    recent_lines: list[RecentLine] = []
    for line in reversed(lines[1:-1] if size > _TAIL_BYTES else lines[:-1]):
        try:
            recent_lines.append(_recent_line(json.loads(line)))
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            continue
        if len(recent_lines) == limit:
            break
    return recent_lines


def _recent_line(values: dict[str, Any]) -> RecentLine:
    texts = {name: str(values.get(name) or "") for name in ("at", "url", "mime", "reason")}
    return RecentLine(status=int(values.get("status") or 0), size=int(values.get("size") or 0), **texts)


def cut(folder: Path, marks: Mapping[str, int]) -> None:
    """Remove from both files what was written after the last checkpoint; everything if there was none."""
    for name in (LOG_NAME, JSON_NAME):
        path = folder / name
        if path.exists() and path.stat().st_size > marks.get(name, 0):
            with path.open("r+b") as file:
                file.truncate(marks.get(name, 0))
                durable.sync_file(file)


def as_heritrix(line: LogLine) -> str:
    begun = to_iso_milliseconds(line.at)
    written = to_iso_milliseconds(line.at + timedelta(seconds=line.duration_s)) if line.duration_s else begun
    request = f"{begun.translate(_DIGITS)}+{round(line.duration_s * 1000)}" if line.tries else "-"
    annotations = f"{line.tries}t,{line.note}".rstrip(",") if line.tries > 1 else line.note
    url, path, via, mime, notes = map(_column, (line.url, line.path, line.via, line.mime, annotations))
    return (
        f"{written} {line.status:5d} {line.size or '-':>10} {url} {path} {via} {mime} #001 {request} "
        f"{line.digest or '-'} - {notes}\n"
    )


_FIELDS = tuple(field.name for field in fields(LogLine))
_to_json = json.JSONEncoder(ensure_ascii=False).encode


def as_json(line: LogLine) -> str:
    values: dict[str, object] = {name: getattr(line, name) for name in _FIELDS}
    values |= {"at": to_iso_milliseconds(line.at), "duration_s": round(line.duration_s, 3)}
    return _to_json(values) + "\n"


def of_visit(
    visit: Visit,
    *,
    verdict: Verdict | None = None,
    mime: str = "unknown",
    digest: str = "",
    duplicate: bool = False,
    note: str = "",
) -> LogLine:
    """The line for a request, whatever its result. `verdict` is the one that accepted the address."""
    candidate = visit.candidate
    if visit.truncated or duplicate:
        note = ",".join(
            filter(
                None,
                (
                    _TRUNCATED.get(visit.truncated, visit.truncated),
                    "warcRevisit:digest" if duplicate else "",
                    note,
                ),
            )
        )
    return LogLine(
        at=visit.at,
        status=visit.failure.status if visit.failure else visit.status,
        size=visit.body_bytes,  # as in Heritrix: without the head
        url=candidate.url,
        path=candidate.path,
        via=candidate.via or "",
        mime=mime,
        digest=digest,
        duration_s=visit.duration_s,
        server=visit.server_address,
        tries=candidate.tries + 1,
        rule=verdict.rule if verdict else "",
        reason=visit.failure_detail or (verdict.reason if verdict else ""),
        note=note,
    )


def of_unkept(visit: Visit, verdict: Verdict, *, mime: str) -> LogLine:
    """The line for a response that a rule rejects."""
    return replace(
        of_visit(visit, mime=mime, note=f"notKept:{visit.status}"),
        status=Failure.SCOPE.status,
        rule=verdict.rule,
        reason=verdict.reason,
    )


def of_refusal(candidate: Candidate, failure: Failure, *, rule: str, reason: str, at: datetime) -> LogLine:
    """The line for an address that was not requested."""
    return LogLine(
        at=at,
        status=failure.status,
        size=0,
        url=candidate.url,
        path=candidate.path,
        via=candidate.via or "",
        mime="unknown",
        digest="",
        duration_s=0.0,
        server="",
        tries=0,
        rule=rule,
        reason=reason,
    )


def _column(text: str) -> str:
    """The text as one column: never empty, and without whitespace."""
    return "_".join(text.split()) or "-"


def _no_space(name: str, error: OSError) -> NoSpace:
    return NoSpace(
        f"The crawl log {name} could not be written: {error.strerror}. "
        "Free some space and resume the harvest."
    )
