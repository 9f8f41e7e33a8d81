"""Guards around both faces, as plain ASGI wrappers (https://asgi.readthedocs.io): each does one thing to
every answer.

HostGuard     only the one host name that belongs to the face: cookies must never be shared between portal and replay
OriginGuard   changing requests from other sites are refused (by Sec-Fetch-Site, else Origin)
Headers       policy headers on every answer that has none of its own
"""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers as RequestHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def portal_headers(replay_url: str, frame_url: str) -> Mapping[str, str]:
    # Browsers hold the redirects behind a form to its policy too: who signs in to see an archived page is led
    # on to the frame around it.
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
        f"manifest-src 'self'; form-action 'self' {frame_url}; base-uri 'none'; frame-ancestors 'none'; frame-src {replay_url}"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "X-DNS-Prefetch-Control": "off",
    }


def replay_headers(frame_url: str) -> Mapping[str, str]:
    return {
        "Content-Security-Policy": f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; "
        f"form-action 'none'; base-uri 'none'; frame-ancestors {frame_url}",
        "Referrer-Policy": "no-referrer",
        "X-DNS-Prefetch-Control": "off",
        "X-Robots-Tag": "noindex, nofollow",
    }


Pairs = Sequence[tuple[bytes, bytes]]


def encoded(headers: Mapping[str, str]) -> Pairs:
    """Headers as they go over the wire."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def with_policies(said: Pairs, policies: Pairs) -> list[tuple[bytes, bytes]]:
    """The headers of an answer and those of the policies that it does not say itself."""
    names = {name for name, _ in said}
    return [*said, *[pair for pair in policies if pair[0] not in names]]


class Headers:
    """Adds headers to every HTTP answer that does not say them itself."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self.app = app
        self._pairs = encoded(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = with_policies(message["headers"], self._pairs)
            await send(message)

        await self.app(scope, receive, sending)


class HostGuard:
    """Sends readers who came by another name of this machine to the right one."""

    def __init__(self, app: ASGIApp, own_url: str) -> None:
        self.app = app
        self.own_url = own_url
        self.host = urlsplit(own_url).netloc
        self._raw_host = self.host.encode("latin-1")

    def is_own(self, scope: Scope) -> bool:
        """Whether a request came by this name, or by none."""
        return (
            next((value for name, value in scope["headers"] if name == b"host"), self._raw_host).lower()
            == self._raw_host
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self.is_own(scope):
            await self.app(scope, receive, send)
            return
        response: Response
        if scope["method"] in SAFE_METHODS:
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            query: bytes = scope["query_string"]
            path = (raw + (b"?" + query if query else b"")).decode("latin-1")
            response = RedirectResponse(self.own_url + path, status_code=307)
        else:
            response = PlainTextResponse(f"This is {self.own_url}. Ask there.\n", status_code=421)
        await response(scope, receive, send)


class OriginGuard:
    """Refuses changing requests that another site made a reader's browser send."""

    def __init__(self, app: ASGIApp, own_urls: Sequence[str], refusal: ASGIApp) -> None:
        self.app = app
        self.own_urls = own_urls
        self.refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "http"
            and scope["method"] not in SAFE_METHODS
            and not self._is_own(RequestHeaders(scope=scope))
        ):
            await self.refusal(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _is_own(self, headers: RequestHeaders) -> bool:
        site = headers.get("sec-fetch-site")
        if site is not None:
            return site in ("same-origin", "none")
        origin = headers.get("origin")
        # Neither header: no browser of the last years; cookies of other clients are their own affair.
        return origin is None or origin in self.own_urls
