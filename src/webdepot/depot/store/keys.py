"""Keys of a store: paths that `file_names` allows."""

from webdepot.errors import InputError
from webdepot.text.file_names import LONGEST_PATH_BYTES, is_path
from webdepot.text.file_names import UNFINISHED as UNFINISHED
from webdepot.text.file_names import add_with_folders as add_with_folders


def is_key(key: str) -> bool:
    return is_path(key)


def steps_of(key: str) -> list[str]:
    """The steps of a key, from the root down; InputError if it is not a valid key."""
    if not is_key(key):
        raise InputError(
            f"{key[:300]!r} is not a valid name in the depot. "
            f"It must be a relative path of at most {LONGEST_PATH_BYTES} bytes, "
            "without '.', '..' or empty steps."
        )
    return key.split("/")
