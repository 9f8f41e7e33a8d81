"""Facts about a host, an address or a domain as plain values: the only input of the evidence model.

Every value can be written as JSON and read back, because look-ups are cached with their time to live. No
value contains personal data: the parsers of registry answers drop natural persons before a value is created.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, summarize_address_range
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from webdepot.times import from_iso, to_iso
from webdepot.url import domain_of

_Value = TypeVar("_Value")


class LookupStatus(StrEnum):
    """How a look-up ended."""

    FOUND = "found"
    NONE = "none"
    """The server says that the name does not exist."""
    FAILED = "failed"
    """There was no usable answer, so nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecords:
    """The addresses of a host name."""

    status: LookupStatus = LookupStatus.FAILED
    addresses: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    """The CNAME chain of the name: its last domain belongs to the hosting provider, its first to the owner of
    the content.
    """
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRecords:
    """The DNS zone of a registrable domain. Names are in lower case, without final dot."""

    status: LookupStatus = LookupStatus.FAILED
    name_servers: tuple[str, ...] = ()
    soa_contact: str = ""
    """Domain of the mailbox in the SOA record."""
    mail_hosts: tuple[str, ...] = ()
    spf: tuple[str, ...] = ()
    """Domains that SPF includes or redirects to."""
    dmarc: tuple[str, ...] = ()
    """Domains to which DMARC reports go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A host's TLS certificate."""

    fingerprint: str
    organisation: str
    names: tuple[str, ...]
    is_trusted: bool
    """Signed by a known authority; only then is its subject reliable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registrant:
    """The holder of a domain or network if it is an organisation; for a person only the fact is stored."""

    name: str = ""
    address: str = ""
    mail_domains: tuple[str, ...] = ()
    is_person: bool = False
    is_redacted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The registry's data about a domain."""

    status: LookupStatus = LookupStatus.FAILED
    registrant: Registrant = Registrant()
    name_servers: tuple[str, ...] = ()
    source: str = ""
    at: datetime | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The most specific network that contains an address, with its holder."""

    status: LookupStatus = LookupStatus.FAILED
    first: str = ""
    last: str = ""
    name: str = ""
    holder: Registrant = Registrant()
    source: str = ""
    at: datetime | None = None

    def contains(self, address: str) -> bool:
        if not self.first:
            return False
        first, last, other = ip_address(self.first), ip_address(self.last), ip_address(address)
        return first.version == other.version and int(first) <= int(other) <= int(last)

    def ranges(self) -> list[IPv4Network | IPv6Network]:
        if not self.first:
            return []
        first, last = ip_address(self.first), ip_address(self.last)
        return list(summarize_address_range(first, last))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """The facts about its owner that a page contains."""

    url: str
    status: int
    redirect: str = ""
    title: str = ""
    operators: tuple[str, ...] = ()
    """Names that the page gives as its operator, most certain first."""
    persons: bool = False
    """The operator is a private person."""
    others: tuple[str, ...] = ()
    """Names in another role: partner, funding, design."""
    parents: tuple[str, ...] = ()
    """JSON-LD parentOrganization."""
    units: tuple[str, ...] = ()
    """JSON-LD subOrganization and department."""
    aliases: tuple[str, ...] = ()
    """JSON-LD alternateName and legalName of the organisation itself."""
    copyright: tuple[str, ...] = ()
    """Names after the copyright sign."""
    structured: tuple[str, ...] = ()
    """Names of JSON-LD organisations that publish the page."""
    mail_domains: tuple[str, ...] = ()
    vat_ids: tuple[str, ...] = ()
    trackers: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """Postal code and town lines of the operator."""
    links: tuple[str, ...] = ()
    """Absolute addresses, at most a few hundred."""
    imprint: str = ""
    """Address of the imprint it links to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """Everything known about a host so far; None means not looked up yet."""

    host: str
    domain: str
    records: HostRecords | None = None
    zone: ZoneRecords | None = None
    certificate: Certificate | None = None
    front: PageFacts | None = None
    imprint: PageFacts | None = None
    security: PageFacts | None = None
    registration: Registration | None = None
    requests: int = 0
    """Pages requested so far."""

    @property
    def name_servers(self) -> tuple[str, ...]:
        if self.zone is not None and self.zone.name_servers:
            return self.zone.name_servers
        return self.registration.name_servers if self.registration is not None else ()


def bare_host(text: str) -> str:
    """`WWW.Example.org:8080` -> `www.example.org`."""
    name = text.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0].strip("[]")
    return name.partition(":")[0].rstrip(".")


@lru_cache(maxsize=50_000)
def registrable(host: str) -> str:
    """The registrable domain of a bare host name."""
    return domain_of(f"http://{host}/")


def is_below(name: str, domain: str) -> bool:
    return bool(domain) and (name == domain or name.endswith(f".{domain}"))


def to_json(value: Any) -> dict[str, Any]:
    """A value of this module as plain data."""
    data: dict[str, Any] = {}
    for item in dataclasses.fields(value):
        inner = getattr(value, item.name)
        if dataclasses.is_dataclass(inner):
            data[item.name] = to_json(inner)
        elif isinstance(inner, datetime):
            data[item.name] = to_iso(inner)
        elif inner is not None:
            data[item.name] = (
                [to_json(each) if dataclasses.is_dataclass(each) else each for each in inner]
                if isinstance(inner, tuple)
                else inner
            )
    return data


def from_json(kind: type[_Value], data: Mapping[str, Any]) -> _Value:
    """The value of `to_json` data; unknown keys of other versions are ignored."""
    hints, values = get_type_hints(kind), {}
    for item in dataclasses.fields(kind):  # type: ignore[arg-type]
        if item.name not in data:
            continue
        values[item.name] = _read(hints[item.name], data[item.name])
    return kind(**values)


def _read(hint: Any, raw: Any) -> Any:
    options = get_args(hint)
    if get_origin(hint) is tuple:
        return tuple(_read(options[0], each) for each in raw)
    plain = next((option for option in options if option is not type(None)), hint) if options else hint
    if isinstance(plain, type) and dataclasses.is_dataclass(plain):
        return from_json(plain, raw)
    if plain is datetime:
        return from_iso(raw)
    return plain(raw) if isinstance(plain, type) and issubclass(plain, StrEnum) else raw
