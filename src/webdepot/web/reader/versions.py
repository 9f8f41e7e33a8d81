"""The versions of an address, and one version in its frame with the time bar above it."""

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.access.timeline import Bar
from webdepot.errors import Closed, InputError, NotFound
from webdepot.model import EVERYTHING, Capture
from webdepot.services.access import citation, gate, lending, lookup
from webdepot.services.access.lending import InUse
from webdepot.services.access.lookup import VersionFilter
from webdepot.services.access.replay import replay, replay_answer
from webdepot.services.access.replay.replay import VersionPlace
from webdepot.services.review import preview
from webdepot.url import UrlMatch, split_wildcard
from webdepot.web import charts
from webdepot.web.charts import DrawnBar
from webdepot.web.language.language import CODES
from webdepot.web.problems import explain, heading, problem
from webdepot.web.reader import asked_dates, page_pictures
from webdepot.web.replay import address, staff_passes
from webdepot.web.replay.address import ReplayAddress
from webdepot.web.replay.captures import STILL, find_bare
from webdepot.web.security import portal_policy
from webdepot.web.site import (
    LANGUAGE_COOKIE,
    WebOrigin,
    here,
    language_of,
    local_path,
    pass_cookie,
    reader_by_network,
    reader_of,
    render,
    site_of,
)

UNSANDBOXED_TYPES = frozenset({"application/pdf"})
"""Browsers show these in a built-in viewer, which a sandbox disables. Their scripts do not run in the origin
of the page.
"""


def look_up(request: Request) -> Response:
    """The lookup form: redirect to the versions of an address; for a wildcard a list of addresses, with a
    filter the filtered versions.
    """
    collection = request.query_params.get("collection") or EVERYTHING
    typed = request.query_params.get("url", "")
    try:
        url = address.archived_url(typed.strip()) if typed.strip() else None
    except InputError as error:
        return problem(request, 400, explain(request, error))
    if url is None or not address.COLLECTION.match(collection):
        return RedirectResponse("/", status_code=303)
    place = ReplayAddress(collection=collection.lower(), timestamp="", modifier="*", url=url)
    if split_wildcard(typed)[1] is not UrlMatch.EXACT:
        return _addresses(request, collection.lower(), typed.strip())
    if any(request.query_params.get(name) for name in ("status", "type", "changed")):
        return _versions(request, place)
    return RedirectResponse(address.path_of(collection, f"{_year(request)}*", url), status_code=303)


def show_archived(request: Request) -> Response:
    """Every path of the form /{collection}/{timestamp}/{url}: all versions, or one in its frame."""
    request.state.is_archived = True
    place = address.address_of(request)
    if place is None:
        raise HTTPException(404)
    if place.modifier == "*":
        return _versions(request, place)
    if place.modifier:
        # Raw captures and answers for machines are on the replay origin; old links keep working.
        return RedirectResponse(site_of(request).replay_url + _path(place), status_code=307)
    return _frame(request, place)


def show_banner(request: Request) -> Response:
    """The banner alone, for the script that follows the reader through links inside the frame."""
    request.state.is_archived = True
    asked = address.address_of(request, below="/-/banner")
    if asked is None or asked.modifier:
        raise HTTPException(404)
    try:
        place = _place(request, asked)
    except (NotFound, Closed, InUse) as error:
        spoken, code = language_of(request), error.http_status
        title = spoken.texts["missing.heading"] if code == 404 else heading(spoken, code)
        return render(
            request,
            "banner_missing.html",
            status=code,
            code=code,
            heading=title,
            url=asked.url,
            collection=asked.collection,
            start_url=site_of(request).hosts.url_for(asked.url)
            + "/-/start"
            + address.path_of(asked.collection, asked.timestamp + "mp_", asked.url),
            sign_url=_portal_for_pass(request, asked),
        )
    headers = {
        "X-Archived-Path": address.path_of(asked.collection, place.capture.timestamp, place.capture.url)
    }
    return render(request, "banner_only.html", headers=headers, **_frame_values(request, asked, place))


def renew_seat(request: Request) -> Response:
    """Note that the page is still open at this terminal (see `services/access/lending.py`); 423 when another
    reader has it now.
    """
    place = _address_of_seat(request, "/-/seat")
    archive = site_of(request).archive
    stamp = address.nearest_stamp(place.timestamp, archive.clock())
    reader = reader_of(request, place)
    capture = lookup.find_closest(archive, place.url, stamp, collection=place.collection, reader=reader)
    lending.hold(archive, capture, reader)
    return Response(status_code=204)


def leave_seat(request: Request) -> Response:
    """Note that the page was closed at this terminal."""
    place = _address_of_seat(request, "/-/left")
    lending.leave(site_of(request).archive, place.url, reader_of(request, place))
    return Response(status_code=204)


