"""TimeMaps: all versions of an address for machines (RFC 7089, 5), in pages, each a stream.

/{collection}/timemap/link/{url}               application/link-format, as the RFC has it
/{collection}/timemap/json/{url}               the same as JSON, as other archives give it
/{collection}/timemap/cdxj/{url}               the same as CDXJ lines
/{collection}/timemap/{form}/{timestamp}/{url} a page: the versions from that moment on

A page ends after so many mementos, at a change of the second, and names the next; no page costs more for
those before it.
"""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from webdepot.access.replay.headers import http_date
from webdepot.model import Capture
from webdepot.ports import Position
from webdepot.services.access import lookup
from webdepot.times import from_timestamp, to_timestamp
from webdepot.web.api.openapi_parts import ADDRESS, COLLECTION, NOT_KEPT, on_replay, parameter
from webdepot.web.replay import address
from webdepot.web.replay.address import Address
from webdepot.web.site import Site, reader_of, site_of

PAGE_MEMENTOS = 5000
_TYPES = {"link": "application/link-format", "json": "application/json", "cdxj": "text/x-cdxj"}


def answer(request: Request, found: Address) -> Response:
    site = site_of(request)
    after = None
    if found.timestamp:
        start = to_timestamp(from_timestamp(found.timestamp))
        after = Position(key="", timestamp=f"{int(start) - 1:014d}", container="", offset=0)
    versions = lookup.iter_versions(
        site.archive, found.url, collection=found.collection, reader=reader_of(request), after=after
    )
    page = _Page(f"{site.replay_url}/{found.collection}", found, versions)
    lines = {"link": page.link, "json": page.json, "cdxj": page.cdxj}[found.form]()
    headers = {"Cache-Control": "no-cache", "Access-Control-Allow-Origin": "*"}
    return StreamingResponse(_pieces(lines), media_type=_TYPES[found.form], headers=headers)


def described(site: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    form = parameter("form", "Form of the answer.", where="path", required=True, enum=list(_TYPES))
    page = parameter(
        "timestamp",
        "The versions from this moment on; a page names the next one.",
        where="path",
        required=True,
    )
    found = {
        "description": "Mementos in order of time.",
        "content": {kind: {"schema": {"type": "string"}} for kind in _TYPES.values()},
    }
    whole = {
        "summary": "TimeMap (RFC 7089)",
        "parameters": [COLLECTION, form, ADDRESS],
        "responses": {"200": found, **NOT_KEPT},
    }
    part = {**whole, "summary": "A page of a TimeMap", "parameters": [COLLECTION, form, page, ADDRESS]}
    first = on_replay(site, "/{collection}/timemap/{form}/{url}", whole)
    return first | on_replay(site, "/{collection}/timemap/{form}/{timestamp}/{url}", part)


def _pieces(lines: Iterator[str]) -> Iterator[str]:
    """Few large pieces: each is one turn of the server."""
    while piece := "".join(islice(lines, 500)):
        yield piece


class _Page:
    """One page while it is written: what comes next is known at its end."""

    def __init__(self, base: str, found: Address, versions: Iterator[Capture]) -> None:
        self._base = base
        self._form = found.form
        self._target = address.quote_url(found.url)
        self._page = found.timestamp
        self._versions = versions
        self._next = ""

    def link(self) -> Iterator[str]:
        yield f'<{self._target}>; rel="original",\n<{self._base}/{self._target}>; rel="timegate",\n'
        yield f'<{self._map(self._page)}>; rel="self"; type="application/link-format"'
        for capture in self._mementos():
            yield f',\n<{self._where(capture)}>; rel="memento"; datetime="{http_date(capture.timestamp)}"'
        if self._next:
            yield f',\n<{self._map(self._next)}>; rel="timemap next"; type="application/link-format"; from="{http_date(self._next)}"'
        yield "\n"

    def json(self) -> Iterator[str]:
        head = {
            "original_uri": self._target,
            "timegate_uri": f"{self._base}/{self._target}",
            "self": self._map(self._page),
        }
        yield json.dumps(head)[:-1] + ', "mementos": {"list": ['
        comma = ""
        for capture in self._mementos():
            yield comma + json.dumps({"datetime": _iso(capture.timestamp), "uri": self._where(capture)})
            comma = ",\n"
        following = (
            f', "timemap_index": [{{"uri": {json.dumps(self._map(self._next))}}}]' if self._next else ""
        )
        yield f"]}}{following}}}\n"

    def cdxj(self) -> Iterator[str]:
        yield f'!context ["http://tools.ietf.org/html/rfc7089"]\n!id {json.dumps({"uri": self._map(self._page)})}\n'
        yield f"!meta {json.dumps({'original_uri': self._target, 'timegate_uri': f'{self._base}/{self._target}'})}\n"
        for capture in self._mementos():
            said = {"uri": self._where(capture), "rel": "memento", "datetime": http_date(capture.timestamp)}
            yield f"{capture.timestamp} {json.dumps(said)}\n"
        if self._next:
            yield f"!meta {json.dumps({'next': self._map(self._next)})}\n"

    def _mementos(self) -> Iterator[Capture]:
        last = ""
        for number, capture in enumerate(self._versions, start=1):
            if number > PAGE_MEMENTOS and capture.timestamp != last:
                self._next = capture.timestamp
                return
            last = capture.timestamp
            yield capture

    def _where(self, capture: Capture) -> str:
        return f"{self._base}/{capture.timestamp}id_/{address.quote_url(capture.url)}"

    def _map(self, page: str) -> str:
        return f"{self._base}/timemap/{self._form}/{page}{'/' if page else ''}{self._target}"


def _iso(timestamp: str) -> str:
    digits = timestamp
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}Z"
