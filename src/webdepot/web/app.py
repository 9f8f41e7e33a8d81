"""The faces on the web: the portal, the frame around archived pages, and replay on an origin of its own.

All routes stand in the tables here.

A route parses, calls one service function, renders. Who may call it is a column of the table and is checked
in one place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from webdepot.web.protocol import FindReady
from webdepot.web.quick import Quick, QuickAnswers
from webdepot.web.reader import catalogue, citation, comparison, home, images, public_forms, search, versions
from webdepot.web.replay import raw
from webdepot.web.security import (
    Headers,
    OriginGuard,
    Pairs,
    encoded,
    portal_headers,
    replay_headers,
    with_policies,
)
from webdepot.web.site import (
    ADMINISTRATORS,
    CURATORS,
    PARTNERS,
    REVIEWERS,
    SIGNED_IN,
    Face,
    Site,
    has_key,
    here,
    language_of,
    person_of,
    templates,
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
from webdepot.web.usage import Counting

if TYPE_CHECKING:
    from webdepot.web.replay.authority import Authority

Endpoint = Callable[[Request], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A row of the route table."""

    path: str
    endpoint: Endpoint
    methods: tuple[str, ...] = ("GET",)
    roles: frozenset[Role] = field(default_factory=frozenset)
    """Any of these may call it; empty means everybody."""


