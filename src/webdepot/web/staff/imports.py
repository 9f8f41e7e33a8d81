"""Import of WARC, ARC and WACZ files and of objects by upload, and how far each import is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.archive import Archive, ScratchPurpose
from webdepot.engine.job_queue import QueuedJob
from webdepot.errors import InputError
from webdepot.model import EVERYTHING
from webdepot.reasons import from_kept, said
from webdepot.services.intake import uploads
from webdepot.services.jobs import job_control, kinds
from webdepot.services.jobs.task import WATCHED
from webdepot.services.selection import targets
from webdepot.web.forms import receive_files, too_large
from webdepot.web.jobs.portal_worker import start_job
from webdepot.web.problems import explain
from webdepot.web.site import name_of, render, site_of

MOST_RUNS = 50
IMPORTED = ("containers", "object")
"""What the files of an upload are: WARC, ARC and WACZ files unless the form says otherwise."""
_SLACK_BYTES = 1 << 20
"""For the fields and borders of a form."""


def show(request: Request) -> Response:
    return _page(request)


def _page(
    request: Request, *, status: int = 200, wrong: str = "", given: Mapping[str, str] | None = None
) -> Response:
    archive = site_of(request).archive
    jobs = job_control.newest(archive, kinds.IMPORT, limit=MOST_RUNS)
    return render(
        request,
        "import.html",
        status=status,
        wrong=wrong,
        collection=(given or {}).get("collection") or EVERYTHING,
        is_object=_is_object(given or {}),
        most_bytes=archive.config.web.upload_bytes,
        jobs=jobs,
        running=[job.id for job in jobs if job.is_open],
        step_of=_step,
        share_of=_share,
        reason_kept=from_kept,
    )


def _step(progress: Mapping[str, Any]) -> str:
    """The step that an import is at."""
    return str(progress.get(WATCHED, {}).get("phase", "import"))


def _share(progress: Mapping[str, Any]) -> float:
    """How much of an import is done, from 0 to 1."""
    whole = progress.get(WATCHED, {}).get("whole") or {}
    return whole["done_bytes"] / whole["total_bytes"] if whole.get("total_bytes") else 0.0


async def upload(request: Request) -> Response:
    given: dict[str, str] = {}
    try:
        await receive(request, given)
    except InputError as error:
        wrong = explain(request, error)
        return await run_in_threadpool(_page, request, status=400, wrong=wrong, given=given)
    return RedirectResponse("/import", status_code=303)


async def receive(request: Request, given: dict[str, str]) -> QueuedJob:
    """Receive the files of a form; the job that imports them. Fields before the files come into `given`.
    InputError says what is wrong.
    """
    archive = site_of(request).archive

    def check(fields: dict[str, str]) -> None:
        given.update(fields)
        targets.check_collection(_collection(fields))

    size_bytes = _announced(request, archive)
    await run_in_threadpool(uploads.check_room, archive, size_bytes)
    with archive.scratch_folder(ScratchPurpose.UPLOAD) as folder:
        received = await receive_files(
            request,
            folder,
            most_bytes=archive.config.web.upload_bytes + _SLACK_BYTES,
            checked_name=lambda name: _checked_name(given, name),
            before_files=check,
        )
        if not received.files:
            raise InputError(said("no_file_chosen", "No file was chosen."))
        return await run_in_threadpool(_start, request, received.files, received.fields)


def _announced(request: Request, archive: Archive) -> int:
    """The size that the browser announces; InputError if it is too large."""
    most = archive.config.web.upload_bytes
    text = request.headers.get("content-length", "0")
    size_bytes = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
    if not most or size_bytes > most + _SLACK_BYTES:
        raise too_large(most)
    return size_bytes


def _collection(fields: Mapping[str, str]) -> str:
    return fields.get("collection", "").strip() or EVERYTHING


def _is_object(fields: Mapping[str, str]) -> bool:
    return fields.get("what") == IMPORTED[1]


def _checked_name(fields: Mapping[str, str], name: str) -> str:
    return uploads.checked_object_name(name) if _is_object(fields) else uploads.checked_name(name)


def _start(request: Request, files: Sequence[Path], fields: Mapping[str, str]) -> QueuedJob:
    collection = _collection(fields)
    archive, by = site_of(request).archive, name_of(request)
    place = uploads.keep_received(archive, files)
    try:
        kept = uploads.files_in(archive, place)
        arguments = {
            "collection": collection,
            "names": [file.name for file in files],
            "is_object": _is_object(fields),
        }
        return start_job(
            request,
            kinds.IMPORT,
            place,
            arguments,
            needs=place,
            note=lambda connection: uploads.note(connection, archive, kept, collection=collection, by=by),
        )
    except BaseException:
        uploads.remove(archive, place)
        raise
