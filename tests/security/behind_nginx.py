"""The portal behind a real nginx, both configured with what docs/how-to/behind-nginx.md says."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from museum import Answer

from ports import free_ports

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
PROGRAM = Path(sys.executable).with_name("webdepot")
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "behind-nginx.md"
PORTAL, REPLAY = "archive.example.org", "replay.archive.example.org"
SITES = f"*.{REPLAY}"


@dataclass
class Front:
    """A running nginx with the portal behind it."""

    home: Path
    port: int
    certificate: Path

    def ask(
        self,
        name: str,
        path: str,
        *headers: tuple[str, str],
        source: str = "127.0.0.1",
        method: str = "GET",
        body: bytes = b"",
    ) -> Answer:
        """A request to one of the names from an address of this machine."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        connection = http.client.HTTPConnection(name, 443, timeout=30)
        plain = socket.create_connection(("127.0.0.1", self.port), 30, (source, 0))
        connection.sock = context.wrap_socket(plain, server_hostname=name)
        try:
            connection.putrequest(method, path)
            for header, value in (*headers, ("Content-Length", str(len(body)))):
                connection.putheader(header, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()


def blocks_of_page() -> tuple[str, str]:
    """The settings and the configuration of nginx on the page."""
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", PAGE.read_text(), re.MULTILINE)
    texts = [textwrap.dedent(block).strip() for block in blocks]
    settings = [text for text in texts if text.startswith("[web]")]
    servers = [text for text in texts if text.startswith("server {")]
    assert len(settings) == 1 and "\n".join(servers).count("listen ") == 3, texts
    return settings[0], "\n".join(servers)


@contextmanager
def running(home: Path, folder: Path, *, more: str = "", nginx: str = "", web: str = "") -> Iterator[Front]:
    """Both servers, with the ports of the page replaced by free ones and its certificate by ours. `more` is
    added to [web]; `nginx` and `web` are used instead of what the page says.
    """
    settings, servers = blocks_of_page()
    portal_port, replay_port, front_port = free_ports(3)
    certificate = write_certificate(folder, [PORTAL, REPLAY, SITES])

    ours = {
        "listen 443": f"listen 127.0.0.1:{front_port}",
        "8080": str(portal_port),
        "8081": str(replay_port),
        "/etc/ssl/archive.pem": str(certificate),
        "/etc/ssl/archive.key": str(certificate),
    }
    page = re.compile("|".join(ours))

    def with_ports(text: str) -> str:
        # In one go: a free port such as 18080 contains one of the page's.
        return page.sub(lambda match: ours[match[0]], text)

    (home / "webdepot.toml").write_text(with_ports(web or settings) + "\n" + more)
    conf = folder / "nginx.conf"
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf.write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{ worker_connections 512; }}\n"
        f"http {{ access_log off; {temporary}\n{with_ports(nginx or servers)}\n}}\n"
    )
    portal = subprocess.Popen(
        [PROGRAM, "--home", home, "serve", "--json"], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    front = subprocess.Popen([NGINX, "-c", conf, "-p", folder], stderr=subprocess.DEVNULL)
    try:
        assert portal.stdout is not None
        assert json.loads(portal.stdout.readline())["portal"] == f"https://{PORTAL}"
        wait_for_port(front_port)
        yield Front(home, front_port, certificate)
    finally:
        for process in (front, portal):
            process.send_signal(signal.SIGTERM)
            process.wait(20)
        assert portal.stdout is not None
        portal.stdout.close()


def write_certificate(folder: Path, names: list[str]) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "archive.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


def wait_for_port(port: int) -> None:
    until_s = time.monotonic() + 20
    while True:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < until_s, "nginx did not start"
        time.sleep(0.05)
