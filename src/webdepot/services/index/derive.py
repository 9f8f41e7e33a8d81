"""Read a container once, in a worker process, and derive everything from its records that the archive needs.

    formats    one row for each distinct payload: format and validity          `formats.survey`
    captures   one line for each capture                                       `index.extract`
    pages      text, title, language and link texts of pages                   `index.extract`
    facts      what the check of the harvest needs: links, digests, damage     `quality.record_facts`
               and where screenshots are                                       `quality.screenshots`

Each is made by one function, which other callers use for one of them alone. `derived` decides where the files
are until the steps that need them have read them.

A worker loads the module of its function; this one loads neither the archive nor any other service.
"""

import gzip
import pickle
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

from webdepot import durable
from webdepot.container.http import HttpHead
from webdepot.container.reader import iter_records
from webdepot.container.record import Record
from webdepot.formats import survey
from webdepot.formats.survey import ContainerSurvey, SurveyResult, SurveyTask
from webdepot.index import extract
from webdepot.index.extract import Extract, Job
from webdepot.model import Finding
from webdepot.quality import record_facts, screenshots
from webdepot.quality.record_facts import PayloadMeasure, RecordFacts
from webdepot.quality.screenshots import Screenshot
from webdepot.url import Url

FACTS, COMPLETE = "facts", "complete"
"""The file of facts, and the file beside the folder of a pass that appears when all files in it are durable.
"""
Fact = RecordFacts | Screenshot | Finding
"""A line of the file of facts; findings are about damage of the container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeriveTask:
    """One container, as a value that travels to a worker."""

    survey: SurveyTask
    extract: Job
    """Its folder is for this pass alone, in the folder of the container; it gets all files except the rows of
    the survey.
    """
    has_links: bool
    """Whether the container has the links of its pages in metadata records; otherwise they are extracted."""

    @property
    def name(self) -> str:
        return self.survey.name

    def find_result(self) -> None:
        """None: the result is never known before the container is read."""

    def elsewhere(self, path: Path, folder: Path, signatures: Path | None) -> "DeriveTask":
        """In a worker of another machine: the same task with files there."""
        return replace(
            self,
            survey=self.survey.elsewhere(path, folder, signatures),
            extract=self.extract.elsewhere(path, folder, signatures),
        )

    def path_here(self, name: str) -> Path:
        """Where a file belongs that such a worker has written."""
        is_rows = name == self.survey.rows.name
        return self.survey.rows if is_rows else self.extract.path_here(name)

    def finish_here(self, result: "tuple[SurveyResult, Derived]") -> SurveyResult:
        """The survey of such a worker (`read`), when its files are here."""
        surveyed, derived = result
        folder = self.extract.folder
        complete(self, Derived(extract=derived.extract.moved(folder), facts=folder / FACTS))
        return self.survey.finish_here(surveyed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """The files of a complete pass."""

    extract: Extract
    facts: Path


def run(task: DeriveTask) -> SurveyResult:
    """In a worker: read a container once, and write what is derived from it; return its survey."""
    result, derived = read(task)
    complete(task, derived)
    return result


def read(task: DeriveTask) -> "tuple[SurveyResult, Derived]":
    """As `run`, without the note that the files are complete: they may have to travel first."""
    folder = task.extract.folder
    with ExitStack() as stack:
        surveying = stack.enter_context(survey.of_task(task.survey))
        facts = stack.enter_context(gzip.open(folder / FACTS, "wb", compresslevel=1))
        seeing = _Seeing(surveying, facts, has_links=task.has_links)
        extracted = extract.run(task.extract, on_records=seeing.records, on_damage=seeing.damage)
        result = surveying.finish()
    return result, Derived(extract=extracted, facts=folder / FACTS)


def complete(task: DeriveTask, derived: Derived) -> None:
    """Make the files of a pass durable, and note that it is complete."""
    folder = task.extract.folder
    durable.sync_tree(folder)
    durable.write_whole(folder.parent / COMPLETE, pickle.dumps(derived, pickle.HIGHEST_PROTOCOL))


class _Seeing:
    """What is derived from each record besides its capture and its text."""

    def __init__(self, surveying: ContainerSurvey, facts: gzip.GzipFile, *, has_links: bool) -> None:
        self._surveying = surveying
        self._facts = facts
        self._extract = None if has_links else links_of

    def records(self, records: Sequence[Record]) -> None:
        """Derive everything from some records, in their order."""
        measured = [self._surveying.take(record) for record in records]
        measures = [PayloadMeasure(*each) if each else None for each in measured]
        facts = [
            record_facts.of_record(record, extract=self._extract, measure=measure)
            for record, measure in zip(records, measures, strict=True)
        ]
        for record, fact in zip(records, facts, strict=True):
            self._add(fact)
            self._add(screenshots.of_record(record))

    def damage(self, finding: Finding) -> None:
        self._surveying.add_finding(finding)
        self._add(finding)

    def _add(self, fact: Fact | None) -> None:
        if fact is not None:
            pickle.dump(fact, self._facts, pickle.HIGHEST_PROTOCOL)


def find(folder: Path) -> Derived | None:
    """What was derived from the container with this folder; None if no pass is complete, or its files are
    gone.
    """
    try:
        derived: Derived = pickle.loads((folder / COMPLETE).read_bytes())  # noqa: S301 - our own file
    except FileNotFoundError:
        return None
    return derived if derived.facts.exists() else None


def facts_in(path: Path) -> Iterator[Fact]:
    with gzip.open(path, "rb") as stream:
        while True:
            try:
                yield pickle.load(stream)  # noqa: S301 - our own file, written by our worker
            except EOFError:
                return


def facts_of(path: Path, name: str, *, has_links: bool) -> Iterator[Fact]:
    """The facts of a container, from its records alone."""
    damage: list[Finding] = []
    with path.open("rb") as stream:
        for record in iter_records(stream, name, on_finding=damage.append):
            yield from damage
            damage.clear()
            facts = record_facts.of_record(record, extract=None if has_links else links_of)
            if facts is not None:
                yield facts
            shot = screenshots.of_record(record)
            if shot is not None:
                yield shot
    yield from damage


def links_of(url: str, head: HttpHead, body: bytes) -> list[tuple[str, str]]:
    """The links of a page of an import, whose containers do not have them; `body` is decoded."""
    # Imported here because only imports need it, and its HTML parser (turbohtml) is slow to load.
    from webdepot.harvest.links import bodies
    from webdepot.harvest.links import extract as link_extract

    plain = tuple(
        each for each in head.headers if each[0].lower() not in ("content-encoding", "transfer-encoding")
    )
    page = link_extract.extract(Url(url), replace(head, headers=plain), BytesIO(body), bodies.LinkLimits())
    # Reading `value` of an enumeration is a Python call, and a page has a hundred links.
    return [(link, hop._value_) for link, hop in page.links]
