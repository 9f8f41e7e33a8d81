"""What time asks for besides harvests: the chores that a scheduler does once an hour."""

from collections.abc import Callable, Mapping

from webdepot.archive import Archive
from webdepot.services.permission import consent, delivery


def tend_letters(archive: Archive) -> None:
    """Terms that are over, grounds past their day, reminders; then what waits to be sent, where a mail server
    is set.
    """
    consent.tend(archive, portal_url=archive.config.web.portal_url)
    delivery.deliver_if_configured(archive)


CHORES: Mapping[str, Callable[[Archive], None]] = {"letters": tend_letters}
