"""Files that staff upload in the portal: checked names, a folder to receive them, and an event that says who
uploaded what. WARC, ARC and WACZ files are imported as by `webdepot import`, an object (a bag, a thesis with
its record) as by `webdepot package import`.

    HOME/uploads/NAME/     the files of one upload, until they are imported
"""

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlalchemy import Connection

from webdepot import durable
from webdepot.archive import Archive, ScratchPurpose
from webdepot.errors import InputError
from webdepot.provenance import append, difference
from webdepot.reasons import said
from webdepot.services.intake import submissions
from webdepot.services.intake.sources import ENDINGS
from webdepot.services.intake.submissions import ReceivedSubmission
from webdepot.services.progress import Watch
from webdepot.text.file_names import is_name

FOLDER = "uploads"
_COPIES = 2
"""An uploaded file is copied into its harvest, and deposited, before it is removed."""


def checked_name(name: str) -> str:
    """The name of an uploaded file without folders; InputError unless it can be imported."""
    plain = name.replace("\\", "/").rpartition("/")[2]
    if not plain.lower().endswith(ENDINGS):
        text = "{name} is not a WARC, ARC or WACZ file. Its name must end in one of: {endings}."
        raise InputError(said("not_a_container", text, name=repr(plain[:100]), endings=", ".join(ENDINGS)))
    return checked_object_name(plain)


def checked_object_name(name: str) -> str:
    """The name of an uploaded file of an object; InputError unless a file can have it."""
    plain = name.replace("\\", "/").rpartition("/")[2]
    if not is_name(plain):
        text = "{name} cannot be the name of a file in the archive. Rename it."
        raise InputError(said("not_a_file_name", text, name=repr(plain[:100])))
    return plain


def take_object(
    archive: Archive, place: str, *, collection: str, watch: Watch
) -> Iterator[ReceivedSubmission]:
    """Take in the files of an upload as one object, or as those of a list or storage root. Several files are
    one object, named like the first that is not a record, unless one of them is a list of objects.
    """
    files = files_in(archive, place)
    if len(files) == 1:
        yield from submissions.receive_each(archive, files[0], collection=collection, watch=watch)
        return
    first = next((file for file in files if not file.name.lower().endswith(".xml")), files[0])
    with archive.scratch_folder(ScratchPurpose.UPLOAD) as folder:
        top = folder / (first.stem or first.name)
        top.mkdir()
        for file in files:
            os.link(file, top / file.name)
        yield from submissions.receive_folder(archive, top, collection=collection, watch=watch)


def check_room(archive: Archive, size_bytes: int) -> None:
    """InputError if the disk has no room for an upload of this size and its copies."""
    free_bytes = shutil.disk_usage(archive.home).free
    if size_bytes * (_COPIES + 1) > free_bytes:
        text = "There is not enough room for {size} MB and its copies: {free} MB are free."
        raise InputError(
            said("no_room_for_upload", text, size=size_bytes // 1_000_000, free=free_bytes // 1_000_000)
        )


def keep_received(archive: Archive, files: Sequence[Path]) -> str:
    """Move received files to where they wait for their import; returns the folder, below the home."""
    place = f"{FOLDER}/{secrets.token_hex(8)}"
    durable.make_folders(archive.home / place)
    for file in files:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
        file.rename(archive.home / place / file.name)
    durable.sync_folder(archive.home / place)
    return place


def files_in(archive: Archive, place: str) -> list[Path]:
    """The files of an upload that waits for its import."""
    return sorted((archive.home / place).iterdir())


def remove(archive: Archive, place: str) -> None:
    """Remove the files of an upload when they are no longer needed."""
    if place.startswith(f"{FOLDER}/") and ".." not in place:
        shutil.rmtree(archive.home / place, ignore_errors=True)


def note(
    connection: Connection, archive: Archive, files: Sequence[Path], *, collection: str, by: str
) -> None:
    """Record who uploaded which files."""
    names = [file.name for file in files]
    size_bytes = sum(file.stat().st_size for file in files)
    detail = difference({}, {"files": names, "size_bytes": size_bytes, "collection": collection})
    event = archive.event("uploaded", "archive", names[0], by=by, message=", ".join(names), detail=detail)
    append(connection, event)
