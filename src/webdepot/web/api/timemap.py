"""TimeMaps: all versions of an address for machines (RFC 7089, 5), in pages that are streamed.

/{collection}/timemap/link/{url}               application/link-format, as in the RFC
/{collection}/timemap/json/{url}               the same as JSON, as other archives return it
/{collection}/timemap/cdxj/{url}               the same as CDXJ lines
/{collection}/timemap/{form}/{timestamp}/{url} a page: the versions from that moment on

A page ends after `PAGE_MEMENTOS`, between two seconds, and links to the next. A later page does not cost more
than the first.
"""

import json
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from webdepot.model import Capture
from webdepot.ports.captures import Position
from webdepot.services.access import lookup
from webdepot.services.access.lookup import OpenVersions
from webdepot.times import from_timestamp, http_date, to_timestamp
from webdepot.web import heavy_work
from webdepot.web.api.openapi_parts import ADDRESS, COLLECTION, NOT_KEPT, on_replay, parameter
from webdepot.web.replay import address
from webdepot.web.replay.address import ReplayAddress
from webdepot.web.site import Site, machine_reader, site_of

PAGE_MEMENTOS = 5000
_TYPES = {"link": "application/link-format", "json": "application/json", "cdxj": "text/x-cdxj"}


def answer(request: Request, asked: ReplayAddress) -> Response:
    site = site_of(request)
    after = None
    if asked.timestamp:
        start = to_timestamp(from_timestamp(asked.timestamp))
        after = Position(key="", timestamp=f"{int(start) - 1:014d}", container="", offset=0)
    reader, headers = machine_reader(request)
    versions = lookup.iter_versions(
        site.archive, asked.url, collection=asked.collection, reader=reader, after=after
    )
    page = _TimeMapPage(f"{site.replay_url}/{asked.collection}", asked, versions)
    lines = {"link": page.link, "json": page.json, "cdxj": page.cdxj}[asked.form]()
    return heavy_work.stream(request, lines, media_type=_TYPES[asked.form], headers=headers)


def describe_api(site: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    form = parameter("form", "Format of the answer.", where="path", required=True, enum=list(_TYPES))
    page = parameter(
        "timestamp",
        "Versions from this moment on; each page links to the next.",
        where="path",
        required=True,
    )
    mementos = {
        "description": "Mementos in order of time.",
        "content": {kind: {"schema": {"type": "string"}} for kind in _TYPES.values()},
    }
    whole = {
        "summary": "TimeMap (RFC 7089)",
        "parameters": [COLLECTION, form, ADDRESS],
        "responses": {"200": mementos, **NOT_KEPT},
    }
    part = {**whole, "summary": "A page of a TimeMap", "parameters": [COLLECTION, form, page, ADDRESS]}
    first = on_replay(site, "/{collection}/timemap/{form}/{url}", whole)
    return first | on_replay(site, "/{collection}/timemap/{form}/{timestamp}/{url}", part)


class _TimeMapPage:
    """One page while it is written: whether there is a next one is known at its end."""

    def __init__(self, base: str, asked: ReplayAddress, versions: OpenVersions) -> None:
        self._base = base
        self._form = asked.form
        self._target = address.quote_url(asked.url)
        self._page = asked.timestamp
        self._versions = versions
        self._next = ""

    def link(self) -> Iterator[str]:
        yield f'<{self._target}>; rel="original",\n<{self._base}/{self._target}>; rel="timegate",\n'
        yield f'<{self._map(self._page)}>; rel="self"; type="application/link-format"'
        for capture in self._mementos():
            yield f',\n<{self._where(capture)}>; rel="memento"; datetime="{http_date(capture.timestamp)}"'
        if self._next:
            yield (
                f',\n<{self._map(self._next)}>; rel="timemap next"; type="application/link-format"; '
                f'from="{http_date(self._next)}"'
            )
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
        yield '!context ["http://tools.ietf.org/html/rfc7089"]\n'
        yield f"!id {json.dumps({'uri': self._map(self._page)})}\n"
        timegate = f"{self._base}/{self._target}"
        yield f"!meta {json.dumps({'original_uri': self._target, 'timegate_uri': timegate})}\n"
        for capture in self._mementos():
            memento = {
                "uri": self._where(capture),
                "rel": "memento",
                "datetime": http_date(capture.timestamp),
            }
            yield f"{capture.timestamp} {json.dumps(memento)}\n"
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
        self._next = self._versions.cut

    def _where(self, capture: Capture) -> str:
        return f"{self._base}/{capture.timestamp}id_/{address.quote_url(capture.url)}"

    def _map(self, page: str) -> str:
        return f"{self._base}/timemap/{self._form}/{page}{'/' if page else ''}{self._target}"


def _iso(timestamp: str) -> str:
    digits = timestamp
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}T{digits[8:10]}:{digits[10:12]}:{digits[12:14]}Z"
