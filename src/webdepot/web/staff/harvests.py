"""Harvests in the portal: the list, one harvest live with its controls, and its reports. Without scripts,
live parts are updated by reloading the page.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from webdepot.accounts.roles import CURATORS
from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotPermitted
from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.harvest.order_file import OrderVerb
from webdepot.harvest.report.reports import ReportKind
from webdepot.model import HarvestKind, HarvestState
from webdepot.services.harvest import control, harvests, live_pictures
from webdepot.services.harvest.control import WatchedHarvest
from webdepot.services.jobs import job_control, kinds
from webdepot.services.review import ratings
from webdepot.services.schedule import plans
from webdepot.web import charts, confirmation
from webdepot.web.csv_response import csv_answer
from webdepot.web.forms import SHORT_FORM, find_number, page_number, read_form
from webdepot.web.jobs.portal_worker import error_of, start_job
from webdepot.web.problems import explain
from webdepot.web.site import language_of, may, name_of, of_app, render, site_of

ROWS = 200
STREAM_EVERY_S = 1.0
KEEP_ALIVE_S = 15.0
"""How often a comment is sent when nothing changes, so that no proxy closes the connection."""
LONGEST_STREAM_S = 600.0
MOST_STREAMS = 200
_STEERED = frozenset({HarvestState.RUNNING, HarvestState.STOPPED})
_WHOLE, _DECIMAL = re.compile(r"[0-9]{1,18}\Z"), re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?\Z")
_NUMBERS = (
    "limit_pages",
    "limit_documents",
    "limit_bytes",
    "limit_time_s",
    "limit_host_pages",
    "limit_host_documents",
    "limit_host_bytes",
    "delay_s",
    "workers",
)


class HarvestCommand(StrEnum):
    """What a curator can order a harvest to do."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    ABORT = "abort"
    LIMITS = "limits"
    ADD = "add"
    REMOVE = "remove"
    REJECT = "reject"


_STOPS_WITHIN = timedelta(minutes=2)
_FINAL = {
    HarvestCommand.ABORT: "abort",
    HarvestCommand.REMOVE: "remove",
    HarvestCommand.REJECT: "exclude",
}
"""Orders that cannot be undone, each with the name of its second question."""
_WITH_PATTERNS = (HarvestCommand.REMOVE, HarvestCommand.REJECT)


class LiveStreams:
    """Counts live pages that are open."""

    def __init__(self) -> None:
        self.count = 0


def show_list(request: Request) -> Response:
    """Harvests, the newest first, filtered and sorted by the database. Live figures are read only of those
    that run.
    """
    archive, query = site_of(request).archive, request.query_params
    state = HarvestState(query["state"]) if query.get("state") in set(HarvestState) else None
    kind = HarvestKind(query["kind"]) if query.get("kind") in set(HarvestKind) else None
    collection, target = query.get("collection", "").strip()[:60], find_number(query.get("target", "")) or 0
    wanted = HarvestFilter(
        state=state, kind=kind, collection=collection, target=target, page=page_number(request)
    )
    listing = harvests.list_page(archive, wanted)
    fields = {"state": state or "", "kind": kind or "", "collection": collection, "target": target or ""}
    return render(
        request,
        "harvests.html",
        harvests=[
            (harvest, control.watch(archive, harvest.id) if harvest.state is HarvestState.RUNNING else None)
            for harvest in listing.rows
        ],
        found=listing,
        fields=fields,
        states=list(HarvestState),
        kinds=list(HarvestKind),
        query=urlencode({name: value for name, value in fields.items() if value}),
    )


def show(request: Request) -> Response:
    return render(request, "harvest.html", **_values(request))


def show_live(request: Request) -> Response:
    """The live part alone, for the script; the header `X-Ended` says that it will no longer change."""
    values = _values(request)
    headers = {} if values["is_live"] else {"X-Ended": "1"}
    return render(request, "_harvest_live.html", headers=headers, **values)


