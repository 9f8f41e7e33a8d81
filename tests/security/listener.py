"""A server of an attacker on loopback, which counts who comes."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Listener(socketserver.ThreadingTCPServer):
    """Records the first line of every connection, and connections that send none."""

    daemon_threads = True

    def __init__(self) -> None:
        self.heard: list[str] = []
        super().__init__(("127.0.0.1", 0), _Recording)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @classmethod
    @contextmanager
    def listening(cls) -> Iterator["Listener"]:
        with cls() as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            yield server
            server.shutdown()
            thread.join()


class _Recording(socketserver.StreamRequestHandler):
    server: Listener

    def handle(self) -> None:
        self.server.heard.append("connection")
        self.server.heard.append(self.rfile.readline(4096).decode("latin-1").strip())
        self.wfile.write(b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\n\r\n")
