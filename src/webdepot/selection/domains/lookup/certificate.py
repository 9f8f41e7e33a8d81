"""A host's TLS certificate: subject organisation and alternative names (RFC 5280), parsed by `cryptography`.

The first handshake checks the certificate against the known authorities (and the operator's `extra_ca_file`):
only if it is valid is its subject evidence. A certificate that is not trusted is read in a second handshake:
its names may lead to candidates, but prove nothing.
"""

import asyncio
import hashlib
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

from webdepot.selection.domains.facts import Certificate, bare_host

MOST_NAMES = 500


async def ask(
    address: str,
    host: str,
    *,
    port: int = 443,
    timeout_s: float = 5.0,
    trusting: ssl.SSLContext,
    blind: ssl.SSLContext,
) -> Certificate | None:
    """The certificate that `address` presents for `host`; None if there is no TLS server."""
    for context, is_trusted in ((trusting, True), (blind, False)):
        try:
            data = await asyncio.wait_for(_handshake(address, host, port, context), timeout_s)
        except ssl.SSLCertVerificationError:
            continue
        except (OSError, ssl.SSLError, TimeoutError, ValueError, UnicodeError):
            return None
        return read(data, is_trusted=is_trusted) if data else None
    return None


def contexts(extra_ca_file: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A context that trusts the system's and the operator's authorities, and one that trusts everything."""
    trusting = ssl.create_default_context()
    if extra_ca_file:
        trusting.load_verify_locations(cafile=str(Path(extra_ca_file)))
    trusting.check_hostname = False
    blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    blind.check_hostname = False
    blind.verify_mode = ssl.CERT_NONE
    return trusting, blind


def read(data: bytes, *, is_trusted: bool) -> Certificate | None:
    """The facts of a DER certificate; None if the bytes are not a certificate."""
    try:
        certificate = x509.load_der_x509_certificate(data)
        names = _names(certificate)
        organisation = next(
            (
                str(item.value)
                for item in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
            ),
            "",
        )
    except (ValueError, TypeError):
        return None
    plain = tuple(dict.fromkeys(bare_host(name.removeprefix("*.")) for name in names[:MOST_NAMES]))
    return Certificate(
        fingerprint=hashlib.sha256(data).hexdigest()[:32],
        organisation=organisation[:200],
        names=plain,
        is_trusted=is_trusted,
    )


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value.get_values_for_type(x509.DNSName)
    except (x509.ExtensionNotFound, ValueError):
        names = []
    return [name for name in names if isinstance(name, str)] or [
        str(item.value)
        for item in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        if "." in str(item.value)
    ]


async def _handshake(address: str, host: str, port: int, context: ssl.SSLContext) -> bytes | None:
    _, writer = await asyncio.open_connection(address, port, ssl=context, server_hostname=host)
    try:
        tls = writer.get_extra_info("ssl_object")
        data: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
        return data
    finally:
        writer.close()
        # The peer may never confirm the close; only the certificate is needed.
        writer.transport.abort()
