"""Small answers on the event loop, without a thread.

Most requests to an archive ask for one small capture, or for the captures of one address: a lookup of
microseconds and a few kilobytes from the page cache. Passing such a request to a thread and back takes longer
than answering it.

An endpoint here is a plain function on the event loop, so it must not wait. It returns None for a request
that may take longer, which is then handled by the routes as usual. When an answer had to wait for a disk, the
next requests skip this step.
"""

import logging
import re
import resource
import time
from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from webdepot.services.access.replay.quick_reading import at_one_moment
from webdepot.web.site import site_of

log = logging.getLogger(__name__)

QuickEndpoint = Callable[[Request], Response | None]
SLOW_S = 0.01
"""An answer that took longer, and for which this thread slept, waited for a disk. A busy machine alone does
not count.
"""
PAUSE_REQUESTS = 500
"""How many requests skip the quick answers after a slow one."""


class QuickAnswers:
    """Tries its endpoints on GET requests whose raw path they match."""

    def __init__(self, endpoints: Sequence[tuple[re.Pattern[bytes], QuickEndpoint]]) -> None:
        self._endpoints = endpoints
        self._pause = 0

    def find(self, scope: Scope) -> Response | None:
        """The answer, if one is available at once."""
        if scope["type"] != "http" or scope["method"] != "GET":
            return None
        path: bytes = scope.get("raw_path") or b""
        endpoint = next((endpoint for pattern, endpoint in self._endpoints if pattern.match(path)), None)
        if endpoint is None:
            return None
        if self._pause:
            self._pause -= 1
            return None
        request = Request(scope)
        begun_s, sleeps = time.perf_counter(), _count_sleeps()
        try:
            with at_one_moment(site_of(request).archive):
                return endpoint(request)
        except Exception:
            # The route meets the same error and answers with an error page.
            log.debug("not answered quickly", exc_info=True)
            return None
        finally:
            if time.perf_counter() - begun_s > SLOW_S and _count_sleeps() > sleeps:
                self._pause = PAUSE_REQUESTS


def _count_sleeps() -> int:
    """How often this thread gave up the processor to wait for a disk or a lock."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
