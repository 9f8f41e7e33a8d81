"""Processes a submitted file as the program does, up to the decision whether to accept it."""

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from webdepot.container import loose_files
from webdepot.container.loose_files import LooseFile
from webdepot.container.reader import iter_records
from webdepot.depot.bundle import submission, unpacking
from webdepot.depot.bundle.submission import SubmissionKind
from webdepot.exchange import incoming
from webdepot.exchange.catalogue import EDITABLE
from webdepot.exchange.incoming import RefusedObject
from webdepot.exchange.metadata import descriptions
from webdepot.model import Finding
from webdepot.services.catalogue import records
from webdepot.services.intake import loose_objects, uof
from webdepot.services.intake.object_lists import ListedObject
from webdepot.text.file_names import is_path
from webdepot.times import from_iso
from webdepot.url import Url


def open_up(path: Path, folder: Path) -> None:
    """Unpack a file as the guarded process does, but in this process, so that the fuzzer's limits and
    coverage apply.

    Nothing may be written outside of `folder`.
    """
    folder.mkdir()
    before = set(path.parent.iterdir())
    question = {"folder": str(folder), "largest_bytes": 16 << 20, "most_members": 1_000, "unpack": True}
    with path.open("rb") as stream:
        answer = unpacking._answer(stream, question)
    assert set(path.parent.iterdir()) == before, "files outside of the folder"
    if answer["kind"] and not answer["reasons"]:
        opened = submission.open_up(folder, folder)
        if not opened.reasons:
            submission.id_of(opened)
            submission.others_of(opened)


def lay_out(data: bytes, folder: Path) -> None:
    """Write an input with several files: each begins with a line `--- PATH`. Paths that no file can have, and
    those that a file is in the way of, are left out.
    """
    for part in re.split(rb"^--- ", data, flags=re.MULTILINE)[1:]:
        line, _, content = part.partition(b"\n")
        name = line.decode(errors="replace")
        if is_path(name):
            with suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content.removesuffix(b"\n"))


def read_object(place: Path, scratch: Path, listed: ListedObject | None = None) -> None:
    """Read a folder as the object of a submission, up to its container and its catalogue records."""
    opened = submission.open_up(place, place)
    if opened.reasons:
        return
    submission.id_of(opened)
    is_uof = opened.kind is SubmissionKind.UOF and listed is None
    try:
        read = uof.read(opened) if is_uof else loose_objects.read(opened, listed)
    except RefusedObject:
        return
    named = replace(
        read.delivered, object=replace(read.delivered.object, persistent_identifier="urn:nbn:de:0001-a-17")
    )
    for url in incoming.seeds_of(named):
        Url(url)
    for level in named.levels:
        records.valid_fields(
            {key: value for key, value in descriptions.with_access(level.fields).items() if key in EDITABLE}
        )
    loose = [
        LooseFile(
            path=file.path,
            urls=incoming.urls_of(file, named, read.files),
            mime=file.facts.mime_type,
            date=from_iso(file.facts.file_date_time),
        )
        for file in read.files
    ]
    now = from_iso(named.object.master_creation_date)
    target = scratch / "files.warc"
    loose_files.write(target, loose, info={}, now=now)
    with target.open("rb") as stream:
        count = sum(1 for _ in iter_records(stream, target.name, on_finding=_fail))
    assert count == 1 + sum(len(each.urls) for each in loose), "the container has other records"


def _fail(finding: Finding) -> None:
    raise AssertionError(finding.message)
