"""Sockets that libcurl releases and uses again: none is lost, whichever side closes it, and whatever number
the next one has.
"""

import asyncio

from webdepot import event_loop
from webdepot.harvest.fetch.curl_transfer import FetchLimits
from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.model import Candidate
from webdepot.url import Url

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
LAST_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: list[bytes]) -> None:
    """Send one response for each request of a connection, then close it."""
    for answer in answers:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
    writer.close()


def asked(
    answers: list[bytes], times: int, *, at_once: int = 1, pause_s: float = 0.0
) -> tuple[list[bytes], int]:
    """The bodies of several requests to such a server, and how many connections they took."""
    connections = 0

    async def main() -> list[bytes]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            await served(reader, writer, answers)

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = Url(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        fetcher = CurlFetcher(
            user_agent="Test/1", limits=FetchLimits(timeout_s=5.0), router=Router(allow_private=True)
        )

        async def ask() -> bytes:
            visit = await fetcher.fetch(Candidate(url=url))
            with visit.body:
                return visit.body.read()

        bodies: list[bytes] = []
        try:
            for _ in range(times):
                bodies += await asyncio.gather(*(ask() for _ in range(at_once)))
                await asyncio.sleep(pause_s)
        finally:
            await fetcher.close()
            server.close()
        return bodies

    bodies = event_loop.run(main())
    return bodies, connections


def test_a_kept_connection_is_heard_again() -> None:
    bodies, connections = asked([ANSWER] * 100, 100)
    assert bodies == [b"hello"] * 100
    assert connections == 1


def test_a_connection_that_the_server_ends_makes_room_for_a_new_one_of_its_number() -> None:
    """libcurl closes the socket, and the next one has its number; the epoll has dropped it by then."""
    bodies, connections = asked([LAST_ANSWER], 30)
    assert bodies == [b"hello"] * 30
    assert connections == 30


def test_a_connection_that_ends_while_it_rests_is_let_go() -> None:
    bodies, connections = asked([ANSWER, ANSWER], 20, at_once=3, pause_s=0.005)
    assert bodies == [b"hello"] * 60
    assert connections >= 30
