"""A browser whose traffic to anything but loopback goes to a proxy that records and refuses it."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


class Leaks(socketserver.ThreadingTCPServer):
    """A proxy that refuses everything and records the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Refusing)

    @classmethod
    @contextmanager
    def listening(cls) -> Iterator["Leaks"]:
        with cls() as proxy:
            thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            yield proxy
            proxy.shutdown()
            thread.join()


class _Refusing(socketserver.StreamRequestHandler):
    server: Leaks

    def handle(self) -> None:
        line = self.rfile.readline(4096).decode("latin-1").strip()
        if line:
            self.server.asked.append(line)
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@contextmanager
def launched(leaks: Leaks) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", *QUIET],
            proxy={
                "server": f"http://127.0.0.1:{leaks.server_address[1]}",
                "bypass": "127.0.0.1,localhost,.localhost",
            },
        )
        yield made
        made.close()
