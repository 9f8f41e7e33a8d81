"""Prepare the staff pages when somebody opens the sign-in form: compile the templates, count the dashboard.

Without this the first staff page after a start of the server would wait for its template, and the first
dashboard of a large archive two seconds for its figures. A server that only shows archived pages never does
any of it.
"""

import logging
from threading import Lock, Thread

from starlette.applications import Starlette
from starlette.requests import Request

from webdepot.errors import WebdepotError
from webdepot.web.site import of_app, site_of, templates
from webdepot.web.staff.dashboard import Figures

log = logging.getLogger(__name__)


class Preparing:
    """Once for each server."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._thread: Thread | None = None

    def begin(self, request: Request) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=_prepare, args=(request,), name="preparing")
                self._thread.start()

    def end(self) -> None:
        """Wait until nothing is done in the archive any more."""
        if self._thread is not None:
            self._thread.join()


def begin(request: Request) -> None:
    of_app(request, Preparing).begin(request)


def end(app: Starlette) -> None:
    shared = app.state._state.get("shared", {})
    if Preparing in shared:
        shared[Preparing].end()


def _prepare(request: Request) -> None:
    for name in templates().list_templates(extensions=["html"]):
        templates().get_template(name)
    try:
        of_app(request, Figures).of(site_of(request).archive)
    except (WebdepotError, OSError):  # the page itself reports it
        log.warning("the figures of the dashboard could not be counted beforehand", exc_info=True)