PORTAL_PAGES = (
    Page(path="/", endpoint=home.home),
    Page(path="/search", endpoint=search.search),
    Page(path="/search/why", endpoint=search.why),
    Page(path="/search/trend", endpoint=search.trend),
    Page(path="/search/export", endpoint=search.export),
    Page(path="/search/images", endpoint=images.pictures),
    Page(path="/search.atom", endpoint=search_api.feed),
    Page(path="/searches", endpoint=search_api.saved_list, roles=SIGNED_IN),
    Page(path="/searches", endpoint=search_api.save, methods=("POST",), roles=SIGNED_IN),
    Page(path="/searches/{token}.atom", endpoint=search_api.saved_feed),
    Page(path="/api/search", endpoint=search_api.as_json),
    Page(path="/api/suggest", endpoint=search_api.suggest),
    Page(path="/api/images", endpoint=images.as_json),
    Page(path="/api/trend", endpoint=search_api.trend),
    Page(path="/api/openapi.json", endpoint=openapi.document),
    Page(path="/opensearch.xml", endpoint=search_api.opensearch),
    Page(path="/versions", endpoint=versions.look_up),
    Page(path="/oai", endpoint=oai.oai, methods=("GET", "POST")),
    Page(path="/urn/{urn:path}", endpoint=oai.resolve),
    Page(path="/title/{key}", endpoint=oai.title),
    Page(path="/title/{key}/{form}", endpoint=catalogue.exported),
    Page(path="/catalogue", endpoint=catalogue.listed),
    Page(path="/transfer/{key}.zip", endpoint=oai.transferred),
    Page(path="/cite", endpoint=citation.cite),
    Page(path="/compare", endpoint=comparison.compare),
    Page(path="/compare/picture", endpoint=comparison.picture),
    Page(path="/about", endpoint=home.about),
    Page(path="/help", endpoint=home.help_page),
    Page(path="/sign-in", endpoint=sign_in.sign_in_form),
    Page(path="/sign-in", endpoint=sign_in.sign_in, methods=("POST",)),
    Page(path="/sign-out", endpoint=sign_in.sign_out, methods=("POST",)),
    Page(path="/sign-in/oidc", endpoint=sign_in_oidc.begin),
    Page(path="/sign-in/oidc/back", endpoint=sign_in_oidc.back),
    Page(path="/account", endpoint=users.own, roles=SIGNED_IN),
    Page(path="/account/password", endpoint=users.change_password, methods=("POST",), roles=SIGNED_IN),
    Page(path="/account/sessions", endpoint=users.end_own_session, methods=("POST",), roles=SIGNED_IN),
    Page(path="/account/keys", endpoint=users.change_own_keys, methods=("POST",), roles=SIGNED_IN),
    Page(path="/users", endpoint=users.listed, roles=ADMINISTRATORS),
    Page(path="/users", endpoint=users.add, methods=("POST",), roles=ADMINISTRATORS),
    Page(path="/users/{name}", endpoint=users.shown, roles=ADMINISTRATORS),
    Page(path="/users/{name}", endpoint=users.change, methods=("POST",), roles=ADMINISTRATORS),
    Page(path="/audit", endpoint=audit.listed, roles=STAFF),
    Page(path="/audit.csv", endpoint=audit.as_csv, roles=STAFF),
    Page(path="/status", endpoint=status.status, roles=STAFF),
    Page(path="/statistics", endpoint=statistics.statistics, roles=STAFF),
    Page(path="/statistics.csv", endpoint=statistics.as_csv, roles=STAFF),
    Page(path="/depot", endpoint=depot.overview, roles=STAFF),
    Page(path="/depot/packages", endpoint=depot.packages, roles=STAFF),
    Page(path="/depot/packages/{identifier}", endpoint=depot.package, roles=STAFF),
    Page(path="/depot/report.json", endpoint=depot.report, roles=STAFF),
    Page(path="/partners", endpoint=partners.listed, roles=STAFF),
    Page(path="/partners", endpoint=partners.add, methods=("POST",), roles=CURATORS),
    Page(path="/partners/{name}", endpoint=partners.shown, roles=STAFF),
    Page(path="/partners/{name}", endpoint=partners.order, methods=("POST",), roles=CURATORS),
    Page(path="/organisations", endpoint=organisations.listed, roles=STAFF),
    Page(path="/organisations", endpoint=organisations.start, methods=("POST",), roles=CURATORS),
    Page(path="/organisations/{root}", endpoint=organisations.shown, roles=STAFF),
    Page(path="/organisations/{root}/hosts.csv", endpoint=organisations.as_csv, roles=STAFF),
    Page(
        path="/organisations/{root}/decide", endpoint=organisations.decide, methods=("POST",), roles=CURATORS
    ),
    Page(
        path="/organisations/{root}/correct",
        endpoint=organisations.correct,
        methods=("POST",),
        roles=CURATORS,
    ),
    Page(path="/harvests", endpoint=harvests.listed, roles=STAFF),
    Page(path="/harvests/{harvest}", endpoint=harvests.shown, roles=STAFF),
    Page(path="/harvests/{harvest}/live", endpoint=harvests.live, roles=STAFF),
    Page(path="/harvests/{harvest}/events", endpoint=harvests.events, roles=STAFF),
    Page(path="/harvests/{harvest}/orders", endpoint=harvests.order, methods=("POST",), roles=CURATORS),
    Page(path="/harvests/{harvest}/reports/{kind}", endpoint=harvests.report, roles=STAFF),
    Page(path="/schedule", endpoint=schedule.calendar, roles=STAFF),
    Page(path="/schedule/targets", endpoint=schedule.listed, roles=STAFF),
    Page(path="/schedule/targets/{target}", endpoint=schedule.shown, roles=STAFF),
    Page(path="/schedule/targets/{target}", endpoint=schedule.change, methods=("POST",), roles=CURATORS),
    Page(path="/schedule/queue", endpoint=schedule.queue, roles=STAFF),
    Page(path="/schedule/queue", endpoint=schedule.change_turn, methods=("POST",), roles=CURATORS),
    Page(path="/review", endpoint=review.listed, roles=STAFF),
    Page(path="/review/{harvest}", endpoint=review.shown, roles=STAFF),
    Page(path="/review/{harvest}/decide", endpoint=review.decide, methods=("POST",), roles=REVIEWERS),
    Page(path="/review/{harvest}/note", endpoint=review.annotate, methods=("POST",), roles=STAFF),
    Page(path="/review/{harvest}/patch", endpoint=review.patch, methods=("POST",), roles=STAFF),
    Page(path="/review/pictures/{number}", endpoint=review.picture, roles=STAFF),
    Page(path="/dashboard", endpoint=dashboard.shown, roles=STAFF),
    Page(path="/dashboard.csv", endpoint=dashboard.as_csv, roles=STAFF),
    Page(path="/dashboard/months.csv", endpoint=dashboard.months_csv, roles=STAFF),
    Page(path="/profiles", endpoint=profiles.listed, roles=STAFF),
    Page(path="/profiles", endpoint=profiles.make, methods=("POST",), roles=CURATORS),
    Page(path="/profiles/{name}", endpoint=profiles.shown, roles=STAFF),
    Page(path="/profiles/{name}", endpoint=profiles.save, methods=("POST",), roles=CURATORS),
    Page(path="/scope", endpoint=profiles.explain, roles=STAFF),
    Page(path="/quality/{harvest}", endpoint=quality.quality, roles=STAFF),
    Page(path="/quality/{harvest}/patch", endpoint=quality.patch, methods=("POST",), roles=STAFF),
    Page(path="/quality/{harvest}/check", endpoint=quality.check_again, methods=("POST",), roles=STAFF),
    Page(path="/quality/{harvest}/ignore", endpoint=quality.ignore, methods=("POST",), roles=STAFF),
    Page(path="/formats", endpoint=formats.formats, roles=STAFF),
    Page(path="/formats.csv", endpoint=formats.as_csv, roles=STAFF),
    Page(path="/formats/watch", endpoint=formats.watch, roles=STAFF),
    Page(path="/formats/registry", endpoint=formats.show_registry, roles=STAFF),
    Page(path="/formats/registry", endpoint=formats.change_registry, methods=("POST",), roles=STAFF),
    Page(path="/formats/registry.json", endpoint=formats.registry_json, roles=STAFF),
    Page(path="/suggest", endpoint=public_forms.suggest_form),
    Page(path="/suggest", endpoint=public_forms.suggest, methods=("POST",)),
    Page(path="/complain", endpoint=public_forms.complain_form),
    Page(path="/complain", endpoint=public_forms.complain, methods=("POST",)),
    Page(path="/answer/{token}", endpoint=public_forms.answer_form),
    Page(path="/answer/{token}", endpoint=public_forms.answer, methods=("POST",)),
    Page(path="/targets", endpoint=targets.listed, roles=STAFF),
    Page(path="/targets", endpoint=targets.make, methods=("POST",), roles=PARTNERS),
    Page(path="/targets.csv", endpoint=targets.as_csv, roles=STAFF),
    Page(path="/targets/new", endpoint=targets.new, roles=PARTNERS),
    Page(path="/targets/import", endpoint=targets.upload, methods=("POST",), roles=PARTNERS),
    Page(path="/targets/import/{token}", endpoint=targets.look_at, roles=PARTNERS),
    Page(path="/targets/import/{token}", endpoint=targets.take_in, methods=("POST",), roles=PARTNERS),
    Page(path="/targets/ask", endpoint=letters.ask_list, roles=CURATORS),
    Page(path="/targets/ask", endpoint=letters.ask, methods=("POST",), roles=CURATORS),
    Page(path="/targets/{target}", endpoint=targets.shown, roles=STAFF),
    Page(path="/targets/{target}/answers", endpoint=targets.answer, methods=("POST",), roles=STAFF),
    Page(path="/targets/{target}/decide", endpoint=targets.decide, methods=("POST",), roles=CURATORS),
    Page(path="/targets/{target}/change", endpoint=targets.change, methods=("POST",), roles=CURATORS),
    Page(path="/targets/{target}/contacts", endpoint=targets.add_contact, methods=("POST",), roles=CURATORS),
    Page(path="/targets/{target}/letter", endpoint=targets.preview_letter, roles=STAFF),
    Page(path="/targets/{target}/ask", endpoint=targets.ask, methods=("POST",), roles=CURATORS),
    Page(path="/targets/{target}/reply", endpoint=targets.reply, methods=("POST",), roles=CURATORS),
    Page(path="/targets/{target}/title", endpoint=catalogue.described, roles=CURATORS),
    Page(path="/targets/{target}/title", endpoint=catalogue.describe, methods=("POST",), roles=CURATORS),
    Page(path="/targets/{target}/grounds", endpoint=targets.ground, methods=("POST",), roles=CURATORS),
    Page(path="/letters", endpoint=letters.listed, roles=STAFF),
    Page(path="/letters/send", endpoint=letters.send, methods=("POST",), roles=CURATORS),
    Page(path="/letters/templates/{kind}/{language}", endpoint=letters.template, roles=STAFF),
    Page(
        path="/letters/templates/{kind}/{language}",
        endpoint=letters.save_template,
        methods=("POST",),
        roles=CURATORS,
    ),
    Page(path="/letters/{letter}", endpoint=letters.shown, roles=STAFF),
    Page(path="/criteria", endpoint=criteria.listed, roles=STAFF),
    Page(path="/criteria", endpoint=criteria.save, methods=("POST",), roles=ADMINISTRATORS),
    Page(path="/cases", endpoint=cases.listed, roles=STAFF),
    Page(path="/cases", endpoint=cases.record, methods=("POST",), roles=STAFF),
    Page(path="/cases/{case}", endpoint=cases.shown, roles=STAFF),
    Page(path="/cases/{case}", endpoint=cases.act, methods=("POST",), roles=REVIEWERS),
    Page(path="/-/language", endpoint=home.set_language),
    Page(path="/-/banner/{address:path}", endpoint=versions.banner),
    Page(path="/-/seat/{address:path}", endpoint=versions.renew_seat, methods=("POST",)),
    Page(path="/-/left/{address:path}", endpoint=versions.leave_seat, methods=("POST",)),
    Page(path="/cdx/search/cdx", endpoint=cdx.of_everything),
    Page(path="/{collection}/cdx", endpoint=cdx.of_collection),
    Page(path="/{collection}/{address:path}", endpoint=versions.archived),
)

