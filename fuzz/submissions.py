"""What the program does with a file that somebody delivers, up to the decision whether to take it."""

from pathlib import Path

from webdepot.depot.bundle import submission, unpacking


def open_up(path: Path, folder: Path) -> None:
    """Unpack a file as the guarded process does, but here, where limits and coverage are those of the fuzzer.

    Nothing may be written outside of `folder`.
    """
    folder.mkdir()
    before = set(path.parent.iterdir())
    question = {"folder": str(folder), "largest_bytes": 16 << 20, "unpack": True}
    with path.open("rb") as stream:
        answer = unpacking._answer(stream, question)
    assert set(path.parent.iterdir()) == before, "files outside of the folder"
    if answer["kind"] and not answer["reasons"]:
        opened = submission.open_up(folder, folder)
        if not opened.reasons:
            submission.id_of(opened)
            submission.others_of(opened)
