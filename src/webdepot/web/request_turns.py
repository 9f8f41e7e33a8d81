"""Places for long-running requests, and the order in which waiting requests get one (see `heavy_work.py`)."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException

PLACES = 2
"""Answers computed at the same time. More would not be faster: Python uses one processor."""
MOST_WAITING = 400
MOST_WAITING_OF_SENDER = 60
PATIENCE_S = 60.0
RETRY_S = 5
MOST_STREAMS = 100
MOST_STREAMS_OF_SENDER = 10
Result = TypeVar("Result")


class Turns:
    """Places, and the requests that wait for one: their networks take turns. Used by one event loop."""

    def __init__(self, places: int) -> None:
        self.free = places
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._threads = anyio.CapacityLimiter(places)

    async def run(self, sender: str, work: Callable[[], Result], *, has_begun: bool = False) -> Result:
        """The result of work in a thread, when it is this sender's turn; 503 if too many wait, unless an
        answer `has_begun`.
        """
        await self._enter(sender, has_begun)
        try:
            return await run_sync(work, limiter=self._threads)
        finally:
            self._leave()

    async def _enter(self, sender: str, has_begun: bool) -> None:
        if self.free:
            self.free -= 1
            return
        own = self._waiting.setdefault(sender, deque())
        if not has_begun and (
            len(own) >= MOST_WAITING_OF_SENDER or sum(map(len, self._waiting.values())) >= MOST_WAITING
        ):
            raise busy()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        own.append(turn)
        try:
            async with asyncio.timeout(None if has_begun else PATIENCE_S):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._leave()  # the place became free at the same moment
            elif turn in own:
                own.remove(turn)
            if isinstance(error, TimeoutError):
                raise busy() from None
            raise

    def _leave(self) -> None:
        """Give the place to the sender whose turn it is; if nobody waits, it is free."""
        while self._waiting:
            sender, turns = self._waiting.popitem(last=False)
            while turns and turns[0].done():
                turns.popleft()
            if turns:
                turn = turns.popleft()
                if turns:
                    self._waiting[sender] = turns
                turn.set_result(None)
                return
        self.free += 1


class HeavyWork:
    """Places for queries, and others for the parts of long answers: these may wait for a remote store."""

    def __init__(self) -> None:
        self.queries = Turns(PLACES)
        self.parts = Turns(PLACES)
        self._streams: dict[str, int] = {}

    def check_streams(self, sender: str) -> None:
        """503 if there are too many long answers already."""
        total = sum(list(self._streams.values()))
        if total >= MOST_STREAMS or self._streams.get(sender, 0) >= MOST_STREAMS_OF_SENDER:
            raise busy()

    def begin_stream(self, sender: str) -> None:
        self._streams[sender] = self._streams.get(sender, 0) + 1

    def end_stream(self, sender: str) -> None:
        self._streams[sender] -= 1
        if not self._streams[sender]:
            del self._streams[sender]


def busy() -> HTTPException:
    return HTTPException(503, headers={"Retry-After": str(RETRY_S)})
