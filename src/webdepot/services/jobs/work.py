"""What a worker does for each kind of job (`kinds.py`)."""

from collections.abc import Callable, Mapping
from typing import Any

from webdepot.archive import Archive
from webdepot.depot.bundle.submission import SubmissionState
from webdepot.errors import RemoteError
from webdepot.reasons import to_kept
from webdepot.services import pipeline
from webdepot.services.depot import audit, storage_places
from webdepot.services.exchange import oai_harvest, partner_ingest
from webdepot.services.harvest import crawl_test, harvests
from webdepot.services.index import indexer
from webdepot.services.intake import uploads
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.services.jobs import bulk, kinds
from webdepot.services.jobs.task import JobTask
from webdepot.services.review import patches, replay_pictures, reviews
from webdepot.services.selection import discovery

MOST_SKIPPED = 20
_AWAY_S = 5.0
"""How long to wait before a search server that did not answer is asked again."""
Result = Mapping[str, Any]


def _audit(archive: Archive, task: JobTask) -> Result:
    report = audit.audit(
        archive,
        older_than_days=0 if task.arguments["everything"] else None,
        watch=task.watch,
        begun_at=task.job.created_at,
    )
    return {
        "counts": {outcome.value: count for outcome, count in report.counts.items()},
        "alarms": list(report.alarms)[:MOST_SKIPPED],
    }


def _fill(archive: Archive, task: JobTask) -> Result:
    report = storage_places.fill(archive, place=task.job.subject, watch=task.watch)
    return {"copied": report.copied, "waiting": report.waiting}


def _import_object(archive: Archive, task: JobTask) -> Result:
    counts = dict.fromkeys(("imported", "known", "skipped"), 0)
    harvests_taken: list[str] = []
    skipped: list[list[str]] = []
    warnings: list[str] = []
    for done in uploads.take_object(
        archive, task.job.needs, collection=task.arguments["collection"], watch=task.watch
    ):
        receipt = done.receipt
        is_refused = receipt.state is SubmissionState.REFUSED
        counts["skipped" if is_refused else "known" if done.is_known else "imported"] += 1
        harvests_taken += [receipt.harvest] if receipt.harvest else []
        skipped += [[receipt.name, to_kept(reason)] for reason in receipt.reasons if is_refused]
        warnings += done.warnings
    return {
        "files": counts,
        "harvests": list(dict.fromkeys(harvests_taken))[:MOST_SKIPPED],
        "skipped": skipped[:MOST_SKIPPED],
        "warnings": warnings[:MOST_SKIPPED],
    }


def _import(archive: Archive, task: JobTask) -> Result:
    if task.arguments.get("is_object"):
        return _import_object(archive, task)

    def add_package(report: ArchiveReport) -> None:
        known = task.saved.setdefault("harvests", [])
        if report.harvest.id not in known:
            known.append(report.harvest.id)

    report = pipeline.import_files(
        archive,
        uploads.files_in(archive, task.job.needs),
        collection=task.arguments["collection"],
        watch=task.watch,
        on_package=add_package,
    )
    return {
        "files": {state.value: count for state, count in report.files.items()},
        "harvests": task.saved.get("harvests", []),
        "skipped": [
            [outcome.file.rpartition("/")[2], to_kept(outcome.reason)]
            for outcome in report.skipped[:MOST_SKIPPED]
        ],
    }


def _survey(archive: Archive, task: JobTask) -> Result:
    allow_private = archive.config.harvest.allow_private
    discovery.discover(
        archive, task.job.subject, allow_private=allow_private, by=task.job.by, watch=task.watch
    )
    return {}


def _partner(archive: Archive, task: JobTask) -> Result:
    oai_harvest.harvest(archive, task.job.subject, watch=task.watch)
    partner_ingest.ingest(archive, task.job.subject, watch=task.watch)
    return {}


def _crawl_test(archive: Archive, task: JobTask) -> Result:
    crawl_test.run(archive, crawl_test.get(archive, task.job.subject, is_waiting=True), watch=task.watch)
    return {}


def _accept(archive: Archive, task: JobTask) -> Result:
    reviews.accept(
        archive,
        task.job.subject,
        by=task.job.by,
        words=task.arguments["words"],
        watch=task.watch,
        since=task.job.created_at,
    )
    return {}


def _patch(archive: Archive, task: JobTask) -> Result:
    patches.patch(archive, task.job.subject, watch=task.watch, since=task.job.created_at)
    return {}


def _pictures(archive: Archive, task: JobTask) -> Result:
    task.check()
    return {"pictures": replay_pictures.take(archive, harvests.get(archive, task.job.subject))}


def _end_harvest(archive: Archive, task: JobTask) -> Result:
    pipeline.resume(archive, task.job.subject, watch=task.watch)
    return {}


def _index(archive: Archive, task: JobTask) -> Result:
    """Add what is missing in the indexes, as soon as the search server answers."""
    while True:
        try:
            done = indexer.update(archive, watch=task.watch)
        except RemoteError as error:
            if not error.retry:
                raise
        else:
            if not done.away:
                return {"pages": done.pages, "skipped": list(done.failed.items())[:MOST_SKIPPED]}
        task.wait(_AWAY_S)


RUNS: dict[str, Callable[[Archive, JobTask], Result]] = {
    kinds.BULK: bulk.run,
    kinds.AUDIT: _audit,
    kinds.FILL: _fill,
    kinds.IMPORT: _import,
    kinds.SURVEY: _survey,
    kinds.PARTNER: _partner,
    kinds.CRAWL_TEST: _crawl_test,
    kinds.ACCEPT: _accept,
    kinds.PATCH: _patch,
    kinds.PICTURES: _pictures,
    kinds.END_HARVEST: _end_harvest,
    kinds.INDEX: _index,
}
