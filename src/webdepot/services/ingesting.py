"""What came in: is the harvest whole, and what is every file? Both are kept with it and become part of its package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.depot import rows
from webdepot.formats import report, results, survey
from webdepot.formats.report import HarvestTable
from webdepot.formats.survey import SurveyTask
from webdepot.harvest.log import JSON_NAME
from webdepot.model import Answer, Container, Finding, Harvest, HarvestKind, HarvestState, Verdict
from webdepot.provenance import Event, Outcome, append
from webdepot.quality import checks, records
from webdepot.quality import verdict as judging
from webdepot.quality.checks import HarvestTraces
from webdepot.services import harvesting
from webdepot.services.progress import Phase, Progress, Watch, unwatched

SHOWN_FINDINGS = 100
NOT_CHECKED = Verdict(answer=Answer.PASS, rule="not checked", reason="The quality of the harvest was not checked.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    verdict: Verdict
    findings: Sequence[Finding]
    """The gravest first, at most a hundred."""
    counts: Mapping[str, int]
    """All of them by code."""


def check(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> Checked:
    """Look for what is missing, broken or cut short, and judge. A kept harvest is answered from what was found then."""
    if harvest.state is not HarvestState.KEPT:
        containers = _containers(archive, harvest)
        watch(Progress(phase=Phase.CHECK, done=0, total=len(containers)))
        found = findings_file(archive, harvest)
        rows.write_findings(found, checks.check(_traces(archive, harvest, containers)))
        with archive.database.transaction() as connection, found.open("rb") as stream:
            counts = records.replace(connection, harvest.id, rows.read_findings(stream, where=str(found)))
            documents = harvest.counts if harvest.kind is HarvestKind.HARVEST else {"captures": harvest.counts.get("fetched", 0)}
            verdict = judging.of(counts, documents)
            records.judge(connection, harvest.id, verdict, at=archive.clock())
            outcome = Outcome.SUCCESS if verdict else Outcome.WARNING
            event = Event(
                at=archive.clock(),
                agent=archive.agent,
                action="checked",
                subject_kind="harvest",
                subject=harvest.id,
                outcome=outcome,
                message=verdict.reason,
                detail=dict(counts),
            )
            append(connection, event)
    with archive.database.reading() as connection:
        return Checked(
            verdict=records.find_verdict(connection, harvest.id) or NOT_CHECKED,
            findings=records.gravest(connection, harvest.id, SHOWN_FINDINGS),
            counts=records.counts(connection, harvest.id),
        )


def identify(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> HarvestTable:
    """Identify and validate every payload, container by container; containers done before are not read again."""
    containers = _containers(archive, harvest)
    with archive.database.reading() as connection:
        done = results.surveyed(connection, harvest.id)
    tasks = [_task(archive, harvest, container) for container in containers if container.name not in done]
    watch(Progress(phase=Phase.IDENTIFY, done=0, total=len(tasks)))
    failed = 0
    for number, outcome in enumerate(archive.engine.map(survey.run, tasks), start=1):
        if outcome.result is None:
            failed += 1
            _note_failure(archive, outcome.item.name, outcome.error)
        else:
            with archive.database.transaction() as connection:
                results.record(connection, harvest.id, outcome.result, at=archive.clock())
        watch(Progress(phase=Phase.IDENTIFY, done=number, total=len(tasks), errors=failed, note=outcome.item.name))
    with archive.database.reading() as connection:
        return report.of_harvest(connection, harvest.id)


def findings_file(archive: Archive, harvest: Harvest) -> Path:
    """Written before the database is touched, so that a long check holds no lock; later part of the package."""
    return harvesting.folder_of(archive, harvest) / "findings.jsonl.gz"


def rows_folder(archive: Archive, harvest: Harvest) -> Path:
    """Where the rows of the survey wait for the package."""
    return harvesting.folder_of(archive, harvest) / "formats"


def _traces(archive: Archive, harvest: Harvest, containers: Sequence[Container]) -> HarvestTraces:
    log = harvesting.folder_of(archive, harvest) / JSON_NAME
    return HarvestTraces(
        harvest=harvest.id,
        seeds=tuple(harvest.seeds),
        containers=[(container.name, archive.container_path(container.name)) for container in containers],
        log=log if harvest.kind is HarvestKind.HARVEST else None,
        waiting=harvest.counts.get("waiting", 0),
    )


def _task(archive: Archive, harvest: Harvest, container: Container) -> SurveyTask:
    folder = rows_folder(archive, harvest)
    folder.mkdir(parents=True, exist_ok=True)
    return SurveyTask(
        path=archive.container_path(container.name),
        name=container.name,
        rows=folder / f"{container.name}.jsonl.gz",
        already=results.Known(archive.database.url),
        temporary=folder,
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
