"""A request of a page in a tab, and the reply that the page gets."""

from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from json import dumps

from webdepot.container.http import HttpHead, content_decoded, transfer_decoded
from webdepot.model import Visit
from webdepot.url import Url

LARGEST_BODY_BYTES = 32 << 20
"""A larger body is stored, but not passed to the tab."""
_FORWARDED = frozenset(
    {"accept", "accept-language", "authorization", "content-type", "origin", "purpose", "x-requested-with"}
)
_TRANSFER_HEADERS = frozenset(
    {
        "content-encoding",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "trailer",
        "upgrade",
        "alt-svc",
    }
)
"""Headers about the transfer, which the tab does not get: its bytes are decoded, and `Alt-Svc` would send it
elsewhere.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TabRequest:
    """A request of a page."""

    url: str
    method: str
    kind: str
    """Its purpose: Document, Stylesheet, Image, Media, Script, XHR, Fetch, EventSource, …"""
    headers: Mapping[str, str]
    body: bytes
    redirected_from: str
    """Address of the request that was redirected here; empty for most requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TabReply:
    """The response that the page gets; its body has no coding."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


AnswerRequest = Callable[[TabRequest], Awaitable[TabReply | None]]
"""Called for each request; if it returns None, the request fails in the page."""


def key_of(url: Url, request: TabRequest) -> str:
    """A key that identifies a request of a page: equal keys get the same reply."""
    return f"{sha256(request.body).hexdigest()} {url}" if request.body else url


def content_of(visit: Visit, head: HttpHead) -> bytes | None:
    """The decoded body; None if it is too large for a tab or its coding is wrong."""
    visit.body.seek(0)
    with suppress(Exception):  # a wrong coding is the server's error; the answer is kept anyway
        body = content_decoded(
            transfer_decoded(visit.body, head), head, limit_bytes=LARGEST_BODY_BYTES + 1
        ).read(LARGEST_BODY_BYTES + 1)
        return body if len(body) <= LARGEST_BODY_BYTES else None
    return None


def reply_to(visit: Visit, head: HttpHead, body: bytes) -> TabReply:
    return TabReply(status=visit.status, headers=without_transfer(head.headers), body=body)


def without_transfer(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers that the tab gets with a body that has no coding."""
    return [(name, value) for name, value in headers if name.lower() not in _TRANSFER_HEADERS]


def preflight_reply(headers: Mapping[str, str]) -> TabReply:
    """The reply to a CORS preflight request (https://fetch.spec.whatwg.org/#cors-preflight-fetch). It is not
    sent to the server, whose answer to the request itself decides.
    """
    names = (
        ("Access-Control-Allow-Origin", headers.get("origin", "*")),
        ("Access-Control-Allow-Methods", "GET, HEAD, POST"),
        ("Access-Control-Allow-Headers", headers.get("access-control-request-headers", "")),
        ("Access-Control-Allow-Credentials", "true"),
    )
    return TabReply(status=204, headers=names, body=b"")


def forwarded_headers(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers of a script that state which kind of answer it wants; never ranges, conditions or
    cookies.
    """
    return [
        (name, value)
        for name, value in headers.items()
        if name.lower() in _FORWARDED or name.lower().startswith("x-")
    ]


def fulfilment(number: str, reply: TabReply) -> bytes:
    headers = [{"name": name, "value": value} for name, value in reply.headers]
    head = dumps({"requestId": number, "responseCode": reply.status, "responseHeaders": headers}).encode()
    return b"".join((head[:-1], b',"body":"', b64encode(reply.body), b'"}'))
