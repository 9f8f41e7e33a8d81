"""First phase: from one domain to the profile of its organisation.

1. DNS of the root and its `www`; its zone; its registration.
2. Certificate, front page and imprint of the root: names, VAT ids, mail domains, units.
3. The name that most sources agree on comes first; a registrant that no other source names (an agency) is not
   a name of the organisation.
4. The networks that contain the addresses of the root and of its own name servers and mail hosts: those held
   by one of the names are its ranges.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from webdepot.selection.domains.facts import HostFacts, LookupStatus, Network, is_below, registrable
from webdepot.selection.domains.lookup.site_visit import visit_site
from webdepot.selection.domains.lookup.sources import Sources
from webdepot.selection.domains.names import Kinship, compare, looks_like_organisation
from webdepot.selection.domains.profile import OrganisationProfile, ProfileMatcher, SourcedValue

MOST_NETWORK_QUERIES = 12
_GOOD = (Kinship.SAME, Kinship.UNIT)


async def profile_of(
    host: str, sources: Sources, *, now: datetime, ports: tuple[int, int] = (80, 443)
) -> tuple[OrganisationProfile, HostFacts]:
    """The profile and the facts about the root itself. If the root cannot be reached, the profile contains
    only notes.
    """
    root = registrable(host)
    facts = HostFacts(host=host, domain=root)
    records, zone, registration = await asyncio.gather(
        sources.host(host), sources.zone(root), sources.registration(root)
    )
    facts = replace(facts, records=records, zone=zone, registration=registration)
    if records.status is not LookupStatus.FOUND and host == root:
        www = await sources.host(f"www.{root}")
        if www.status is LookupStatus.FOUND:
            facts = replace(facts, records=www, host=f"www.{root}")
    if facts.records is not None and facts.records.status is LookupStatus.FOUND:
        facts = replace(facts, certificate=await sources.certificate(facts.host, facts.records.addresses))
        facts = await visit_site(facts, sources, wants_imprint=True, ports=ports)
    names = _names(facts, now)
    profile = OrganisationProfile(
        root=root,
        host=host,
        names=names,
        name_servers=tuple(SourcedValue(value=name, source="DNS", at=now) for name in facts.name_servers),
        registrant=_sourced([registration.registrant.name], registration.source, registration.at or now),
        address=_sourced([registration.registrant.address], registration.source, registration.at or now),
        mail_domains=_mail_domains(facts, root, names, now),
        vat_ids=_sourced(_of_pages(facts, "vat_ids"), f"imprint of {facts.host}", now),
        trackers=_sourced(facts.front.trackers if facts.front else (), f"front page of {facts.host}", now),
        domains=(SourcedValue(value=root, source="given", at=now),),
        notes=tuple(_notes(facts)),
    )
    return await with_ranges(profile, await _addresses(facts, root, sources), sources, now=now), facts


async def with_ranges(
    profile: OrganisationProfile, addresses: Iterable[str], sources: Sources, *, now: datetime
) -> OrganisationProfile:
    """Look up the networks of these addresses; those held by the organisation become its ranges."""
    queries = 0
    for address in dict.fromkeys(addresses):
        measure = ProfileMatcher(profile)
        if (
            measure.range_of([address])
            or _in(address, profile.other_ranges)
            or queries >= MOST_NETWORK_QUERIES
        ):
            continue
        queries += 1
        network = await sources.network(address)
        if network.status is not LookupStatus.FOUND:
            continue
        is_held, why = _is_held(network, measure)
        ranges = tuple(
            SourcedValue(value=str(part), source=f"{network.source} ({why})", at=network.at or now)
            for part in network.ranges()[:20]
        )
        if is_held:
            profile = replace(profile, ranges=(*profile.ranges, *ranges))
        else:
            profile = replace(profile, other_ranges=(*profile.other_ranges, *ranges))
    return profile


def _is_held(network: Network, measure: ProfileMatcher) -> tuple[bool, str]:
    holder = network.holder
    if holder.name:
        best = [name for name in measure.names if compare(holder.name, name).kinship in _GOOD]
        if best:
            return True, f"held by {holder.name}"
    mail = next((domain for domain in holder.mail_domains if measure.is_own_mail(domain)), "")
    if mail:
        return True, f"its holder has a mailbox at {mail}"
    return False, f"held by {holder.name or network.name or 'somebody else'}"


def _in(address: str, ranges: Sequence[SourcedValue]) -> bool:
    measure = ProfileMatcher(OrganisationProfile(root="", host="", ranges=tuple(ranges)))
    return bool(measure.range_of([address]))


async def _addresses(facts: HostFacts, root: str, sources: Sources) -> list[str]:
    """Addresses of the root, its `www`, and the name servers and mail hosts below it: at least one of them is
    probably in the organisation's own network.
    """
    hosts = [f"www.{root}", *(name for name in facts.name_servers if is_below(name, root))]
    hosts += [name for name in (facts.zone.mail_hosts if facts.zone else ()) if is_below(name, root)]
    others = await asyncio.gather(*(sources.host(host) for host in hosts[:8]))
    return [
        *(facts.records.addresses if facts.records else ()),
        *(address for records in others for address in records.addresses),
    ]


def _names(facts: HostFacts, now: datetime) -> tuple[SourcedValue, ...]:
    """Names, those that most sources agree on first; sources in the order of their reliability."""
    named: list[SourcedValue] = []
    page = f"imprint of {facts.host}"
    operators = _of_pages(facts, "operators")
    named += _sourced(operators[:3], page, now)
    registration = facts.registration
    if registration is not None and registration.registrant.name:
        named += _sourced([registration.registrant.name], registration.source, registration.at or now)
    if facts.front is not None:
        named += _sourced(facts.front.structured[:2], f"JSON-LD of {facts.host}", now)
    if facts.certificate is not None and facts.certificate.is_trusted and facts.certificate.organisation:
        named += _sourced([facts.certificate.organisation], f"certificate of {facts.host}", now)
    if facts.front is not None:
        named += _sourced(facts.front.copyright[:1], f"front page of {facts.host}", now)
        if not named:
            parts = [
                part.strip() for part in facts.front.title.replace("|", "-").replace("–", "-").split(" - ")
            ]
            named += _sourced(
                [part for part in parts if looks_like_organisation(part)][:1], f"title of {facts.host}", now
            )
    if not named:
        return ()
    first = max(
        named,
        key=lambda item: (
            len({other.source for other in named if _is_kin(other.value, item.value)}),
            -named.index(item),
        ),
    )
    agreed = [
        first,
        *(item for item in named if item.value != first.value and _is_kin(item.value, first.value)),
    ]
    if facts.front is not None:
        agreed += _sourced(facts.front.aliases, f"JSON-LD of {facts.host}", now)
        agreed += _sourced(facts.front.units, f"unit in the JSON-LD of {facts.host}", now)
    return tuple({item.value: item for item in reversed(agreed)}.values())[::-1]


def _is_kin(one: str, other: str) -> bool:
    return compare(one, other).kinship in _GOOD or compare(other, one).kinship in _GOOD


def _mail_domains(
    facts: HostFacts, root: str, names: Sequence[SourcedValue], now: datetime
) -> tuple[SourcedValue, ...]:
    """The root itself, and the registrant's mail domains if the registrant is the organisation."""
    domains = [SourcedValue(value=root, source="given", at=now)]
    registration = facts.registration
    if registration is not None and any(_is_kin(registration.registrant.name, item.value) for item in names):
        domains += _sourced(registration.registrant.mail_domains, registration.source, registration.at or now)
    return tuple({item.value: item for item in domains}.values())


def _of_pages(facts: HostFacts, name: str) -> tuple[str, ...]:
    values: list[str] = []
    for page in (facts.imprint, facts.front):
        values.extend(getattr(page, name) if page is not None else ())
    return tuple(dict.fromkeys(values))


def _sourced(values: Iterable[str], source: str, at: datetime) -> tuple[SourcedValue, ...]:
    return tuple(SourcedValue(value=value, source=source, at=at) for value in dict.fromkeys(values) if value)


def _notes(facts: HostFacts) -> list[str]:
    notes = []
    if facts.records is None or facts.records.status is not LookupStatus.FOUND:
        notes.append(
            f"{facts.host} does not resolve: {facts.records.detail if facts.records else 'not looked up'}"
        )
    elif facts.front is None:
        notes.append(f"{facts.host} did not respond over HTTP or HTTPS")
    registration = facts.registration
    if registration is None or registration.status is not LookupStatus.FOUND:
        detail = registration.detail if registration else "not looked up"
        notes.append(f"the registry has no data about {facts.domain}: {detail}".rstrip(": "))
    elif registration.registrant.is_redacted:
        notes.append(f"the registrant of {facts.domain} is redacted")
    return notes