async def stream_live(request: Request) -> Response:
    """The live part as server-sent events (https://html.spec.whatwg.org/#server-sent-events): whenever it
    changes, until the harvest ends, or begins after it has waited for its turn.

    A browser reconnects when the connection is lost; after ten minutes the server closes it, so that a
    session that has ended is noticed.
    """
    streams = of_app(request, LiveStreams)
    if streams.count >= MOST_STREAMS:
        return Response("Too many live pages are open.\n", status_code=503, media_type="text/plain")
    text, phase = await run_in_threadpool(_fragment, request)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        _stream(request, streams, text, phase), media_type="text/event-stream", headers=headers
    )


async def _stream(request: Request, streams: LiveStreams, text: str, phase: str) -> AsyncIterator[bytes]:
    streams.count += 1
    first_phase = phase
    try:
        sent, quiet_s, began = "", 0.0, time.monotonic()
        while time.monotonic() - began < LONGEST_STREAM_S:
            if text != sent:
                yield (
                    b"event: live\n"
                    + b"".join(b"data: " + line.encode() + b"\n" for line in text.splitlines())
                    + b"\n"
                )
                sent, quiet_s = text, 0.0
            if phase != first_phase or not phase:
                yield b"event: ended\ndata:\n\n"
                return
            if quiet_s >= KEEP_ALIVE_S:
                yield b": still here\n\n"
                quiet_s = 0.0
            await asyncio.sleep(STREAM_EVERY_S)
            quiet_s += STREAM_EVERY_S
            if await request.is_disconnected():
                return
            text, phase = await run_in_threadpool(_fragment, request)
    finally:
        streams.count -= 1


def _fragment(request: Request) -> tuple[str, str]:
    """The live part, and what the harvest does: running, waiting, or nothing."""
    values = _values(request)
    body = render(request, "_harvest_live.html", **values).body
    return bytes(body).decode(), "running" if values["watched"].is_running else "waiting" * values["is_live"]


async def order(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_order, request, form)


def send_picture(request: Request) -> Response:
    """One of the last screenshots of a running harvest, as a new and small image."""
    archive, harvest = site_of(request).archive, request.path_params["harvest"]
    data = live_pictures.thumbnail(archive, harvest, request.path_params["picture"])
    headers = {
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, max-age=3600",
    }
    return Response(data, media_type="image/jpeg", headers=headers)


