"""A certificate authority of this archive alone, for proxy mode: a browser that trusts it believes that the
archived site answers.

HOME/proxy/authority.pem   its certificate; terminals install this one
HOME/proxy/authority.key   its key, readable by the owner alone: who has it can pretend to be any site to those terminals

Both are made when proxy mode is first used. A host's certificate is made when its first connection comes and
lives as long as the process. https://www.rfc-editor.org/rfc/rfc5280
"""

import ipaddress
import os
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

from webdepot.errors import CorruptData
from webdepot.times import Clock

YEARS = 10
HOST_DAYS = 90
"""Browsers refuse certificates of hosts that live longer than about a year."""
MOST_HOSTS = 2000
_PEM = serialization.Encoding.PEM


class Authority:
    """Makes certificates of hosts. Threads may share it."""

    def __init__(self, folder: Path, *, name: str, clock: Clock) -> None:
        self.path = folder / "authority.pem"
        self._clock = clock
        self._lock = Lock()
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()
        key_path = folder / "authority.key"
        if not (self.path.exists() and key_path.exists()):
            _found(self.path, key_path, name, clock())
        try:
            self._certificate = x509.load_pem_x509_certificate(self.path.read_bytes())
            key = serialization.load_pem_private_key(key_path.read_bytes(), None)
        except ValueError as error:
            raise CorruptData(
                f"The certificate authority in {folder} cannot be read ({error}). Remove the folder; terminals then trust the new one.",
                where=str(folder),
            ) from error
        assert isinstance(key, ec.EllipticCurvePrivateKey)  # noqa: S101 - we made it
        self._key = key
        # One key for all hosts: a new one for each would protect nothing, since this process has them all.
        self._host_key = ec.generate_private_key(ec.SECP256R1())

    def pem(self) -> bytes:
        return self._certificate.public_bytes(_PEM)

    def context_for(self, host: str) -> ssl.SSLContext:
        """What a connection to that host (a name or an address) is encrypted with."""
        with self._lock:
            known = self._contexts.pop(host, None) or self._made(host)
            self._contexts[host] = known
            if len(self._contexts) > MOST_HOSTS:
                self._contexts.popitem(last=False)
        return known

    def _made(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        private = self._host_key.private_bytes(
            _PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        # The ssl module takes certificates from files only.
        with tempfile.NamedTemporaryFile(prefix="webdepot-") as file:
            file.write(private + self._signed(host).public_bytes(_PEM))
            file.flush()
            context.load_cert_chain(file.name)
        return context

    def _signed(self, host: str) -> x509.Certificate:
        now = self._clock()
        alternative: x509.GeneralName
        try:
            alternative = x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
        except ValueError:
            alternative = x509.DNSName(host)
        return (
            # The name in the subject has 64 signs at most; browsers look at the other one.
            _begun(
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


def _found(path: Path, key_path: Path, name: str, now: datetime) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} (archived pages)"[:64])])
    certificate = (
        _begun(subject, subject, now, YEARS * 365)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_MAY_SIGN, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(
        key_path,
        key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        0o600,
    )
    _write(path, certificate.public_bytes(_PEM), 0o644)


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


def _begun(subject: x509.Name, issuer: x509.Name, now: datetime, days: int) -> x509.CertificateBuilder:
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
    )
    return made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=days))


def _write(path: Path, data: bytes, mode: int) -> None:
    partial = path.with_name(f".{path.name}.part")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
