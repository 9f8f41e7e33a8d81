"""Read one container for both indexes, in a worker process: its captures and its text into two files.

A worker loads the module of its function; this one loads neither the database nor any service, and is ready
in a quarter of the time.
"""

import gzip
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from webdepot import cdxj
from webdepot.index.content import text
from webdepot.model import Capture, Finding
from webdepot.ports import PageText

MOST_FINDINGS = 200
"""Of one container; further ones are not reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One container for a worker process."""

    path: Path
    name: str
    collection: str
    languages: tuple[str, ...]
    limit_bytes: int
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """The result of a worker for one container: two files."""

    captures: Path
    pages: Path
    findings: tuple[Finding, ...]


def run(job: Job) -> Extract:
    """In a worker: read a container once and write the data of both indexes."""
    findings: list[Finding] = []

    def note(finding: Finding) -> None:
        if len(findings) < MOST_FINDINGS:
            findings.append(finding)

    captures, pages = job.folder / f"{job.name}.cdxj", job.folder / f"{job.name}.pages"
    read = text.read_container(
        job.path, job.name, job.collection, job.languages, job.limit_bytes, on_finding=note
    )
    with captures.open("w", encoding="ascii") as lines, gzip.open(pages, "wb", compresslevel=1) as texts:
        for capture, page in read:
            lines.write(cdxj.line(capture) + "\n")
            if page is not None:
                pickle.dump(page, texts, protocol=pickle.HIGHEST_PROTOCOL)
    return Extract(captures=captures, pages=pages, findings=tuple(findings))


def captures_in(path: Path) -> Iterator[Capture]:
    with path.open(encoding="ascii") as lines:
        yield from cdxj.read(lines, name=path.name)


def pages_in(path: Path) -> Iterator[PageText]:
    with gzip.open(path, "rb") as stream:
        while True:
            try:
                yield pickle.load(stream)  # noqa: S301 - our own file, written by our worker a moment ago
            except EOFError:
                return
