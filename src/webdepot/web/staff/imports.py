"""Import of WARC, ARC and WACZ files by upload, and how far each import is."""

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.archive import Archive, ScratchPurpose
from webdepot.errors import InputError
from webdepot.model import EVERYTHING
from webdepot.reasons import said
from webdepot.services import pipeline
from webdepot.services.intake import uploads
from webdepot.services.intake.imports import ImportReport
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.services.progress import Progress
from webdepot.services.selection import targets
from webdepot.web.background import BackgroundRuns
from webdepot.web.forms import receive_files, too_large
from webdepot.web.problems import explain
from webdepot.web.site import name_of, of_app, render, site_of

MOST_RUNS = 50
_SLACK_BYTES = 1 << 20
"""For the fields and borders of a form."""


@dataclass(slots=True, kw_only=True)
class ImportRun:
    token: str
    names: Sequence[str]
    by: str
    at: datetime
    progress: Progress | None = None
    report: ImportReport | None = None
    harvests: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """How much of the whole is done, from 0 to 1."""
        whole = self.progress.whole if self.progress else None
        return whole.done_bytes / whole.total_bytes if whole and whole.total_bytes else 0.0

    def watch(self, progress: Progress) -> None:
        self.progress = progress

    def add_package(self, report: ArchiveReport) -> None:
        self.harvests.append(report.harvest.id)


class ImportRuns:
    """Imports of this server, the newest first."""

    def __init__(self) -> None:
        self.work = BackgroundRuns()
        self.known: deque[ImportRun] = deque(maxlen=MOST_RUNS)


def show(request: Request) -> Response:
    return _page(request)


def _page(request: Request, *, status: int = 200, wrong: str = "", collection: str = "") -> Response:
    runs = of_app(request, ImportRuns)
    running = runs.work.running()
    return render(
        request,
        "import.html",
        status=status,
        wrong=wrong,
        collection=collection or EVERYTHING,
        most_bytes=site_of(request).archive.config.web.upload_bytes,
        runs=list(runs.known),
        running=running,
        errors=runs.work.errors,
    )


async def upload(request: Request) -> Response:
    """Receive the files, then import them in the background."""
    archive = site_of(request).archive
    given: dict[str, str] = {}

    def check(fields: dict[str, str]) -> None:
        given.update(fields)
        targets.check_collection(_collection(fields))

    with ExitStack() as stack:
        try:
            size_bytes = _announced(request, archive)
            await run_in_threadpool(uploads.check_room, archive, size_bytes)
            folder = stack.enter_context(archive.scratch_folder(ScratchPurpose.UPLOAD))
            received = await receive_files(
                request,
                folder,
                most_bytes=archive.config.web.upload_bytes + _SLACK_BYTES,
                checked_name=uploads.checked_name,
                before_files=check,
            )
            if not received.files:
                raise InputError(said("no_file_chosen", "No file was chosen."))
        except InputError as error:
            wrong = explain(request, error)
            return await run_in_threadpool(
                _page, request, status=400, wrong=wrong, collection=given.get("collection", "")
            )
        await run_in_threadpool(
            _start, request, received.files, _collection(received.fields), stack.pop_all()
        )
    return RedirectResponse("/import", status_code=303)


def _announced(request: Request, archive: Archive) -> int:
    """The size that the browser announces; InputError if it is too large."""
    most = archive.config.web.upload_bytes
    text = request.headers.get("content-length", "0")
    size_bytes = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
    if not most or size_bytes > most + _SLACK_BYTES:
        raise too_large(most)
    return size_bytes


def _collection(fields: dict[str, str]) -> str:
    return fields.get("collection", "").strip() or EVERYTHING


def _start(request: Request, files: Sequence[Path], collection: str, folder: ExitStack) -> None:
    archive, by = site_of(request).archive, name_of(request)
    runs = of_app(request, ImportRuns)
    with folder:
        uploads.note(archive, files, collection=collection, by=by)
        run = ImportRun(
            token=files[0].parent.name, names=[file.name for file in files], by=by, at=archive.clock()
        )
        runs.known.appendleft(run)
        kept = folder.pop_all()
        runs.work.start(run.token, lambda: _import(archive, files, collection, run, kept))


def _import(
    archive: Archive, files: Sequence[Path], collection: str, run: ImportRun, folder: ExitStack
) -> None:
    with folder:
        run.report = pipeline.import_files(
            archive, files, collection=collection, watch=run.watch, on_package=run.add_package
        )
