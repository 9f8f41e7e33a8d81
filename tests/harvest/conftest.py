"""Fixtures of the harvest room."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from harvest_site import Site, serve

OTHER_ADDRESSES = ("127.0.0.2", "127.0.0.3")
"""At which the site can be asked, too, on the same port."""


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


@contextmanager
def running_site() -> Iterator[Site]:
    """A running server; its thread ends with it."""
    running = Site()
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            try:
                await serve(running, reader, writer)
            finally:
                connections.discard(task)

        server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=1 << 20)
        running.port = server.sockets[0].getsockname()[1]
        others = [await asyncio.start_server(connected, address, running.port, limit=1 << 20) for address in OTHER_ADDRESSES]
        ready.set()
        await stop.wait()
        for one in (server, *others):
            one.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    ready.wait()
    try:
        yield running
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
