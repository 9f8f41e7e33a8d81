"""Small sites for tests of plans, harvests and reviews: a server on loopback, and its target with everything
that a harvest asks for.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from webdepot.archive import Archive
from webdepot.model import TargetId
from webdepot.selection.criteria import Judgement
from webdepot.selection.permission import Ground
from webdepot.services.permission import consent
from webdepot.services.selection import criteria as criteria_service
from webdepot.services.selection import targets


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

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}"
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
    consent.record_ground(archive, dossier.id, Ground.OPEN_LICENCE, reason="CC BY")
    return dossier.id
