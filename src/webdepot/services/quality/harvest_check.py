"""What came in: is the harvest whole, and what is every file? Both are kept with it and become part of its
package.

A harvest and its patches are checked as one. A kept harvest can be checked again (after a patch) and
identified again (with newer signatures): its package gets a further version, and what was said before stays
in the earlier ones.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from shutil import copyfileobj

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.container.http import HttpHead
from webdepot.depot import package, rows
from webdepot.errors import NotFound
from webdepot.formats import report, results, survey
from webdepot.formats.report import HarvestTable
from webdepot.formats.survey import SurveyTask
from webdepot.harvest import runs
from webdepot.harvest.report.log import JSON_NAME
from webdepot.index import entry
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
from webdepot.quality import checks, records, screenshots
from webdepot.quality import verdict as judging
from webdepot.quality.checks import HarvestTraces
from webdepot.quality.compare import Profile
from webdepot.quality.screenshots import Screenshot
from webdepot.quality.texts import Action
from webdepot.quality.verdict import FALSE_PAGES, VerdictLimits
from webdepot.reasons import said, to_told
from webdepot.services.harvest import harvests
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.url import Url

SHOWN_FINDINGS = 100
MOST_FALSE = 10_000
LAST_HARVESTS = 5
"""So many are the measure of what is usual."""
NOT_CHECKED = Verdict(
    answer=Answer.PASS,
    rule="not checked",
    reason=said("not_checked", "The quality of the harvest was not checked."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    verdict: Verdict
    findings: Sequence[Finding]
    """The gravest first, at most a hundred."""
    counts: Mapping[str, int]
    """All of them by code."""


def check(
    archive: Archive, harvest: Harvest, *, again: bool = False, watch: Watch = unwatched, by: str = ""
) -> Checked:
    """Look for what is missing, broken, false or cut short, and judge. A kept harvest is answered from what
    was found, unless `again`.
    """
    if harvest.state is not HarvestState.KEPT:
        harvests.folder_of(archive, harvest).mkdir(parents=True, exist_ok=True)
        _check_now(archive, harvest, findings_file(archive, harvest), watch, by=by)
    elif again:
        with tempfile.TemporaryDirectory(prefix="webdepot-check-") as folder:
            found = Path(folder) / "findings.jsonl.gz"
            event = _check_now(archive, harvest, found, watch, by=by)
            _extend_package(archive, harvest, found, event)
    return found_so_far(archive, harvest.id)


def found_so_far(archive: Archive, harvest: HarvestId) -> Checked:
    """What the last check said."""
    with archive.database.reading() as connection:
        verdict = records.find_verdict(connection, harvest)
        return Checked(
            verdict=NOT_CHECKED if verdict is None else verdict,
            findings=records.gravest(connection, harvest, SHOWN_FINDINGS),
            counts=records.counts(connection, harvest),
        )


def _check_now(archive: Archive, harvest: Harvest, found: Path, watch: Watch, *, by: str) -> Event:
    """Findings go to their file before the database is touched, so that a long check holds no lock."""
    patches = patches_of(archive, harvest)
    containers = [container for each in (harvest, *patches) for container in _containers(archive, each)]
    watch(Progress(phase=Phase.CHECK, done=0, total=len(containers)))
    with archive.database.reading() as connection:
        ignored = records.ignored(connection, harvest.target)
    with ExitStack() as files:
        traces = _traces(archive, harvest, patches, containers, files)
        rows.write_findings(found, (_unless_ignored(each, ignored) for each in checks.check(traces)))
    with archive.database.transaction() as connection, found.open("rb") as stream:
        before = _told(connection, harvest.id)
        counts = records.replace(connection, harvest.id, rows.read_findings(stream, where=str(found)))
        documents = (
            harvest.counts
            if harvest.kind is not HarvestKind.IMPORT
            else {"captures": harvest.counts.get("fetched", 0)}
        )
        verdict = judging.of(counts, documents, limits=_limits(archive))
        records.judge(connection, harvest.id, verdict, at=archive.clock())
        event = Event(
            at=archive.clock(),
            agent=by or archive.agent,
            action="checked",
            subject_kind="harvest",
            subject=harvest.id,
            outcome=Outcome.SUCCESS if verdict else Outcome.WARNING,
            message=verdict.reason,
            detail=difference(before, _told(connection, harvest.id)),
        )
        append(connection, event)
    return event


def note_screenshots(archive: Archive, harvest: Harvest) -> None:
    """Where screenshots stand in the containers, for review and comparison."""
    found: list[Screenshot] = []
    for container in _containers(archive, harvest):
        with archive.open_container(container.name) as stream:
            found += screenshots.iter_in(stream, container.name)
    with archive.database.transaction() as connection:
        screenshots.replace(connection, harvest.id, found)


def _told(connection: Connection, harvest: HarvestId) -> dict[str, object]:
    """What the last check said, for the record."""
    verdict, at = records.find_verdict(connection, harvest), records.find_judged_at(connection, harvest)
    if verdict is None or at is None:
        return {}
    return {
        "checked_at": at.isoformat(),
        "verdict": verdict.answer.value,
        "rule": verdict.rule,
        **records.counts(connection, harvest),
    }


def _unless_ignored(found: Finding, ignored: frozenset[tuple[str, str]]) -> Finding:
    if (found.code, found.subject[:500]) in ignored or (found.code, "") in ignored:
        return replace(found, severity=Severity.NOTE, action=Action.IGNORED.value)
    return found


def _limits(archive: Archive) -> VerdictLimits:
    given = archive.config.quality
    return VerdictLimits(
        missing_parts=given.missing_parts,
        broken_links=given.broken_links,
        truncated=given.truncated,
        false_pages=given.false_pages,
        failed_seeds=given.failed_seeds,
        queue_may_be_left=given.queue_may_be_left,
        differs=given.differs,
    )


def _extend_package(archive: Archive, harvest: Harvest, found: Path, event: Event) -> None:
    checked = found_so_far(archive, harvest.id)
    package.extend(
        archive.store,
        package.id_of(harvest.id),
        {package.FINDINGS: found},
        events=(event,),
        message=f"Harvest {harvest.id} checked again",
        agent=archive.agent,
        created=archive.clock(),
        told={
            "verdict": {**asdict(checked.verdict), **to_told(checked.verdict.reason)},
            "finding_counts": dict(checked.counts),
        },
    )


def ignore(archive: Archive, harvest: Harvest, code: str, subject: str, *, reason: str, by: str) -> None:
    """Do not tell of this again for the target; an empty subject means all findings of that code. It counts
    from the next check.
    """
    with archive.database.transaction() as connection:
        records.ignore(connection, harvest.target, code, subject, reason=reason, by=by, at=archive.clock())
        event = Event(
            at=archive.clock(),
            agent=by or archive.agent,
            action="ignored",
            subject_kind="target",
            subject=str(harvest.target),
            message=f"{code} {subject}".strip(),
            detail={"reason": reason, **difference({}, {"ignored": f"{code} {subject}".strip()})},
        )
        append(connection, event)


def patches_of(archive: Archive, harvest: Harvest) -> list[Harvest]:
    """The patches of a harvest that came to an end, the oldest first."""
    with archive.database.reading() as connection:
        found = runs.of_target(connection, harvest.target, HarvestKind.PATCH)
    return [each for each in reversed(found) if each.settings.get("patch_of") == harvest.id]


def identify(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> HarvestTable:
    """Identify and validate every payload, container by container; containers done before are not read again."""
    containers = _containers(archive, harvest)
    with archive.database.reading() as connection:
        done = results.surveyed(connection, harvest.id)
    waiting = [container for container in containers if container.name not in done]
    tasks = [
        _task(archive, container, rows_folder(archive, harvest), workers=_workers(archive, len(waiting)))
        for container in waiting
    ]
    _survey(archive, harvest, tasks, watch)
    with archive.database.reading() as connection:
        return report.of_harvest(connection, harvest.id)


def identify_again(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> HarvestTable | None:
    """A kept harvest with today's engine and signatures; None when they have said all they can.

    Rows of the new engine are added to those of the old ones, in the database as in a further version of the
    package.
    """
    engine = archive.identifier.engine
    containers = _containers(archive, harvest)
    with archive.database.reading() as connection:
        done = results.surveyed(connection, harvest.id, engine=engine)
    waiting = [container for container in containers if container.name not in done]
    if not waiting or harvest.state is not HarvestState.KEPT:
        return None
    with tempfile.TemporaryDirectory(prefix="webdepot-formats-") as folder:
        tasks = [
            _task(archive, container, Path(folder), workers=_workers(archive, len(waiting)))
            for container in waiting
        ]
        _survey(archive, harvest, tasks, watch)
        _extend_formats(archive, harvest, engine, tuple(sorted(Path(folder).glob("*.jsonl.gz"))))
    with archive.database.reading() as connection:
        return report.of_harvest(connection, harvest.id)


def _extend_formats(archive: Archive, harvest: Harvest, engine: str, new: tuple[Path, ...]) -> None:
    """Old rows and new ones together; gzip members join as they are."""
    identifier = package.id_of(harvest.id)
    with archive.database.reading() as connection:
        surveys = results.facts_of(connection, harvest.id)
    event = Event(
        at=archive.clock(),
        agent=archive.agent,
        action="identified",
        subject_kind="harvest",
        subject=harvest.id,
        message=engine,
    )
    with tempfile.NamedTemporaryFile(prefix="webdepot-formats-") as joined:
        with package.open_file(
            archive.store, package.read(archive.store, identifier), package.FORMATS
        ) as old:
            copyfileobj(old, joined)
        for path in new:
            with path.open("rb") as stream:
                copyfileobj(stream, joined)
        joined.flush()
        package.extend(
            archive.store,
            identifier,
            {package.FORMATS: Path(joined.name)},
            events=(event,),
            message=f"Harvest {harvest.id} identified again",
            agent=archive.agent,
            created=archive.clock(),
            told={"surveys": list(surveys)},
        )
    with archive.database.transaction() as connection:
        append(connection, event)


def _survey(archive: Archive, harvest: Harvest, tasks: Sequence[SurveyTask], watch: Watch) -> None:
    watch(Progress(phase=Phase.IDENTIFY, done=0, total=len(tasks)))
    failed = 0
    for number, outcome in enumerate(archive.engine.map(survey.run, tasks), start=1):
        if outcome.result is None:
            failed += 1
            _note_failure(archive, outcome.item.name, outcome.error)
        else:
            with archive.database.transaction() as connection:
                results.record(connection, harvest.id, outcome.result, at=archive.clock())
        watch(
            Progress(
                phase=Phase.IDENTIFY, done=number, total=len(tasks), errors=failed, note=outcome.item.name
            )
        )


def findings_file(archive: Archive, harvest: Harvest) -> Path:
    """Written before the database is touched, so that a long check holds no lock; later part of the package."""
    return harvests.folder_of(archive, harvest) / "findings.jsonl.gz"


def rows_folder(archive: Archive, harvest: Harvest) -> Path:
    """Where the rows of the survey wait for the package."""
    return harvests.folder_of(archive, harvest) / "formats"


def _traces(
    archive: Archive,
    harvest: Harvest,
    patches: Sequence[Harvest],
    containers: Sequence[Container],
    files: ExitStack,
) -> HarvestTraces:
    is_import = harvest.kind is HarvestKind.IMPORT
    earlier = [] if harvest.kind is not HarvestKind.HARVEST else _earlier(archive, harvest)
    return HarvestTraces(
        harvest=harvest.id,
        seeds=tuple(harvest.seeds),
        containers=[(container.name, archive.container_path(container.name)) for container in containers],
        log=None if is_import else _log(archive, harvest, files),
        patch_logs=[log for patch in patches if (log := _log(archive, patch, files))],
        waiting=harvest.counts.get("waiting", 0),
        extract=_extract if is_import else None,
        before=_captures(archive, earlier[0]) if earlier else (),
        before_name=earlier[0].id if earlier else "",
        false_before=_false_pages(archive, earlier[0]) if earlier else {},
        profile=_profile(archive, harvest) if earlier else None,
        earlier=[_profile(archive, each) for each in earlier[:LAST_HARVESTS]],
    )


def _log(archive: Archive, harvest: Harvest, files: ExitStack) -> Path | None:
    """The crawl log: in the working folder, or taken out of the package for as long as `files` is open."""
    path = harvests.folder_of(archive, harvest) / JSON_NAME
    if path.exists():
        return path
    if harvest.state is not HarvestState.KEPT:
        return None
    try:
        stream = package.open_file(
            archive.store, package.read(archive.store, package.id_of(harvest.id)), f"log/{JSON_NAME}"
        )
    except NotFound:
        return None
    with stream:
        copy = files.enter_context(tempfile.NamedTemporaryFile(prefix="webdepot-log-"))  # noqa: SIM115 - the stack closes it
        copyfileobj(stream, copy)
        copy.flush()
    return Path(copy.name)


def _extract(url: str, head: HttpHead, body: bytes) -> Iterator[tuple[str, str]]:
    """Links of a page whose container does not tell them. `body` has no coding left."""
    from webdepot.harvest.links import extract  # only for imports: a harvest has written down its links

    plain = tuple(
        each for each in head.headers if each[0].lower() not in ("content-encoding", "transfer-encoding")
    )
    found = extract.extract(Url(url), replace(head, headers=plain), BytesIO(body), extract.LinkLimits())
    return ((link, hop.value) for link, hop in found.links)


def _earlier(archive: Archive, harvest: Harvest) -> list[Harvest]:
    """Harvests of the same target before this one, the last first."""
    with archive.database.reading() as connection:
        found = runs.of_target(connection, harvest.target, HarvestKind.HARVEST)
    return [each for each in found if each.started_at < harvest.started_at and each.id != harvest.id]


def _captures(archive: Archive, harvest: Harvest) -> Iterator[Capture]:
    """What a harvest and then its patches brought, from their packages or from their containers."""
    for each in (harvest, *patches_of(archive, harvest)):
        if each.state is HarvestState.KEPT:
            yield from package.iter_captures(
                archive.store, package.read(archive.store, package.id_of(each.id))
            )
            continue
        for container in _containers(archive, each):
            yield from entry.of_container(
                archive.container_path(container.name), container.name, on_finding=lambda _: None
            )


def _false_pages(archive: Archive, harvest: Harvest) -> dict[str, tuple[str, str]]:
    """Addresses of a harvest that brought no right page, with code and the words that told it."""
    with archive.database.reading() as connection:
        found = [
            each
            for code in FALSE_PAGES
            for _, each in records.by_code(connection, harvest.id, code=f"quality.{code}", limit=MOST_FALSE)
        ]
    return {
        each.subject: (each.code.removeprefix("quality."), each.message.partition("“")[2].partition("”")[0])
        for each in found
    }


def _profile(archive: Archive, harvest: Harvest) -> Profile:
    """Numbers of a harvest with its patches, except for the time: when somebody patched it says nothing about
    the site.
    """
    whole = (harvest, *patches_of(archive, harvest))
    with archive.database.reading() as connection:
        shares = report.shares(connection, [each.id for each in whole])
    types: dict[str, int] = {}
    for each in shares:
        types[each.mime] = types.get(each.mime, 0) + each.uris
    ended = harvest.ended_at or harvest.started_at
    return Profile(
        documents=sum(each.counts.get("fetched", 0) for each in whole),
        size_bytes=sum(each.counts.get("bytes", 0) for each in whole),
        duration_s=(ended - harvest.started_at).total_seconds(),
        types=types,
    )


def _workers(archive: Archive, tasks: int) -> int:
    """A single container is looked at by all cores, many by one each."""
    cores = archive.config.index.workers or os.cpu_count() or 1
    return max(1, cores // max(1, min(cores, tasks)))


def _task(archive: Archive, container: Container, folder: Path, *, workers: int) -> SurveyTask:
    folder.mkdir(parents=True, exist_ok=True)
    return SurveyTask(
        path=archive.container_path(container.name),
        name=container.name,
        rows=folder / f"{container.name}.jsonl.gz",
        already=results.KnownResults(archive.database.url),
        temporary=folder,
        signatures=archive.signatures(),
        workers=workers,
    )


def _note_failure(archive: Archive, container: str, error: str) -> None:
    """One container that could not be surveyed stops no other; it is tried again next time."""
    event = Event(
        at=archive.clock(),
        agent=archive.agent,
        action="identified",
        subject_kind="container",
        subject=container,
        outcome=Outcome.FAILURE,
        message=error,
    )
    with archive.database.transaction() as connection:
        append(connection, event)


def _containers(archive: Archive, harvest: Harvest) -> list[Container]:
    with archive.database.reading() as connection:
        return shelf.of_harvest(connection, harvest.id)


def iter_findings(archive: Archive, harvest: str) -> Iterator[Finding]:
    """All findings of a harvest, the gravest first; streams."""
    with archive.database.reading() as connection:
        yield from records.iter_gravest(connection, HarvestId(harvest))


def findings_page(
    archive: Archive, harvest: Harvest, *, code: str = "", limit: int, offset: int = 0
) -> list[tuple[int, Finding]]:
    """Some findings of a harvest with their numbers, the gravest first; of one code if one is named."""
    with archive.database.reading() as connection:
        return records.by_code(connection, harvest.id, code=code, limit=limit, offset=offset)
