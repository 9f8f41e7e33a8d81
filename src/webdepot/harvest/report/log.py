"""The crawl log: one line for each address, in the format of Heritrix's crawl.log that existing tools read,
and as JSON lines.

crawl.log, columns divided by blanks (https://heritrix.readthedocs.io/en/latest/operating.html#crawl-log):

    2026-11-15T09:02:51.120Z   200       5120 https://a.example/x LLE https://a.example/ text/html #001 20261115090251075+45 sha1:… - 2t

    when written, status, size, address, path of hops, page that led there, type, slot, begin+milliseconds,
    digest, source, annotations

A status below 0 is a failure (`model.Failure`). crawl.jsonl has the same and more: `server`, and always the
`rule` that decided, with its `reason`: by which rule it was asked, or refused. What was asked and, by its
type, not kept has a status below 0 and a size. Both are cut back to the last checkpoint's sizes (`cut`)
before a harvest is resumed.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from json.encoder import encode_basestring as _quoted
from pathlib import Path
from typing import BinaryIO

from webdepot.errors import NoSpace
from webdepot.model import Candidate, Failure, Verdict, Visit
from webdepot.times import to_iso_milliseconds

LOG_NAME = "crawl.log"
JSON_NAME = "crawl.jsonl"
_DIGITS = str.maketrans("", "", "-T:.Z")
_TAIL_BYTES = 64 << 10
_BUFFER_BYTES = 256 << 10
_MOST_HELD = 64
_TRUNCATED = {"length": "lenTrunc", "time": "timeTrunc", "disconnect": "discTrunc"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """What is said of one address. The names are those of crawl.jsonl."""

    at: datetime
    """When the request began, or, without one, when it was decided."""
    status: int
    """HTTP status, or the negative `Failure.status`."""
    size: int
    """Bytes of the answer as it came, with headers."""
    url: str
    path: str
    via: str
    mime: str
    digest: str
    duration_s: float
    server: str
    tries: int
    """Requests made for it, this one included; 0 when none was made."""
    rule: str = ""
    reason: str = ""
    note: str = ""
    """Annotations, divided by commas."""


class CrawlLog:
    """Appends to both files of a folder. One thread; durable after `sync`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._heritrix: BinaryIO = (folder / LOG_NAME).open("ab", buffering=_BUFFER_BYTES)
        self._json: BinaryIO = (folder / JSON_NAME).open("ab", buffering=_BUFFER_BYTES)
        self._held: list[LogLine] = []

    def write(self, line: LogLine) -> None:
        """Lines are put into words many at a time: that is twice as fast as one by one between pages."""
        self._held.append(line)
        if len(self._held) >= _MOST_HELD:
            self._write_held()

    def _write_held(self) -> None:
        held = [(line, to_iso_milliseconds(line.at)) for line in self._held]
        self._held.clear()
        try:
            self._heritrix.write(
                "".join([as_heritrix(line, begun) for line, begun in held]).encode("utf-8", "replace")
            )
            self._json.write(
                "".join([as_json(line, begun) for line, begun in held]).encode("utf-8", "replace")
            )
        except OSError as error:
            raise _no_space(self._heritrix.name, error) from error

    def sync(self) -> Mapping[str, int]:
        """Make what was written durable; the size of each file."""
        self._write_held()
        try:
            for file in (self._heritrix, self._json):
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _no_space(self._heritrix.name, error) from error
        return {LOG_NAME: self._heritrix.tell(), JSON_NAME: self._json.tell()}

    def free_bytes(self) -> int:
        """Room on its disk, which is the harvest's."""
        found = os.fstatvfs(self._json.fileno())
        return found.f_bavail * found.f_frsize

    def close(self) -> None:
        """Closes even on a full disk: what was not synced is not acknowledged."""
        with suppress(NoSpace):
            self._write_held()
        for file in (self._heritrix, self._json):
            try:
                file.close()
            except OSError:
                continue


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentLine:
    """A line of the log as a person watches it."""

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
    """The last lines of a log that is being written, the newest first. Reads its last bytes alone, and a half
    line not at all.
    """
    try:
        with (folder / JSON_NAME).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _TAIL_BYTES, 0))
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    found: list[RecentLine] = []
    for line in reversed(lines[1:-1] if size > _TAIL_BYTES else lines[:-1]):
        try:
            values = json.loads(line)
        except ValueError:
            continue
        words = {name: str(values.get(name) or "") for name in ("at", "url", "mime", "reason")}
        found.append(
            RecentLine(status=int(values.get("status") or 0), size=int(values.get("size") or 0), **words)
        )
        if len(found) == limit:
            break
    return found


