"""One description of all interfaces for machines: /api/openapi.json, in OpenAPI 3.1
(https://spec.openapis.org/oas/v3.1.0).

Each module of `PARTS` has a function `described(site)` that gives its paths; the document is their sum. A new
interface adds its module.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.version import VERSION
from webdepot.web.site import Site, site_of

PARTS = ("search_api", "cdx", "timemap", "raw")
Paths = Mapping[str, Mapping[str, Any]]


def document(request: Request) -> Response:
    site = site_of(request)
    paths: dict[str, Any] = {}
    for name in PARTS:
        paths |= importlib.import_module(f"webdepot.web.{name}").described(site)
    info = {
        "title": site.archive.config.archive.name,
        "version": VERSION,
        "license": {"name": "AGPL-3.0-or-later", "identifier": "AGPL-3.0-or-later"},
    }
    made = {"openapi": "3.1.0", "info": info, "servers": [{"url": site.portal_url}], "paths": paths}
    return JSONResponse(made, headers={"Access-Control-Allow-Origin": "*"})


def parameter(
    name: str,
    words: str,
    kind: str = "string",
    *,
    where: str = "query",
    required: bool = False,
    **schema: Any,
) -> dict[str, Any]:
    return {
        "name": name,
        "in": where,
        "required": required,
        "description": words,
        "schema": {"type": kind, **schema},
    }


def on_replay(site: Site, path: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    """A path of the replay host."""
    return {path: {"servers": [{"url": site.replay_url}], "get": operation}}


COLLECTION = parameter(
    "collection", "Name of a collection; `all` is everything.", where="path", required=True
)
ADDRESS = parameter(
    "url", "The archived address, unescaped, with its own question.", where="path", required=True
)
NOT_KEPT = {
    "404": {"description": "Nothing of the kind is kept, or it is hidden."},
    "451": {"description": "A rule of access refuses it; the answer has its words."},
}
