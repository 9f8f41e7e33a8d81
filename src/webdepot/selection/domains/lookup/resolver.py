"""DNS queries with dnspython: the addresses of a name, and the records of its zone. Never raises; failures
are values.

`resolver` in the configuration names the servers (`192.0.2.53`, `127.0.0.1:5353`, several separated by
commas); if it is empty, those of the system are used. Loops, SERVFAIL, timeouts and over-long answers all
become `LookupStatus.FAILED`: nothing is known.
"""

import asyncio
import re
from collections.abc import Sequence
from ipaddress import ip_address

import dns.asyncresolver
import dns.exception
import dns.name
import dns.rdatatype
import dns.resolver

from webdepot.errors import ConfigError
from webdepot.selection.domains.facts import HostRecords, LookupStatus, ZoneRecords, bare_host

SHORTEST_S, LONGEST_S, FAILED_S = 300.0, 86_400.0, 600.0
MOST_RECORDS = 30
MOST_ALIASES = 8
_SPF = re.compile(r"(?:include:|redirect=|\bmx:|\ba:)([a-z0-9._-]+)", re.IGNORECASE)
_DMARC = re.compile(r"mailto:[^@,;!\s]{1,100}@([a-z0-9.-]+)", re.IGNORECASE)


def build(servers: str, timeout_s: float) -> dns.asyncresolver.Resolver:
    """A resolver for these servers; ConfigError if one is not an address."""
    try:
        resolver = dns.asyncresolver.Resolver(configure=not servers)
        if servers:
            resolver.nameservers = [_nameserver(text.strip()) for text in servers.split(",") if text.strip()]
    except (dns.exception.DNSException, ValueError) as error:
        raise ConfigError(
            f"discovery.resolver = {servers!r} is not valid: {error}. "
            "Write it like 192.0.2.53 or 127.0.0.1:5353."
        ) from error
    resolver.timeout, resolver.lifetime = timeout_s / 2, timeout_s
    return resolver


