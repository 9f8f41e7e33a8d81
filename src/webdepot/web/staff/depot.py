"""Pages of the depot for staff: its status, its packages, one package with its copies, events and files, and
the signed report; audits, new places and downloads.
"""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import accumulate

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from webdepot.accounts.roles import ADMINISTRATORS, CURATORS
from webdepot.archive import ScratchPurpose
from webdepot.engine.job_queue import QueuedJob
from webdepot.errors import ConfigError, Conflict, InputError, NotPermitted, RemoteError
from webdepot.services.catalogue import records
from webdepot.services.depot import audit, export, status, storage_places
from webdepot.services.depot.export import PackageForm
from webdepot.services.depot.status import DepotStatus
from webdepot.services.jobs import job_control, kinds
from webdepot.services.jobs.task import WATCHED
from webdepot.web.charts import DrawnBar
from webdepot.web.forms import SHORT_FORM, read_form
from webdepot.web.jobs.portal_worker import error_of, start_job
from webdepot.web.language.language import Language
from webdepot.web.problems import explain
from webdepot.web.site import language_of, may, name_of, render, site_of

PER_PAGE = 50
MOST_BARS = 36
MOST_VALUES = 6
"""How many sizes are shown above the bars, the last one always; more would not fit on a phone."""


DOWNLOADS = (PackageForm.WACZ, PackageForm.ZIP)


def show_overview(request: Request) -> Response:
    return _page(request)


def _page(
    request: Request, *, status_code: int = 200, wrong: str = "", typed: Mapping[str, str] | None = None
) -> Response:
    archive = site_of(request).archive
    report = status.status(archive)
    last = next(iter(job_control.newest(archive, kinds.AUDIT, kinds.FILL, limit=1)), None)
    return render(
        request,
        "depot.html",
        status=status_code,
        report=report,
        bars=_growth(report, language_of(request)),
        is_running=last is not None and last.is_open,
        progress=last.progress.get(WATCHED) if last else None,
        audited=last.result if last and "counts" in last.result else None,
        error=error_of(request, last),
        may_audit=may(request, CURATORS),
        may_add=may(request, ADMINISTRATORS),
        allowed=archive.config.depot.portal_places,
        wrong=wrong,
        typed=defaultdict(str, typed or {}),
    )


async def start_audit(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_start_audit, request, form)


def _start_audit(request: Request, form: Mapping[str, str]) -> Response:
    begin_audit(request, everything=form.get("which") == "all")
    return RedirectResponse("/depot#audit", status_code=303)


def begin_audit(request: Request, *, everything: bool) -> QueuedJob:
    """The job of a new audit, or of the one that is running."""
    archive, by = site_of(request).archive, name_of(request)
    return start_job(
        request,
        kinds.AUDIT,
        "",
        {"everything": everything},
        note=lambda connection: audit.note_request(connection, archive, by=by),
    )


async def add_place(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_add_place, request, form)


def _add_place(request: Request, form: Mapping[str, str]) -> Response:
    """Add a place, then copy every package to it in the background."""
    name, address = form.get("name", "").strip(), form.get("address", "").strip()
    try:
        begin_place(request, name, address, write_once=form.get("write_once") == "1")
    except (InputError, ConfigError, Conflict, NotPermitted, RemoteError) as error:
        wrong = explain(request, error)
        return _page(request, status_code=error.http_status, wrong=wrong, typed=form)
    except OSError as error:
        return _page(request, status_code=400, wrong=error.strerror or str(error), typed=form)
    return RedirectResponse("/depot#audit", status_code=303)


def begin_place(request: Request, name: str, address: str, *, write_once: bool) -> QueuedJob:
    """Add a place for copies; the job that copies every package to it. Several errors say why it cannot be
    used.
    """
    archive = site_of(request).archive
    storage_places.check_portal_place(archive, address)
    storage_places.add_place(archive, name, address, write_once=write_once, by=name_of(request))
    return start_job(request, kinds.FILL, name)


def show_packages(request: Request) -> Response:
    before = request.query_params.get("before", "")[:200]
    rows = status.list_packages(site_of(request).archive, limit=PER_PAGE + 1, before=before)
    following = rows[PER_PAGE - 1].package.id if len(rows) > PER_PAGE else ""
    return render(request, "packages.html", rows=rows[:PER_PAGE], following=following, is_first=not before)


def show_package(request: Request) -> Response:
    archive = site_of(request).archive
    seen = status.view(archive, request.path_params["identifier"])
    return render(
        request,
        "package.html",
        seen=seen,
        record=records.find_of_harvest(archive, seen.harvest.id),
        downloads=DOWNLOADS if may(request, ADMINISTRATORS) else (),
    )


def download(request: Request) -> Response:
    """A package as WACZ or ZIP, for administrators: it contains what access rules close."""
    archive, form = site_of(request).archive, request.path_params["form"]
    if form not in DOWNLOADS:
        raise HTTPException(404)
    package = export.check_room(archive, request.path_params["identifier"])
    with ExitStack() as stack:
        folder = stack.enter_context(archive.scratch_folder(ScratchPurpose.EXPORT))
        written = export.export(
            archive, package.id, PackageForm(form), folder / f"{package.id}.{form}", by=name_of(request)
        )
        kept = stack.pop_all()
    return FileResponse(
        written.path,
        media_type="application/octet-stream",
        filename=written.path.name,
        headers={"Cache-Control": "no-store"},
        background=BackgroundTask(kept.close),
    )


def send_report(request: Request) -> Response:
    """The signed fixity report, to download and to pass on to anyone who wants to check it."""
    data = status.fixity_report(site_of(request).archive)
    headers = {
        "Content-Disposition": 'attachment; filename="fixity-report.json"',
        "Cache-Control": "no-store",
    }
    return Response(data, media_type="application/json", headers=headers)


def _growth(report: DepotStatus, spoken: Language) -> list[DrawnBar]:
    """The size of the depot at the end of each month, from the first to the last, including months without
    new packages.
    """
    added = {month: size_bytes for month, _, size_bytes in report.growth}
    if not added:
        return []
    months = _months(min(added), max(added))
    sums = list(accumulate(added.get(month, 0) for month in months))
    shown = list(zip(months, sums, strict=True))[-MOST_BARS:]
    highest = max(size for _, size in shown) or 1
    every = -(-len(shown) // MOST_VALUES)
    # The year of the first bar is left out where that of the next January would overlap it.
    first_label = -1 if any(month.endswith("-01") for month, _ in shown[1:4]) else 0
    return [
        DrawnBar(
            label=month[:4] if month.endswith("-01") or at == first_label else "",
            words=spoken.say(
                "depot.growth_bar",
                month=f"{spoken.months[int(month[5:]) - 1]} {month[:4]}",
                size=spoken.size(size),
            ),
            height=size / highest,
            href="",
            is_current=False,
            value=spoken.size(size) if (len(shown) - 1 - at) % every == 0 else "",
        )
        for at, (month, size) in enumerate(shown)
    ]


def _months(first: str, last: str) -> list[str]:
    start, stop = (int(month[:4]) * 12 + int(month[5:]) - 1 for month in (first, last))
    return [f"{number // 12:04d}-{number % 12 + 1:02d}" for number in range(start, stop + 1)]
