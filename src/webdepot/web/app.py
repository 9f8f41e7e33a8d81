"""The two faces on the web: the portal, and replay on a host name of its own. All routes stand in two tables here.

A route parses, calls one service function, renders. Who may call it is a column of the table and is checked in one place.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from webdepot.access.replay.headers import WORKER_POLICY
from webdepot.accounts import Role
from webdepot.archive import Archive
from webdepot.errors import ConfigError
from webdepot.web import account, home, raw, search, staff, versions
from webdepot.web.problems import HANDLERS, problem
from webdepot.web.security import Headers, HostGuard, OriginGuard, portal_headers, replay_headers
from webdepot.web.site import STAFF, Site, here, language_of, person_of, templates

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
    Page(path="/versions", endpoint=versions.look_up),
    Page(path="/about", endpoint=home.about),
    Page(path="/help", endpoint=home.help_page),
    Page(path="/sign-in", endpoint=account.sign_in_form),
    Page(path="/sign-in", endpoint=account.sign_in, methods=("POST",)),
    Page(path="/sign-out", endpoint=account.sign_out, methods=("POST",)),
    Page(path="/status", endpoint=staff.status, roles=STAFF),
    Page(path="/-/language", endpoint=home.set_language),
    Page(path="/-/banner/{address:path}", endpoint=versions.banner),
    Page(path="/{collection}/{address:path}", endpoint=versions.archived),
)

REPLAY_PAGES = (
    Page(path="/-/start/{address:path}", endpoint=raw.start),
    Page(path="/{collection}/{address:path}", endpoint=raw.replayed, methods=("GET", "POST", "PUT", "DELETE", "PATCH")),
)


def build_portal(archive: Archive, *, portal_url: str, replay_url: str, is_strict: bool = False) -> Starlette:
    """The portal. `is_strict` answers to the host name of `portal_url` alone."""
    site = Site(archive=archive, portal_url=portal_url, replay_url=replay_url, is_portal=True)
    routes = [
        *_routes(PORTAL_PAGES[:-1]),
        Mount("/-/static", StaticFiles(packages=[("webdepot.web", "static")])),
        *_routes(PORTAL_PAGES[-1:]),
    ]
    guards = [
        Middleware(Headers, headers=portal_headers(replay_url)),
        *([Middleware(HostGuard, own_url=portal_url)] if is_strict else []),
        Middleware(OriginGuard, own_urls=(portal_url,), refusal=_refusal(site)),
    ]
    app = Starlette(routes=routes, middleware=guards, exception_handlers=HANDLERS)
    app.state.site = site
    app.state.brake = account.Brake()
    templates()
    return app


def build_replay(archive: Archive, *, portal_url: str, replay_url: str, is_strict: bool = False) -> Starlette:
    """Archived content, on an origin of its own, without sessions."""
    site = Site(archive=archive, portal_url=portal_url, replay_url=replay_url, is_portal=False)
    worker = _worker_file()
    routes = [
        Route("/", lambda request: RedirectResponse(portal_url + "/", status_code=302)),
        Route(raw.WORKER_PATH, lambda request: _worker(worker)),
        Route("/-/{name}", _static),
        *_routes(REPLAY_PAGES),
    ]
    guards = [
        Middleware(Headers, headers=replay_headers(portal_url)),
        *([Middleware(HostGuard, own_url=replay_url)] if is_strict else []),
    ]
    app = Starlette(routes=routes, middleware=guards, exception_handlers=HANDLERS)
    app.state.site = site
    return app


def _routes(pages: tuple[Page, ...]) -> list[Route]:
    return [Route(page.path, _guarded(page), methods=list(page.methods)) for page in pages]


def _guarded(page: Page) -> Endpoint:
    """The endpoint behind its role check; the only place where roles are looked at."""
    if not page.roles:
        return page.endpoint

    def checked(request: Request) -> Response:
        person = person_of(request)
        if person is None:
            return RedirectResponse(f"/sign-in?to={here(request)}", status_code=303)
        if not person.roles & page.roles:
            return problem(request, 403, language_of(request).texts["errors.text_403"])
        response: Response = page.endpoint(request)
        return response

    return checked


def _refusal(site: Site) -> ASGIApp:
    """The page for a changing request from another site; it is made outside the routes, so it brings its own state."""

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        words = language_of(request).texts["errors.text_403_origin"]
        response = await run_in_threadpool(problem, request, 403, words)
        await response(scope, receive, send)

    return refuse


def _worker_file() -> Path:
    path = Path(str(files("webdepot.web"))) / "vendor" / "sw.js"
    if not path.exists():
        raise ConfigError("The browser part of replay (web/vendor/sw.js) is not installed. Fetch it: python scripts/vendor.py")
    return path


def _worker(path: Path) -> Response:
    headers = {"Content-Security-Policy": WORKER_POLICY, "Cache-Control": "no-cache", "Service-Worker-Allowed": "/"}
    return FileResponse(path, media_type="text/javascript", headers=headers)


_REPLAY_FILES = {"start.js": "text/javascript", "start.css": "text/css", "inside.js": "text/javascript"}


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _REPLAY_FILES:
        return problem(request, 404, language_of(request).texts["errors.text_404"])
    path = Path(str(files("webdepot.web"))) / "static" / name
    return FileResponse(path, media_type=_REPLAY_FILES[name], headers={"Cache-Control": "no-cache"})
