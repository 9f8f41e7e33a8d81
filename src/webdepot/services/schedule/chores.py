"""Periodic work besides harvests, which a scheduler does once an hour."""

from collections.abc import Callable, Mapping

from webdepot.archive import Archive
from webdepot.services.permission import deadlines, delivery


def process_letters(archive: Archive) -> None:
    """Process deadlines and reminders; then send queued letters, if a mail server is configured."""
    deadlines.process_deadlines(archive, portal_url=archive.config.web.portal_url)
    delivery.deliver_if_configured(archive)


CHORES: Mapping[str, Callable[[Archive], None]] = {"letters": process_letters}
