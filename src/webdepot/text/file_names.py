"""Names and paths from others (packages, ZIP files, inventories, partners' records): whether a file may have
them.

A path is relative, with `/` between its steps, and means the same in a folder, in a bucket and in a ZIP file;
it cannot lead out. A name is one step that every system takes as a file name, Windows included.
"""

import re

UNFINISHED = ".part-"
"""Prefix of the names of files that are being written; no listing shows them, and no path may use it."""
LONGEST_STEP_BYTES = 255
LONGEST_PATH_BYTES = 2048
"""Linux allows 4096 bytes for a whole path, which begins with the folder of the store."""
MOST_STEPS = 200
"""Walking through deeper folders ends at the limit of Python for nested calls."""
LONGEST_NAME_BYTES = 200
"""Leaves room for the beginnings and endings that the program adds."""
RULE = (
    'It must be a plain file name of at most 200 bytes: without / \\ : * ? " < > |, control characters, '
    "a dot at its beginning or end, or spaces at its ends, and not a device name of Windows."
)
CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
"""For a character class: control characters, halves of surrogate pairs, and marks that turn the direction of
writing around, so that a name looks like another.
"""
_CONTROL = re.compile(f"[{CONTROLS}]")
_NOT_IN_NAMES = re.compile(r'[/\\:*?"<>|]')
_DEVICES = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?\Z", re.IGNORECASE
)
_DRIVE = re.compile(r"[A-Za-z]:")


def is_path(path: str) -> bool:
    """Whether it is a relative path that cannot lead out of its folder."""
    is_short = len(path.encode(errors="replace")) <= LONGEST_PATH_BYTES
    steps = path.split("/")
    return (
        is_short
        and len(steps) <= MOST_STEPS
        and not _DRIVE.match(path)
        and not any(_is_bad(step) for step in steps)
    )


def add_with_folders(path: str, paths: set[str]) -> None:
    """Add a path and the folders that it is in."""
    while path and path not in paths:
        paths.add(path)
        path = path.rpartition("/")[0]


def is_name(name: str) -> bool:
    """Whether it can be the name of a file on every system; see `RULE`."""
    return (
        not _is_bad(name)
        and len(name.encode()) <= LONGEST_NAME_BYTES
        and name == name.strip(" ")
        and not name.startswith(".")
        and not name.endswith(".")
        and not _NOT_IN_NAMES.search(name)
        and not _DEVICES.match(name)
    )


def _is_bad(step: str) -> bool:
    if step in ("", ".", "..") or step.startswith(UNFINISHED) or "\\" in step:
        return True
    return _CONTROL.search(step) is not None or len(step.encode()) > LONGEST_STEP_BYTES
