"""Run a coroutine in an event loop of its own: the only place that chooses the loop."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

Result = TypeVar("Result")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end and return the result. uvloop: a third more requests a second than asyncio's loop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
