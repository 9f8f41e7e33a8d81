"""Read one container for the indexes, in a worker process: its captures, pages and links into files.

A worker loads the module of its function; this one loads neither the database nor any service, and is ready
in a quarter of the time.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from webdepot import cdxj
from webdepot.container.damage import OnFinding
from webdepot.container.record import Record
from webdepot.index import page_files
from webdepot.index.content import text
from webdepot.index.content.shown_texts import LateTexts
from webdepot.model import Capture, Finding
from webdepot.ports.search import PageText

MOST_FINDINGS = 200
"""Most findings of one container; further ones are not reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One container for a worker process."""

    path: Path
    name: str
    collection: str
    languages: tuple[str, ...]
    limit_bytes: int
    folder: Path
    ready: "Extract | None" = None
    """The result, if its files were written before."""

    def find_result(self) -> "Extract | None":
        """The result, if it is known already."""
        return self.ready

    def elsewhere(self, path: Path, folder: Path, _signatures: Path | None) -> "Job":
        """The same job with the file names on another machine; called in a worker there."""
        return replace(self, path=path, folder=folder)

    def path_here(self, name: str) -> Path:
        """The path on this machine of a file that such a worker has written."""
        return self.folder / name

    def finish_here(self, result: "Extract") -> "Extract":
        """The result of such a worker, with the file names on this machine."""
        return result.moved(self.folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """The result of a worker for one container: three files."""

    captures: Path
    pages: Path
    """As in `page_files`."""
    links: Path
    findings: tuple[Finding, ...]

    def moved(self, folder: Path) -> "Extract":
        """The same with files in another folder."""
        captures, pages, links = (folder / path.name for path in (self.captures, self.pages, self.links))
        return replace(self, captures=captures, pages=pages, links=links)


def run(
    job: Job,
    *,
    on_records: Callable[[Sequence[Record]], None] | None = None,
    on_damage: OnFinding | None = None,
) -> Extract:
    """In a worker: read a container once and write the data of the indexes, unless that was done before.
    `on_records` and `on_damage` are called with its records and its damage, so that other data can be
    derived.
    """
    if job.ready is not None:
        return job.ready
    findings: list[Finding] = []

    def note(finding: Finding) -> None:
        if len(findings) < MOST_FINDINGS:
            findings.append(finding)

    def note_damage(finding: Finding) -> None:
        note(finding)
        if on_damage is not None:
            on_damage(finding)

    captures, pages, links = (job.folder / f"{job.name}.{kind}" for kind in ("cdxj", "pages", "links"))
    late = LateTexts()
    read = _read(job, late, on_finding=note, on_damage=note_damage, on_records=on_records)
    with (
        captures.open("w", encoding="ascii") as lines,
        page_files.written(pages) as add_page,
        links.open("wb") as linking,
    ):
        for capture, page in read:
            lines.write(cdxj.line(capture) + "\n")
            if page is not None:
                add_page(page)
                if page.links:
                    pickle.dump((page.key, page.timestamp, page.links), linking, pickle.HIGHEST_PROTOCOL)
    if late.locations:
        with page_files.written(pages) as add_page:
            for _, page in _read(job, late, on_finding=lambda _: None):
                if page is not None:
                    add_page(page)
    return Extract(captures=captures, pages=pages, links=links, findings=tuple(findings))


def _read(
    job: Job,
    late: LateTexts,
    *,
    on_finding: OnFinding,
    on_damage: OnFinding | None = None,
    on_records: Callable[[Sequence[Record]], None] | None = None,
) -> Iterator[tuple[Capture, PageText | None]]:
    return text.read_container(
        job.path,
        job.name,
        job.collection,
        job.languages,
        job.limit_bytes,
        on_finding=on_finding,
        on_damage=on_damage,
        on_records=on_records,
        late=late,
    )


def captures_in(path: Path) -> Iterator[Capture]:
    with path.open(encoding="ascii") as lines:
        yield from cdxj.read(lines, name=path.name)


def links_in(path: Path) -> Iterator[tuple[str, str, tuple[tuple[str, str], ...]]]:
    """Key and timestamp of each page with links, and its links."""
    with path.open("rb") as stream:
        while True:
            try:
                yield pickle.load(stream)  # noqa: S301 - our own file, written by our worker a moment ago
            except EOFError:
                return
