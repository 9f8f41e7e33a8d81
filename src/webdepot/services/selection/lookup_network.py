"""The network lookups of discovery, opened as the configuration says: DNS, registries, certificates, pages.

`discovery` and the host rules of a harvest (`services.harvest.organisation_hosts`) use the same lookups
and the same judge, so they cannot disagree.
"""

import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from webdepot.archive import Archive
from webdepot.errors import ConfigError
from webdepot.harvest.fetch.curl_transfer import FetchLimits
from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.selection.domains import organisations
from webdepot.selection.domains.lookup.answer_cache import KeptAnswers
from webdepot.selection.domains.lookup.http_query import Asker
from webdepot.selection.domains.lookup.pace import Pace
from webdepot.selection.domains.lookup.rdap import Rdap
from webdepot.selection.domains.lookup.resolver import Resolver
from webdepot.selection.domains.lookup.sources import LiveSources
from webdepot.selection.domains.lookup.transparency import Transparency
from webdepot.selection.domains.lookup.whois import Whois
from webdepot.selection.domains.organisations import Organisation
from webdepot.selection.domains.verdict import HostJudge, ScoreBounds

LOOKUPS_NAME = "lookups.db"
LIMIT_PAGE_BYTES = 4 << 20


@asynccontextmanager
async def open_sources(archive: Archive, *, allow_private: bool) -> AsyncIterator[LiveSources]:
    """The lookups that the configuration names; answers are cached in `lookups.db`."""
    config = archive.config.discovery
    resolver = Resolver(config.resolver, timeout_s=config.timeout_s)
    kept = KeptAnswers(archive.index_folder / LOOKUPS_NAME, archive.clock)
    router = Router(
        allow_private=allow_private,
        private_networks=archive.config.harvest.private_networks,
        look_up=look_up_of(resolver),
        timeout_s=config.timeout_s,
    )
    # The operator names the registries; they may be on this computer. Where they refer to must be public.
    trusted = Router(
        allow_private=True,
        look_up=look_up_of(resolver) if config.resolver else None,
        timeout_s=config.timeout_s,
    )
    limits = FetchLimits(
        timeout_s=config.timeout_s * 4, connect_timeout_s=config.timeout_s, body_bytes=LIMIT_PAGE_BYTES
    )
    agent = archive.user_agent
    with authorities(config.extra_ca_file) as ca_file:
        fetchers = [
            CurlFetcher(user_agent=agent, limits=limits, router=route, clock=archive.clock, ca_file=ca_file)
            for route in (router, trusted)
        ]
        pace = Pace(config.registry_pause_s)
        asker = Asker(fetchers[1], pace, archive.clock, onward=fetchers[0])
        try:
            yield LiveSources(
                resolver=resolver,
                fetcher=fetchers[0],
                rdap=Rdap(config.rdap_bootstrap, asker, kept),
                whois=Whois(config.whois, pace, kept, router.allows, timeout_s=config.timeout_s * 2),
                transparency=Transparency(config.ct_search, asker),
                kept=kept,
                pace=Pace(config.page_pause_s),
                clock=archive.clock,
                extra_ca_file=config.extra_ca_file,
                allows=router.allows,
                https_port=config.https_port,
                timeout_s=config.timeout_s,
            )
        finally:
            for fetcher in fetchers:
                await fetcher.close()
            kept.close()


def look_up_of(resolver: Resolver) -> Any:
    """The resolver as the function that the fetcher's router calls."""

    async def look_up(host: str) -> Sequence[str]:
        records, _ = await resolver.host(host)
        if not records.addresses:
            raise socket.gaierror(
                socket.EAI_NONAME if records.status == "none" else socket.EAI_AGAIN, records.detail
            )
        return records.addresses

    return look_up


@contextmanager
def authorities(extra_ca_file: str) -> Iterator[Path | None]:
    """A temporary file with the certificate authorities of the system and of the operator; None if the
    operator adds none.
    """
    if not extra_ca_file:
        yield None
        return
    try:
        extra = Path(extra_ca_file).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"discovery.extra_ca_file = {extra_ca_file!r} cannot be read: {error.strerror}."
        ) from error
    usual = ssl.get_default_verify_paths().cafile
    system = Path(usual).read_bytes() + b"\n" if usual and Path(usual).exists() else b""
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(system + extra)
        file.flush()
        yield Path(file.name)


def judge_of(archive: Archive, organisation: Organisation, sources: LiveSources) -> HostJudge:
    """A judge that knows the profile and every decision of a curator."""
    config = archive.config.discovery
    if config.ignore_at > config.follow_at:
        raise ConfigError(
            "discovery.ignore_at is higher than discovery.follow_at. Set it to the lower of the two."
        )
    with archive.database.reading() as connection:
        decisions = organisations.decisions(connection, organisation.id)
    return HostJudge(
        sources=sources,
        profile=organisation.profile,
        now=archive.clock(),
        bounds=ScoreBounds(follow_at=config.follow_at, ignore_at=config.ignore_at),
        decisions=decisions,
        ports=(config.http_port, config.https_port),
    )