FRAME_PAGES = (
    Page(path="/", endpoint=home.to_portal),
    Page(path="/-/pass/{token}/{address:path}", endpoint=versions.enter),
    Page(path="/compare", endpoint=comparison.compare),
    Page(path="/compare/picture", endpoint=comparison.picture),
    Page(path="/{page}", endpoint=home.to_portal),
    Page(path="/-/language", endpoint=home.set_language),
    Page(path="/-/banner/{address:path}", endpoint=versions.banner),
    Page(path="/-/seat/{address:path}", endpoint=versions.renew_seat, methods=("POST",)),
    Page(path="/-/left/{address:path}", endpoint=versions.leave_seat, methods=("POST",)),
    Page(path="/{collection}/{address:path}", endpoint=versions.archived),
)

REPLAY_PAGES = (
    Page(path="/-/pass/{token}/{address:path}", endpoint=versions.enter),
    Page(path="/-/start/{address:path}", endpoint=raw.start),
    Page(path="/-/migrated/{address:path}", endpoint=raw.migrated),
    Page(path="/-/thumbnail/{address:path}", endpoint=images.thumbnail),
    Page(path="/cdx/search/cdx", endpoint=cdx.of_everything),
    Page(path="/{collection}/cdx", endpoint=cdx.of_collection),
    Page(
        path="/{collection}/{address:path}",
        endpoint=raw.replayed,
        methods=("GET", "POST", "PUT", "DELETE", "PATCH"),
    ),
)


