"""Who opens the form to sign in will soon open a page of staff: modules and templates are loaded meanwhile,
the dashboard counted.

Without this the first page after a start of the server would wait half a second for modules and its template,
and the first dashboard of a large archive two seconds for its figures. A server that only shows archived
pages never loads any of it.
"""

import logging
from threading import Lock, Thread

from starlette.applications import Starlette
from starlette.requests import Request

from webdepot.errors import WebdepotError
from webdepot.web import later
from webdepot.web.site import of_app, site_of, templates

PAGES = (
    "targets",
    "letters",
    "cases",
    "criteria",
    "schedule",
    "harvests",
    "review",
    "catalogue",
    "audit",
    "users",
    "dashboard",
)
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
    for name in PAGES:
        later.load(f"webdepot.web.{name}")
    for name in templates().list_templates(extensions=["html"]):
        templates().get_template(name)
    from webdepot.web.dashboard import Figures

    try:
        of_app(request, Figures).of(site_of(request).archive)
    except (WebdepotError, OSError):  # whoever opens the page is told
        log.warning("the figures of the dashboard could not be counted beforehand", exc_info=True)
