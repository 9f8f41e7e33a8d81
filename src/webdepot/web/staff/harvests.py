"""Harvests in the portal: the list, one harvest live with its orders, and its reports. Live parts work by
reload where scripts do not.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from webdepot.errors import InputError
from webdepot.harvest.control import OrderVerb
from webdepot.harvest.report.reports import Kind
from webdepot.harvest.runs import HarvestFilter
from webdepot.model import HarvestKind, HarvestState
from webdepot.services.harvest import control, harvests
from webdepot.web.sheets import csv_answer
from webdepot.web.sign_in import read_form
from webdepot.web.site import CURATORS, of_app, person_of, render, site_of
from webdepot.web.staff.schedule import number_of

ROWS = 200
STREAM_EVERY_S = 1.0
BREATH_S = 15.0
"""A word now and then, so that nothing between here and the browser takes the line for dead."""
LONGEST_STREAM_S = 600.0
MOST_STREAMS = 200
_STEERED = frozenset({HarvestState.RUNNING, HarvestState.STOPPED})
_NUMBERS = (
    "limit_pages",
    "limit_bytes",
    "limit_time_s",
    "limit_host_pages",
    "limit_host_bytes",
    "delay_s",
    "workers",
)


class Streams:
    """How many live pages are open."""

    def __init__(self) -> None:
        self.count = 0


def listed(request: Request) -> Response:
    """Harvests, the newest first; narrowed and sorted by the database. Only those that run are asked for
    their numbers of this moment.
    """
    archive, given = site_of(request).archive, request.query_params
    state = HarvestState(given["state"]) if given.get("state") in set(HarvestState) else None
    kind = HarvestKind(given["kind"]) if given.get("kind") in set(HarvestKind) else None
    collection, target = given.get("collection", "").strip()[:60], number_of(given.get("target", ""))
    asked = HarvestFilter(
        state=state,
        kind=kind,
        collection=collection,
        target=target,
        page=max(number_of(given.get("page", "")), 1),
    )
    found = harvests.list_page(archive, asked)
    fields = {"state": state or "", "kind": kind or "", "collection": collection, "target": target or ""}
    return render(
        request,
        "harvests.html",
        harvests=[
            (one, control.watch(archive, one.id) if one.state is HarvestState.RUNNING else None)
            for one in found.rows
        ],
        found=found,
        fields=fields,
        states=list(HarvestState),
        kinds=list(HarvestKind),
        query=urlencode({name: value for name, value in fields.items() if value}),
    )


def shown(request: Request) -> Response:
    return render(request, "harvest.html", **_values(request))


def live(request: Request) -> Response:
    """The live part alone, for the script; it says itself when there is nothing more to come."""
    values = _values(request)
    headers = {} if values["watched"].is_running else {"X-Ended": "1"}
    return render(request, "_harvest_live.html", headers=headers, **values)


async def events(request: Request) -> Response:
    """The live part as server-sent events (https://html.spec.whatwg.org/#server-sent-events): whenever it has
    changed, until it has ended.

    A browser that loses the line asks again by itself; after ten minutes it is asked to, so that a session
    that ended is noticed.
    """
    streams = of_app(request, Streams)
    if streams.count >= MOST_STREAMS:
        return Response("Too many live pages are open.\n", status_code=503, media_type="text/plain")
    text, is_running = await run_in_threadpool(_fragment, request)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        _stream(request, streams, text, is_running), media_type="text/event-stream", headers=headers
    )


async def _stream(request: Request, streams: Streams, text: str, is_running: bool) -> AsyncIterator[bytes]:
    streams.count += 1
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
            if not is_running:
                yield b"event: ended\ndata:\n\n"
                return
            if quiet_s >= BREATH_S:
                yield b": still here\n\n"
                quiet_s = 0.0
            await asyncio.sleep(STREAM_EVERY_S)
            quiet_s += STREAM_EVERY_S
            if await request.is_disconnected():
                return
            text, is_running = await run_in_threadpool(_fragment, request)
    finally:
        streams.count -= 1


def _fragment(request: Request) -> tuple[str, bool]:
    values = _values(request)
    body = render(request, "_harvest_live.html", **values).body
    return bytes(body).decode(), values["watched"].is_running


async def order(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_ordered, request, form)


def report(request: Request) -> Response:
    """A report as page, CSV or JSON by its ending."""
    archive, harvest = site_of(request).archive, request.path_params["harvest"]
    name, _, form = request.path_params["kind"].partition(".")
    if name not in set(Kind) or form not in ("", "csv", "json"):
        raise InputError(f"There is no report {name!r}. There are: {', '.join(Kind)}.")
    kind = Kind(name)
    if not form:
        page = max(
            int(text) if (text := request.query_params.get("page", "1")).isdigit() and len(text) < 9 else 1, 1
        )
        made = control.report(archive, harvest, kind, limit=ROWS, offset=(page - 1) * ROWS)
        watched = control.watch(archive, harvest)
        return render(
            request,
            "harvest_report.html",
            watched=watched,
            report=made,
            kinds=list(Kind),
            page=page,
            pages=-(-made.total // ROWS),
        )
    made = control.report(archive, harvest, kind)
    if form == "json":
        return JSONResponse({"harvest": harvest, "kind": kind.value, "rows": made.rows})
    return csv_answer(f"{harvest}-{kind.value}", made.columns, made.rows)


def _values(request: Request) -> dict[str, Any]:
    watched = control.watch(site_of(request).archive, request.path_params["harvest"])
    person = person_of(request)
    may_steer = person is not None and bool(person.roles & CURATORS) and watched.harvest.state in _STEERED
    has_log = watched.harvest.kind is HarvestKind.HARVEST
    recent = control.recent(site_of(request).archive, watched.harvest) if watched.is_running else ()
    return {
        "watched": watched,
        "recent": recent,
        "kinds": list(Kind) if has_log else [],
        "may_steer": may_steer and has_log,
        "numbers": _NUMBERS,
    }


def _ordered(request: Request, form: Mapping[str, str]) -> Response:
    archive, harvest = site_of(request).archive, request.path_params["harvest"]
    person = person_of(request)
    by, reason = person.name if person else "", form.get("reason", "").strip()[:500]
    match form.get("order", ""):
        case "pause" | "resume" | "stop" | "abort" as verb:
            control.give(archive, harvest, OrderVerb(verb), by=by, reason=reason)
        case "limits":
            control.change(archive, harvest, _changes(form), by=by, reason=reason)
        case "add":
            control.add(archive, harvest, form.get("urls", "").split(), by=by, reason=reason)
        case "remove":
            control.remove(archive, harvest, form.get("patterns", "").split(), by=by, reason=reason)
        case "reject":
            control.reject(archive, harvest, form.get("patterns", "").split(), by=by, reason=reason)
        case other:
            raise InputError(f"{other[:50]!r} is no order.")
    return RedirectResponse(f"/harvests/{harvest}", status_code=303)


def _changes(form: Mapping[str, str]) -> dict[str, object]:
    """Fields that were filled in, as numbers."""
    changes: dict[str, object] = {}
    for name in _NUMBERS:
        text = form.get(name, "").strip()
        if not text:
            continue
        try:
            changes[name] = float(text) if name.endswith("_s") else int(text)
        except ValueError:
            raise InputError(f"{name}: {text[:30]!r} is no number.") from None
    return changes
