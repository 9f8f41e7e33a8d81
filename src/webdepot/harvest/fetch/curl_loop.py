"""libcurl's multi-socket interface on an asyncio event loop.

libcurl names the sockets to watch and the time of its next call; the event loop calls it. Nothing blocks,
there are no threads, and the cost of a transfer does not grow with the number of transfers.
https://curl.se/libcurl/c/libcurl-multi.html

The sockets are in a separate epoll, and the event loop watches only that: a socket comes and goes with every
request, and registering it with the event loop takes ten times as long; and all ready sockets are handled in
one go. A socket that libcurl takes back stays in the epoll, where it reports nothing until its connection is
used again or ends.
"""

import asyncio
import math
import select
import time
from contextlib import suppress

import pycurl

_IN = select.EPOLLIN | select.EPOLLPRI | select.EPOLLERR | select.EPOLLHUP
_OUT = select.EPOLLOUT | select.EPOLLERR | select.EPOLLHUP
_EVENTS = {
    pycurl.POLL_NONE: 0,
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
_MOST_AT_ONCE = 64


class CurlLoop:
    """Runs libcurl transfers, in one thread with one event loop."""

    def __init__(self, *, connections: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        # Idle connections kept for the next request. With too few, every request of a wide crawl opens a new
        # one.
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = self._due_s = math.inf
        """When the event loop will call us for libcurl, and when libcurl wants to be called."""
        self._is_soon = False
        self._running: dict[pycurl.Curl, asyncio.Future[tuple[int, str]]] = {}
        self._watched: set[int] = set()
        """Sockets that libcurl wants watched."""
        self._known: set[int] = set()
        """Those and others that may be in the epoll, mostly of connections kept for the next request."""
        self._poll = select.epoll()
        self._loop.add_reader(self._poll.fileno(), self._on_ready)

    def begin(self, curl: pycurl.Curl) -> "asyncio.Future[tuple[int, str]]":
        """Start a transfer. Its future gets libcurl's error number (0 for none) and message.

        A caller that does not await the future must call `give_up`.
        """
        done: asyncio.Future[tuple[int, str]] = self._loop.create_future()
        self._multi.add_handle(curl)
        self._running[curl] = done
        return done

    def give_up(self, curl: pycurl.Curl) -> None:
        """Stop a transfer that may still be running."""
        if self._running.pop(curl, None) is not None:
            self._multi.remove_handle(curl)

    def close(self) -> None:
        for curl, done in self._running.items():
            self._multi.remove_handle(curl)
            done.cancel()
        self._running.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._multi.close()
        self._loop.remove_reader(self._poll.fileno())
        self._poll.close()

    def _watch(self, what: int, handle: int, multi: object, data: object) -> None:
        if self._poll.closed:
            return
        if what == pycurl.POLL_REMOVE:
            self._watched.discard(handle)
            return
        self._watched.add(handle)
        try:
            if handle in self._known:
                self._poll.modify(handle, _EVENTS[what])
            else:
                self._known.add(handle)
                self._poll.register(handle, _EVENTS[what])
        except FileNotFoundError:  # closed, so the epoll dropped it, and opened again under the same number
            self._poll.register(handle, _EVENTS[what])
        except FileExistsError:
            self._poll.modify(handle, _EVENTS[what])

    def _on_ready(self) -> None:
        for handle, events in self._poll.poll(0, _MOST_AT_ONCE):
            if handle in self._watched:
                ready = pycurl.CSELECT_IN if events & _IN else 0
                ready |= pycurl.CSELECT_OUT if events & _OUT else 0
                self._multi.socket_action(handle, ready)
            else:  # the server has closed an idle connection
                self._known.discard(handle)
                with suppress(OSError):
                    self._poll.unregister(handle)
        self._settle_done()

    def _set_timer(self, timeout_ms: int) -> None:
        """Called by libcurl several times in each transfer, mostly with a time far ahead.

        The event loop's timer is changed only for an earlier time; calling libcurl too early does no harm.
        """
        if timeout_ms == 0:  # as after each new transfer
            if not self._is_soon:
                self._is_soon = True
                self._loop.call_soon(self._on_soon)
            return
        self._due_s = time.monotonic() + timeout_ms / 1000 if timeout_ms > 0 else math.inf
        if self._due_s < self._timer_s:
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_s = self._due_s
        self._timer = self._loop.call_later(max(self._due_s - time.monotonic(), 0.0), self._on_timer)

    def _on_soon(self) -> None:
        self._is_soon = False
        if not self._poll.closed:
            self._act_on_time()

    def _on_timer(self) -> None:
        self._timer, self._timer_s = None, math.inf
        if self._due_s <= time.monotonic():
            self._due_s = math.inf
            self._act_on_time()
        elif self._due_s < math.inf:
            self._arm()

    def _act_on_time(self) -> None:
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._settle_done()

    def _settle_done(self) -> None:
        while True:
            left, done, failed = self._multi.info_read()
            for curl in done:
                self._settle(curl, 0, "")
            for curl, number, message in failed:
                self._settle(curl, number, message)
            if not left:
                break

    def _settle(self, curl: pycurl.Curl, number: int, message: str) -> None:
        waiting = self._running.pop(curl, None)
        if waiting is None:
            return
        self._multi.remove_handle(curl)
        if not waiting.done():
            waiting.set_result((number, message))
