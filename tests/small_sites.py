"""Small sites for tests of plans, harvests and reviews: a server on loopback, and its target with everything
that a harvest asks for.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from webdepot.archive import Archive
from webdepot.model import TargetId
from webdepot.selection.criteria import Judgement
from webdepot.selection.permission_basis import Ground
from webdepot.services.permission import owner_answers
from webdepot.services.selection import criteria as criteria_service
from webdepot.services.selection import targets


@contextmanager
def proxied_site(pages: Mapping[str, tuple[str, bytes]]) -> Iterator[str]:
    """HOST:PORT of a proxy that answers for all web addresses: with media type and body, or a 404."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # Case of percent-encoding is not significant.
            address = re.sub("%[0-9a-f]{2}", lambda code: code[0].upper(), self.path)
            mime, body = pages.get(address, ("text/plain", b"not found"))
            self.send_response(200 if address in pages else 404)
            self.send_header("Content-Type", mime)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *words: object) -> None:
            pass

    with _served(Handler) as port:
        yield f"127.0.0.1:{port}"


@contextmanager
def small_site(page_of: Callable[[str], str]) -> Iterator[str]:
    """The address of a server whose pages are what the function gives for their paths; nothing is a 404."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page_of(self.path).encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    with _served(Handler) as port:
        yield f"http://localhost:{port}"


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def cleared(archive: Archive, address: str) -> TargetId:
    """A target that may be harvested."""
    dossier = targets.enter(archive, targets.draft([address]))[0]
    criteria_service.answer(
        archive,
        dossier.id,
        [Judgement(criterion=code, value=1.0, reason="it is") for code in ("national", "cultural")],
    )
    targets.decide(archive, dossier.id, "select")
    owner_answers.record_ground(archive, dossier.id, Ground.OPEN_LICENCE, reason="CC BY")
    return dossier.id
