"""Reading for requests that are answered in less than a millisecond."""

from contextlib import AbstractContextManager

from webdepot.archive import Archive


def at_one_moment(archive: Archive) -> AbstractContextManager[None]:
    """Within this context the archive checks only once whether another process has committed a change.

    Nothing may be written, and nothing may wait.
    """
    return archive.database.at_one_moment()
