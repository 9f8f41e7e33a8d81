"""What is known about an organisation itself: the measure for every candidate.

Each item says where it comes from and when. A person may correct and add; corrections stand above what
look-ups say, now and later.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from webdepot.errors import InputError
from webdepot.selection.domains.facts import bare_host, registrable

PERSON = "a person"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedValue:
    """One item with its source and date."""

    value: str
    source: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """What a person said; `remove_` items are struck from what look-ups found."""

    names: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    name_servers: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()
    """Known not to belong."""
    removed: tuple[str, ...] = ()
    """Ranges, names, name servers or domains that look-ups found and that are wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganisationProfile:
    root: str
    """The registrable domain of the given host."""
    host: str
    names: tuple[SourcedValue, ...] = ()
    """Surest first: the first is shown as the organisation's name."""
    ranges: tuple[SourcedValue, ...] = ()
    """Networks held by the organisation, in CIDR form."""
    other_ranges: tuple[SourcedValue, ...] = ()
    """Networks around its addresses that somebody else holds (a provider, a host): no sign."""
    name_servers: tuple[SourcedValue, ...] = ()
    registrant: tuple[SourcedValue, ...] = ()
    """The registrant's name, as the registry says."""
    address: tuple[SourcedValue, ...] = ()
    mail_domains: tuple[SourcedValue, ...] = ()
    vat_ids: tuple[SourcedValue, ...] = ()
    trackers: tuple[SourcedValue, ...] = ()
    domains: tuple[SourcedValue, ...] = ()
    """Domains (or single hosts) that surely belong."""
    strangers: tuple[SourcedValue, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be found out, in words."""

    @property
    def name(self) -> str:
        return self.names[0].value if self.names else self.root


@dataclass(slots=True)
class ProfileMatcher:
    """A profile prepared for fast questions; made anew when the profile has learned."""

    profile: OrganisationProfile
    teachers: Mapping[str, str] = field(default_factory=dict)
    """Which host made a domain known as a member."""
    networks: list[IPv4Network | IPv6Network] = field(default_factory=list)
    domains: frozenset[str] = frozenset()
    strangers: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    name_servers: frozenset[str] = frozenset()
    mail_domains: frozenset[str] = frozenset()
    _ranges: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        profile = self.profile
        self.networks = [ip_network(item.value) for item in profile.ranges]
        self.domains = frozenset(item.value for item in profile.domains)
        self.strangers = frozenset(item.value for item in profile.strangers)
        self.names = tuple(item.value for item in profile.names)
        self.name_servers = frozenset(item.value for item in profile.name_servers)
        self.mail_domains = frozenset(item.value for item in profile.mail_domains)

    def owner_of(self, name: str) -> str:
        """The member domain that a host lies in or below; empty when there is none."""
        return _covering(name, self.domains)

    def stranger_of(self, name: str) -> str:
        return _covering(name, self.strangers)

    def is_own_mail(self, domain: str) -> bool:
        return domain in self.mail_domains or bool(self.owner_of(domain))

    def range_of(self, addresses: Iterable[str]) -> str:
        """The held network in which an address lies; empty when there is none."""
        return next((found for found in map(self._range_of_one, addresses) if found), "")

    def _range_of_one(self, text: str) -> str:
        known = self._ranges.get(text)
        if known is None:
            try:
                address = ip_address(text)
            except ValueError:
                return ""
            held = (
                network
                for network in self.networks
                if address.version == network.version and address in network
            )
            known = self._ranges[text] = str(next(held, ""))
        return known


def corrected(profile: OrganisationProfile, said: Corrections, *, at: datetime) -> OrganisationProfile:
    """The profile as a person wants it."""

    def merged(found: tuple[SourcedValue, ...], added: Iterable[str]) -> tuple[SourcedValue, ...]:
        mine = tuple(SourcedValue(value=value, source=PERSON, at=at) for value in added)
        known = {item.value for item in mine}
        return (
            *mine,
            *(item for item in found if item.value not in known and item.value not in said.removed),
        )

    return replace(
        profile,
        names=merged(profile.names, said.names),
        ranges=merged(profile.ranges, said.ranges),
        name_servers=merged(profile.name_servers, said.name_servers),
        domains=merged(profile.domains, said.domains),
        strangers=merged(profile.strangers, said.strangers),
    )


def checked_range(text: str) -> str:
    try:
        return str(ip_network(text.strip(), strict=False))
    except ValueError as error:
        raise InputError(
            f"{text!r} is no net range: {error}. Write it like 192.0.2.0/24 or 2001:db8::/32."
        ) from error


def checked_host(text: str) -> str:
    """A host name as typed, IDN in its ASCII form; InputError when it is none."""
    from webdepot.url import from_typed, host_of

    host = bare_host(host_of(from_typed(text)))
    if "." not in host or not registrable(host):
        raise InputError(f"{text!r} is no domain name. Write it like uni-example.de.")
    return host


def _covering(name: str, domains: frozenset[str]) -> str:
    rest = name
    while rest:
        if rest in domains:
            return rest
        rest = rest.partition(".")[2]
    return ""
