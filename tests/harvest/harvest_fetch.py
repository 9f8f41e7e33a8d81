"""One address fetched with the real fetcher, and certificates for servers of tests."""

import datetime
from collections.abc import Awaitable, Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from webdepot import event_loop
from webdepot.harvest.fetch.curl_transfer import FetchLimits
from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.model import Candidate, Visit
from webdepot.url import Url

Work = Callable[[CurlFetcher], Awaitable[None]]


def fetching(
    work: Work, *, limits: FetchLimits | None = None, router: Router | None = None, **more: object
) -> None:
    async def main() -> None:
        given = limits or FetchLimits(timeout_s=10.0)
        fetcher = CurlFetcher(
            user_agent="Test/1", limits=given, router=router or Router(allow_private=True), **more
        )  # type: ignore[arg-type]
        try:
            await work(fetcher)
        finally:
            await fetcher.close()

    event_loop.run(main())


def fetch(url: str, *, via: str | None = None, **more: object) -> tuple[Visit, bytes]:
    seen: list[tuple[Visit, bytes]] = []

    async def work(fetcher: CurlFetcher) -> None:
        visit = await fetcher.fetch(Candidate(url=Url(url), via=Url(via) if via else None))
        with visit.body:
            seen.append((visit, visit.body.read()))

    fetching(work, **more)  # type: ignore[arg-type]
    return seen[0]


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    built = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    built = (
        built.serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
    built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = built.sign(key, hashes.SHA256())
    (folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    return folder / "cert.pem", folder / "key.pem"
