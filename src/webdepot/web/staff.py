"""The status page for staff."""

from starlette.requests import Request
from starlette.responses import Response

from webdepot.services import reporting
from webdepot.web.site import render, site_of


def status(request: Request) -> Response:
    return render(request, "status.html", status=200, report=reporting.status(site_of(request).archive))
