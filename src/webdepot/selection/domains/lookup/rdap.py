"""Registration data by RDAP: finding the server (bootstrap, RFC 9224), the query (RFC 9082) and the answer
(RFC 9083).

    bootstrap base/dns.json    {"services": [[["de"], ["https://rdap.denic.de/"]], ...]}
    bootstrap base/ipv4.json   {"services": [[["192.0.2.0/24"], ["https://rdap.example/"]], ...]}

The bootstrap base is a web address or a folder. There is one query for each domain; the `related` link of a
thin registry to the registrar is followed only if the registry itself names no holder.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from webdepot.selection.domains.facts import LookupStatus, Network, Registration
from webdepot.selection.domains.lookup import registrant
from webdepot.selection.domains.lookup.answer_cache import KeptAnswers
from webdepot.selection.domains.lookup.http_query import Asker

_BOOTSTRAP_S = 86_400.0
_FAILED_S = 600.0


class Rdap:
    """Queries RDAP servers; returns None if no server is known."""

    def __init__(self, base: str, asker: Asker, kept: KeptAnswers) -> None:
        # The operator may name the folder or one of its files.
        self._base = base.removesuffix("dns.json").rstrip("/")
        self._asker = asker
        self._kept = kept
        self.queries = 0

    async def registration(self, domain: str, *, at: datetime) -> Registration | None:
        """The registry's data; None if no server is known for this top-level domain."""
        server = _server_of_name(await self._services("dns.json"), domain)
        if not server:
            return None
        status, answer, detail = await self._ask(f"{server}domain/{domain}")
        if answer is None:
            return Registration(status=status, source=server, at=at, detail=detail)
        registration = registrant.registration_of_rdap(answer, source=server, at=at)
        related = _related(answer)
        if registration.registrant.is_redacted and not _has_registrant(answer) and related:
            _, more, _ = await self._ask(related)
            if more is not None:
                return registrant.registration_of_rdap(
                    {"nameservers": answer.get("nameservers"), **more}, source=related, at=at
                )
        return registration

    async def network(self, address: str, *, at: datetime) -> Network | None:
        name = "ipv6.json" if ":" in address else "ipv4.json"
        server = _server_of_address(await self._services(name), address)
        if not server:
            return None
        status, answer, _ = await self._ask(f"{server}ip/{address}")
        if answer is None:
            return Network(status=status, source=server, at=at)
        return registrant.network_of_rdap(answer, source=server, at=at)

    async def _ask(self, url: str) -> tuple[LookupStatus, Mapping[str, Any] | None, str]:
        self.queries += 1
        reply = await self._asker.get(url)
        if reply.status == 404:
            return LookupStatus.NONE, None, "the domain or network is not registered"
        if reply.status != 200:
            return LookupStatus.FAILED, None, reply.detail or f"the server returned status {reply.status}"
        answer = _json(reply.data)
        if not isinstance(answer, dict) or "errorCode" in answer:
            return LookupStatus.FAILED, None, "the answer is not an RDAP object"
        return LookupStatus.FOUND, answer, ""

    async def _services(self, name: str) -> list[Any]:
        # A closed network may have one file for names and addresses.
        key = self._base if self._base.endswith(".json") else f"{self._base}/{name}"
        kept = self._kept.find("bootstrap", key)
        if isinstance(kept, list):
            return kept
        answer = await self._bootstrap(key)
        services = answer.get("services") if isinstance(answer, dict) else None
        good = services if isinstance(services, list) else []
        self._kept.keep("bootstrap", key, good, _BOOTSTRAP_S if good else _FAILED_S)
        return good

    async def _bootstrap(self, key: str) -> Any:
        if "://" in key and not key.startswith("file://"):
            reply = await self._asker.get(key)
            return _json(reply.data) if reply.status == 200 else None
        path = Path(key.removeprefix("file://"))
        return _json(path.read_bytes()) if path.is_file() else None


def _server_of_name(services: list[Any], domain: str) -> str:
    """The service with the longest matching suffix."""
    best, server = -1, ""
    for names, urls in _rows(services):
        for name in names:
            suffix = name.lower().strip(".")
            if len(suffix) > best and (domain == suffix or domain.endswith(f".{suffix}") or not suffix):
                best, server = len(suffix), _preferred(urls)
    return server


def _server_of_address(services: list[Any], address: str) -> str:
    best, server, wanted = -1, "", ip_address(address)
    for names, urls in _rows(services):
        for name in names:
            try:
                network = ip_network(name, strict=False)
            except ValueError:
                continue
            if network.version == wanted.version and wanted in network and network.prefixlen > best:
                best, server = network.prefixlen, _preferred(urls)
    return server


def _rows(services: list[Any]) -> list[tuple[list[str], list[str]]]:
    return [
        (
            [item for item in service[-2] if isinstance(item, str)],
            [item for item in service[-1] if isinstance(item, str)],
        )
        for service in services
        if isinstance(service, list)
        and len(service) >= 2
        and all(isinstance(part, list) for part in service[-2:])
    ]


def _preferred(urls: list[str]) -> str:
    best = next((url for url in urls if url.startswith("https://")), next(iter(urls), ""))
    return best if not best or best.endswith("/") else f"{best}/"


def _related(answer: Mapping[str, Any]) -> str:
    for link in _objects(answer.get("links")):
        if link.get("rel") == "related" and "rdap" in str(link.get("type", "")):
            return str(link.get("href", ""))
    return ""


def _has_registrant(answer: Mapping[str, Any]) -> bool:
    return any("registrant" in registrant.roles_of(entity) for entity in _objects(answer.get("entities")))


def _objects(raw: Any) -> list[Mapping[str, Any]]:
    return [item for item in raw if isinstance(item, dict)] if isinstance(raw, list) else []


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