class Resolver:
    """Sends DNS queries; to be used in one event loop."""

    def __init__(self, servers: str, *, timeout_s: float = 5.0, at_once: int = 64) -> None:
        self._resolver = build(servers, timeout_s)
        self._places = asyncio.Semaphore(at_once)
        self.queries = 0

    async def host(self, host: str) -> tuple[HostRecords, float]:
        """Addresses and CNAME chain of a name, and for how many seconds they are valid."""
        chain: list[str] = []
        name = host
        for _ in range(MOST_ALIASES):
            four = await self._ask(name, "A")
            # A name that does not exist has no record of any type (RFC 8020), and a wide harvest finds
            # thousands of such names: one query is enough.
            six = four if four is LookupStatus.NONE else await self._ask(name, "AAAA")
            answers = [answer for answer in (four, six) if not isinstance(answer, LookupStatus)]
            if not answers:
                status = LookupStatus.FAILED if LookupStatus.FAILED in (four, six) else LookupStatus.NONE
                detail = "the name does not exist" if status is LookupStatus.NONE else "no answer from DNS"
                return HostRecords(status=status, chain=tuple(chain), detail=detail), FAILED_S
            aliases = [
                bare_host(str(record.target))
                for rrset in answers[0].chaining_result.cnames
                for record in rrset
            ]
            chain.extend(aliases)
            addresses = tuple(dict.fromkeys(str(record) for answer in answers for record in answer))[
                :MOST_RECORDS
            ]
            kept_s = min(
                max(min(float(answer.chaining_result.minimum_ttl) for answer in answers), SHORTEST_S),
                LONGEST_S,
            )
            if addresses:
                return HostRecords(status=LookupStatus.FOUND, addresses=addresses, chain=tuple(chain)), kept_s
            # A server that does not recurse returns only the first part of the chain: continue with the rest.
            if not aliases or aliases[-1] in chain[: -len(aliases)] or aliases[-1] == host:
                return HostRecords(
                    status=LookupStatus.NONE, chain=tuple(chain), detail="the name has no address"
                ), kept_s
            name = aliases[-1]
        return HostRecords(
            status=LookupStatus.FAILED, chain=tuple(chain), detail="the chain of aliases does not end"
        ), FAILED_S

    async def zone(self, domain: str) -> tuple[ZoneRecords, float]:
        """The zone of a registrable domain, and for how many seconds it is valid."""
        servers, soa, mail, texts, reports = await asyncio.gather(
            self._ask(domain, "NS"),
            self._ask(domain, "SOA"),
            self._ask(domain, "MX"),
            self._ask(domain, "TXT"),
            self._ask(f"_dmarc.{domain}", "TXT"),
        )
        if all(isinstance(answer, LookupStatus) for answer in (servers, soa, mail, texts)):
            status = LookupStatus.FAILED if LookupStatus.FAILED in (servers, soa, mail) else LookupStatus.NONE
            return ZoneRecords(status=status), FAILED_S
        spf = [text for text in _texts(texts) if text.lower().startswith("v=spf1")]
        return ZoneRecords(
            status=LookupStatus.FOUND,
            name_servers=_names(servers, "target"),
            soa_contact=_mailbox_domain(soa),
            mail_hosts=tuple(name for name in _names(mail, "exchange") if name),
            spf=tuple(
                dict.fromkeys(bare_host(domain) for text in spf for domain in _SPF.findall(text[:4000]))
            )[:MOST_RECORDS],
            dmarc=tuple(
                dict.fromkeys(
                    bare_host(domain) for text in _texts(reports) for domain in _DMARC.findall(text[:4000])
                )
            )[:5],
        ), LONGEST_S

    async def pointer(self, address: str) -> str:
        """The host name of an address by reverse DNS; empty if it has none."""
        try:
            answer = await self._resolver.resolve_address(address)
        except (dns.exception.DNSException, OSError, ValueError):
            return ""
        return bare_host(str(answer[0].target)) if len(answer) else ""

    async def _ask(self, name: str, kind: str) -> "dns.resolver.Answer | LookupStatus":
        async with self._places:
            self.queries += 1
            try:
                return await self._resolver.resolve(
                    dns.name.from_text(name), kind, raise_on_no_answer=False, search=False
                )
            except dns.resolver.NXDOMAIN:
                return LookupStatus.NONE
            except (dns.exception.DNSException, OSError, ValueError, UnicodeError):
                return LookupStatus.FAILED


def _nameserver(text: str) -> "dns.nameserver.Nameserver":
    address, colon, port = text.rpartition(":")
    is_with_port = bool(colon) and port.isdigit() and (":" not in address or address.endswith("]"))
    server = str(ip_address((address if is_with_port else text).strip("[]")))
    return (
        dns.nameserver.Do53Nameserver(server, int(port))
        if is_with_port
        else dns.nameserver.Do53Nameserver(server)
    )


def _names(answer: "dns.resolver.Answer | LookupStatus", attribute: str) -> tuple[str, ...]:
    if isinstance(answer, LookupStatus):
        return ()
    return tuple(
        sorted({bare_host(str(getattr(record, attribute))) for record in list(answer)[:MOST_RECORDS]})
    )


def _texts(answer: "dns.resolver.Answer | LookupStatus") -> Sequence[str]:
    if isinstance(answer, LookupStatus):
        return []
    return [b"".join(record.strings).decode("utf-8", "replace") for record in list(answer)[:MOST_RECORDS]]


def _mailbox_domain(answer: "dns.resolver.Answer | LookupStatus") -> str:
    """`hostmaster.uni.example.` -> `uni.example`: the first label is the mailbox (RFC 1035, 3.3.13)."""
    if isinstance(answer, LookupStatus) or not len(answer):
        return ""
    mailbox = answer[0].rname
    return bare_host(str(mailbox.parent())) if len(mailbox.labels) > 2 else ""
