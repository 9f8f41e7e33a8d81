"""Small answers without a thread. Most requests to an archive ask for one small capture, or which captures
there are of one address: a look-up of microseconds and a few kilobytes from the page cache. To hand such a
request to a thread and back takes longer than to answer it.

An endpoint here is a plain function on the event loop, so it must not wait. It returns None for whatever may
take longer; the request then goes its usual way through the routes. Where disks turn out to be slow, requests
go that way for a while as well.

On the replay face the connection itself asks (`protocol.answering`), before a task is made for the request;
elsewhere `Quick` does.
"""

import logging
import re
import resource
import time
from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)

Endpoint = Callable[[Request], Response | None]
SLOW_S = 0.01
"""An answer that took longer, and for which this thread went to sleep, had to wait for a disk. A busy machine
alone is no reason.
"""
PAUSE = 500
"""So many requests go the usual way then."""
_TRIED = "webdepot.quick"
"""Stands in the scope of a request that was tried."""


class QuickAnswers:
    """Tries its endpoints on GET requests whose raw path they match."""

    def __init__(self, endpoints: Sequence[tuple[re.Pattern[bytes], Endpoint]]) -> None:
        self._endpoints = endpoints
        self._pause = 0

    def find(self, scope: Scope) -> Response | None:
        """The answer that is there at once; None for everything else. A request is tried once, wherever it is
        asked about.
        """
        if scope["type"] != "http" or scope["method"] != "GET" or scope.get(_TRIED):
            return None
        scope[_TRIED] = True
        path: bytes = scope.get("raw_path") or b""
        endpoint = next((endpoint for pattern, endpoint in self._endpoints if pattern.match(path)), None)
        if endpoint is None:
            return None
        if self._pause:
            self._pause -= 1
            return None
        begun_s, slept = time.perf_counter(), _times_slept()
        try:
            return endpoint(Request(scope))
        except Exception:
            # The usual way meets the same fault and says it in words.
            log.debug("not answered quickly", exc_info=True)
            return None
        finally:
            if time.perf_counter() - begun_s > SLOW_S and _times_slept() > slept:
                self._pause = PAUSE


class Quick:
    """Puts quick answers before the routes; `headers` guards stand around it as around all else."""

    def __init__(self, app: ASGIApp, answers: QuickAnswers) -> None:
        self.app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._answers.find(scope) or self.app)(scope, receive, send)


def _times_slept() -> int:
    """How often this thread waited of its own accord: for a disk, a lock, but not because others had their
    turn.
    """
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
