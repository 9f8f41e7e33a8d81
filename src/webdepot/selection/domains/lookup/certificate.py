"""A host's TLS certificate: subject organisation and alternative names. RFC 5280; reading by `cryptography`.

First the handshake is tried with the authorities we know (and the operator's `extra_ca_file`): only then the
subject is a sign. A certificate nobody vouches for is read in a second handshake: its names may lead to
candidates, and prove nothing.
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
    """The certificate that `address` shows for `host`; None when nobody speaks TLS there."""
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
    """One that believes the system's authorities and the operator's, and one that believes everybody."""
    trusting = ssl.create_default_context()
    if extra_ca_file:
        trusting.load_verify_locations(cafile=str(Path(extra_ca_file)))
    trusting.check_hostname = False
    blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    blind.check_hostname = False
    blind.verify_mode = ssl.CERT_NONE
    return trusting, blind


def read(data: bytes, *, is_trusted: bool) -> Certificate | None:
    """A DER certificate; None for bytes that are none."""
    try:
        found = x509.load_der_x509_certificate(data)
        names = _names(found)
        organisation = next(
            (str(item.value) for item in found.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)), ""
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


def _names(found: x509.Certificate) -> list[str]:
    try:
        names = found.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value.get_values_for_type(x509.DNSName)
    except (x509.ExtensionNotFound, ValueError):
        names = []
    return [name for name in names if isinstance(name, str)] or [
        str(item.value)
        for item in found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        if "." in str(item.value)
    ]


async def _handshake(address: str, host: str, port: int, context: ssl.SSLContext) -> bytes | None:
    _, writer = await asyncio.open_connection(address, port, ssl=context, server_hostname=host)
    try:
        spoken = writer.get_extra_info("ssl_object")
        found: bytes | None = spoken.getpeercert(binary_form=True) if spoken is not None else None
        return found
    finally:
        writer.close()
        # The peer may never answer our close; the certificate is all we came for.
        writer.transport.abort()
