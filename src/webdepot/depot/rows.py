"""Facts per record as compressed rows: `index/captures.cdxj.gz`, `index/formats.jsonl.gz`, `index/findings.jsonl.gz`.

A package has one row per record, never one XML section per record, which no tool survives at a million records. CDXJ is the
form that pywb, warcio and WACZ read (https://specs.webrecorder.net/cdxj/0.1.0/): `key timestamp {json}`, sorted by bytes.
gzip members may be concatenated, so the rows of several containers join without being unpacked. Equal rows give equal bytes.

Sorting takes a bounded amount of memory: runs of lines are sorted, put aside in temporary files and merged.
"""

import gzip
import heapq
import itertools
import json
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from webdepot.errors import CorruptData
from webdepot.model import Capture, Finding, Location, RecordKind, Severity

RUN_LINES = 200_000
LONGEST_LINE_BYTES = 4 << 20
_REVISIT_MIME = "warc/revisit"
_SPACE = re.compile(r"[\x00-\x20]")


def write_captures(path: Path, captures: Iterable[Capture], *, run_lines: int = RUN_LINES) -> int:
    """Sorted CDXJ of captures that come in any order; how many there were."""
    with ExitStack() as files:
        runs = [_put_aside(files, run) for run in _batches(map(cdxj_line, captures), run_lines)]
        return _write_lines(path, heapq.merge(*runs))


def read_captures(stream: BinaryIO, *, where: str) -> Iterator[Capture]:
    for line in _lines(stream, where):
        key, timestamp, facts = _split_cdxj(line, where)
        yield _capture(key, timestamp, facts, where)


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> int:
    """One JSON object a line; how many."""
    return _write_lines(path, (json.dumps(dict(row), ensure_ascii=False, separators=(",", ":")).encode(errors="replace") for row in rows))


def read_rows(stream: BinaryIO, *, where: str) -> Iterator[dict[str, Any]]:
    for line in _lines(stream, where):
        yield _object(line, where)


def write_findings(path: Path, findings: Iterable[Finding]) -> int:
    return write_rows(path, map(asdict, findings))


def read_findings(stream: BinaryIO, *, where: str) -> Iterator[Finding]:
    for row in read_rows(stream, where=where):
        try:
            yield Finding(**row | {"severity": Severity(row["severity"])})
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptData(f"{where} has a row that is no finding: {error}.", where=where) from error


def cdxj_line(capture: Capture) -> bytes:
    """One line without its end."""
    revisit = capture.kind is RecordKind.REVISIT
    facts: dict[str, str] = {
        "url": capture.url,
        "mime": _REVISIT_MIME if revisit else capture.mime,
        "status": str(capture.status),
        "digest": capture.digest,
        "length": str(capture.location.length),
        "offset": str(capture.location.offset),
        "filename": capture.location.container,
        "kind": capture.kind.value,
    }
    more = {
        "redirect": capture.redirect,
        "refers_to_url": capture.refers_to_url,
        "refers_to_timestamp": capture.refers_to_timestamp,
    }
    facts |= {"server_mime": capture.mime} if revisit else {}
    facts |= {name: value for name, value in more.items() if value}
    # Keys are percent-encoded by their rules; should one hold white space after all, the line must still have three parts.
    key = _SPACE.sub(lambda found: f"%{ord(found.group()):02x}", capture.key)
    return f"{key} {capture.timestamp} {json.dumps(facts)}".encode(errors="replace")


def _split_cdxj(line: bytes, where: str) -> tuple[str, str, dict[str, Any]]:
    key, _, rest = line.partition(b" ")
    timestamp, _, facts = rest.partition(b" ")
    return key.decode(errors="replace"), timestamp.decode(errors="replace"), _object(facts, where)


def _capture(key: str, timestamp: str, facts: dict[str, Any], where: str) -> Capture:
    try:
        return Capture(
            key=key,
            timestamp=timestamp,
            url=facts["url"],
            kind=RecordKind(facts["kind"]),
            status=int(facts["status"]),
            mime=facts.get("server_mime", facts["mime"]),
            digest=facts["digest"],
            location=Location(container=facts["filename"], offset=int(facts["offset"]), length=int(facts["length"])),
            redirect=facts.get("redirect", ""),
            refers_to_url=facts.get("refers_to_url", ""),
            refers_to_timestamp=facts.get("refers_to_timestamp", ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptData(f"{where} has a line that is no capture: {error}.", where=where) from error


def _object(data: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptData(f"{where} has a line that is no JSON: {error}.", where=where) from error
    if not isinstance(found, dict):
        raise CorruptData(f"{where} has a line that is no JSON object.", where=where)
    return found


def _lines(stream: BinaryIO, where: str) -> Iterator[bytes]:
    unpacked = gzip.GzipFile(fileobj=stream)
    try:
        while line := unpacked.readline(LONGEST_LINE_BYTES):
            yield line.rstrip(b"\n")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorruptData(f"{where} is damaged: {error}. Restore it from another copy.", where=where) from error


def _write_lines(path: Path, lines: Iterable[bytes]) -> int:
    count = 0
    with path.open("wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
        for batch in _batches(lines, 1000):
            packed.write(b"".join(line + b"\n" for line in batch))
            count += len(batch)
    return count


def _put_aside(files: ExitStack, lines: list[bytes]) -> Iterator[bytes]:
    file = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    file.writelines(line + b"\n" for line in sorted(lines))
    file.seek(0)
    return (line[:-1] for line in file)


def _batches(lines: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    iterator = iter(lines)
    while batch := list(itertools.islice(iterator, size)):
        yield batch
