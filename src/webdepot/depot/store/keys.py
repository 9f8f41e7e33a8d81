"""Names in a store: relative POSIX paths that mean the same in a folder, in a bucket and in a ZIP, and cannot
lead out of any of them.
"""

from webdepot.errors import InputError

UNFINISHED = ".part-"
"""Files of that name are being written; no listing shows them and nothing may be called so."""
LONGEST_STEP_BYTES = 255


def steps_of(key: str) -> list[str]:
    """The steps of a key; InputError when it is none."""
    steps = key.split("/")
    if any(_is_bad(step) for step in steps):
        raise InputError(
            f"{key[:300]!r} is no name in the depot: a relative path without '.', '..' or empty steps is needed."
        )
    return steps


def is_key(key: str) -> bool:
    return not any(_is_bad(step) for step in key.split("/"))


def _is_bad(step: str) -> bool:
    if step in ("", ".", "..") or step.startswith(UNFINISHED) or "\\" in step:
        return True
    return (
        any(ord(char) < 0x20 or 0xD800 <= ord(char) <= 0xDFFF for char in step)
        or len(step.encode()) > LONGEST_STEP_BYTES
    )
