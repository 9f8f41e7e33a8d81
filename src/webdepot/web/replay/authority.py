"""The certificate authority of this archive, for proxy mode: a browser that trusts it accepts archived pages
over HTTPS.

HOME/proxy/authority.pem   its certificate, to be installed on terminals
HOME/proxy/authority.key   its key, readable by the owner only: with it, anyone can impersonate any site
                           to those terminals

Both are created when proxy mode is first used. The certificate of a host is created for its first connection
and is valid as long as the process runs. https://www.rfc-editor.org/rfc/rfc5280
"""

import ipaddress
import ssl
import tempfile
from collections import OrderedDict
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webdepot import durable
from webdepot.errors import CorruptData
from webdepot.times import Clock

YEARS = 10
HOST_DAYS = 90
"""Browsers refuse certificates of hosts that are valid for more than about a year."""
MOST_HOSTS = 2000
_PEM = serialization.Encoding.PEM


class Authority:
    """Issues certificates of hosts. Threads may share it."""

    def __init__(self, folder: Path, *, name: str, clock: Clock) -> None:
        self.path = folder / "authority.pem"
        self._clock = clock
        self._lock = Lock()
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()
        key_path = folder / "authority.key"
        if not (self.path.exists() and key_path.exists()):
            _create(self.path, key_path, name, clock())
        try:
            self._certificate = x509.load_pem_x509_certificate(self.path.read_bytes())
            key = serialization.load_pem_private_key(key_path.read_bytes(), None)
        except ValueError as error:
            raise CorruptData(
                f"The certificate authority in {folder} cannot be read ({error}). "
                "Remove the folder, start the server again and install the new certificate on the terminals.",
                where=str(folder),
            ) from error
        assert isinstance(key, ec.EllipticCurvePrivateKey)  # noqa: S101 - created here
        self._key = key
        # One key for all hosts: separate keys would not be safer, since this process has them all.
        self._host_key = ec.generate_private_key(ec.SECP256R1())

    def pem(self) -> bytes:
        return self._certificate.public_bytes(_PEM)

    def context_for(self, host: str) -> ssl.SSLContext:
        """The TLS context for connections to a host (a name or an IP address)."""
        with self._lock:
            context = self._contexts.pop(host, None) or self._make_context(host)
            self._contexts[host] = context
            if len(self._contexts) > MOST_HOSTS:
                self._contexts.popitem(last=False)
        return context

    def _make_context(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        private = self._host_key.private_bytes(
            _PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        # The ssl module reads certificates from files only.
        with tempfile.NamedTemporaryFile(prefix="webdepot-") as file:
            file.write(private + self._issue(host).public_bytes(_PEM))
            file.flush()
            context.load_cert_chain(file.name)
        return context

    def _issue(self, host: str) -> x509.Certificate:
        now = self._clock()
        alternative: x509.GeneralName
        try:
            alternative = x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
        except ValueError:
            alternative = x509.DNSName(host)
        return (
            # The name in the subject has at most 64 characters; browsers look at the alternative name.
            _builder(
                x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])]),
                self._certificate.subject,
                now,
                HOST_DAYS,
            )
            .public_key(self._host_key.public_key())
            .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )


def _create(path: Path, key_path: Path, name: str, now: datetime) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} (archived pages)"[:64])])
    certificate = (
        _builder(subject, subject, now, YEARS * 365)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_MAY_SIGN, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    durable.write_whole(key_path, private, mode=0o600)
    durable.write_whole(path, certificate.public_bytes(_PEM), mode=0o644)


_MAY_SIGN = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def _builder(subject: x509.Name, issuer: x509.Name, now: datetime, days: int) -> x509.CertificateBuilder:
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
    )
    return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=days))
