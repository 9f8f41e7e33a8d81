"""The description of all interfaces for machines: /api/openapi.json, in OpenAPI 3.1
(https://spec.openapis.org/oas/v3.1.0).

Each module of `API_MODULES` has a function `describe_api(site)` that returns its paths; the document contains
them all. To describe a new interface, add its module. Who may call an operation is added from the route
table.
"""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import compile_path

from webdepot.version import VERSION
from webdepot.web.api import cdx, search, timemap
from webdepot.web.api.openapi_parts import PROBLEM, problem_answer
from webdepot.web.api.routes import API_ROUTES
from webdepot.web.api.staff import (
    cases,
    collections,
    harvests,
    jobs,
    letters,
    organisations,
    packages,
    partners,
    plans,
    records,
    reviews,
    rules,
    targets,
    users,
    webhooks,
)
from webdepot.web.reader import evidence
from webdepot.web.replay import captures
from webdepot.web.route_row import RouteRow
from webdepot.web.site import site_of

STAFF_MODULES = (
    targets,
    letters,
    plans,
    harvests,
    reviews,
    rules,
    cases,
    collections,
    records,
    organisations,
    packages,
    jobs,
    partners,
    users,
    webhooks,
)
"""What staff can do, for programs. Their schemas are in `SCHEMAS` of each."""
API_MODULES = (search, cdx, timemap, captures, evidence, *STAFF_MODULES)
"""Modules with a `describe_api` function: the paths they serve."""
_KEY = "apiKey"


def send_document(request: Request) -> Response:
    site = site_of(request)
    paths: dict[str, Any] = {}
    for module in API_MODULES:
        paths |= module.describe_api(site)
    for row in API_ROUTES:
        if row.roles:
            for method in row.methods:
                _add_roles(paths[row.path][method.lower()], row)
    schemas: dict[str, Any] = {"Problem": PROBLEM}
    for module in STAFF_MODULES:
        schemas |= module.SCHEMAS
    scheme = {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key of a person: My account, or `webdepot account key`.",
    }
    info = {
        "title": site.archive.config.archive.name,
        "version": VERSION,
        "license": {"name": "AGPL-3.0-or-later", "identifier": "AGPL-3.0-or-later"},
    }
    description = {
        "openapi": "3.1.0",
        "info": info,
        "servers": [{"url": site.portal_url}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {_KEY: scheme}},
    }
    return JSONResponse(description, headers={"Access-Control-Allow-Origin": "*"})


def _add_roles(operation: dict[str, Any], row: RouteRow) -> None:
    roles = ", ".join(sorted(role.value for role in row.roles))
    operation["description"] = f"For these roles: {roles}."
    operation["security"] = [{_KEY: []}]
    more = (401, 403, 413, 415) if "requestBody" in operation else (401, 403)
    operation["responses"] |= {str(status): problem_answer(status) for status in more}


def answer_unknown(request: Request) -> Response:
    """405 if a path of the API has no such method, with the methods that it has; else 404."""
    methods = sorted(
        {
            method
            for row in API_ROUTES[:-1]
            if compile_path(row.path)[0].match(request.url.path)
            for method in row.methods
        }
    )
    if methods:
        raise HTTPException(405, headers={"Allow": ", ".join(methods)})
    raise HTTPException(404)
