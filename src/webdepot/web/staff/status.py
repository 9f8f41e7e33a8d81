"""The status page for staff."""

from starlette.requests import Request
from starlette.responses import Response

from webdepot.services.admin import archive_status
from webdepot.web.site import render, site_of


def show(request: Request) -> Response:
    return render(request, "status.html", status=200, report=archive_status.status(site_of(request).archive))
