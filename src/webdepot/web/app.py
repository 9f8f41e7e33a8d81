"""The applications of the web server: the portal, the frame around archived pages, replay, and the proxy.

All routes are in the tables here. A route parses the request, calls a service and renders the result. The
roles that may call it are a column of the table and are checked in one place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from webdepot.access.replay.headers import WORKER_POLICY
from webdepot.accounts import STAFF, Role
from webdepot.archive import Archive
from webdepot.errors import ConfigError
from webdepot.services.access.statistics import Counter
from webdepot.web import sign_in, sign_in_oidc
from webdepot.web.api import cdx, oai, openapi
from webdepot.web.api import search as search_api
from webdepot.web.problems import HANDLERS, problem
from webdepot.web.quick import QuickAnswers
from webdepot.web.reader import catalogue, citation, comparison, home, images, public_forms, search, versions
from webdepot.web.replay import proxy, raw
from webdepot.web.replay.authority import Authority
from webdepot.web.security import OriginGuard, PolicyHeaders, portal_headers, replay_headers
from webdepot.web.site import (
    ADMINISTRATORS,
    CURATORS,
    PARTNERS,
    REVIEWERS,
    SIGNED_IN,
    Site,
    WebOrigin,
    has_key,
    here,
    language_of,
    person_of,
)
from webdepot.web.staff import (
    audit,
    cases,
    criteria,
    dashboard,
    depot,
    formats,
    harvests,
    letters,
    organisations,
    partners,
    profiles,
    quality,
    review,
    schedule,
    statistics,
    status,
    targets,
    users,
)
from webdepot.web.usage import UsageCounting

Endpoint = Callable[[Request], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRow:
    """A row of the route table."""

    path: str
    endpoint: Endpoint
    methods: tuple[str, ...] = ("GET",)
    roles: frozenset[Role] = field(default_factory=frozenset)
    """A person with any of these may call it; empty means everybody."""


PORTAL_ROUTES = (
    RouteRow(path="/", endpoint=home.home),
    RouteRow(path="/search", endpoint=search.search),
    RouteRow(path="/search/why", endpoint=search.why),
    RouteRow(path="/search/trend", endpoint=search.trend),
    RouteRow(path="/search/export", endpoint=search.export),
    RouteRow(path="/search/images", endpoint=images.show),
    RouteRow(path="/search.atom", endpoint=search_api.feed),
    RouteRow(path="/searches", endpoint=search_api.saved_list, roles=SIGNED_IN),
    RouteRow(path="/searches", endpoint=search_api.save, methods=("POST",), roles=SIGNED_IN),
    RouteRow(path="/searches/{token}.atom", endpoint=search_api.saved_feed),
    RouteRow(path="/api/search", endpoint=search_api.as_json),
    RouteRow(path="/api/suggest", endpoint=search_api.suggest),
    RouteRow(path="/api/images", endpoint=images.as_json),
    RouteRow(path="/api/trend", endpoint=search_api.trend),
    RouteRow(path="/api/openapi.json", endpoint=openapi.send_document),
    RouteRow(path="/opensearch.xml", endpoint=search_api.opensearch),
    RouteRow(path="/versions", endpoint=versions.look_up),
    RouteRow(path="/oai", endpoint=oai.answer, methods=("GET", "POST")),
    RouteRow(path="/urn/{urn:path}", endpoint=oai.resolve),
    RouteRow(path="/title/{key}", endpoint=oai.show_title),
    RouteRow(path="/title/{key}/{form}", endpoint=catalogue.export),
    RouteRow(path="/catalogue", endpoint=catalogue.show_list),
    RouteRow(path="/transfer/{key}.zip", endpoint=oai.send_transfer),
    RouteRow(path="/cite", endpoint=citation.cite),
    RouteRow(path="/compare", endpoint=comparison.compare),
    RouteRow(path="/compare/picture", endpoint=comparison.send_picture),
    RouteRow(path="/about", endpoint=home.about),
    RouteRow(path="/help", endpoint=home.help_page),
    RouteRow(path="/sign-in", endpoint=sign_in.sign_in_form),
    RouteRow(path="/sign-in", endpoint=sign_in.sign_in, methods=("POST",)),
    RouteRow(path="/sign-out", endpoint=sign_in.sign_out, methods=("POST",)),
    RouteRow(path="/sign-in/oidc", endpoint=sign_in_oidc.begin),
    RouteRow(path="/sign-in/oidc/back", endpoint=sign_in_oidc.back),
    RouteRow(path="/account", endpoint=users.show_own, roles=SIGNED_IN),
    RouteRow(path="/account/password", endpoint=users.change_password, methods=("POST",), roles=SIGNED_IN),
    RouteRow(path="/account/sessions", endpoint=users.end_own_session, methods=("POST",), roles=SIGNED_IN),
    RouteRow(path="/account/keys", endpoint=users.change_own_keys, methods=("POST",), roles=SIGNED_IN),
    RouteRow(path="/users", endpoint=users.show_list, roles=ADMINISTRATORS),
    RouteRow(path="/users", endpoint=users.add, methods=("POST",), roles=ADMINISTRATORS),
    RouteRow(path="/users/{name}", endpoint=users.show, roles=ADMINISTRATORS),
    RouteRow(path="/users/{name}", endpoint=users.change, methods=("POST",), roles=ADMINISTRATORS),
    RouteRow(path="/audit", endpoint=audit.show_list, roles=STAFF),
    RouteRow(path="/audit.csv", endpoint=audit.as_csv, roles=STAFF),
    RouteRow(path="/status", endpoint=status.show, roles=STAFF),
    RouteRow(path="/statistics", endpoint=statistics.show, roles=STAFF),
    RouteRow(path="/statistics.csv", endpoint=statistics.as_csv, roles=STAFF),
    RouteRow(path="/depot", endpoint=depot.show_overview, roles=STAFF),
    RouteRow(path="/depot/packages", endpoint=depot.show_packages, roles=STAFF),
    RouteRow(path="/depot/packages/{identifier}", endpoint=depot.show_package, roles=STAFF),
    RouteRow(path="/depot/report.json", endpoint=depot.send_report, roles=STAFF),
    RouteRow(path="/partners", endpoint=partners.show_list, roles=STAFF),
    RouteRow(path="/partners", endpoint=partners.add, methods=("POST",), roles=CURATORS),
    RouteRow(path="/partners/{name}", endpoint=partners.show, roles=STAFF),
    RouteRow(path="/partners/{name}", endpoint=partners.order, methods=("POST",), roles=CURATORS),
    RouteRow(path="/organisations", endpoint=organisations.show_list, roles=STAFF),
    RouteRow(path="/organisations", endpoint=organisations.start, methods=("POST",), roles=CURATORS),
    RouteRow(path="/organisations/{root}", endpoint=organisations.show, roles=STAFF),
    RouteRow(path="/organisations/{root}/hosts.csv", endpoint=organisations.as_csv, roles=STAFF),
    RouteRow(
        path="/organisations/{root}/decide", endpoint=organisations.decide, methods=("POST",), roles=CURATORS
    ),
    RouteRow(
        path="/organisations/{root}/correct",
        endpoint=organisations.correct,
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/harvests", endpoint=harvests.show_list, roles=STAFF),
    RouteRow(path="/harvests/{harvest}", endpoint=harvests.show, roles=STAFF),
    RouteRow(path="/harvests/{harvest}/live", endpoint=harvests.show_live, roles=STAFF),
    RouteRow(path="/harvests/{harvest}/events", endpoint=harvests.stream_live, roles=STAFF),
    RouteRow(path="/harvests/{harvest}/orders", endpoint=harvests.order, methods=("POST",), roles=CURATORS),
    RouteRow(path="/harvests/{harvest}/reports/{kind}", endpoint=harvests.show_report, roles=STAFF),
    RouteRow(path="/schedule", endpoint=schedule.show_calendar, roles=STAFF),
    RouteRow(path="/schedule/targets", endpoint=schedule.show_list, roles=STAFF),
    RouteRow(path="/schedule/targets/{target}", endpoint=schedule.show, roles=STAFF),
    RouteRow(path="/schedule/targets/{target}", endpoint=schedule.change, methods=("POST",), roles=CURATORS),
    RouteRow(path="/schedule/queue", endpoint=schedule.show_queue, roles=STAFF),
    RouteRow(path="/schedule/queue", endpoint=schedule.change_turn, methods=("POST",), roles=CURATORS),
    RouteRow(path="/review", endpoint=review.show_list, roles=STAFF),
    RouteRow(path="/review/{harvest}", endpoint=review.show, roles=STAFF),
    RouteRow(path="/review/{harvest}/decide", endpoint=review.decide, methods=("POST",), roles=REVIEWERS),
    RouteRow(path="/review/{harvest}/note", endpoint=review.annotate, methods=("POST",), roles=STAFF),
    RouteRow(path="/review/{harvest}/patch", endpoint=review.patch, methods=("POST",), roles=STAFF),
    RouteRow(path="/review/pictures/{number}", endpoint=review.send_picture, roles=STAFF),
    RouteRow(path="/dashboard", endpoint=dashboard.show, roles=STAFF),
    RouteRow(path="/dashboard.csv", endpoint=dashboard.as_csv, roles=STAFF),
    RouteRow(path="/dashboard/months.csv", endpoint=dashboard.months_csv, roles=STAFF),
    RouteRow(path="/profiles", endpoint=profiles.show_list, roles=STAFF),
    RouteRow(path="/profiles", endpoint=profiles.make, methods=("POST",), roles=CURATORS),
    RouteRow(path="/profiles/{name}", endpoint=profiles.show, roles=STAFF),
    RouteRow(path="/profiles/{name}", endpoint=profiles.save, methods=("POST",), roles=CURATORS),
    RouteRow(path="/scope", endpoint=profiles.explain, roles=STAFF),
    RouteRow(path="/quality/{harvest}", endpoint=quality.show, roles=STAFF),
    RouteRow(path="/quality/{harvest}/patch", endpoint=quality.patch, methods=("POST",), roles=STAFF),
    RouteRow(path="/quality/{harvest}/check", endpoint=quality.check_again, methods=("POST",), roles=STAFF),
    RouteRow(path="/quality/{harvest}/ignore", endpoint=quality.ignore, methods=("POST",), roles=STAFF),
    RouteRow(path="/formats", endpoint=formats.show, roles=STAFF),
    RouteRow(path="/formats.csv", endpoint=formats.as_csv, roles=STAFF),
    RouteRow(path="/formats/watch", endpoint=formats.show_watch_list, roles=STAFF),
    RouteRow(path="/formats/registry", endpoint=formats.show_registry, roles=STAFF),
    RouteRow(path="/formats/registry", endpoint=formats.change_registry, methods=("POST",), roles=STAFF),
    RouteRow(path="/formats/registry.json", endpoint=formats.send_registry, roles=STAFF),
    RouteRow(path="/suggest", endpoint=public_forms.suggest_form),
    RouteRow(path="/suggest", endpoint=public_forms.suggest, methods=("POST",)),
    RouteRow(path="/complain", endpoint=public_forms.complain_form),
    RouteRow(path="/complain", endpoint=public_forms.complain, methods=("POST",)),
    RouteRow(path="/answer/{token}", endpoint=public_forms.answer_form),
    RouteRow(path="/answer/{token}", endpoint=public_forms.answer, methods=("POST",)),
    RouteRow(path="/targets", endpoint=targets.show_list, roles=STAFF),
    RouteRow(path="/targets", endpoint=targets.make, methods=("POST",), roles=PARTNERS),
    RouteRow(path="/targets.csv", endpoint=targets.as_csv, roles=STAFF),
    RouteRow(path="/targets/new", endpoint=targets.show_new, roles=PARTNERS),
    RouteRow(path="/targets/import", endpoint=targets.upload, methods=("POST",), roles=PARTNERS),
    RouteRow(path="/targets/import/{token}", endpoint=targets.show_import, roles=PARTNERS),
    RouteRow(path="/targets/import/{token}", endpoint=targets.take_in, methods=("POST",), roles=PARTNERS),
    RouteRow(path="/targets/ask", endpoint=letters.show_ask_list, roles=CURATORS),
    RouteRow(path="/targets/ask", endpoint=letters.ask, methods=("POST",), roles=CURATORS),
    RouteRow(path="/targets/{target}", endpoint=targets.show, roles=STAFF),
    RouteRow(path="/targets/{target}/answers", endpoint=targets.answer, methods=("POST",), roles=STAFF),
    RouteRow(path="/targets/{target}/decide", endpoint=targets.decide, methods=("POST",), roles=CURATORS),
    RouteRow(path="/targets/{target}/change", endpoint=targets.change, methods=("POST",), roles=CURATORS),
    RouteRow(
        path="/targets/{target}/contacts", endpoint=targets.add_contact, methods=("POST",), roles=CURATORS
    ),
    RouteRow(path="/targets/{target}/letter", endpoint=targets.preview_letter, roles=STAFF),
    RouteRow(path="/targets/{target}/ask", endpoint=targets.ask, methods=("POST",), roles=CURATORS),
    RouteRow(path="/targets/{target}/reply", endpoint=targets.reply, methods=("POST",), roles=CURATORS),
    RouteRow(path="/targets/{target}/title", endpoint=catalogue.show_form, roles=CURATORS),
    RouteRow(path="/targets/{target}/title", endpoint=catalogue.save, methods=("POST",), roles=CURATORS),
    RouteRow(path="/targets/{target}/grounds", endpoint=targets.ground, methods=("POST",), roles=CURATORS),
    RouteRow(path="/letters", endpoint=letters.show_list, roles=STAFF),
    RouteRow(path="/letters/send", endpoint=letters.send, methods=("POST",), roles=CURATORS),
    RouteRow(path="/letters/templates/{kind}/{language}", endpoint=letters.show_template, roles=STAFF),
    RouteRow(
        path="/letters/templates/{kind}/{language}",
        endpoint=letters.save_template,
        methods=("POST",),
        roles=CURATORS,
    ),
    RouteRow(path="/letters/{letter}", endpoint=letters.show, roles=STAFF),
    RouteRow(path="/criteria", endpoint=criteria.show_list, roles=STAFF),
    RouteRow(path="/criteria", endpoint=criteria.save, methods=("POST",), roles=ADMINISTRATORS),
    RouteRow(path="/cases", endpoint=cases.show_list, roles=STAFF),
    RouteRow(path="/cases", endpoint=cases.record, methods=("POST",), roles=STAFF),
    RouteRow(path="/cases/{case}", endpoint=cases.show, roles=STAFF),
    RouteRow(path="/cases/{case}", endpoint=cases.act, methods=("POST",), roles=REVIEWERS),
    RouteRow(path="/-/language", endpoint=home.set_language),
    RouteRow(path="/-/banner/{address:path}", endpoint=versions.show_banner),
    RouteRow(path="/-/seat/{address:path}", endpoint=versions.renew_seat, methods=("POST",)),
    RouteRow(path="/-/left/{address:path}", endpoint=versions.leave_seat, methods=("POST",)),
    RouteRow(path="/cdx/search/cdx", endpoint=cdx.of_everything),
    RouteRow(path="/{collection}/cdx", endpoint=cdx.of_collection),
    RouteRow(path="/{collection}/{address:path}", endpoint=versions.show_archived),
)

FRAME_ROUTES = (
    RouteRow(path="/", endpoint=home.to_portal),
    RouteRow(path="/-/pass/{token}/{address:path}", endpoint=versions.accept_pass),
    RouteRow(path="/compare", endpoint=comparison.compare),
    RouteRow(path="/compare/picture", endpoint=comparison.send_picture),
    RouteRow(path="/{page}", endpoint=home.to_portal),
    RouteRow(path="/-/language", endpoint=home.set_language),
    RouteRow(path="/-/banner/{address:path}", endpoint=versions.show_banner),
    RouteRow(path="/-/seat/{address:path}", endpoint=versions.renew_seat, methods=("POST",)),
    RouteRow(path="/-/left/{address:path}", endpoint=versions.leave_seat, methods=("POST",)),
    RouteRow(path="/{collection}/{address:path}", endpoint=versions.show_archived),
)

REPLAY_ROUTES = (
    RouteRow(path="/-/pass/{token}/{address:path}", endpoint=versions.accept_pass),
    RouteRow(path="/-/start/{address:path}", endpoint=raw.show_start),
    RouteRow(path="/-/migrated/{address:path}", endpoint=raw.send_migrated),
    RouteRow(path="/-/thumbnail/{address:path}", endpoint=images.send_thumbnail),
    RouteRow(path="/cdx/search/cdx", endpoint=cdx.of_everything),
    RouteRow(path="/{collection}/cdx", endpoint=cdx.of_collection),
    RouteRow(
        path="/{collection}/{address:path}",
        endpoint=raw.answer,
        methods=("GET", "POST", "PUT", "DELETE", "PATCH"),
    ),
)


def build_portal(archive: Archive, *, portal_url: str, replay_url: str, frame_url: str = "") -> Starlette:
    """The portal. With another `frame_url`, readers of archived pages are redirected to it (see
    `site.WebOrigin`).
    """
    site = Site(
        archive=archive,
        origin=WebOrigin.PORTAL,
        portal_url=portal_url,
        frame_url=frame_url or portal_url,
        replay_url=replay_url,
    )
    return _build_pages(site, PORTAL_ROUTES, portal_headers(replay_url, site.frame_url))


def build_frame(archive: Archive, *, portal_url: str, replay_url: str, frame_url: str) -> Starlette:
    """Only the frame around archived pages."""
    site = Site(
        archive=archive,
        origin=WebOrigin.FRAME,
        portal_url=portal_url,
        frame_url=frame_url,
        replay_url=replay_url,
    )
    return _build_pages(site, FRAME_ROUTES, portal_headers(replay_url, site.frame_url))


def build_replay(archive: Archive, *, portal_url: str, replay_url: str, frame_url: str = "") -> Starlette:
    """Archived content, on a separate origin, without sessions."""
    site = Site(
        archive=archive,
        origin=WebOrigin.REPLAY,
        portal_url=portal_url,
        frame_url=frame_url or portal_url,
        replay_url=replay_url,
    )
    worker = _find_worker()
    routes = [
        Route("/", lambda request: RedirectResponse(portal_url + "/", status_code=302)),
        Route(raw.WORKER_PATH, lambda request: _send_worker(worker)),
        Route("/-/{name}", _send_static),
        *_build_routes(REPLAY_ROUTES),
    ]
    guards = [
        Middleware(PolicyHeaders, headers=replay_headers(site.frame_url)),
        Middleware(QuickAnswers, endpoints=[(raw.QUICK_PATH, raw.quick), (cdx.QUICK_PATH, cdx.quick)]),
    ]
    return _build(site, routes, guards)


def build_proxy(
    archive: Archive, authority: Authority, *, portal_url: str, replay_url: str, frame_url: str = ""
) -> Starlette:
    """The archive as the proxy of terminals: every path of every host."""
    site = Site(
        archive=archive,
        origin=WebOrigin.REPLAY,
        portal_url=portal_url,
        frame_url=frame_url or portal_url,
        replay_url=replay_url,
    )
    app = _build(site, [Route("/{path:path}", proxy.answer, methods=_EVERY_METHOD)], [])
    app.state.authority = authority
    return app


_EVERY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def _build_pages(site: Site, rows: tuple[RouteRow, ...], headers: Mapping[str, str]) -> Starlette:
    """An application with pages; the last row takes every path that no other takes."""
    static = Mount("/-/static", StaticFiles(packages=[("webdepot.web", "static")]))
    counter = Counter(site.archive)
    guards = [
        *([Middleware(UsageCounting, counter=counter)] if site.archive.config.statistics.count else []),
        Middleware(PolicyHeaders, headers=headers),
        Middleware(OriginGuard, own_urls=(site.portal_url,), refusal=_refuse_origin),
        Middleware(QuickAnswers, endpoints=[(cdx.QUICK_PATH, cdx.quick)]),
    ]
    app = _build(site, [*_build_routes(rows[:-1]), static, *_build_routes(rows[-1:])], guards)
    app.state.counter = counter
    return app


def _build(site: Site, routes: Sequence[BaseRoute], guards: Sequence[Middleware]) -> Starlette:
    app = Starlette(routes=routes, middleware=guards, exception_handlers=HANDLERS)
    # A path with or without a final slash is another archived address.
    app.router.redirect_slashes = False
    app.state.site = site
    return app


def _build_routes(rows: tuple[RouteRow, ...]) -> list[Route]:
    return [Route(row.path, _check_roles(row), methods=list(row.methods)) for row in rows]


def _check_roles(row: RouteRow) -> Endpoint:
    """The endpoint after a check of the person's roles; the only place where roles are checked."""
    if not row.roles:
        return row.endpoint

    def find_refusal(request: Request) -> Response | None:
        person = person_of(request)
        if person is None and has_key(request):
            refused = problem(request, 401, language_of(request).texts["errors.text_401_key"])
            refused.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
            return refused
        if person is None:
            return RedirectResponse(f"/sign-in?to={here(request)}", status_code=303)
        if not person.roles & row.roles:
            return problem(request, 403, language_of(request).texts["errors.text_403"])
        return None

    def checked(request: Request) -> Response:
        response: Response = find_refusal(request) or row.endpoint(request)
        return response

    async def checked_form(request: Request) -> Response:
        refused: Response | None = await run_in_threadpool(find_refusal, request)
        return refused or await row.endpoint(request)

    return checked_form if iscoroutinefunction(row.endpoint) else checked


async def _refuse_origin(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer to a changing request from another site."""
    request = Request(scope, receive)
    response = await run_in_threadpool(
        problem, request, 403, language_of(request).texts["errors.text_403_origin"]
    )
    await response(scope, receive, send)


def _find_worker() -> Path:
    path = Path(str(files("webdepot.web"))) / "vendor" / "sw.js"
    if not path.exists():
        raise ConfigError(
            "The replay worker for browsers (web/vendor/sw.js) is not installed. "
            "Fetch it: python scripts/vendor.py"
        )
    return path


def _send_worker(path: Path) -> Response:
    headers = {
        "Content-Security-Policy": WORKER_POLICY,
        "Cache-Control": "no-cache",
        "Service-Worker-Allowed": "/",
    }
    return FileResponse(path, media_type="text/javascript", headers=headers)


_REPLAY_FILES = {"start.js": "text/javascript", "start.css": "text/css", "inside.js": "text/javascript"}


def _send_static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _REPLAY_FILES:
        return problem(request, 404, language_of(request).texts["errors.text_404"])
    path = Path(str(files("webdepot.web"))) / "static" / name
    return FileResponse(path, media_type=_REPLAY_FILES[name], headers={"Cache-Control": "no-cache"})
