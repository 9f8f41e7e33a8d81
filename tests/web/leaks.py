"""Servers on loopback that record who asks them: a proxy for everything that a browser sends elsewhere, and the
server of an attacker.
"""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
REFUSAL = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
WELCOME = b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\n\r\n"


class Leaks(socketserver.ThreadingTCPServer):
    """Gives every request one answer, and records it. Connections count too, whether they send anything or not."""

    daemon_threads = True

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.connections = 0
        self.asked: list[str] = []
        """The first line of each request."""
        super().__init__(("127.0.0.1", 0), _Recording)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @classmethod
    @contextmanager
    def listening(cls, answer: bytes = REFUSAL) -> Iterator["Leaks"]:
        with cls(answer) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            yield server
            server.shutdown()
            thread.join()

    def process_request(self, request: object, client_address: object) -> None:
        self.connections += 1
        super().process_request(request, client_address)


class _Recording(socketserver.StreamRequestHandler):
    server: Leaks

    def handle(self) -> None:
        line = self.rfile.readline(4096).decode("latin-1").strip()
        if line:
            self.server.asked.append(line)
            self.wfile.write(self.server.answer)


@contextmanager
def launched(leaks: Leaks) -> Iterator[Browser]:
    """A browser whose traffic to anything but loopback goes to a server that records and refuses it."""
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", *QUIET],
            proxy={"server": leaks.url, "bypass": "127.0.0.1,localhost,.localhost"},
        )
        yield made
        made.close()
