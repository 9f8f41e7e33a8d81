"""Answers that take long: searches, lists of captures, exports. Anybody can ask for them, and many at once.

They are computed in a few threads of their own (`HeavyWork`), so that other pages always get a thread and
enough processor time. Waiting requests do not occupy a thread. Networks take turns, so that a network with
many requests delays only itself. A query ends when its reader leaves, or when its budget is spent.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from time import perf_counter
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import StreamingResponse

from webdepot.query_budget import QueryBudget, spend
from webdepot.web.forms import sender_of
from webdepot.web.site import site_of

CPU_S = 10.0
"""For one request, or for one part of a long answer."""
_SLICE_S = 0.1
_SLICE_BYTES = 1 << 18
Result = TypeVar("Result")


async def run(request: Request, work: Callable[[], Result]) -> Result:
    """The result of work that may take long, with the budget of this request; it ends when the client
    leaves.
    """
    budget = budget_of(request)
    watcher = asyncio.create_task(_watch(request, budget))
    try:
        return await site_of(request).heavy.queries.run(sender_of(request), partial(spend, budget, work))
    finally:
        watcher.cancel()


def stream(
    request: Request, pieces: Iterator[str] | Iterator[bytes], *, media_type: str, headers: dict[str, str]
) -> StreamingResponse:
    """An answer that is made piece by piece, each when it is this sender's turn; 503 if there are too many
    such answers.
    """
    site_of(request).heavy.check_streams(sender_of(request))
    return StreamingResponse(_slices(request, pieces), media_type=media_type, headers=headers)


async def _slices(request: Request, pieces: Iterator[str] | Iterator[bytes]) -> AsyncIterator[bytes]:
    heavy, sender, budget = site_of(request).heavy, sender_of(request), budget_of(request)
    heavy.begin_stream(sender)
    watcher = asyncio.create_task(_watch(request, budget))
    try:
        has_more = True
        while has_more:
            budget.renew()
            part = partial(spend, budget, partial(_take, pieces))
            piece, has_more = await heavy.parts.run(sender, part, has_begun=True)
            if piece:
                yield piece
    finally:
        watcher.cancel()
        heavy.end_stream(sender)


def _take(pieces: Iterator[str] | Iterator[bytes]) -> tuple[bytes, bool]:
    """The pieces that fit into the time of one turn, and whether there may be more."""
    taken, since_s = bytearray(), perf_counter()
    for piece in pieces:
        taken += piece.encode() if isinstance(piece, str) else piece
        if len(taken) >= _SLICE_BYTES or perf_counter() - since_s > _SLICE_S:
            return bytes(taken), True
    return bytes(taken), False


def budget_of(request: Request) -> QueryBudget:
    """What the answer to this request may cost."""
    if not hasattr(request.state, "budget"):
        request.state.budget = QueryBudget(CPU_S)
    budget: QueryBudget = request.state.budget
    return budget


async def _watch(request: Request, budget: QueryBudget) -> None:
    """Cancel the query when the client leaves."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    budget.cancel()
