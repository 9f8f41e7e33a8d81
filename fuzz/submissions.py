"""What the program does with a file that somebody delivers, up to the decision whether to take it."""

from pathlib import Path

from webdepot.depot.bundle import submission
from webdepot.depot.bundle.submission import SubmissionKind


def open_up(path: Path, folder: Path) -> None:
    """Nothing may be written outside of `folder`."""
    before = set(path.parent.iterdir())
    opened = submission.open_up(path, folder)
    assert set(path.parent.iterdir()) <= before | {folder}, "files outside of the folder"
    if not opened.reasons and opened.kind is not SubmissionKind.CONTAINER:
        submission.id_of(opened)
        submission.descriptions_of(opened)
