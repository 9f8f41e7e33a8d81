"""The status page for staff."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from webdepot.services.admin import archive_status
from webdepot.web.language import event_words
from webdepot.web.site import language_of, render, site_of


def show(request: Request) -> Response:
    return render(
        request,
        "status.html",
        report=archive_status.status(site_of(request).archive),
        message_of=partial(event_words.message_of, language_of(request)),
    )