def show_report(request: Request) -> Response:
    """A report as a page, or as CSV or JSON by its suffix."""
    archive, harvest = site_of(request).archive, request.path_params["harvest"]
    name, _, form = request.path_params["kind"].partition(".")
    if name not in set(ReportKind) or form not in ("", "csv", "json"):
        raise InputError(f"{name[:50]!r} is not a report. Use one of {', '.join(ReportKind)}.")
    kind = ReportKind(name)
    if not form:
        page = page_number(request)
        report = control.report(archive, harvest, kind, limit=ROWS, offset=(page - 1) * ROWS)
        watched = control.watch(archive, harvest)
        return render(
            request,
            "harvest_report.html",
            watched=watched,
            report=report,
            kinds=list(ReportKind),
            page=page,
            pages=-(-report.total // ROWS),
        )
    report = control.report(archive, harvest, kind)
    if form == "json":
        return JSONResponse({"harvest": harvest, "kind": kind.value, "rows": report.rows})
    return csv_answer(f"{harvest}-{kind.value}", report.columns, report.rows)


def _values(request: Request) -> dict[str, Any]:
    archive = site_of(request).archive
    watched = control.watch(archive, request.path_params["harvest"])
    may_steer = may(request, CURATORS) and watched.harvest.state in _STEERED
    has_log = watched.harvest.kind is HarvestKind.HARVEST
    recent = control.recent(archive, watched.harvest) if watched.is_running else ()
    numbers = watched.live
    pace = charts.of_pace(numbers.pace, numbers.elapsed_s, language_of(request)) if numbers else None
    waits = not watched.is_running and plans.find_waiting(archive, watched.harvest) is not None
    is_ending = _is_stopping(archive, watched) or (
        not watched.is_running and not waits and plans.is_ending(archive, watched.harvest)
    )
    return {
        "watched": watched,
        "recent": recent,
        "kinds": list(ReportKind) if has_log else [],
        "may_steer": may_steer and has_log,
        "numbers": _NUMBERS,
        "waits": waits,
        "is_ending": is_ending,
        "is_live": watched.is_running or waits or is_ending,
        "pace": pace,
        "pictures": live_pictures.last(archive, watched.harvest) if watched.is_running else (),
        "ratings": ratings.of_harvest(archive, watched.harvest.id),
        "wrong": "",
        "typed": {},
        "error": error_of(request, job_control.find(archive, kinds.END_HARVEST, watched.harvest.id)),
    }


def _is_stopping(archive: Archive, watched: WatchedHarvest) -> bool:
    """Whether the harvest still runs, but has been ordered to stop a moment ago."""
    last = watched.orders[-1] if watched.is_running and watched.orders else None
    return (
        last is not None
        and last.verb in (OrderVerb.STOP, OrderVerb.ABORT)
        and archive.clock() - last.at < _STOPS_WITHIN
    )


def _order(request: Request, form: Mapping[str, str]) -> Response:
    try:
        return _obey(request, form)
    except (InputError, Conflict, NotPermitted) as error:
        values = _values(request) | {"wrong": explain(request, error), "typed": form}
        return render(request, "harvest.html", status=error.http_status, **values)


def _obey(request: Request, form: Mapping[str, str]) -> Response:
    command = form.get("order", "")
    if command not in tuple(HarvestCommand):
        raise InputError(f"{command[:50]!r} is not a command to a harvest.")
    page = f"/harvests/{request.path_params['harvest']}"
    if command in _FINAL and (question := _ask(request, form, HarvestCommand(command), page)) is not None:
        return question
    obey(
        request,
        HarvestCommand(command),
        reason=form.get("reason", "").strip()[:500],
        changes=_changes(form) if command == HarvestCommand.LIMITS else {},
        urls=form.get("urls", "").split(),
        patterns=form.get("patterns", "").split(),
    )
    return RedirectResponse(page, status_code=303)


def _ask(request: Request, form: Mapping[str, str], command: HarvestCommand, page: str) -> Response | None:
    """The second question before an order that cannot be undone."""
    seeds = harvests.get(site_of(request).archive, request.path_params["harvest"]).seeds
    patterns = form.get("patterns", "").split()
    if command in _WITH_PATTERNS and not patterns:
        return None
    subject = patterns if command in _WITH_PATTERNS else seeds[:3]
    return confirmation.ask(request, form, _FINAL[command], back=page, subject=" ".join(subject))


def obey(
    request: Request,
    command: HarvestCommand,
    *,
    reason: str,
    changes: Mapping[str, object],
    urls: Sequence[str],
    patterns: Sequence[str],
) -> None:
    """Give an order to the harvest of a request, whether a process works on it or not."""
    archive, harvest, by = site_of(request).archive, request.path_params["harvest"], name_of(request)
    match command:
        case HarvestCommand.ABORT if not control.watch(archive, harvest).is_running:
            control.give_up(archive, harvest, by=by, reason=reason)
            # What it has fetched is still checked, deposited and indexed.
            start_job(request, kinds.END_HARVEST, harvest, needs=f"harvests/{harvest}")
        case HarvestCommand.RESUME if not control.watch(archive, harvest).is_running:
            plans.continue_harvest(archive, harvest, by=by)
        case HarvestCommand.LIMITS:
            control.change(archive, harvest, changes, by=by, reason=reason)
        case HarvestCommand.ADD:
            control.add(archive, harvest, urls, by=by, reason=reason)
        case HarvestCommand.REMOVE:
            control.remove(archive, harvest, patterns, by=by, reason=reason)
        case HarvestCommand.REJECT:
            control.reject(archive, harvest, patterns, by=by, reason=reason)
        case verb:
            control.give(archive, harvest, OrderVerb(verb.value), by=by, reason=reason)


def _changes(form: Mapping[str, str]) -> dict[str, object]:
    """The fields that were filled in, as numbers."""
    changes: dict[str, object] = {}
    for name in _NUMBERS:
        text = form.get(name, "").strip()
        if not text:
            continue
        form_of = _DECIMAL if name.endswith("_s") else _WHOLE
        if not form_of.match(text):
            raise InputError(f"{name}: {text[:30]!r} is not a number.")
        changes[name] = float(text) if name.endswith("_s") else int(text)
    return changes
