"""Check a harvest for missing, broken and false content, and give a verdict. The results become part of its
package.

A harvest and its patches are checked together. `services.depot.examination` checks a kept harvest again.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from shutil import copyfileobj

from sqlalchemy import Connection

from webdepot import durable
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot import package, package_content, rows
from webdepot.errors import NotFound
from webdepot.formats import report
from webdepot.harvest import harvest_rows
from webdepot.harvest.report.log import JSON_NAME
from webdepot.harvest.report.reports import TRAP_RULES
from webdepot.harvest.scope.mazes import MAZES
from webdepot.harvest.scope.software_rules import of_archive
from webdepot.model import (
    Answer,
    Capture,
    Container,
    Finding,
    Harvest,
    HarvestId,
    HarvestKind,
    HarvestState,
    Severity,
    Verdict,
)
from webdepot.provenance import Event, Outcome, append, difference
from webdepot.quality import checks, finding_rows, screenshots
from webdepot.quality import verdict as judging
from webdepot.quality.checks import HarvestTraces
from webdepot.quality.compare import HarvestMeasures
from webdepot.quality.record_facts import RecordFacts
from webdepot.quality.screenshots import Screenshot
from webdepot.quality.texts import Action
from webdepot.quality.verdict import FALSE_PAGES, VerdictLimits
from webdepot.reasons import said
from webdepot.services.harvest import harvests
from webdepot.services.index import derived_files
from webdepot.services.progress import Phase, Progress, Watch, unwatched

SHOWN_FINDINGS = 100
MOST_FALSE = 10_000
_BATCH = 500
LAST_HARVESTS = 5
"""How many earlier harvests a harvest is compared with."""
NOT_CHECKED = Verdict(
    answer=Answer.PASS,
    rule="not checked",
    reason=said("not_checked", "The quality of the harvest was not checked."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestCheck:
    verdict: Verdict
    findings: Sequence[Finding]
    """The most severe first, at most `SHOWN_FINDINGS`."""
    counts: Mapping[str, int]
    """The number of all findings by code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCheck:
    """The result of a check that is not in the database yet; its findings are in a file."""

    verdict: Verdict
    counts: Mapping[str, int]
    """The number of findings by code, without those that are ignored for the target."""
    event: Event
    pictured: frozenset[str]
    """The containers of an import that have screenshots; those of other harvests are noted by themselves."""


def check(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched, by: str = "") -> HarvestCheck:
    """Check a harvest; for a kept one, return the result of the last check."""
    if harvest.state is not HarvestState.KEPT:
        durable.make_folders(harvests.folder_of(archive, harvest))
        file = findings_file(archive, harvest)
        checked = run_checks(archive, harvest, file, watch, by=by)
        with archive.database.transaction() as connection, file.open("rb") as stream:
            finding_rows.replace(connection, harvest.id, rows.read_findings(stream, where=str(file)))
            finding_rows.judge(connection, harvest.id, checked.verdict, at=checked.event.at)
            append(connection, checked.event)
        if checked.pictured:
            note_screenshots(archive, harvest, among=checked.pictured)
    return last_check(archive, harvest.id)


def last_check(archive: Archive, harvest: HarvestId) -> HarvestCheck:
    """The result of the last check."""
    with archive.database.reading() as connection:
        verdict = finding_rows.find_verdict(connection, harvest)
        return HarvestCheck(
            verdict=NOT_CHECKED if verdict is None else verdict,
            findings=finding_rows.most_severe(connection, harvest, SHOWN_FINDINGS),
            counts=finding_rows.counts(connection, harvest),
        )


def run_checks(archive: Archive, harvest: Harvest, file: Path, watch: Watch, *, by: str) -> NewCheck:
    """Check a harvest, with its findings written to `file`; the database is only read."""
    patches = harvests.patches_of(archive, harvest)
    containers = [container for each in (harvest, *patches) for container in _containers(archive, each)]
    watch(Progress(phase=Phase.CHECK, done=0, total=len(containers)))
    with archive.database.reading() as connection:
        ignored = finding_rows.ignored(connection, harvest.target)
        before = _to_detail(connection, harvest.id)
    counts: Counter[str] = Counter()
    pictured: set[str] = set()
    with ExitStack() as files:
        traces = _traces(archive, harvest, patches, containers, files, pictured)
        rows.write_findings(file, _counted(checks.check(traces), ignored, counts))
    is_import = harvest.kind is HarvestKind.IMPORT
    documents = {"captures": harvest.counts.get("fetched", 0)} if is_import else harvest.counts
    verdict = judging.of(counts, documents, limits=_limits(archive))
    now = archive.clock()
    event = archive.event(
        "checked",
        "harvest",
        harvest.id,
        outcome=Outcome.SUCCESS if verdict else Outcome.WARNING,
        message=verdict.reason,
        detail=difference(before, _detail(verdict, now, counts)),
        by=by,
    )
    return NewCheck(
        verdict=verdict,
        counts=dict(sorted(counts.items())),
        event=replace(event, at=now),
        pictured=frozenset(pictured) if is_import else frozenset(),
    )


