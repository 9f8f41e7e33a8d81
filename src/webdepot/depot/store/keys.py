"""Keys of a store: paths that `file_names` allows."""

from webdepot.errors import InputError
from webdepot.file_names import UNFINISHED as UNFINISHED
from webdepot.file_names import is_path


def is_key(key: str) -> bool:
    return is_path(key)


def steps_of(key: str) -> list[str]:
    """The steps of a key, from the root down; InputError if it is not a valid key."""
    if not is_key(key):
        raise InputError(
            f"{key[:300]!r} is not a valid name in the depot. "
            "It must be a relative path without '.', '..' or empty steps."
        )
    return key.split("/")
