"""What a connection sends: head and body of an answer together, and everything before it is closed."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from webdepot import event_loop
from webdepot.web import protocol
from webdepot.web.protocol import JoinedWrites


class Packets(asyncio.Transport):
    """Keeps each write apart, which a socket does not."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.sent.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 1000

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


def run(story: Callable[[JoinedWrites, Packets], Awaitable[None]]) -> None:
    async def run_story() -> None:
        packets = Packets()
        await story(JoinedWrites(packets, asyncio.get_running_loop()), packets)

    event_loop.run(run_story())


async def next_turn() -> None:
    await asyncio.sleep(0)


def test_a_head_and_its_body_are_sent_together() -> None:
    async def story(writes: JoinedWrites, packets: Packets) -> None:
        writes.write(b"head ")
        writes.write(b"body")
        assert (packets.sent, writes.get_write_buffer_size()) == ([], 1009)
        await next_turn()
        assert (packets.sent, writes.get_write_buffer_size()) == ([b"head body"], 1000)
        writes.write(b"the next answer")
        await next_turn()
        assert packets.sent == [b"head body", b"the next answer"]

    run(story)


def test_what_is_held_is_sent_before_the_connection_is_closed() -> None:
    async def story(writes: JoinedWrites, packets: Packets) -> None:
        writes.write(b"head ")
        writes.write(b"body")
        writes.close()
        assert (packets.sent, packets.closed) == ([b"head body"], True)
        await next_turn()
        assert packets.sent == [b"head body"]

    run(story)


def test_a_connection_that_was_aborted_gets_nothing_more() -> None:
    async def story(writes: JoinedWrites, packets: Packets) -> None:
        writes.write(b"head ")
        writes.abort()
        await next_turn()
        assert (packets.sent, packets.closed) == ([], True)

    run(story)


def test_little_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender that never waits must not fill the memory: the transport tells it when to pause."""
    monkeypatch.setattr(protocol, "MOST_HELD_BYTES", 100)

    async def story(writes: JoinedWrites, packets: Packets) -> None:
        for _ in range(3):
            writes.write(b"x" * 60)
        assert packets.sent == [b"x" * 120]
        await next_turn()
        assert packets.sent == [b"x" * 120, b"x" * 60]

    run(story)