def note_screenshots(archive: Archive, harvest: Harvest, *, among: frozenset[str] | None = None) -> None:
    """Record where the screenshots of a harvest are in its containers, or in those with these names, for
    review and comparison. Can be repeated.
    """
    with archive.database.transaction() as connection:
        screenshots.clear(connection, harvest.id)
    containers = _containers(archive, harvest)
    note_screenshots_in(
        archive, harvest, [each for each in containers if among is None or each.name in among]
    )


def note_screenshots_in(archive: Archive, harvest: Harvest, containers: Sequence[Container]) -> None:
    """Add the screenshots of some containers to those that are recorded: first those of full size, then
    thumbnails of pages without one.
    """
    for is_thumbnail in (False, True):
        shots = (
            fact
            for container in containers
            for fact in derived_files.iter_facts(archive, container)
            if isinstance(fact, Screenshot) and fact.is_thumbnail is is_thumbnail
        )
        while batch := list(islice(shots, _BATCH)):
            with archive.database.transaction() as connection:
                screenshots.add(connection, harvest.id, batch)


def _to_detail(connection: Connection, harvest: HarvestId) -> dict[str, object]:
    """The result of the last check, for the detail of an event."""
    verdict, at = (
        finding_rows.find_verdict(connection, harvest),
        finding_rows.find_judged_at(connection, harvest),
    )
    if verdict is None or at is None:
        return {}
    return _detail(verdict, at, finding_rows.counts(connection, harvest))


def _detail(verdict: Verdict, at: datetime, counts: Mapping[str, int]) -> dict[str, object]:
    return {"checked_at": at.isoformat(), "verdict": verdict.answer.value, "rule": verdict.rule, **counts}


def _counted(
    findings: Iterable[Finding], ignored: frozenset[tuple[str, str]], counts: Counter[str]
) -> Iterator[Finding]:
    """The findings, counted by code unless they are ignored."""
    for finding in findings:
        marked = _mark_ignored(finding, ignored)
        if marked.action != Action.IGNORED.value:
            counts[marked.code] += 1
        yield marked


def _mark_ignored(finding: Finding, ignored: frozenset[tuple[str, str]]) -> Finding:
    if (finding.code, finding.subject[:500]) in ignored or (finding.code, "") in ignored:
        return replace(finding, severity=Severity.NOTE, action=Action.IGNORED.value)
    return finding


def _limits(archive: Archive) -> VerdictLimits:
    settings = archive.config.quality
    return VerdictLimits(
        missing_parts=settings.missing_parts,
        broken_links=settings.broken_links,
        truncated=settings.truncated,
        false_pages=settings.false_pages,
        failed_seeds=settings.failed_seeds,
        queue_may_be_left=settings.queue_may_be_left,
        differs=settings.differs,
    )


def ignore(archive: Archive, harvest: Harvest, code: str, subject: str, *, reason: str, by: str) -> None:
    """Ignore a finding for the harvest's target from the next check on; an empty subject means all of that
    code.
    """
    with archive.database.transaction() as connection:
        finding_rows.ignore(
            connection, harvest.target, code, subject, reason=reason, by=by, at=archive.clock()
        )
        message = f"{code} {subject}".strip()
        event = archive.event(
            "ignored",
            "target",
            str(harvest.target),
            message=message,
            detail={"reason": reason, **difference({}, {"ignored": message})},
            by=by,
        )
        append(connection, event)


def findings_file(archive: Archive, harvest: Harvest) -> Path:
    """The file of a harvest's findings in its working folder; it becomes part of the package."""
    return harvests.folder_of(archive, harvest) / "findings.jsonl.gz"


def _traces(
    archive: Archive,
    harvest: Harvest,
    patches: Sequence[Harvest],
    containers: Sequence[Container],
    files: ExitStack,
    pictured: set[str],
) -> HarvestTraces:
    is_import = harvest.kind is HarvestKind.IMPORT
    earlier = [] if harvest.kind is not HarvestKind.HARVEST else _earlier(archive, harvest)
    return HarvestTraces(
        harvest=harvest.id,
        seeds=() if is_import else tuple(harvest.seeds),
        records=_iter_facts(archive, containers, pictured),
        log=_log(archive, harvest, files),
        patch_logs=[log for patch in patches if (log := _log(archive, patch, files))],
        waiting=harvest.counts.get("waiting", 0),
        before=_captures(archive, earlier[0]) if earlier else (),
        before_name=earlier[0].id if earlier else "",
        false_before=_false_pages(archive, earlier[0]) if earlier else {},
        measures=_measures(archive, harvest) if earlier else None,
        trap_rules=TRAP_RULES,
        left_out=of_archive(archive.home).kinds,
        maze_kinds=(MAZES,),
        earlier=[_measures(archive, each) for each in earlier[:LAST_HARVESTS]],
    )


