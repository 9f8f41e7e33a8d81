"""Versions of an address, and one version in its frame with the time bar above it."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.access import timeline
from webdepot.access.replay.headers import sendable
from webdepot.access.timeline import Bar
from webdepot.errors import Closed, InputError, NotFound
from webdepot.model import EVERYTHING, Capture
from webdepot.services.access import citation, lending, replay
from webdepot.services.access.lending import InUse
from webdepot.services.access.replay import Narrowed
from webdepot.url import UrlMatch, split_wildcard
from webdepot.web import charts
from webdepot.web.charts import DrawnBar
from webdepot.web.language import CODES
from webdepot.web.problems import heading, problem, words_for
from webdepot.web.replay import address, passes, still
from webdepot.web.replay.address import Address
from webdepot.web.site import (
    LANGUAGE_COOKIE,
    Face,
    here,
    language_of,
    local_path,
    person_of,
    reader_by_network,
    reader_of,
    render,
    site_of,
)

UNSANDBOXED_TYPES = frozenset({"application/pdf"})
"""Browsers show these in a viewer of their own, which a sandbox switches off. They hold no script of the
page's origin.
"""


def look_up(request: Request) -> Response:
    """The form: to the versions of what was typed; with a star a list of addresses, with a filter the
    narrowed list of versions.
    """
    collection = request.query_params.get("collection") or EVERYTHING
    typed = request.query_params.get("url", "")
    try:
        url = address.archived_url(typed.strip()) if typed.strip() else None
    except InputError as error:
        return problem(request, 400, words_for(request, error))
    if url is None or not address.COLLECTION.match(collection):
        return RedirectResponse("/", status_code=303)
    found = Address(collection=collection.lower(), timestamp="", modifier="*", url=url)
    if split_wildcard(typed)[1] is not UrlMatch.EXACT:
        return _addresses(request, collection.lower(), typed.strip())
    if any(request.query_params.get(name) for name in ("status", "type", "changed")):
        return _versions(request, found)
    return RedirectResponse(address.path_of(collection, f"{_year(request)}*", url), status_code=303)


def archived(request: Request) -> Response:
    """Everything of the form /{collection}/{timestamp}/{url}: all versions, or one in its frame."""
    request.state.is_archived = True
    found = address.find_address(
        request.scope.get("raw_path") or request.url.path.encode(), request.scope["query_string"]
    )
    if found is None:
        raise HTTPException(404)
    if found.modifier == "*":
        return _versions(request, found)
    if found.modifier:
        # Raw captures and machine answers stand on the replay face; old links keep working.
        return RedirectResponse(site_of(request).replay_url + _path(found), status_code=307)
    return _frame(request, found)


def banner(request: Request) -> Response:
    """The banner alone, for the script that follows the reader through links inside the frame."""
    request.state.is_archived = True
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    found = address.find_address(raw.removeprefix(b"/-/banner"), request.scope["query_string"])
    if found is None or found.modifier:
        raise HTTPException(404)
    try:
        place = _place(request, found)
    except (NotFound, Closed, InUse) as error:
        spoken, code = language_of(request), error.http_status
        title = spoken.texts["missing.heading"] if code == 404 else heading(spoken, code)
        return render(
            request,
            "banner_missing.html",
            status=code,
            code=code,
            heading=title,
            url=found.url,
            collection=found.collection,
        )
    headers = {
        "X-Archived-Path": address.path_of(found.collection, place.capture.timestamp, place.capture.url)
    }
    return render(request, "banner_only.html", headers=headers, **_frame_values(request, found, place))


def renew_seat(request: Request) -> Response:
    """The page is still open at this terminal (see `services/access/lending.py`); 423 when another reader has it by
    now.
    """
    found = _of_seat(request)
    archive = site_of(request).archive
    stamp = address.nearest_stamp(found.timestamp, archive.clock())
    capture = replay.find_closest(
        archive, found.url, stamp, collection=found.collection, reader=reader_of(request)
    )
    lending.hold(archive, capture, reader_of(request))
    return Response(status_code=204)


def leave_seat(request: Request) -> Response:
    lending.leave(site_of(request).archive, _of_seat(request).url, reader_of(request))
    return Response(status_code=204)


def _of_seat(request: Request) -> Address:
    request.state.is_archived = True
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    found = address.find_address(
        raw.removeprefix(b"/-/seat").removeprefix(b"/-/left"), request.scope["query_string"]
    )
    if found is None or found.modifier:
        raise HTTPException(404)
    return found


def _addresses(request: Request, collection: str, typed: str) -> Response:
    """What a star covers, a page at a time; each address leads to its versions."""
    after = request.query_params.get("after", "")
    listed = replay.list_addresses(
        site_of(request).archive, typed, reader=reader_of(request), collection=collection, after=after
    )
    following = ""
    if len(listed) >= replay.ADDRESSES_A_PAGE:
        following = "/versions?" + urlencode(
            {"url": typed, "collection": collection, "after": listed[-1].capture.key}
        )
    return render(
        request, "addresses.html", typed=typed, collection=collection, listed=listed, following=following
    )


def _narrowed(request: Request) -> Narrowed:
    """Filters of the form; on an archived address the query is the address's own."""
    given = {} if getattr(request.state, "is_archived", False) else request.query_params
    return Narrowed(
        status=given.get("status", "")[:3],
        mime=given.get("type", "").lower()[:100],
        changed_only=bool(given.get("changed")),
    )