def _address_of_seat(request: Request, below: str) -> ReplayAddress:
    request.state.is_archived = True
    place = address.address_of(request, below=below)
    if place is None or place.modifier:
        raise HTTPException(404)
    return place


def _addresses(request: Request, collection: str, typed: str) -> Response:
    """A page of the addresses that match a wildcard, each with a link to its versions."""
    after = request.query_params.get("after", "")
    listed = lookup.list_addresses(
        site_of(request).archive, typed, reader=reader_of(request), collection=collection, after=after
    )
    following = ""
    if len(listed) >= lookup.ADDRESSES_A_PAGE:
        following = "/versions?" + urlencode(
            {"url": typed, "collection": collection, "after": listed[-1].capture.key}
        )
    return render(
        request, "addresses.html", typed=typed, collection=collection, listed=listed, following=following
    )


def _narrowed(request: Request) -> VersionFilter:
    """The filters of the form; the query of an archived address belongs to that address."""
    fields = {} if getattr(request.state, "is_archived", False) else request.query_params
    return VersionFilter(
        status=fields.get("status", "")[:3],
        mime=fields.get("type", "").lower()[:100],
        changed_only=bool(fields.get("changed")),
    )


def _year(request: Request) -> str:
    """The year that the form asks for, or none; the query of an archived address belongs to that address."""
    year = "" if getattr(request.state, "is_archived", False) else request.query_params.get("year", "")
    return year if year.isascii() and year.isdigit() and len(year) == 4 else ""


def _versions(request: Request, asked: ReplayAddress) -> Response:
    archive = site_of(request).archive
    if split_wildcard(asked.url)[1] is not UrlMatch.EXACT:
        return RedirectResponse(
            "/versions?" + urlencode({"url": asked.url, "collection": asked.collection}), status_code=302
        )
    stamp = asked.timestamp or _year(request)
    year, narrowed = int(stamp) if stamp else None, _narrowed(request)
    try:
        versions = lookup.look_up(
            archive,
            asked.url,
            reader=reader_of(request),
            collection=asked.collection,
            year=year,
            narrowed=narrowed,
        )
    except NotFound as error:
        return _missing(request, asked, error)
    return render(
        request,
        "versions.html",
        versions=versions,
        narrowed=narrowed,
        years=versions.timeline.years,
        months=versions.months,
        collection=asked.collection,
        is_cut=len(versions.captures) >= lookup.MOST_LISTED,
        version_bars=_bars(request, asked, versions.bars, versions.url, ""),
    )


def _frame(request: Request, asked: ReplayAddress) -> Response:
    site = site_of(request)
    try:
        place = _place(request, asked)
    except (NotFound, Closed) as error:
        if portal := _portal_for_pass(request, asked):
            return RedirectResponse(portal, status_code=302)
        if isinstance(error, Closed):
            raise
        return _missing(request, asked, error)
    where = address.path_of(asked.collection, place.capture.timestamp, place.capture.url)
    if site.origin is WebOrigin.PORTAL and not preview.find_harvest(asked.collection):
        page_pictures.make_missing(request, place.capture)
    if site.origin is WebOrigin.PORTAL and site.frame_url != site.portal_url:
        if asked.timestamp:  # the frame says which date was asked for
            where = address.path_of(asked.collection, asked.timestamp, place.capture.url)
        token = _pass_for(request, asked, place.capture)
        return RedirectResponse(
            f"{site.frame_url}/-/pass/{token}{where}" if token else _on_frame(request, where),
            status_code=302,
        )
    if place.capture.timestamp != asked.timestamp:
        redirect = RedirectResponse(where, status_code=302)
        return asked_dates.remember(request, redirect, asked.timestamp, place.capture.timestamp)
    status = replay_answer.framed_status(place)
    values = _frame_values(request, asked, place)
    policy = portal_policy(site.frame_url, framed_urls=[values["framed_url"]])
    headers = {"Content-Security-Policy": policy}
    response = render(request, "frame.html", status=status, headers=headers, **values)
    return asked_dates.forget(request, response)


def accept_pass(request: Request) -> Response:
    """Accept a pass (`staff_passes.py`) and redirect to the page; an invalid pass is ignored."""
    request.state.is_archived = True
    site, token = site_of(request), request.path_params["token"]
    response = RedirectResponse(local_path(here(request).removeprefix(f"/-/pass/{token}")), status_code=302)
    if staff_passes.is_valid(site.archive.database, token, site.archive.clock()):
        secure = site.archive.config.web.secure_cookies
        response.set_cookie(
            site.cookie_name(staff_passes.COOKIE),
            token,
            max_age=staff_passes.LASTS_S,
            httponly=True,
            samesite="lax",
            secure=secure,
        )
    return response


