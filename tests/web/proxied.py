"""A server in proxy mode, and a client that behaves like a terminal's browser."""

import http.client
import json
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from museum import Answer

SERVER = """
import json, sys
from pathlib import Path
from webdepot.archive import Archive
from webdepot.web.serve import serve
told = {}
with Archive.open(Path(sys.argv[1])) as archive:
    serve(archive, host="127.0.0.1", port=0, replay_port=0, proxy_port=0,
          proxy_ready=lambda address, certificate: told.update(proxy=address, authority=str(certificate)),
          ready=lambda portal, replay: print(
              json.dumps({**told, "portal": portal, "replay": replay}), flush=True))
"""


@dataclass(frozen=True)
class Proxied:
    proxy: str
    authority: Path
    portal: str
    replay: str

    @property
    def port(self) -> int:
        port = urlsplit(self.proxy).port
        assert port
        return port

    def ask(
        self,
        url: str,
        method: str = "GET",
        *,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """One request through the proxy; over TLS, checked against the archive's authority, for an https
        address.
        """
        parts = urlsplit(url)
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            trust = ssl.create_default_context(cafile=str(self.authority))
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=trust)
            connection.set_tunnel(parts.hostname or "", parts.port or 443)
            target = url.partition(parts.netloc)[2] or "/"
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            target = url
        try:
            connection.request(
                method,
                target,
                body=body,
                headers={"Host": parts.netloc, "Accept": "text/html", **(headers or {})},
            )
            got = connection.getresponse()
            return Answer(got.status, got.headers, got.read())
        finally:
            connection.close()


@contextmanager
def serving_proxy(home: Path) -> Iterator[Proxied]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(home)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        yield Proxied(
            proxy=told["proxy"],
            authority=Path(told["authority"]),
            portal=told["portal"],
            replay=told["replay"],
        )
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(timeout=20)
        process.stdout.close()
    assert status == 0, "the server did not stop tidily"
