"""Signing in with an account of the institution: redirect to the OpenID provider and back
(`services.admin.oidc`).

The provider is asked in two threads of its own: if it is slow, only those who sign in with it wait.
"""

import secrets
import time
from collections import OrderedDict
from threading import Lock

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts import sessions
from webdepot.errors import NotFound, WebdepotError
from webdepot.services.admin.oidc import IdentityProvider, StartedSignIn
from webdepot.web.session.sign_in import page, signed_in
from webdepot.web.site import language_of, local_path, of_app, session_token, site_of

COOKIE = "elsewhere"
PATH = "/sign-in/oidc"
ASKED_AT_ONCE = 2
TIMEOUT_S = 600.0
_MOST_AWAY = 10_000


class PendingSignIns:
    """Browsers that are at the provider now, for up to ten minutes. Each is bound to its own cookie, so that
    the answer to another browser is not accepted.
    """

    def __init__(self) -> None:
        self._away: OrderedDict[str, tuple[float, str, StartedSignIn, str]] = OrderedDict()
        self._lock = Lock()
        self._provider: IdentityProvider | None = None
        self.limiter = anyio.CapacityLimiter(ASKED_AT_ONCE)

    def provider(self, request: Request) -> IdentityProvider:
        config = site_of(request).archive.config.oidc
        if not config.issuer:
            raise NotFound(
                "Signing in with an account of the institution is not configured: [oidc] issuer is empty."
            )
        with self._lock:
            if self._provider is None:
                self._provider = IdentityProvider(config)
            return self._provider

    def add(self, begun: StartedSignIn, cookie: str, to: str) -> None:
        with self._lock:
            self._away[begun.state] = (time.monotonic(), cookie, begun, to)
            while len(self._away) > _MOST_AWAY:
                self._away.popitem(last=False)

    def take(self, state: str, cookie: str) -> tuple[StartedSignIn, str] | None:
        """What was begun with a state, and where to go then; None if it is unknown, too old or of another
        browser. A state can be taken once.
        """
        with self._lock:
            at, owner, begun, to = self._away.pop(state, (0.0, "", None, ""))
        if begun is None or time.monotonic() - at > TIMEOUT_S or not secrets.compare_digest(owner, cookie):
            return None
        return begun, to


async def begin(request: Request) -> Response:
    pending = of_app(request, PendingSignIns)
    provider = pending.provider(request)
    begun = await run_sync(provider.begin, _back_to(request), limiter=pending.limiter)
    cookie = secrets.token_urlsafe(24)
    pending.add(begun, cookie, local_path(request.query_params.get("to")))
    response = RedirectResponse(begun.address, status_code=303)
    site = site_of(request)
    response.set_cookie(
        site.cookie_name(COOKIE),
        cookie,
        max_age=int(TIMEOUT_S),
        path="/",
        httponly=True,
        samesite="lax",
        secure=site.archive.config.web.secure_cookies,
    )
    return response


async def back(request: Request) -> Response:
    return await run_sync(_back, request, limiter=of_app(request, PendingSignIns).limiter)


def _back(request: Request) -> Response:
    site, query = site_of(request), request.query_params
    pending = of_app(request, PendingSignIns)
    provider = pending.provider(request)
    own_cookie = request.cookies.get(site.cookie_name(COOKIE), "")[:200]
    taken = pending.take(query.get("state", "")[:200], own_cookie)
    code = query.get("code", "")[:4000]
    issuer = query.get("iss", provider.config.issuer)
    if taken is None or not code or issuer.rstrip("/") != provider.config.issuer.rstrip("/"):
        return page(request, status=401, wrong=language_of(request).texts["sign_in.elsewhere_failed"])
    begun, to = taken
    try:
        vouched = provider.redeem(code, begun, _back_to(request))
        token = sessions.sign_in_external(
            site.archive.database,
            vouched.external,
            vouched.name,
            vouched.roles,
            site.archive.clock(),
            hours=site.archive.config.web.session_hours,
            device=request.headers.get("user-agent", ""),
            address=request.client.host if request.client else "",
            instead_of=session_token(request),
        )
    except WebdepotError as error:
        return page(request, status=401, to=to, wrong=str(error))
    response = signed_in(request, token, to)
    response.delete_cookie(
        site.cookie_name(COOKIE),
        path="/",
        httponly=True,
        samesite="lax",
        secure=site.archive.config.web.secure_cookies,
    )
    return response


def _back_to(request: Request) -> str:
    return f"{site_of(request).portal_url}{PATH}/back"
