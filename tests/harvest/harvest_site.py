"""A web server on loopback that can behave badly on purpose, and remembers every request."""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field

from ports import sockets_on_one_port

Answer = Callable[[asyncio.StreamWriter, "Asked"], Awaitable[None]]


@dataclass
class Asked:
    """One request as the server saw it; times are `time.monotonic()`.

    It has ended when the last of the answer is about to be sent: measured later, the client might have it
    already.
    """

    raw: bytes
    host: str
    target: str
    began_s: float
    ended_s: float = 0.0

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


@dataclass
class Site:
    """Answers by `host/path`, else by path, else 404. May be filled while it runs."""

    port: int = 0
    log: list[Asked] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    fallback: Callable[[Asked], bytes | None] = lambda asked: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def page(
        self,
        path: str,
        body: bytes | str = b"",
        *,
        status: str = "200 OK",
        mime: str = "text/html",
        **headers: str,
    ) -> None:
        """A well-behaved answer; keyword `Retry_After` becomes a header."""
        self.raw(path, whole(body, status=status, mime=mime, **headers), close=False)

    def raw(self, path: str, data: bytes, *, close: bool = True) -> None:
        """Answer with exact bytes; by default the connection is closed after them."""

        async def answer(writer: asyncio.StreamWriter, asked: Asked) -> None:
            asked.ended_s = time.monotonic()
            writer.write(data)
            await writer.drain()
            if close:
                writer.close()

        self.answers[path] = answer

    def paths(self, host: str = "") -> list[str]:
        return [asked.target for asked in self.log if not host or asked.host == host]


def whole(body: bytes | str, *, status: str = "200 OK", mime: str = "text/html", **headers: str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {mime}", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data


async def serve(site: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            raw = await reader.readuntil(b"\r\n\r\n")
            began_s = time.monotonic()
            lines = raw.decode("latin-1").split("\r\n")
            host = next(
                (line[5:].strip().partition(":")[0] for line in lines if line.lower().startswith("host:")), ""
            )
            asked = Asked(raw=raw, host=host, target=lines[0].split(" ")[1], began_s=began_s)
            site.log.append(asked)
            answer = site.answers.get(f"{host}{asked.target}") or site.answers.get(f"{host}{asked.path}")
            answer = answer or site.answers.get(asked.target) or site.answers.get(asked.path)
            if answer is not None:
                await answer(writer, asked)
            else:
                asked.ended_s = time.monotonic()
                writer.write(
                    site.fallback(asked) or whole("not here", status="404 Not Found", mime="text/plain")
                )
                await writer.drain()
            asked.ended_s = asked.ended_s or time.monotonic()
            if writer.is_closing():
                return
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


OTHER_ADDRESSES = ("127.0.0.2", "127.0.0.3")
"""Other addresses of the site, on the same port."""


@contextmanager
def running_site() -> Iterator[Site]:
    """A running server; its thread ends with it."""
    running = Site()
    ready: Future[None] = Future()
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

        sockets = sockets_on_one_port(("127.0.0.1", *OTHER_ADDRESSES))
        running.port = sockets[0].getsockname()[1]
        servers = [await asyncio.start_server(connected, sock=sock, limit=1 << 20) for sock in sockets]
        ready.set_result(None)
        await stop.wait()
        for server in servers:
            server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def run() -> None:
        try:
            loop.run_until_complete(main())
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        ready.result(timeout=60)
        yield running
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def of(site: Site, *paths: str) -> list[str]:
    return [site.url + path for path in paths]


def fill(site: Site, pages: int, *, links: int = 5) -> list[str]:
    """A site where every page can be reached from the first; the paths of all pages."""
    rng = random.Random(pages)
    targets = {
        number: [number * 2 + 1, number * 2 + 2, *(rng.randrange(pages) for _ in range(links))]
        for number in range(pages)
    }
    for number in range(pages):
        anchors = "".join(f'<a href="/{target}">x</a>' for target in targets[number] if target < pages)
        site.page(f"/{number}", f"<img src=/i{number % 7}.png>{anchors}")
    for number in range(7):
        site.page(f"/i{number}.png", b"png", mime="image/png")
    return [f"/{number}" for number in range(pages)] + [f"/i{number}.png" for number in range(min(7, pages))]
