"""Addresses for monitoring: whether this portal runs, whether it can answer, and figures for Prometheus."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from webdepot.errors import WebdepotError
from webdepot.services.admin import metrics
from webdepot.web.site import site_of

_NOT_KEPT = {"Cache-Control": "no-store"}


def health(request: Request) -> Response:
    """Answer that this process runs. Nothing else is checked: a restart would not repair another server."""
    return PlainTextResponse("ok\n", headers=_NOT_KEPT)


def ready(request: Request) -> Response:
    """Answer whether this portal can take requests: 503 if the database does not respond."""
    try:
        site_of(request).archive.database.revision()
    except WebdepotError:
        return PlainTextResponse("the database does not respond\n", status_code=503, headers=_NOT_KEPT)
    return PlainTextResponse("ok\n", headers=_NOT_KEPT)


def send_metrics(request: Request) -> Response:
    """The figures for Prometheus. The caller is a member of staff, or has the API key of one."""
    text = metrics.as_text(site_of(request).archive)
    return Response(text, media_type=metrics.CONTENT_TYPE, headers=_NOT_KEPT)