def _year(request: Request) -> str:
    """The year that the form asks for, or none; on an archived address the query is the address's own."""
    asked = "" if getattr(request.state, "is_archived", False) else request.query_params.get("year", "")
    return asked if asked.isascii() and asked.isdigit() and len(asked) == 4 else ""


def _versions(request: Request, found: Address) -> Response:
    archive = site_of(request).archive
    if split_wildcard(found.url)[1] is not UrlMatch.EXACT:
        return RedirectResponse(
            "/versions?" + urlencode({"url": found.url, "collection": found.collection}), status_code=302
        )
    stamp = found.timestamp or _year(request)
    year, narrowed = int(stamp) if stamp else None, _narrowed(request)
    try:
        versions = replay.look_up(
            archive,
            found.url,
            reader=reader_of(request),
            collection=found.collection,
            year=year,
            narrowed=narrowed,
        )
    except NotFound as error:
        return _missing(request, found, error)
    return render(
        request,
        "versions.html",
        versions=versions,
        narrowed=narrowed,
        years=versions.timeline.years,
        months=timeline.months(versions.timeline, versions.year),
        collection=found.collection,
        is_cut=len(versions.captures) >= replay.MOST_LISTED,
        version_bars=_bars(request, found, versions.bars, versions.url, ""),
    )


def _frame(request: Request, found: Address) -> Response:
    try:
        place = _place(request, found)
    except NotFound as error:
        return _missing(request, found, error)
    where = address.path_of(found.collection, place.capture.timestamp, place.capture.url)
    site = site_of(request)
    if site.face is Face.PORTAL and site.frame_url != site.portal_url:
        needed = _pass_for(request, place.capture)
        return RedirectResponse(
            site.frame_url + needed + where if needed else _on_frame_face(request, where), status_code=302
        )
    if place.capture.timestamp != found.timestamp:
        return RedirectResponse(where, status_code=302)
    return render(request, "frame.html", status=_true_status(place), **_frame_values(request, found, place))


def enter(request: Request) -> Response:
    """Takes a pass (`passes.py`) and leads on; a pass that is not good is as if it were not there."""
    request.state.is_archived = True
    site, token = site_of(request), request.path_params["token"]
    response = RedirectResponse(local_path(here(request).removeprefix(f"/-/pass/{token}")), status_code=302)
    if passes.is_good(token, site.archive.clock()):
        secure = site.archive.config.web.secure_cookies
        response.set_cookie(
            passes.COOKIE, token, max_age=passes.LASTS_S, httponly=True, samesite="lax", secure=secure
        )
    return response


