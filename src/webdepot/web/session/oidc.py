"""Signing in with an account of the institution: redirect to the OpenID provider and back
(`services.admin.oidc`).

Requests to the provider have two threads of their own: if it is slow, only people who sign in with it wait.
The state of a sign-in is in a signed cookie of the browser. So the answer to another browser is not accepted,
and any portal of the archive can complete the sign-in.
"""

import base64
import hashlib
import hmac
import json
import secrets
from datetime import date, timedelta
from threading import Lock

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts import sessions, shared_keys
from webdepot.database import Database
from webdepot.errors import NotFound, WebdepotError
from webdepot.services.admin.oidc import IdentityProvider, StartedSignIn
from webdepot.times import utc_now
from webdepot.web.session.sign_in import page, signed_in
from webdepot.web.site import language_of, local_path, of_app, session_token, site_of

COOKIE = "elsewhere"
PATH = "/sign-in/oidc"
ASKED_AT_ONCE = 2
TIMEOUT_S = 600.0
LONGEST_PATH = 1000
_PURPOSE = "sign-ins"


class SharedProvider:
    """The provider, which all requests share, and the threads in which it is asked."""

    def __init__(self) -> None:
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


def _to_cookie(database: Database, begun: StartedSignIn, to: str) -> str:
    """The cookie with the state of a sign-in, with which any portal can complete it."""
    now = utc_now()
    values = [now.timestamp(), begun.state, begun.nonce, begun.verifier, to]
    text = base64.urlsafe_b64encode(json.dumps(values).encode()).decode()
    day = now.date().isoformat()
    return f"{day}.{text}.{_sign(shared_keys.get(database, _PURPOSE, now), text)}"


def _from_cookie(database: Database, cookie: str, state: str) -> tuple[StartedSignIn, str] | None:
    """The sign-in that was started with this state, and where to go after it; None if this browser did not
    start it, or more than ten minutes ago. The provider accepts its code once.
    """
    day, _, rest = cookie.partition(".")
    text, _, signature = rest.partition(".")
    now = utc_now()
    if day not in {(now - timedelta(days=days)).date().isoformat() for days in (0, 1)}:
        return None
    key = shared_keys.find(database, _PURPOSE, date.fromisoformat(day))
    if key is None or not secrets.compare_digest(_sign(key, text).encode(), signature.encode()):
        return None
    at, known, nonce, verifier, to = json.loads(base64.urlsafe_b64decode(text))
    is_own = secrets.compare_digest(known.encode(), state.encode("utf-8", "surrogatepass"))
    if not is_own or now.timestamp() - at > TIMEOUT_S:
        return None
    return StartedSignIn(state=known, nonce=nonce, verifier=verifier, address=""), to


def _sign(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


async def begin(request: Request) -> Response:
    shared, site = of_app(request, SharedProvider), site_of(request)
    provider = shared.provider(request)
    to = local_path(request.query_params.get("to"))[:LONGEST_PATH]

    def start() -> tuple[StartedSignIn, str]:
        begun = provider.begin(_back_to(request))
        return begun, _to_cookie(site.archive.database, begun, to)

    begun, cookie = await run_sync(start, limiter=shared.limiter)
    response = RedirectResponse(begun.address, status_code=303)
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
    return await run_sync(_back, request, limiter=of_app(request, SharedProvider).limiter)


def _back(request: Request) -> Response:
    site, query = site_of(request), request.query_params
    provider = of_app(request, SharedProvider).provider(request)
    own_cookie = request.cookies.get(site.cookie_name(COOKIE), "")[:4000]
    taken = _from_cookie(site.archive.database, own_cookie, query.get("state", "")[:200])
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
