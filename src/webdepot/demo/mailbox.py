"""A mail server on loopback that accepts every letter and keeps none (RFC 5321): the invented owners of the
demonstration cannot be written to.
"""

import socketserver
import threading
from types import TracebackType

_REPLIES = {b"EHLO": b"250 demo", b"HELO": b"250 demo", b"DATA": b"354 go on", b"QUIT": b"221 bye"}


class Mailbox:
    """Accepts letters while it is open, at `port`."""

    def __init__(self) -> None:
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Conversation)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="demo mail", daemon=True
        )

    def __enter__(self) -> "Mailbox":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Conversation(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self._say(b"220 demo")
        while line := self.rfile.readline(4096):
            command = line[:4].upper()
            self._say(_REPLIES.get(command, b"250 ok"))
            if command == b"QUIT":
                return
            if command == b"DATA":
                while (letter := self.rfile.readline(65_536)) and letter.rstrip(b"\r\n") != b".":
                    pass
                self._say(b"250 kept by nobody")

    def _say(self, reply: bytes) -> None:
        self.wfile.write(reply + b"\r\n")
