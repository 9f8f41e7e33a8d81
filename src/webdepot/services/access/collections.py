"""Names of the collections that readers choose from."""

from webdepot.archive import Archive
from webdepot.harvest import runs
from webdepot.model import EVERYTHING


def names(archive: Archive) -> list[str]:
    """Names of all collections, for forms. Cached, since every page has one."""
    return [
        name for name in archive.database.remembered("collections", runs.collections) if name != EVERYTHING
    ]