def cut(folder: Path, marks: Mapping[str, int]) -> None:
    """Take from both files what was written after the last checkpoint; with no checkpoint, everything."""
    for name in (LOG_NAME, JSON_NAME):
        path = folder / name
        if path.exists() and path.stat().st_size > marks.get(name, 0):
            with path.open("r+b") as file:
                file.truncate(marks.get(name, 0))
                os.fsync(file.fileno())


def as_heritrix(line: LogLine, at: str = "") -> str:
    """`at` is its moment in words, where the caller has them."""
    at = at or to_iso_milliseconds(line.at)
    written = to_iso_milliseconds(line.at + timedelta(seconds=line.duration_s)) if line.duration_s else at
    begun = f"{at.translate(_DIGITS)}+{round(line.duration_s * 1000)}" if line.tries else "-"
    annotations = f"{line.tries}t,{line.note}".rstrip(",") if line.tries > 1 else line.note
    url, path, via, mime, notes = (
        line.url,
        line.path or "-",
        line.via or "-",
        line.mime or "-",
        annotations or "-",
    )
    together = f"{url} {path} {via} {mime} {notes}"
    if together.count(" ") != 4 or not url or not together.isascii() or not together.isprintable():
        url, path, via, mime, notes = map(_column, (url, path, via, mime, notes))
    return f"{written} {line.status:5d} {line.size or '-':>10} {url} {path} {via} {mime} #001 {begun} {line.digest or '-'} - {notes}\n"


def as_json(line: LogLine, at: str = "") -> str:
    """By hand, in the order of the fields: json.dumps takes four times as long, for each page."""
    return (
        f'{{"at": "{at or to_iso_milliseconds(line.at)}", "status": {line.status}, "size": {line.size}, "url": {_quoted(line.url)}, '
        f'"path": {_quoted(line.path)}, "via": {_quoted(line.via)}, "mime": {_quoted(line.mime)}, "digest": {_quoted(line.digest)}, '
        f'"duration_s": {round(line.duration_s, 3)}, "server": {_quoted(line.server)}, "tries": {line.tries}, '
        f'"rule": {_quoted(line.rule)}, "reason": {_quoted(line.reason)}, "note": {_quoted(line.note)}}}\n'
    )


def of_visit(
    visit: Visit,
    *,
    verdict: Verdict | None = None,
    mime: str = "unknown",
    digest: str = "",
    duplicate: bool = False,
    note: str = "",
) -> LogLine:
    """The line for a request that was made, whatever came of it. `verdict` is by which rule it was asked."""
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
        size=len(visit.head) + visit.body_bytes,
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
    """The line for an answer that a rule does not want."""
    return replace(
        of_visit(visit, mime=mime, note=f"notKept:{visit.status}"),
        status=Failure.SCOPE.status,
        rule=verdict.rule,
        reason=verdict.reason,
    )


def of_refusal(candidate: Candidate, failure: Failure, *, rule: str, reason: str, at: datetime) -> LogLine:
    """The line for an address that was not asked."""
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
    """One column: never empty, never with a blank in it."""
    return "_".join(text.split()) or "-"


def _no_space(name: str, error: OSError) -> NoSpace:
    return NoSpace(
        f"The crawl log {name} could not be written: {error.strerror}. Free some space and resume the harvest."
    )