def build_portal(archive: Archive, *, portal_url: str, replay_url: str, frame_url: str = "") -> Starlette:
    """The portal. With another `frame_url` it sends readers of archived pages there (see `site.Face`)."""
    site = Site(
        archive=archive,
        face=Face.PORTAL,
        portal_url=portal_url,
        frame_url=frame_url or portal_url,
        replay_url=replay_url,
    )
    return _app(site, PORTAL_PAGES, portal_headers(replay_url, site.frame_url))


def build_frame(archive: Archive, *, portal_url: str, replay_url: str, frame_url: str) -> Starlette:
    """Nothing but the frame around archived pages."""
    site = Site(
        archive=archive, face=Face.FRAME, portal_url=portal_url, frame_url=frame_url, replay_url=replay_url
    )
    return _app(site, FRAME_PAGES, portal_headers(replay_url, site.frame_url))


def build_replay(archive: Archive, *, portal_url: str, replay_url: str, frame_url: str = "") -> Starlette:
    """Archived content, on an origin of its own, without sessions."""
    site = Site(
        archive=archive,
        face=Face.REPLAY,
        portal_url=portal_url,
        frame_url=frame_url or portal_url,
        replay_url=replay_url,
    )
    worker = _worker_file()
    routes = [
        Route("/", lambda request: RedirectResponse(portal_url + "/", status_code=302)),
        Route(raw.WORKER_PATH, lambda request: _worker(worker)),
        Route("/-/{name}", _static),
        *_routes(REPLAY_PAGES),
    ]
    answers, policies = (
        QuickAnswers([(raw.QUICK_PATH, raw.quick), (cdx.QUICK_PATH, cdx.quick)]),
        replay_headers(site.frame_url),
    )
    app = _starlette(
        site, routes, [Middleware(Headers, headers=policies), Middleware(Quick, answers=answers)]
    )
    app.state.find_ready = _ready(app, answers, encoded(policies))
    return app


