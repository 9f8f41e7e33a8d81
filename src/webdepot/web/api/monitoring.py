"""Addresses for monitoring: whether this portal runs, whether it can answer, and figures for Prometheus."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from webdepot.errors import WebdepotError
from webdepot.services.admin import metrics
from webdepot.web.site import site_of

_NOT_KEPT = {"Cache-Control": "no-store"}


def health(request: Request) -> Response:
    """The process answers. It asks nobody else, so that a restart is not tried for the fault of another."""
    return PlainTextResponse("ok\n", headers=_NOT_KEPT)


def ready(request: Request) -> Response:
    """The database answers, so that this portal can be given requests; 503 otherwise."""
    try:
        site_of(request).archive.database.revision()
    except WebdepotError:
        return PlainTextResponse("the database does not answer\n", status_code=503, headers=_NOT_KEPT)
    return PlainTextResponse("ok\n", headers=_NOT_KEPT)


def send_metrics(request: Request) -> Response:
    """For staff, and for a Prometheus that has the API key of somebody of the staff."""
    text = metrics.as_text(site_of(request).archive)
    return Response(text, media_type=metrics.CONTENT_TYPE, headers=_NOT_KEPT)