def _pass_for(request: Request, capture: Capture) -> str:
    """The first steps of a path to what this reader may see as staff and from no other place; empty where no
    pass is needed.
    """
    archive = site_of(request).archive
    if person_of(request) is None or replay.is_open_to(archive, capture, reader_by_network(request)):
        return ""
    return f"/-/pass/{passes.made(archive.clock())}"


def _true_status(place: replay.Place) -> int:
    """What machines that ask for the framed page are told: a version that was an error then is one still, and
    so is one we cannot read.
    """
    if place.failure is not None:
        return place.failure.http_status
    status = sendable(place.capture.status)
    return status if status >= 400 else 200


def _on_frame_face(request: Request, where: str) -> str:
    """The other host does not see the portal's cookies: a chosen language is told to it on the way."""
    chosen = request.cookies.get(LANGUAGE_COOKIE)
    frame_url = site_of(request).frame_url
    return (
        f"{frame_url}/-/language?{urlencode({'lang': chosen, 'to': where})}"
        if chosen in CODES
        else frame_url + where
    )


def _place(request: Request, found: Address) -> replay.Place:
    archive = site_of(request).archive
    stamp = address.nearest_stamp(found.timestamp, archive.clock())
    return replay.find_place(
        archive, found.url, stamp, collection=found.collection, reader=reader_of(request)
    )


def _frame_values(request: Request, found: Address, place: replay.Place) -> dict[str, Any]:
    site, capture = site_of(request), place.capture
    is_viewer = capture.mime in UNSANDBOXED_TYPES
    raw = site.replay_url + address.path_of(found.collection, capture.timestamp + "id_", capture.url)
    shown_at = site.portal_url + address.path_of(found.collection, capture.timestamp, capture.url)
    asked = {"url": capture.url, "at": capture.timestamp}
    needed = _pass_for(request, capture) if site.face is Face.PORTAL else ""
    start = (
        site.replay_url
        + needed
        + "/-/start"
        + address.path_of(found.collection, capture.timestamp + "mp_", capture.url)
    )
    if not capture.url.startswith(("http://", "https://")):
        # Files of works that are no web sites stand below a URN, which the replay worker cannot fetch.
        start = site.replay_url + address.path_of(
            found.collection, capture.timestamp + still.MODIFIER, capture.url
        )
    return {
        "place": place,
        "capture": capture,
        "collection": found.collection,
        "citation": citation.of_place(site.archive, place, address=shown_at),
        "cite_query": urlencode({**asked, "collection": found.collection}),
        "report_query": urlencode(asked),
        "raw_url": raw,
        "migrated": [
            (
                form.mime,
                site.replay_url
                + "/-/migrated"
                + address.path_of(found.collection, capture.timestamp, capture.url),
            )
            for form in replay.find_conversions(site.archive, capture)[:1]
        ],
        "frame_url": raw if is_viewer else start,
        "is_viewer": is_viewer,
        "version_bars": _bars(request, found, place.bars, capture.url, capture.timestamp),
    }


def _bars(request: Request, found: Address, bars: Sequence[Bar], url: str, current: str) -> list[DrawnBar]:
    return charts.of_versions(
        bars, collection=found.collection, url=url, current=current, spoken=language_of(request)
    )


def _missing(request: Request, found: Address, error: NotFound) -> Response:
    request.state.is_missing = True
    words = "" if isinstance(error, replay.NotKept) else str(error)
    near = replay.near_by(
        site_of(request).archive, found.url, reader=reader_of(request), collection=found.collection
    )
    title = language_of(request).texts["missing.heading"]
    return render(
        request,
        "missing.html",
        status=404,
        url=found.url,
        collection=found.collection,
        heading=title,
        words=words,
        near=near,
    )


def _path(found: Address) -> str:
    step = found.timestamp + found.modifier
    if found.modifier == "timemap":
        step = f"timemap/{found.form}/{found.timestamp}".rstrip("/")
    return address.path_of(found.collection, step, found.url)
