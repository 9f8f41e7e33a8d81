"""The connection to a browser: Chrome DevTools Protocol over two pipes.
https://chromedevtools.github.io/devtools-protocol/

A message is JSON and ends with a zero byte. A call has a number, and its result has the same; a message
without a number is an event. Messages about a tab contain its session. Nothing waits forever: every call has
a time limit, and the end of a pipe ends all calls.
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

MOST_BYTES = 96 << 20
"""A longer message is an error: the connection is closed."""
CALL_S = 15.0

Listener = Callable[[str, Mapping[str, Any]], None]
"""Called with the name of the event and its parameters."""


class BrowserGone(Exception):
    """The browser ended, or the connection to it is unusable."""


class CallFailed(Exception):
    """The browser returned an error for one call."""


class CallTimedOut(Exception):
    """The browser did not answer one call in time."""


class DevTools:
    """The connection to one browser. Created by `open`, for one running event loop."""

    def __init__(self) -> None:
        self._number = 0
        self._calls: dict[int, tuple[str, asyncio.Future[Mapping[str, Any]]]] = {}
        """By number: session and result."""
        self._listeners: dict[str, Listener] = {}
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.is_gone = False

    @classmethod
    async def open(cls, commands: int, answers: int) -> "DevTools":
        """Open a connection over our ends of both pipes; `close` closes them."""
        devtools, loop = cls(), asyncio.get_running_loop()
        results, calls = os.fdopen(answers, "rb", 0), os.fdopen(commands, "wb", 0)
        devtools._reader, _ = await loop.connect_read_pipe(lambda: _Reading(devtools), results)
        devtools._writer, _ = await loop.connect_write_pipe(lambda: _Writing(devtools), calls)
        return devtools

    _reader: asyncio.BaseTransport
    _writer: asyncio.WriteTransport

    def listen(self, session: str, listener: Listener) -> None:
        """Send the events of a session to a listener; an empty session is the browser itself."""
        self._listeners[session] = listener

    def forget(self, session: str) -> None:
        self._listeners.pop(session, None)

    async def call(
        self,
        method: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        session: str = "",
        time_s: float = CALL_S,
    ) -> Any:
        """The result of a call. Raises CallFailed, CallTimedOut or BrowserGone."""
        return await self.send(method, json.dumps(parameters or {}).encode(), session=session, time_s=time_s)

    async def send(self, method: str, parameters: bytes, *, session: str = "", time_s: float = CALL_S) -> Any:
        """As `call`, with parameters that are already JSON, so that a body of some megabytes is not escaped
        again.
        """
        if self.is_gone:
            raise BrowserGone("the browser has ended")
        future = asyncio.get_running_loop().create_future()
        number = self.post(method, parameters, session=session)
        self._calls[number] = session, future
        try:
            async with asyncio.timeout(time_s):
                await self._may_write.wait()
                answer = await future
        except TimeoutError:
            raise CallTimedOut(f"{method} was not answered within {time_s:g} s") from None
        finally:
            self._calls.pop(number, None)
        if "error" in answer:
            raise CallFailed(f"{method}: {answer['error'].get('message', '')}")
        return answer.get("result", {})

    def post(self, method: str, parameters: bytes, *, session: str = "") -> int:
        """Send a call without waiting for its result; return its number."""
        self._number += 1
        if not self.is_gone:
            session_part = f',"sessionId":"{session}"' if session else ""
            self._writer.write(
                b"".join(
                    (
                        f'{{"id":{self._number},"method":"{method}"{session_part},"params":'.encode(),
                        parameters,
                        b"}\0",
                    )
                )
            )
        return self._number

    def close(self) -> None:
        """Close the connection: pending calls raise BrowserGone."""
        if self.is_gone:
            return
        self.is_gone = True
        for transport in (self._reader, self._writer):
            with suppress(Exception):
                transport.close()
        self._may_write.set()
        self._fail(self._calls.values(), BrowserGone("the browser has ended"))

    def fail(self, session: str, reason: str) -> None:
        """Raise CallFailed in all pending calls of a session."""
        self._fail((call for call in self._calls.values() if call[0] == session), CallFailed(reason))

    def _fail(self, calls: Iterable[tuple[str, asyncio.Future[Mapping[str, Any]]]], error: Exception) -> None:
        for _, future in calls:
            if not future.done():
                future.set_exception(error)

    # --- incoming messages ---

    def feed(self, data: bytes) -> None:
        *whole, rest = data.split(b"\0")
        for end in whole:
            message = b"".join((*self._pieces, end))
            self._pieces, self._held_bytes = [], 0
            self._take(message)
        self._pieces.append(rest)
        self._held_bytes += len(rest)
        if self._held_bytes > MOST_BYTES:
            self.close()

    def _take(self, message: bytes) -> None:
        try:
            values = json.loads(message)
        except ValueError:
            return
        if "id" in values:
            _, future = self._calls.get(values["id"], ("", None))
            if future is not None and not future.done():
                future.set_result(values)
            return
        listener = self._listeners.get(values.get("sessionId", ""))
        if listener is not None:
            listener(values["method"], values.get("params", {}))


class _Reading(asyncio.Protocol):
    def __init__(self, devtools: DevTools) -> None:
        self._devtools = devtools

    def data_received(self, data: bytes) -> None:
        self._devtools.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._devtools.close()


class _Writing(asyncio.BaseProtocol):
    def __init__(self, devtools: DevTools) -> None:
        self._devtools = devtools

    def pause_writing(self) -> None:
        self._devtools._may_write.clear()

    def resume_writing(self) -> None:
        self._devtools._may_write.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._devtools.close()