def _iter_facts(
    archive: Archive, containers: Sequence[Container], pictured: set[str]
) -> Iterator[RecordFacts | Finding]:
    """The facts of all records; the names of containers with screenshots are added to `pictured`."""
    for container in containers:
        for fact in derived_files.iter_facts(archive, container):
            if isinstance(fact, Screenshot):
                pictured.add(container.name)
            else:
                yield fact


def _log(archive: Archive, harvest: Harvest, files: ExitStack) -> Path | None:
    """The crawl log: in the working folder, or a copy from the package that exists while `files` is open."""
    path = harvests.folder_of(archive, harvest) / JSON_NAME
    if path.exists():
        return path
    if harvest.state is not HarvestState.KEPT:
        return None
    try:
        stream = package.open_file(
            archive.store, package.read(archive.store, package_content.id_of(harvest.id)), f"log/{JSON_NAME}"
        )
    except NotFound:
        return None
    with stream:
        copy = files.enter_context(tempfile.NamedTemporaryFile(prefix="webdepot-log-"))  # noqa: SIM115 - the stack closes it
        copyfileobj(stream, copy)
        copy.flush()
    return Path(copy.name)


def _earlier(archive: Archive, harvest: Harvest) -> list[Harvest]:
    """Harvests of the same site before this one, the latest first; single pages are not compared."""
    if harvest_rows.is_page(harvest):
        return []
    with archive.database.reading() as connection:
        every = harvest_rows.of_target(connection, harvest.target, HarvestKind.HARVEST)
    return [
        each
        for each in every
        if each.started_at < harvest.started_at and each.id != harvest.id and not harvest_rows.is_page(each)
    ]


def _captures(archive: Archive, harvest: Harvest) -> Iterator[Capture]:
    """The captures of a harvest and then of its patches, from their packages or from their containers."""
    for each in (harvest, *harvests.patches_of(archive, harvest)):
        if each.state is HarvestState.KEPT:
            yield from package.iter_captures(
                archive.store, package.read(archive.store, package_content.id_of(each.id))
            )
            continue
        for container in _containers(archive, each):
            yield from derived_files.iter_captures(archive, container)


def _false_pages(archive: Archive, harvest: Harvest) -> dict[str, tuple[str, str]]:
    """Addresses that returned an error page, a form or a CAPTCHA, with the code and the evidence."""
    with archive.database.reading() as connection:
        findings = [
            each
            for code in FALSE_PAGES
            for _, each in finding_rows.by_code(
                connection, harvest.id, code=f"quality.{code}", limit=MOST_FALSE
            )
        ]
    return {
        each.subject: (each.code.removeprefix("quality."), each.message.partition("“")[2].partition("”")[0])
        for each in findings
    }


def _measures(archive: Archive, harvest: Harvest) -> HarvestMeasures:
    """The figures of a harvest with its patches; the duration is that of the harvest alone, because the time
    of a patch says nothing about the site.
    """
    whole = (harvest, *harvests.patches_of(archive, harvest))
    with archive.database.reading() as connection:
        shares = report.shares(connection, [each.id for each in whole])
    types: dict[str, int] = {}
    for each in shares:
        types[each.mime] = types.get(each.mime, 0) + each.uris
    ended = harvest.ended_at or harvest.started_at
    return HarvestMeasures(
        documents=sum(each.counts.get("fetched", 0) for each in whole),
        size_bytes=sum(each.counts.get("bytes", 0) for each in whole),
        duration_s=(ended - harvest.started_at).total_seconds(),
        types=types,
    )


def _containers(archive: Archive, harvest: Harvest) -> list[Container]:
    with archive.database.reading() as connection:
        return locations.of_harvest(connection, harvest.id)


def iter_findings(archive: Archive, harvest: str) -> Iterator[Finding]:
    """All findings of a harvest, the most severe first; streams."""
    with archive.database.reading() as connection:
        yield from finding_rows.iter_by_severity(connection, HarvestId(harvest))


def findings_page(
    archive: Archive,
    harvest: Harvest,
    *,
    code: str = "",
    limit: int,
    offset: int = 0,
    past: tuple[Severity, int] | None = None,
) -> list[tuple[int, Finding]]:
    """One page of a harvest's findings with their numbers, the most severe first; only of `code` if given,
    and those after the finding with the severity and number `past`.
    """
    with archive.database.reading() as connection:
        return finding_rows.by_code(connection, harvest.id, code=code, limit=limit, offset=offset, past=past)
