"""A small internet on loopback: nsd for the names, nginx for the sites on many 127.x addresses, RDAP, whois
and transparency servers.

Everything is real but the owners. `Site` is one host; `ClosedNetwork.start` writes zones, certificates and
server blocks from them.
"""

import json
import os
import re
import shutil
import socket
import socketserver
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import dns.resolver
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ports import free_port

NSD = shutil.which("nsd") or "/usr/sbin/nsd"
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"


@dataclass
class Site:
    host: str
    address: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    """Path -> HTML; `redirect:URL` answers 302."""
    tls: bool = False
    certificate_names: tuple[str, ...] = ()
    certificate_organisation: str = ""
    alias: str = ""


@dataclass
class Domain:
    name: str
    name_servers: tuple[str, ...]
    soa: str = "hostmaster.provider.test"
    records: tuple[str, ...] = ()
    registrant: dict[str, str] | None = None
    """fn, org, kind, email, adr; None is redacted."""


class ClosedNetwork:
    def __init__(
        self, folder: Path, domains: list[Domain], sites: list[Site], networks: dict[str, dict[str, str]]
    ) -> None:
        self.folder, self.domains, self.sites, self.networks = folder, domains, sites, networks
        self.asked: Counter[str] = Counter()
        self.logged: dict[str, list[str]] = {}
        self.busy = False
        """The RDAP server answers 429 once for each name."""
        self.dns_port = free_port(udp=True)
        self.http_port, self.https_port = free_port(), free_port()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._servers: list[socketserver.BaseServer] = []

    # --- what tests need ---

    @property
    def environment(self) -> dict[str, str]:
        """The variables that direct Webdepot here, as an operator of a closed network sets them."""
        base = f"http://127.0.0.1:{self.rdap_port}"
        return {
            "WEBDEPOT_DISCOVERY_RESOLVER": f"127.0.0.1:{self.dns_port}",
            "WEBDEPOT_DISCOVERY_RDAP_BOOTSTRAP": f"{base}/bootstrap/",
            "WEBDEPOT_DISCOVERY_WHOIS": f"127.0.0.1:{self.whois_port}",
            "WEBDEPOT_DISCOVERY_EXTRA_CA_FILE": str(self.folder / "ca.pem"),
            "WEBDEPOT_DISCOVERY_HTTP_PORT": str(self.http_port),
            "WEBDEPOT_DISCOVERY_HTTPS_PORT": str(self.https_port),
            "WEBDEPOT_DISCOVERY_TIMEOUT_S": "3",
        }

    @property
    def ct_search(self) -> str:
        return f"http://127.0.0.1:{self.rdap_port}/ct"

    def url(self, host: str, path: str = "/") -> str:
        site = next(site for site in self.sites if site.host == host)
        return (
            f"https://{host}:{self.https_port}{path}" if site.tls else f"http://{host}:{self.http_port}{path}"
        )

    def requests_of(self, host: str) -> int:
        log = self.folder / "access.log"
        return (
            sum(line.split(" ", 1)[0] == host for line in log.read_text().splitlines()) if log.exists() else 0
        )

    # --- starting and stopping ---

    def start(self) -> None:
        self._start_registries()
        self._write_certificates()
        self._start_nsd()
        self._start_nginx()

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(20)
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _start_nsd(self) -> None:
        zones = self.folder / "zones"
        zones.mkdir()
        blocks = [
            f'zone:\n  name: "{domain.name}"\n  zonefile: "{domain.name}.zone"' for domain in self.domains
        ]
        for domain in self.domains:
            (zones / f"{domain.name}.zone").write_text(self._zone(domain))
        for top in ("example", "test"):
            (zones / f"{top}.zone").write_text(
                f"$ORIGIN {top}.\n$TTL 300\n@ SOA ns.{top}. root.{top}. 1 300 300 300 300\n@ NS "
                f"ns.{top}.\nns A 127.0.0.1\n"
            )
            blocks.append(f'zone:\n  name: "{top}"\n  zonefile: "{top}.zone"')
        server = [
            "server:",
            f"  ip-address: 127.0.0.1@{self.dns_port}",
            '  username: ""',
            f'  zonesdir: "{zones}"',
            f'  pidfile: "{self.folder}/nsd.pid"',
            f'  xfrdfile: "{self.folder}/xfrd.state"',
            f'  zonelistfile: "{self.folder}/zone.list"',
            f'  xfrdir: "{self.folder}"',
            f'  logfile: "{self.folder}/nsd.log"',
            '  database: ""',
            "  server-count: 1",
            "remote-control:",
            "  control-enable: no",
        ]
        config = self.folder / "nsd.conf"
        config.write_text("\n".join([*server, *blocks]) + "\n")
        self._run([NSD, "-d", "-c", str(config)])
        wait_for(self._names_are_served)

    def _names_are_served(self) -> bool:
        asking = dns.resolver.Resolver(configure=False)
        asking.nameservers, asking.port, asking.lifetime = ["127.0.0.1"], self.dns_port, 0.5
        try:
            return bool(asking.resolve(f"{self.domains[-1].name}.", "SOA"))
        except Exception:
            return False

    def _zone(self, domain: Domain) -> str:
        lines = [
            f"$ORIGIN {domain.name}.",
            "$TTL 300",
            f"@ SOA {domain.name_servers[0]}. {domain.soa}. 1 300 300 300 300",
        ]
        lines += [f"@ NS {server}." for server in domain.name_servers]
        lines += [
            f"{server}. A 127.0.0.53"
            for server in domain.name_servers
            if server.endswith(f".{domain.name}") and server not in self._hosts()
        ]
        for site in self.sites:
            if site.host == domain.name or site.host.endswith(f".{domain.name}"):
                lines.append(
                    f"{site.host}. CNAME {site.alias}." if site.alias else f"{site.host}. A {site.address}"
                )
        return "\n".join([*lines, *domain.records]) + "\n"

    def _hosts(self) -> set[str]:
        return {site.host for site in self.sites}

    def _start_nginx(self) -> None:
        www = self.folder / "www"
        addresses = sorted({site.address for site in self.sites if site.address})
        blocks = [
            f"server {{ listen {address}:{self.http_port} default_server; server_name _; return 404; }}"
            for address in addresses
        ]
        blocks += [self._server_block(site, www / site.host) for site in self.sites]
        (self.folder / "sites.conf").write_text("\n".join(blocks))
        config = f"""
daemon off; master_process off; worker_processes 1; pid {self.folder}/nginx.pid; error_log {self.folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
  server_names_hash_bucket_size 128; access_log {self.folder}/access.log told; log_format told '$host $uri';
  default_type text/html; charset utf-8;
  client_body_temp_path {self.folder}/t1; proxy_temp_path {self.folder}/t2; fastcgi_temp_path {self.folder}/t3;
  uwsgi_temp_path {self.folder}/t4; scgi_temp_path {self.folder}/t5;
  include {self.folder}/sites.conf;
}}
"""
        config = config.replace(
            f"access_log {self.folder}/access.log told; log_format told '$host $uri';",
            f"log_format told '$host $uri'; access_log {self.folder}/access.log told;",
        )
        (self.folder / "nginx.conf").write_text(config)
        self._run([NGINX, "-c", str(self.folder / "nginx.conf"), "-p", str(self.folder)])
        wait_for(lambda: is_open(addresses[-1], self.http_port))

    def _server_block(self, site: Site, root: Path) -> str:
        root.mkdir(parents=True, exist_ok=True)
        address = site.address or next(other.address for other in self.sites if other.host == site.alias)
        places = []
        for path, html in site.pages.items():
            if html.startswith("redirect:"):
                places.append(f"location = {path} {{ return 302 {html.removeprefix('redirect:')}; }}")
                continue
            name = "index.html" if path == "/" else path.strip("/").replace("/", "_") + ".html"
            (root / name).write_text(
                html.replace("{http}", str(self.http_port)).replace("{https}", str(self.https_port))
            )
            places.append(f"location = {path} {{ try_files /{name} =404; }}")
        listen = f"listen {address}:{self.http_port};"
        if site.tls:
            pair = f"{self.folder}/tls/{site.host}"
            listen += f" listen {address}:{self.https_port} ssl; ssl_certificate {pair}.pem; ssl_certificate_key {pair}.key;"
        return f"server {{ {listen} server_name {site.host}; root {root}; {' '.join(places)} }}"

    def _run(self, command: list[str]) -> None:
        log = (self.folder / f"{Path(command[0]).name}.out").open("wb")
        with log:
            self._processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "LC_ALL": "C"})
            )

    # --- certificates ---

    def _write_certificates(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Closed network CA")])
        authority = _signed(name, name, key.public_key(), key, [], is_authority=True)
        (self.folder / "ca.pem").write_bytes(authority)
        (self.folder / "tls").mkdir()
        for site in self.sites:
            if site.tls:
                own = ec.generate_private_key(ec.SECP256R1())
                parts = [x509.NameAttribute(NameOID.COMMON_NAME, site.host)]
                if site.certificate_organisation:
                    parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, site.certificate_organisation))
                names = site.certificate_names or (site.host,)
                made = _signed(x509.Name(parts), name, own.public_key(), key, list(names))
                (self.folder / "tls" / f"{site.host}.pem").write_bytes(made)
                (self.folder / "tls" / f"{site.host}.key").write_bytes(
                    own.private_bytes(
                        serialization.Encoding.PEM,
                        serialization.PrivateFormat.PKCS8,
                        serialization.NoEncryption(),
                    )
                )

    # --- registries ---

    def _start_registries(self) -> None:
        network = self

        class Rdap(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body, headers = network._rdap(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Whois(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(network._whois(self.rfile.readline(1000).decode().strip()))

        rdap = ThreadingHTTPServer(("127.0.0.1", 0), Rdap)
        whois = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Whois)
        self.rdap_port, self.whois_port = rdap.server_address[1], whois.server_address[1]
        for server in (rdap, whois):
            server.daemon_threads = True
            self._servers.append(server)
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def _rdap(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        parts = urlsplit(path)
        name = parts.path.rpartition("/")[2]
        base = f"http://127.0.0.1:{self.rdap_port}/rdap/"
        if parts.path == "/bootstrap/dns.json":
            return 200, json.dumps({"services": [[["example"], [base]]]}).encode(), {}
        if parts.path == "/bootstrap/ipv4.json":
            return 200, json.dumps({"services": [[["127.0.0.0/8"], [base]]]}).encode(), {}
        if parts.path == "/ct" or parts.path == "/ct/":
            query = parse_qs(parts.query)
            asked = (query.get("q") or query.get("O") or [""])[0].removeprefix("%.")
            return 200, json.dumps([{"name_value": "\n".join(self.logged.get(asked, []))}]).encode(), {}
        self.asked[parts.path] += 1
        if self.busy and self.asked[parts.path] == 1:
            return 429, b"", {"Retry-After": "0"}
        if parts.path.startswith("/rdap/domain/"):
            domain = next((item for item in self.domains if item.name == name), None)
            return (200, json.dumps(rdap_domain(domain)).encode(), {}) if domain else (404, b"{}", {})
        if parts.path.startswith("/rdap/ip/"):
            return 200, json.dumps(self._rdap_network(name)).encode(), {}
        return 404, b"", {}

    def _rdap_network(self, address: str) -> dict[str, object]:
        held = [text for text in self.networks if ip_address(address) in ip_network(text)]
        network = ip_network(max(held, key=lambda text: ip_network(text).prefixlen))
        entity = {
            "objectClassName": "entity",
            "roles": ["registrant"],
            "vcardArray": vcard(self.networks[str(network)]),
        }
        return {
            "objectClassName": "ip network",
            "startAddress": str(network[0]),
            "endAddress": str(network[-1]),
            "name": "NET",
            "entities": [entity],
        }

    def _whois(self, query: str) -> bytes:
        self.asked[f"whois {query}"] += 1
        domain = next((item for item in self.domains if item.name == query), None)
        if domain is None:
            return b"No match for domain.\r\n"
        lines = [f"Domain Name: {domain.name.upper()}", "Registrar Abuse Contact Email: abuse@registrar.test"]
        said = domain.registrant or {"org": "REDACTED FOR PRIVACY", "email": "Please query the RDDS service"}
        lines += [
            f"Registrant Organization: {said.get('org', '')}",
            f"Registrant Email: {said.get('email', '')}",
        ]
        lines += [f"Name Server: {server.upper()}" for server in domain.name_servers]
        return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n"


def rdap_domain(domain: Domain) -> dict[str, object]:
    said = domain.registrant or {"fn": "REDACTED FOR PRIVACY", "org": "REDACTED FOR PRIVACY"}
    registrar = {"fn": "Registrar GmbH", "org": "Registrar GmbH", "email": "abuse@registrar.test"}
    return {
        "objectClassName": "domain",
        "ldhName": domain.name,
        "nameservers": [{"objectClassName": "nameserver", "ldhName": name} for name in domain.name_servers],
        "entities": [
            {"objectClassName": "entity", "roles": ["registrant"], "vcardArray": vcard(said)},
            {"objectClassName": "entity", "roles": ["registrar", "abuse"], "vcardArray": vcard(registrar)},
        ],
    }


def vcard(said: dict[str, str]) -> list[object]:
    rows: list[object] = [["version", {}, "text", "4.0"]]
    rows += [[name, {}, "text", value] for name, value in said.items() if name != "adr"]
    if "adr" in said:
        rows.append(["adr", {}, "text", ["", "", *said["adr"].split("; "), "", "", ""]])
    return ["vcard", rows]


def is_open(address: str, port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(0.5)
        return one.connect_ex((address, port)) == 0


def wait_for(is_ready: object, timeout_s: float = 20.0) -> None:
    until_s = time.monotonic() + timeout_s
    while not is_ready():  # type: ignore[operator]
        assert time.monotonic() < until_s, "the server did not start"
        time.sleep(0.05)


def plain_text(html: str) -> str:
    return re.sub(r"<[^>]+>", " ", html)


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    key: ec.EllipticCurvePrivateKey,
    names: list[str],
    *,
    is_authority: bool = False,
) -> bytes:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False
        )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
