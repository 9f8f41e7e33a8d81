"""The applications of the web server: the portal, the frame around archived pages, replay, and the proxy.

All routes are in the tables here. A route parses the request, calls a service and renders the result. The
roles that may call it are a column of the table and are checked in one place.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from inspect import iscoroutinefunction
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from webdepot.archive import Archive
from webdepot.query_budget import spend
from webdepot.services.access.statistics import Counter
from webdepot.web import heavy_work
from webdepot.web.api import cdx
from webdepot.web.problems import HANDLERS, problem
from webdepot.web.quick_answers import QuickAnswers
from webdepot.web.replay import captures, worker
from webdepot.web.request_turns import HeavyWork
from webdepot.web.route_row import Endpoint, RouteRow, load_endpoint
from webdepot.web.routes import FRAME_ROUTES, PORTAL_ROUTES, REPLAY_ROUTES
from webdepot.web.security import SAFE_METHODS, OriginGuard, PolicyHeaders, portal_headers, replay_headers
from webdepot.web.site import (
    Site,
    WebOrigin,
    has_key,
    here,
    is_api,
    language_of,
    person_of,
)
from webdepot.web.usage import UsageCounting


def build_portal(
    archive: Archive,
    *,
    portal_url: str,
    replay_url: str,
    frame_url: str = "",
    pages_url: str = "",
    heavy: HeavyWork | None = None,
) -> Starlette:
    """The portal. With another `frame_url`, readers of archived pages are redirected to it (see
    `site.WebOrigin`).
    """
    site = Site(
        archive=archive,
        origin=WebOrigin.PORTAL,
        portal_url=portal_url,
        frame_url=frame_url or portal_url,
        replay_url=replay_url,
        pages_url=pages_url,
        heavy=heavy or HeavyWork(),
    )
    return _build_pages(site, PORTAL_ROUTES, portal_headers(site.frame_url))


def build_frame(
    archive: Archive,
    *,
    portal_url: str,
    replay_url: str,
    frame_url: str,
    pages_url: str = "",
    heavy: HeavyWork | None = None,
) -> Starlette:
    """Only the frame around archived pages."""
    site = Site(
        archive=archive,
        origin=WebOrigin.FRAME,
        portal_url=portal_url,
        frame_url=frame_url,
        replay_url=replay_url,
        pages_url=pages_url,
        heavy=heavy or HeavyWork(),
    )
    return _build_pages(site, FRAME_ROUTES, portal_headers(site.frame_url))


def build_replay(
    archive: Archive,
    *,
    portal_url: str,
    replay_url: str,
    frame_url: str = "",
    pages_url: str = "",
    heavy: HeavyWork | None = None,
) -> Starlette:
    """Archived content, on a separate origin, without sessions."""
    site = Site(
        archive=archive,
        origin=WebOrigin.REPLAY,
        portal_url=portal_url,
        frame_url=frame_url or portal_url,
        replay_url=replay_url,
        pages_url=pages_url,
        heavy=heavy or HeavyWork(),
    )
    worker.check_installed()
    routes = [
        Route("/", lambda request: RedirectResponse(portal_url + "/", status_code=302)),
        Route(worker.PATH, worker.send),
        Route("/-/{name}", _send_static),
        *_build_routes(REPLAY_ROUTES),
    ]
    quick = QuickAnswers([(captures.QUICK_PATH, captures.quick), (cdx.QUICK_PATH, cdx.quick)])
    return ArchiveApp(site, routes, policies=replay_headers(site.frame_url), quick_answers=quick)


def _build_pages(site: Site, rows: tuple[RouteRow, ...], headers: Mapping[str, str]) -> Starlette:
    """An application with pages; the last row takes every path that no other takes."""
    static = Mount("/-/static", StaticFiles(packages=[("webdepot.web", "static")]))
    counter = Counter(site.archive)
    guards = [
        *([Middleware(UsageCounting, counter=counter)] if site.archive.config.statistics.count else []),
        Middleware(OriginGuard, own_urls=(site.portal_url,), refusal=_refuse_origin),
    ]
    routes = [*_build_routes(rows[:-1]), static, *_build_routes(rows[-1:])]
    quick = QuickAnswers([(cdx.QUICK_PATH, cdx.quick)])
    app = ArchiveApp(site, routes, policies=headers, guards=guards, quick_answers=quick)
    app.state.counter = counter
    return app


class ArchiveApp(Starlette):
    """An application of a site, with our error pages and with policy headers on every answer.

    Quick answers bypass the layers of the framework, which would make them a tenth slower.
    """

    def __init__(
        self,
        site: Site,
        routes: Sequence[BaseRoute],
        *,
        policies: Mapping[str, str] | None = None,
        guards: Sequence[Middleware] = (),
        quick_answers: QuickAnswers | None = None,
    ) -> None:
        super().__init__(routes=routes, middleware=guards, exception_handlers=HANDLERS)
        # A path with or without a final slash is another archived address.
        self.router.redirect_slashes = False
        self.state.site = site
        self._policies = PolicyHeaders(policies or {})
        self._quick_answers = quick_answers or QuickAnswers([])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self
        answer = self._quick_answers.find(scope)
        await (answer or super().__call__)(scope, receive, self._policies.added_by(send))


def _build_routes(rows: tuple[RouteRow, ...]) -> list[Route]:
    return [Route(row.path, _check_roles(row), methods=list(row.methods)) for row in rows]


def _check_roles(row: RouteRow) -> Endpoint:
    """The endpoint after a check of the person's roles; the only place where roles are checked."""

    def find_refusal(request: Request) -> Response | None:
        person, texts = person_of(request), language_of(request).texts
        if person is None and has_key(request):
            refused = problem(request, 401, texts["errors.text_401_key"])
            refused.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
            return refused
        # Browsers add cookies to requests that pages of other sites make them send, but never a key.
        is_change = request.method not in SAFE_METHODS
        if is_api(request) and not has_key(request) and (person is None or is_change):
            refused = problem(request, 401, texts["errors.text_401_api"])
            refused.headers["WWW-Authenticate"] = "Bearer"
            return refused
        if person is None:
            return RedirectResponse(f"/sign-in?to={here(request)}", status_code=303)
        if not person.roles & row.roles:
            return problem(request, 403, texts["errors.text_403"])
        return None

    def answer(request: Request) -> Response | Endpoint:
        """The response, computed in a thread because the first request imports the module and roles are in
        the database. An asynchronous endpoint is returned instead, to be called by the event loop.
        """
        endpoint = load_endpoint(row.endpoint)
        refusal = find_refusal(request) if row.roles else None
        return refusal or (endpoint if iscoroutinefunction(endpoint) else endpoint(request))

    async def call(request: Request) -> Response:
        result: Response | Endpoint
        if row.heavy is not None and row.heavy.match(request.scope.get("raw_path") or b""):
            result = await heavy_work.run(request, partial(answer, request))
        elif row.roles:  # the work of staff is not limited
            result = await run_in_threadpool(answer, request)
        else:
            result = await run_in_threadpool(spend, heavy_work.budget_of(request), partial(answer, request))
        return result if isinstance(result, Response) else await result(request)

    return call


async def _refuse_origin(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer to a changing request from another site."""
    request = Request(scope, receive)
    response = await run_in_threadpool(
        problem, request, 403, language_of(request).texts["errors.text_403_origin"]
    )
    await response(scope, receive, send)


_REPLAY_FILES = {
    "start.js": "text/javascript",
    "start.css": "text/css",
    "archived_page.js": "text/javascript",
}


def _send_static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _REPLAY_FILES:
        return problem(request, 404, language_of(request).texts["errors.text_404"])
    path = Path(str(files("webdepot.web"))) / "static" / name
    return FileResponse(path, media_type=_REPLAY_FILES[name], headers={"Cache-Control": "no-cache"})