def _pass_for(request: Request, asked: ReplayAddress, capture: Capture) -> str:
    """A pass to a page that this person may see only when signed in; empty when none is needed. On the
    frame's origin it is the one that the portal gave.
    """
    site = site_of(request)
    is_preview = bool(preview.find_harvest(asked.collection))
    if not is_preview and gate.is_open(site.archive, capture, reader_by_network(request)):
        return ""
    if site.origin is WebOrigin.FRAME:
        return pass_cookie(request)
    point = reader_of(request).access_point
    return staff_passes.make(
        site.archive.database, site.archive.clock(), point, collection=asked.collection, url=capture.url
    )


def _portal_for_pass(request: Request, asked: ReplayAddress) -> str:
    """Where somebody who has a pass to another page can get one to this page; empty for everybody else."""
    site, token = site_of(request), pass_cookie(request)
    if site.origin is not WebOrigin.FRAME:
        return ""
    database, now = site.archive.database, site.archive.clock()
    if not staff_passes.is_valid(database, token, now) or staff_passes.find_point(
        database, token, asked, now
    ):
        return ""
    return site.portal_url + address.path_of(asked.collection, asked.timestamp, asked.url)


def _on_frame(request: Request, where: str) -> str:
    """The address of a path on the frame's origin. That host does not see the portal's cookies, so the chosen
    language is passed on.
    """
    site = site_of(request)
    chosen, frame_url = request.cookies.get(site.cookie_name(LANGUAGE_COOKIE)), site.frame_url
    return (
        f"{frame_url}/-/language?{urlencode({'lang': chosen, 'to': where})}"
        if chosen in CODES
        else frame_url + where
    )


def _place(request: Request, asked: ReplayAddress) -> VersionPlace:
    archive, reader = site_of(request).archive, reader_of(request, asked)
    stamp = address.nearest_stamp(asked.timestamp, archive.clock())
    with preview.opened(archive, asked.collection, reader) as shown:
        return replay.find_place(shown, asked.url, stamp, collection=asked.collection, reader=reader)


def _frame_values(request: Request, asked: ReplayAddress, place: VersionPlace) -> dict[str, Any]:
    site, capture = site_of(request), place.capture

    token = _pass_for(request, asked, capture)

    def path(modifier: str) -> str:
        return address.path_of(
            address.shelf_of(asked.collection, token), capture.timestamp + modifier, capture.url
        )

    cited_path = address.path_of(asked.collection, capture.timestamp, capture.url)
    is_viewer = capture.mime in UNSANDBOXED_TYPES
    framed = site.replay_url if is_viewer else site.hosts.url_for(capture.url)
    raw = site.replay_url + path("id_")
    cited = {"url": capture.url, "at": capture.timestamp}
    conversions = replay.find_conversions(site.archive, capture)[:1]
    return {
        "place": place,
        "capture": capture,
        "asked_words": asked_dates.words(request, capture.timestamp),
        "collection": asked.collection,
        "reviewed": preview.find_harvest(asked.collection),
        "citation": citation.of_place(site.archive, place, address=site.portal_url + cited_path),
        "cite_query": urlencode({**cited, "collection": asked.collection}),
        "report_query": urlencode(cited),
        "raw_url": raw,
        "migrated": [(form.mime, site.replay_url + "/-/migrated" + path("")) for form in conversions],
        "framed_url": framed,
        "frame_url": raw if is_viewer else framed + _start_path(capture, path),
        "is_viewer": is_viewer,
        "version_bars": _bars(request, asked, place.bars, capture.url, capture.timestamp),
    }


def _start_path(capture: Capture, path: Callable[[str], str]) -> str:
    """The first page inside the frame."""
    if not capture.url.startswith(("http://", "https://")):
        # Files of works that are not web sites have a URN, which the replay worker cannot fetch.
        return path(STILL)
    return "/-/start" + path("mp_")


def _bars(
    request: Request, asked: ReplayAddress, bars: Sequence[Bar], url: str, current: str
) -> list[DrawnBar]:
    return charts.of_versions(
        bars, collection=asked.collection, url=url, current=current, spoken=language_of(request)
    )


def _missing(request: Request, asked: ReplayAddress, error: NotFound) -> Response:
    request.state.is_missing = True
    near = lookup.find_near_by(
        site_of(request).archive, asked.url, reader=reader_of(request), collection=asked.collection
    )
    return render(
        request,
        "missing.html",
        status=404,
        url=asked.url,
        collection=asked.collection,
        heading=language_of(request).texts["missing.heading"],
        words="" if isinstance(error, lookup.NotKept) else explain(request, error),
        near=near,
        bare=find_bare(request, asked),
    )


def _path(asked: ReplayAddress) -> str:
    step = asked.timestamp + asked.modifier
    if asked.modifier == "timemap":
        step = f"timemap/{asked.form}/{asked.timestamp}".rstrip("/")
    return address.path_of(asked.collection, step, asked.url)
