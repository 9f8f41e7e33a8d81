"""Keys of a store: relative POSIX paths that mean the same in a folder, in a bucket and in a ZIP file, and
cannot point outside of it.
"""

from webdepot.errors import InputError

UNFINISHED = ".part-"
"""Prefix of the names of files that are being written; no listing shows them, and no key may use it."""
LONGEST_STEP_BYTES = 255
LONGEST_BYTES = 2048
"""Linux allows 4096 bytes for a whole path, which begins with the folder of the store."""


def steps_of(key: str) -> list[str]:
    """The steps of a key, from the root down; InputError if it is not a valid key."""
    if not is_key(key):
        raise InputError(
            f"{key[:300]!r} is not a valid name in the depot. "
            f"It must be a relative path of at most {LONGEST_BYTES} bytes, without '.', '..' or empty steps."
        )
    return key.split("/")


def is_key(key: str) -> bool:
    is_short = len(key.encode(errors="replace")) <= LONGEST_BYTES
    return is_short and not any(_is_bad(step) for step in key.split("/"))


def _is_bad(step: str) -> bool:
    if step in ("", ".", "..") or step.startswith(UNFINISHED) or "\\" in step:
        return True
    return (
        any(ord(char) < 0x20 or 0xD800 <= ord(char) <= 0xDFFF for char in step)
        or len(step.encode()) > LONGEST_STEP_BYTES
    )
