"""The profile of an organisation, against which every candidate is compared.

Each value has a source and a date. People can correct and add values; corrections override look-ups, now and
later.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from webdepot.errors import InputError
from webdepot.selection.domains.facts import bare_host, registrable
from webdepot.url import from_typed, host_of

PERSON = "a person"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedValue:
    """A value with its source and date."""

    value: str
    source: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """Corrections by people."""

    names: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    name_servers: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()
    """Domains that do not belong to the organisation."""
    removed: tuple[str, ...] = ()
    """Wrong values of look-ups: ranges, names, name servers or domains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganisationProfile:
    """What is known about an organisation."""

    root: str
    """The registrable domain of the given host."""
    host: str
    names: tuple[SourcedValue, ...] = ()
    """Most certain first: the first is shown as the organisation's name."""
    ranges: tuple[SourcedValue, ...] = ()
    """Networks held by the organisation, in CIDR form."""
    other_ranges: tuple[SourcedValue, ...] = ()
    """Networks that contain its addresses but are held by others (a hosting provider): not evidence."""
    name_servers: tuple[SourcedValue, ...] = ()
    registrant: tuple[SourcedValue, ...] = ()
    """The registrant's name according to the registry."""
    address: tuple[SourcedValue, ...] = ()
    mail_domains: tuple[SourcedValue, ...] = ()
    vat_ids: tuple[SourcedValue, ...] = ()
    trackers: tuple[SourcedValue, ...] = ()
    domains: tuple[SourcedValue, ...] = ()
    """Domains (or single hosts) that certainly belong."""
    strangers: tuple[SourcedValue, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be determined."""

    @property
    def name(self) -> str:
        return self.names[0].value if self.names else self.root


@dataclass(slots=True)
class ProfileMatcher:
    """A profile prepared for fast comparison; rebuilt when the profile has learned something."""

    profile: OrganisationProfile
    teachers: Mapping[str, str] = field(default_factory=dict)
    """The host through which a member domain became known."""
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
        """The member domain that contains a host; empty if there is none."""
        return _covering(name, self.domains)

    def stranger_of(self, name: str) -> str:
        return _covering(name, self.strangers)

    def is_own_mail(self, domain: str) -> bool:
        return domain in self.mail_domains or bool(self.owner_of(domain))

    def range_of(self, addresses: Iterable[str]) -> str:
        """The organisation's network that contains one of the addresses; empty if there is none."""
        return next((network for network in map(self._range_of_one, addresses) if network), "")

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


def corrected(profile: OrganisationProfile, corrections: Corrections, *, at: datetime) -> OrganisationProfile:
    """The profile with the corrections applied."""

    def merged(looked_up: tuple[SourcedValue, ...], added: Iterable[str]) -> tuple[SourcedValue, ...]:
        by_people = tuple(SourcedValue(value=value, source=PERSON, at=at) for value in added)
        dropped = {item.value for item in by_people} | set(corrections.removed)
        return (*by_people, *(item for item in looked_up if item.value not in dropped))

    return replace(
        profile,
        names=merged(profile.names, corrections.names),
        ranges=merged(profile.ranges, corrections.ranges),
        name_servers=merged(profile.name_servers, corrections.name_servers),
        domains=merged(profile.domains, corrections.domains),
        strangers=merged(profile.strangers, corrections.strangers),
    )


def checked_range(text: str) -> str:
    """A network range in CIDR form; InputError if the text is not one."""
    try:
        return str(ip_network(text.strip(), strict=False))
    except ValueError as error:
        raise InputError(
            f"{text!r} is not a network range: {error}. Write it like 192.0.2.0/24 or 2001:db8::/32."
        ) from error


def checked_host(text: str) -> str:
    """The host name of a typed address, IDN in its ASCII form; InputError if it is not a host name."""
    host = bare_host(host_of(from_typed(text)))
    if "." not in host or not registrable(host):
        raise InputError(f"{text!r} is not a domain name. Write it like uni-example.de.")
    return host


def _covering(name: str, domains: frozenset[str]) -> str:
    rest = name
    while rest:
        if rest in domains:
            return rest
        rest = rest.partition(".")[2]
    return ""