def _ready(app: Starlette, answers: QuickAnswers, policies: Pairs) -> FindReady:
    """Quick answers for the connection itself (`protocol.answering`), with the headers that the guards around
    the routes give them.
    """

    def find_ready(scope: Scope) -> Response | None:
        scope["app"] = app
        found = answers.find(scope)
        if found is not None:
            found.raw_headers = with_policies(found.raw_headers, policies)
        return found

    return find_ready


def build_proxy(
    archive: Archive, authority: "Authority", *, portal_url: str, replay_url: str, frame_url: str = ""
) -> Starlette:
    """The archive as the proxy of terminals: every path of every host."""
    from webdepot.web.replay import proxy

    site = Site(
        archive=archive,
        face=Face.REPLAY,
        portal_url=portal_url,
        frame_url=frame_url or portal_url,
        replay_url=replay_url,
    )
    app = _starlette(site, [Route("/{path:path}", proxy.answer, methods=_EVERY_METHOD)], [])
    app.state.authority = authority
    return app


_EVERY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def _app(site: Site, pages: tuple[Page, ...], headers: Mapping[str, str]) -> Starlette:
    """A face with pages; the last of them takes every path that is left."""
    static = Mount("/-/static", StaticFiles(packages=[("webdepot.web", "static")]))
    counter = Counter(site.archive)
    guards = [
        *([Middleware(Counting, counter=counter)] if site.archive.config.statistics.count else []),
        Middleware(Headers, headers=headers),
        Middleware(OriginGuard, own_urls=(site.portal_url,), refusal=_refusal),
        Middleware(Quick, answers=QuickAnswers([(cdx.QUICK_PATH, cdx.quick)])),
    ]
    templates()
    app = _starlette(site, [*_routes(pages[:-1]), static, *_routes(pages[-1:])], guards)
    app.state.counter = counter
    return app


def _starlette(site: Site, routes: Sequence[BaseRoute], guards: Sequence[Middleware]) -> Starlette:
    app = Starlette(routes=routes, middleware=guards, exception_handlers=HANDLERS)
    # A path with a slash more or less is another archived address, not a slip.
    app.router.redirect_slashes = False
    app.state.site = site
    return app


def _routes(pages: tuple[Page, ...]) -> list[Route]:
    return [Route(page.path, _guarded(page), methods=list(page.methods)) for page in pages]


def _guarded(page: Page) -> Endpoint:
    """The endpoint behind its role check; the only place where roles are looked at."""
    if not page.roles:
        return page.endpoint

    def turned_away(request: Request) -> Response | None:
        person = person_of(request)
        if person is None and has_key(request):
            refused = problem(request, 401, language_of(request).texts["errors.text_401_key"])
            refused.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
            return refused
        if person is None:
            return RedirectResponse(f"/sign-in?to={here(request)}", status_code=303)
        if not person.roles & page.roles:
            return problem(request, 403, language_of(request).texts["errors.text_403"])
        return None

    def checked(request: Request) -> Response:
        response: Response = turned_away(request) or page.endpoint(request)
        return response

    async def checked_form(request: Request) -> Response:
        refused: Response | None = await run_in_threadpool(turned_away, request)
        return refused or await page.endpoint(request)

    return checked_form if iscoroutinefunction(page.endpoint) else checked


async def _refusal(scope: Scope, receive: Receive, send: Send) -> None:
    """The page for a changing request from another site."""
    request = Request(scope, receive)
    response = await run_in_threadpool(
        problem, request, 403, language_of(request).texts["errors.text_403_origin"]
    )
    await response(scope, receive, send)


def _worker_file() -> Path:
    path = Path(str(files("webdepot.web"))) / "vendor" / "sw.js"
    if not path.exists():
        raise ConfigError(
            "The browser part of replay (web/vendor/sw.js) is not installed. Fetch it: python scripts/vendor.py"
        )
    return path


def _worker(path: Path) -> Response:
    headers = {
        "Content-Security-Policy": WORKER_POLICY,
        "Cache-Control": "no-cache",
        "Service-Worker-Allowed": "/",
    }
    return FileResponse(path, media_type="text/javascript", headers=headers)


_REPLAY_FILES = {"start.js": "text/javascript", "start.css": "text/css", "inside.js": "text/javascript"}


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _REPLAY_FILES:
        return problem(request, 404, language_of(request).texts["errors.text_404"])
    path = Path(str(files("webdepot.web"))) / "static" / name
    return FileResponse(path, media_type=_REPLAY_FILES[name], headers={"Cache-Control": "no-cache"})
