"""Guards around the portal, the frame and replay, as plain ASGI wrappers (https://asgi.readthedocs.io), and
the policies they send.

HostGuard        answers only to the host name of its origin, so that cookies are never shared between origins
SiteHostGuard    refuses host names that look like those of archived sites but are not
OriginGuard      refuses changing requests from other sites (by Sec-Fetch-Site, else Origin)
PolicyHeaders    adds policy headers to every answer that does not set them itself
"""

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers as RequestHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webdepot.access.replay.headers import RAW_POLICY
from webdepot.access.replay.site_hosts import SiteHosts

PAGE_SANDBOX = "allow-scripts allow-same-origin allow-forms allow-modals allow-downloads allow-pointer-lock"
"""What an archived page may do in its frame: neither open windows nor leave the frame."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def portal_policy(frame_url: str, *, framed_urls: Sequence[str] = (), pictures_url: str = "") -> str:
    """The Content-Security-Policy of a page of the portal or the frame. Only the origins of the archived
    pages that it shows can be framed: an archived script cannot move its frame to that of another site.
    """
    framed = "".join(f" {url}" for url in dict.fromkeys(framed_urls))
    frames, pictures = framed or " 'none'", f" {pictures_url}" if pictures_url else ""
    # Browsers apply form-action to the redirects that follow a form too: signing in to see an archived page
    # leads to the frame.
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:{pictures}; "
        f"connect-src 'self'{framed}; font-src 'self'; manifest-src 'self'; "
        f"form-action 'self' {frame_url}; base-uri 'none'; frame-ancestors 'none'; "
        f"frame-src{frames}"
    )


def portal_headers(frame_url: str) -> Mapping[str, str]:
    """Headers of every page of the portal and the frame."""
    return {
        "Content-Security-Policy": portal_policy(frame_url),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "X-DNS-Prefetch-Control": "off",
    }


def replay_headers(frame_url: str) -> Mapping[str, str]:
    """Headers of every answer of replay that does not set them itself."""
    return {
        "Content-Security-Policy": f"{RAW_POLICY}; base-uri 'none'; frame-ancestors {frame_url}",
        "Referrer-Policy": "no-referrer",
        "X-DNS-Prefetch-Control": "off",
        "X-Robots-Tag": "noindex, nofollow",
    }


def start_policy(own_url: str, frame_url: str) -> str:
    """The Content-Security-Policy of the page that installs the worker: its own two files and the worker, by
    name, since archived scripts are of the same origin.
    """
    return (
        f"default-src 'none'; script-src {own_url}/-/start.js; style-src {own_url}/-/start.css; "
        f"worker-src {own_url}/sw.js; connect-src {own_url}/sw.js; form-action 'none'; "
        f"base-uri 'none'; frame-ancestors 'self' {frame_url}"
    )


def page_policy(frame_url: str) -> str:
    """The Content-Security-Policy of an archived page rewritten in the browser: everything from its own
    origin, nothing from anywhere else, not even from that of another archived site. Its sandbox is that of
    the frame around it, for pages that get into another one.

    It names neither `ws:` nor `wss:`. `object-src` is 'none' because browsers fetch the data of `<object>`
    past the worker, so it would not be rewritten; `archived_page.js` shows such pages and images in frames.
    """
    return (
        f"sandbox {PAGE_SANDBOX}; "
        "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; "
        "frame-src 'self' data: about: blob:; form-action 'self'; object-src 'none'; "
        f"base-uri 'self'; frame-ancestors 'self' {frame_url}"
    )


def still_policy(frame_url: str) -> str:
    """The Content-Security-Policy of an archived page rewritten on the server: no scripts, and nothing from
    any other origin.
    """
    return (
        "sandbox allow-same-origin allow-forms; default-src 'self' data:; "
        "style-src 'self' 'unsafe-inline' data:; script-src 'none'; connect-src 'none'; "
        f"object-src 'none'; form-action 'self'; frame-ancestors 'self' {frame_url}"
    )


class PolicyHeaders:
    """Adds headers to every HTTP answer that does not set them itself."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._pairs = [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]

    def added_by(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *[pair for pair in self._pairs if pair[0] not in names],
                ]
            await send(message)

        return sending


class HostGuard:
    """Redirects readers who came by another name of this machine to the right one."""

    def __init__(self, app: ASGIApp, own_url: str, is_also_own: Callable[[str], bool] | None = None) -> None:
        self.app = app
        self.own_url = own_url
        self._host = urlsplit(own_url).netloc.encode("latin-1")
        self._is_also_own = is_also_own or (lambda host: False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_own(scope):
            await self.app(scope, receive, send)
            return
        response: Response
        if scope["method"] in SAFE_METHODS:
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            query: bytes = scope["query_string"]
            path = (raw + (b"?" + query if query else b"")).decode("latin-1")
            response = RedirectResponse(self.own_url + path, status_code=307)
        else:
            response = PlainTextResponse(
                f"This server is {self.own_url}. Send the request to that address.\n", status_code=421
            )
        await response(scope, receive, send)

    def _is_own(self, scope: Scope) -> bool:
        """Whether the request has this host name, or none."""
        host = next((value for name, value in scope["headers"] if name == b"host"), self._host)
        return bool(host.lower() == self._host) or self._is_also_own(host.decode("latin-1"))


class SiteHostGuard:
    """Refuses host names below that of replay which are not names of archived sites."""

    def __init__(self, app: ASGIApp, hosts: SiteHosts) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if (
            scope["type"] == "http"
            and self.hosts.find_asked(RequestHeaders(scope=scope).get("host", "")) is None
        ):
            app = PlainTextResponse("There is no archived site with this host name.\n", status_code=421)
        await app(scope, receive, send)


class OriginGuard:
    """Refuses changing requests that a page of another site made the reader's browser send."""

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
        # A client that sends neither header is not a current browser, and no page controls its cookies.
        return origin is None or origin in self.own_urls
