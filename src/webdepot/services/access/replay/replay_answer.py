"""An opened capture as an HTTP answer: status, headers and body that can be sent to current clients.

    for_client    to anybody: the archived status, harmless headers, the exact payload or a part of it
    for_worker    to the replay worker in the browser: always 200, the archived status in headers of its own
    still         rewritten on the server, without scripts, for clients without a worker
    for_proxy     under the page's own address, to terminals that use the archive as their proxy
    converted     the payload in the format it was migrated to

The caller adds the headers that depend on its own addresses and policies, sends the body and then calls
`Replayed.close`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import chain
from typing import BinaryIO

from webdepot.access.lookup import Neighbours
from webdepot.access.policy import Reader
from webdepot.access.replay import headers as replay_headers
from webdepot.access.replay import server_rewrite, worker_page, xml_view
from webdepot.access.replay.body import negotiated, part_of
from webdepot.access.replay.xml_view import Feed, XmlTree
from webdepot.archive import Archive
from webdepot.container.streams import iter_pieces, stream_of
from webdepot.errors import WebdepotError
from webdepot.http_headers import parse_range
from webdepot.index import post_requests
from webdepot.model import Capture
from webdepot.services.access.lookup import NotKept
from webdepot.services.access.replay import replay
from webdepot.services.access.replay.replay import NotAtHand, Replayed, VersionPlace
from webdepot.url import Url, find_canonical

Headers = list[tuple[str, str]]
MOST_BODY_BYTES = post_requests.MOST_BODY_BYTES
"""How much of a request's body counts when the answer to it is looked up."""
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_STYLE_SHEET = "text/css"
_NOT_TO_TERMINALS = frozenset(
    {
        # Would make a browser bypass the proxy, remember something about the live host, or report to it.
        "alt-svc",
        "strict-transport-security",
        "public-key-pins",
        "public-key-pins-report-only",
        "expect-ct",
        "nel",
        "report-to",
        "reporting-endpoints",
        # Describe a copy in a cache: the next request may be about another time.
        "cache-control",
        "pragma",
        "expires",
        "age",
        "etag",
        "date",
        "server",
        "via",
        "memento-datetime",
        "link",
        "vary",
        "content-encoding",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAnswer:
    status: int
    """One that HTTP can send today."""
    headers: Headers
    body: BinaryIO


def for_client(opened: Replayed, *, accept_encoding: str | None, byte_range: str | None) -> ReplayAnswer:
    """The capture as it was: archived headers that are harmless, all others under another name.

    `accept_encoding` and `byte_range` are headers of the request.
    """
    status, body, about_body = _body(opened, accept_encoding, byte_range)
    return _answer(status, [*_passed_on(opened), *about_body], body)


def for_worker(opened: Replayed, *, accept_encoding: str | None, byte_range: str | None) -> ReplayAnswer:
    """The capture for the replay worker, which would follow a redirect and replace an error page: 200 (or
    206), with the archived status in headers that the worker reads.
    """
    passed = _passed_on(opened)
    if "html" in opened.capture.mime:
        stream = negotiated(opened.payload, opened.head, "identity").stream
        start = stream.read(worker_page.MOST_BYTES + 1)
        declared = next((value for name, value in passed if name.lower() == "content-type"), "")
        page, content_type = worker_page.prepared(start, declared or opened.capture.mime, opened.capture.url)
        archived, about_body = opened.status, Headers()
        body = stream_of(chain((page,), iter_pieces(stream)))
        passed = _with_type(passed, content_type)
    else:
        archived, body, about_body = _body(opened, accept_encoding, byte_range)
    status = replay_headers.sendable(archived)
    headers = [
        *passed,
        *about_body,
        # The only header of its parts that a page can read: the banner shows which are from another time.
        ("Server-Timing", f'captured;desc="{opened.capture.timestamp}"'),
        replay_headers.CONNECTIONS,
        ("X-Redirect-Status", str(status)),
        ("X-Redirect-StatusText", opened.head.reason[:100] if opened.head else "OK"),
    ]
    if status in replay_headers.WITHOUT_BODY:
        body = BytesIO()
    return ReplayAnswer(status=206 if archived == 206 else 200, headers=headers, body=body)


def with_xml_view(opened: Replayed) -> tuple[Replayed, Feed | XmlTree | None]:
    """What a reader is shown instead of an XML document that browsers do not show; None for everything else.
    The capture is returned with it, still to be read.
    """
    if not xml_view.is_xml(opened.capture.mime) or opened.status != 200:
        return opened, None
    start = opened.payload.read(xml_view.MOST_BYTES)
    again = replace(opened, payload=stream_of(chain((start,), iter_pieces(opened.payload))))
    content = negotiated(BytesIO(start), opened.head, "identity").stream.read(xml_view.MOST_BYTES + 1)
    return again, xml_view.view_of(content, opened.capture.url)


def still(
    opened: Replayed,
    *,
    accept_encoding: str | None,
    byte_range: str | None,
    lead: Callable[[str], str],
) -> ReplayAnswer:
    """The capture with the addresses in pages and style sheets rewritten by `lead`; everything else as it
    was. The caller's policy must forbid scripts.
    """
    mime = opened.capture.mime
    if mime not in _PAGES and mime != _STYLE_SHEET:
        return for_client(opened, accept_encoding=accept_encoding, byte_range=byte_range)
    data, content_type = _rewrite(opened, lead)
    return as_type(_answer(opened.status, _passed_on(opened), BytesIO(data)), content_type)


def for_proxy(
    opened: Replayed, *, accept_encoding: str | None, byte_range: str | None, has_cookies: bool = True
) -> ReplayAnswer:
    """The capture under its own address: cookies, policies and redirects act as they did."""
    status, body, about_body = _body(opened, accept_encoding, byte_range)
    headers = [
        pair
        for pair in replay_headers.cleaned(_archived_headers(opened))
        if pair[0].lower() not in _NOT_TO_TERMINALS
        and (has_cookies or pair[0].lower() not in replay_headers.COOKIES)
    ]
    return _answer(status, [*headers, *about_body], body)


def as_type(answer: ReplayAnswer, mime: str) -> ReplayAnswer:
    """The same answer with this media type alone, whatever was archived."""
    return replace(answer, headers=_with_type(answer.headers, mime))


def converted(opened: Replayed) -> ReplayAnswer:
    """The payload of a conversion (`replay.open_conversion`) with its media type."""
    mime = (opened.head.get("content-type") if opened.head else None) or "application/octet-stream"
    return ReplayAnswer(status=200, headers=[("Content-Type", mime)], body=opened.payload)


def memento_headers(
    capture: Capture, *, collection: str, replay_url: str, neighbours: Neighbours | None = None
) -> Headers:
    """`Memento-Datetime` and `Link` of a capture (RFC 7089); with its neighbours, if given."""
    near = neighbours and {
        "first": neighbours.first,
        "prev": neighbours.previous,
        "next": neighbours.next,
        "last": neighbours.last,
    }
    return replay_headers.memento(
        url=capture.url,
        timestamp=capture.timestamp,
        replay_url=replay_url,
        collection=collection,
        steps={name: (step.timestamp, step.url) for name, step in (near or {}).items() if step},
    )


def find_redirect(opened: Replayed) -> Url | None:
    """The absolute target of an archived redirect; None when the capture is not one."""
    target = opened.capture.redirect or (opened.head.get("location") or "" if opened.head else "")
    if not target or not 300 <= opened.status < 400:
        return None
    return find_canonical(target, opened.capture.url)


def framed_status(place: VersionPlace) -> int:
    """The status of the page around a version: an archived error is still an error, and so is a version that
    cannot be read.
    """
    if place.failure is not None:
        return place.failure.http_status
    status = replay_headers.sendable(place.capture.status)
    return status if status >= 400 else 200


def find_small(
    archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader
) -> Replayed | None:
    """A small capture that is opened without waiting; None for everything else, refusals and errors
    included.
    """
    try:
        return replay.open_at_hand(archive, url, timestamp, collection=collection, reader=reader)
    except (WebdepotError, NotAtHand):
        return None


def open_requested(
    archive: Archive,
    url: Url,
    timestamp: str,
    *,
    method: str,
    content_type: str,
    body: bytes,
    collection: str,
    reader: Reader,
) -> Replayed:
    """Open the answer to a request with this method and body; raises as `replay.open_capture` does."""
    folded = post_requests.folded(url, method, content_type, body)
    try:
        return replay.open_capture(archive, folded, timestamp, collection=collection, reader=reader)
    except NotKept:
        if folded == url:
            raise
        # The tool that archived it may not have stored the request.
        return replay.open_capture(archive, url, timestamp, collection=collection, reader=reader)


def _answer(archived: int, headers: Headers, body: BinaryIO) -> ReplayAnswer:
    """An answer with a status that can be sent; another archived status is given in a header."""
    status = replay_headers.sendable(archived)
    if status != archived:
        headers = [*headers, (f"{replay_headers.PREFIX}Status", str(archived))]
    if status in replay_headers.WITHOUT_BODY:
        body = BytesIO()
    return ReplayAnswer(status=status, headers=headers, body=body)


def _body(
    opened: Replayed, accept_encoding: str | None, byte_range: str | None
) -> tuple[int, BinaryIO, Headers]:
    """Status, body and the headers about it: in a coding that the client accepts, whole or in part."""
    body = negotiated(opened.payload, opened.head, accept_encoding)
    headers = [("Content-Encoding", body.coding)] if body.coding else []
    is_coded = bool(body.coding) or (opened.head is not None and bool(opened.head.get("content-encoding")))
    size_bytes = None if is_coded else opened.size_bytes
    if size_bytes is None or opened.status != 200:
        return opened.status, body.stream, headers
    headers.append(("Accept-Ranges", "bytes"))
    part = parse_range(byte_range, size_bytes)
    if part is None:
        return opened.status, body.stream, headers
    headers.append(("Content-Range", f"bytes {part[0]}-{part[1]}/{size_bytes}"))
    return 206, part_of(body.stream, *part), headers


def _passed_on(opened: Replayed) -> Headers:
    """Archived headers without the content coding, which depends on the body that is sent."""
    return [
        pair
        for pair in replay_headers.passed_on(_archived_headers(opened))
        if pair[0].lower() != "content-encoding"
    ]


def _archived_headers(opened: Replayed) -> tuple[tuple[str, str], ...]:
    return tuple(opened.head.headers) if opened.head else (("Content-Type", opened.capture.mime),)


def _with_type(headers: Headers, mime: str) -> Headers:
    return [*(pair for pair in headers if pair[0].lower() != "content-type"), ("Content-Type", mime)]


def _rewrite(opened: Replayed, lead: Callable[[str], str]) -> tuple[bytes, str]:
    """The body of a page or style sheet with its addresses changed, and its media type; very long ones as
    they are.
    """
    mime = opened.capture.mime
    stream = negotiated(opened.payload, opened.head, "identity").stream
    data = stream.read(server_rewrite.MOST_BYTES + 1)
    if len(data) > server_rewrite.MOST_BYTES:
        return data + stream.read(), mime
    content_type = (opened.head.get("content-type") if opened.head else None) or mime
    change = server_rewrite.css if mime == _STYLE_SHEET else server_rewrite.html
    text = change(server_rewrite.text_of(data, content_type), opened.capture.url, lead)
    return text.encode("utf-8", "replace"), f"{mime}; charset=utf-8"
