"""The description of all interfaces for machines: /api/openapi.json, in OpenAPI 3.1
(https://spec.openapis.org/oas/v3.1.0).

Each module of `API_MODULES` has a function `describe_api(site)` that returns its paths; the document contains
them all. To describe a new interface, add its module.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.version import VERSION
from webdepot.web.api import cdx, search, timemap
from webdepot.web.reader import evidence
from webdepot.web.replay import raw
from webdepot.web.site import site_of

API_MODULES = (search, cdx, timemap, raw, evidence)
"""Modules with a `describe_api` function: the paths they serve."""


def send_document(request: Request) -> Response:
    site = site_of(request)
    paths: dict[str, Any] = {}
    for module in API_MODULES:
        paths |= module.describe_api(site)
    info = {
        "title": site.archive.config.archive.name,
        "version": VERSION,
        "license": {"name": "AGPL-3.0-or-later", "identifier": "AGPL-3.0-or-later"},
    }
    description = {"openapi": "3.1.0", "info": info, "servers": [{"url": site.portal_url}], "paths": paths}
    return JSONResponse(description, headers={"Access-Control-Allow-Origin": "*"})
