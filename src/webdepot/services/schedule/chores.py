"""Periodic work besides harvests, which a scheduler does once an hour."""

from collections.abc import Callable, Mapping
from datetime import timedelta

from webdepot.archive import Archive
from webdepot.engine import job_queue
from webdepot.services.permission import delivery, periodic_run

JOBS_KEPT_FOR = timedelta(days=90)


def process_letters(archive: Archive) -> None:
    """Process deadlines and reminders; then send queued letters, if a mail server is configured."""
    periodic_run.process_deadlines(archive, portal_url=archive.config.web.portal_url)
    delivery.deliver_if_configured(archive)


def forget_jobs(archive: Archive) -> None:
    """Remove jobs that ended long ago; the events of what they did stay."""
    with archive.database.transaction() as connection:
        job_queue.forget(connection, before=archive.clock() - JOBS_KEPT_FOR)


CHORES: Mapping[str, Callable[[Archive], None]] = {"letters": process_letters, "jobs": forget_jobs}
