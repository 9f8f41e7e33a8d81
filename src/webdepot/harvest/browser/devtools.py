"""The wire to a browser: Chrome DevTools Protocol over two pipes.
https://chromedevtools.github.io/devtools-protocol/

A message is JSON and ends with a zero byte. Ours have a number, and the answer has the same; what has no
number is an event. Messages about a tab carry its session. Nothing here waits for ever: every call has a time
limit, and the end of the pipe ends all calls.
"""

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

MOST_BYTES = 96 << 20
"""A longer message is no message: the browser is given up."""
CALL_S = 15.0

Listener = Callable[[str, Mapping[str, Any]], None]
"""Name of the event and what it says."""


class BrowserGone(Exception):
    """The browser ended, or its wire cannot be trusted any more."""


class CallFailed(Exception):
    """The browser says no to one call."""


class CallTimedOut(Exception):
    """No answer to one call in time."""


class Wire:
    """One browser. Made by `open`, inside one running event loop."""

    def __init__(self) -> None:
        self._number = 0
        self._calls: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._listeners: dict[str, Listener] = {}
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.is_gone = False

    @classmethod
    async def open(cls, commands: int, answers: int) -> "Wire":
        """Take both ends; they are closed with the wire."""
        wire, loop = cls(), asyncio.get_running_loop()
        wire._reader, _ = await loop.connect_read_pipe(lambda: _Reading(wire), os.fdopen(answers, "rb", 0))
        wire._writer, _ = await loop.connect_write_pipe(lambda: _Writing(wire), os.fdopen(commands, "wb", 0))
        return wire

    _reader: asyncio.BaseTransport
    _writer: asyncio.WriteTransport

    def listen(self, session: str, listener: Listener) -> None:
        """Events of a session go there; of the browser itself with an empty one."""
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
        """What the browser answers. CallFailed, CallTimedOut or BrowserGone."""
        return await self.send(method, json.dumps(parameters or {}).encode(), session=session, time_s=time_s)

    async def send(self, method: str, parameters: bytes, *, session: str = "", time_s: float = CALL_S) -> Any:
        """The same with parameters that are JSON already: a body of some megabytes is not quoted letter by
        letter.
        """
        if self.is_gone:
            raise BrowserGone("the browser has ended")
        future = asyncio.get_running_loop().create_future()
        number = self.post(method, parameters, session=session)
        self._calls[number] = future
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
        """Say it and wait for nothing; its number."""
        self._number += 1
        if not self.is_gone:
            about = f',"sessionId":"{session}"' if session else ""
            self._writer.write(
                b"".join(
                    (
                        f'{{"id":{self._number},"method":"{method}"{about},"params":'.encode(),
                        parameters,
                        b"}\0",
                    )
                )
            )
        return self._number

    def close(self) -> None:
        """End it: whoever waits for an answer gets BrowserGone."""
        if self.is_gone:
            return
        self.is_gone = True
        for transport in (self._reader, self._writer):
            with suppress(Exception):
                transport.close()
        self._may_write.set()
        for future in self._calls.values():
            if not future.done():
                future.set_exception(BrowserGone("the browser has ended"))

    # --- what comes in ---

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
            said = json.loads(message)
        except ValueError:
            return
        if "id" in said:
            future = self._calls.get(said["id"])
            if future is not None and not future.done():
                future.set_result(said)
            return
        listener = self._listeners.get(said.get("sessionId", ""))
        if listener is not None:
            listener(said["method"], said.get("params", {}))


class _Reading(asyncio.Protocol):
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def data_received(self, data: bytes) -> None:
        self._wire.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._wire.close()


class _Writing(asyncio.BaseProtocol):
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def pause_writing(self) -> None:
        self._wire._may_write.clear()

    def resume_writing(self) -> None:
        self._wire._may_write.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._wire.close()
