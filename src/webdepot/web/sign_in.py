"""Signing in and out. Failed attempts are slowed down; accounts are never locked."""

import time
from collections import OrderedDict
from threading import Lock

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts import sessions
from webdepot.web.forms import SHORT_FORM, read_form
from webdepot.web.site import language_of, local_path, of_app, person_of, render, session_token, site_of
from webdepot.web.staff.dashboard import start_counting

WINDOW_S = 60.0
MOST_FAILURES = 10
"""Failed attempts for one name or from one address within the window."""
_MOST_REMEMBERED = 10_000


class SignInBrake:
    """Counts failed attempts by name and by address within a minute; forgets the oldest when there are very
    many.
    """

    def __init__(self) -> None:
        self._failures: OrderedDict[str, list[float]] = OrderedDict()
        self._lock = Lock()

    def is_on(self, *keys: str) -> bool:
        since = time.monotonic() - WINDOW_S
        with self._lock:
            return any(sum(at > since for at in self._failures.get(key, ())) >= MOST_FAILURES for key in keys)

    def note_failure(self, *keys: str) -> None:
        with self._lock:
            for key in keys:
                self._failures[key] = [*self._failures.pop(key, ())[-MOST_FAILURES:], time.monotonic()]
            while len(self._failures) > _MOST_REMEMBERED:
                self._failures.popitem(last=False)


def sign_in_form(request: Request) -> Response:
    to = local_path(request.query_params.get("to"))
    if person_of(request) is not None:
        return RedirectResponse(to, status_code=303)
    start_counting(request)
    return page(request, to=to)


def page(request: Request, *, status: int = 200, to: str = "/", wrong: str = "", name: str = "") -> Response:
    """The sign-in form."""
    oidc = site_of(request).archive.config.oidc
    return render(
        request,
        "sign_in.html",
        status=status,
        to=to,
        wrong=wrong,
        name=name,
        elsewhere=oidc.label if oidc.issuer else "",
    )


async def sign_in(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    start_counting(request)
    return await run_in_threadpool(_signed_in, request, form)


def _signed_in(request: Request, form: dict[str, str]) -> Response:
    site, spoken = site_of(request), language_of(request)
    brake = of_app(request, SignInBrake)
    name, to = form.get("name", "")[:100], local_path(form.get("to"))
    keys = (f"name {name}", f"address {request.client.host if request.client else ''}")
    if brake.is_on(*keys):
        return page(request, status=429, to=to, wrong=spoken.texts["sign_in.too_many"], name=name)
    config = site.archive.config.web
    token = sessions.sign_in(
        site.archive.database,
        name,
        form.get("password", ""),
        site.archive.clock(),
        hours=config.session_hours,
        device=request.headers.get("user-agent", ""),
        address=request.client.host if request.client else "",
        instead_of=session_token(request),
    )
    if token is None:
        brake.note_failure(*keys)
        return page(request, status=401, to=to, wrong=spoken.texts["sign_in.wrong"], name=name)
    return signed_in(request, token, to)


def signed_in(request: Request, token: str, to: str) -> Response:
    """Redirect to where the person wanted to go, with the cookie of the new session."""
    site = site_of(request)
    config = site.archive.config.web
    response = RedirectResponse(to, status_code=303)
    response.set_cookie(
        site.session_cookie,
        token,
        max_age=config.session_hours * 3600,
        path="/",
        httponly=True,
        samesite="lax",
        secure=config.secure_cookies,
    )
    return response


def sign_out(request: Request) -> Response:
    site = site_of(request)
    token = session_token(request)
    if token:
        sessions.sign_out(site.archive.database, token, site.archive.clock())
    response = RedirectResponse("/", status_code=303)
    response.delete_cookie(
        site.session_cookie,
        path="/",
        httponly=True,
        samesite="lax",
        secure=site.archive.config.web.secure_cookies,
    )
    return response
