"""Signs that a host belongs to an organisation or does not, each with a text and a weight in log-odds; and
their sum.

Weights are chosen by reasoning, not fitted: +5 is "nearly certain alone", +3 "good, but not proof", +1 "a
hint"; negative weights likewise. Steps:

1. Each source (name, network, zone, certificate, site, registry) gives signs. Signs of one source are not
   independent, so the strongest counts in full and the others in part.
2. A sign that many unrelated owners share loses weight (`Sharing`): the name server of a research network,
   the address of a hosting provider.
3. Negative evidence counts: a readable registrant or imprint that names somebody else. A redacted or missing
   one is not evidence.
4. The sum with the prior becomes a score between 0 and 1; two bounds decide to follow, ask or ignore.

The registration of `agency.example` says little about `project.agency.example`, so it counts less for
subdomains.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from webdepot.selection.domains.facts import HostFacts, LookupStatus, PageFacts, registrable
from webdepot.selection.domains.names import Kinship, Rarity, folded, nearest, similarity
from webdepot.selection.domains.profile import ProfileMatcher
from webdepot.selection.domains.sharing import Sharing

CERTAIN = 50.0
"""Weight of a person's decision."""
REPEATED = 0.35
"""Factor for a sign of the same source as a stronger one."""
GUEST = 0.5
"""Factor for the weaker of network and zone, when both give signs."""
DEEP = 0.4
"""Factor for registry and zone if the host is a subdomain of the registered name."""
MOST_CERTIFICATE_DOMAINS = 12


_AGENCY = re.compile(
    r"(?i)agentur|agency|web\s?-?design|hosting|internet|\bmedia|medien|digital|domain|registrar|netzwerk|"
    r"provider|it-?service"
)
"""Companies that register domains for others."""


class Group(StrEnum):
    """Sources of signs."""

    NAME = "name"
    NETWORK = "network"
    ZONE = "zone"
    CERTIFICATE = "certificate"
    SITE = "site"
    REGISTRY = "registry"
    PERSON = "person"
    PRIOR = "prior"


class HostOrigin(StrEnum):
    """How a host became a candidate."""

    ROOT = "root"
    MEMBER = "linked by a member"
    FOREIGN = "linked from outside"
    LOGGED = "certificate transparency"
    LOGGED_FOR = "certificate of the organisation"
    CERTIFICATE = "name in a certificate"
    VHOST = "server configuration"
    SCAN = "range scan"
    PERSON = "named by a person"


PRIORS = {
    HostOrigin.ROOT: 4.0,
    HostOrigin.MEMBER: -2.5,
    HostOrigin.FOREIGN: -3.0,
    HostOrigin.LOGGED: -2.5,
    HostOrigin.LOGGED_FOR: -1.0,
    HostOrigin.CERTIFICATE: -2.5,
    HostOrigin.VHOST: 0.0,
    HostOrigin.SCAN: -2.0,
    HostOrigin.PERSON: -1.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One piece of evidence as text, with its weight in log-odds (positive is for, negative against)."""

    code: str
    group: Group
    weight: float
    words: str


def signs_of(
    facts: HostFacts, measure: ProfileMatcher, origin: HostOrigin, sharing: Sharing, rarity: Rarity
) -> list[Sign]:
    """All signs, strongest first."""
    signs = [
        *_of_person(facts, measure),
        *_of_name(facts, measure),
        *_of_network(facts, measure, sharing),
        *_of_zone(facts, measure, sharing),
        *_of_certificate(facts, measure, sharing, rarity),
        *_of_site(facts, measure, sharing, rarity),
        *_of_registry(facts, measure, sharing, rarity),
        *_of_origin(origin),
    ]
    return sorted(signs, key=lambda sign: -abs(sign.weight))


def score_of(signs: Iterable[Sign], origin: HostOrigin) -> float:
    """The probability that the host belongs to the organisation, 0 to 1."""
    return 1.0 / (1.0 + math.exp(-min(max(log_odds(signs, origin), -60.0), 60.0)))


def log_odds(signs: Iterable[Sign], origin: HostOrigin) -> float:
    groups: dict[tuple[Group, bool], list[float]] = defaultdict(list)
    for sign in signs:
        groups[sign.group, sign.weight > 0].append(sign.weight)
    sums = {}
    for key, weights in groups.items():
        ordered = sorted(weights, key=abs, reverse=True)
        sums[key] = ordered[0] + REPEATED * sum(ordered[1:3])
    # A guest in the network often uses its name servers too: the two signs are not independent.
    network, zone = sums.pop((Group.NETWORK, True), 0.0), sums.pop((Group.ZONE, True), 0.0)
    return PRIORS[origin] + sum(sums.values()) + max(network, zone) + GUEST * min(network, zone)


def owner_of(facts: HostFacts) -> str:
    """The name of the owner of this site, if known: from the imprint, otherwise from the registry."""
    for page in (facts.imprint, facts.front):
        if page is not None and (page.operators or page.structured):
            return folded((page.operators or page.structured)[0])
    return folded(facts.registration.registrant.name) if facts.registration is not None else ""


# --- the sources ---


def _sign(code: str, group: Group, weight: float, words: str) -> Sign:
    return Sign(code=code, group=group, weight=round(weight, 2), words=words)


def _of_person(facts: HostFacts, measure: ProfileMatcher) -> Iterator[Sign]:
    stranger = measure.stranger_of(facts.host)
    if stranger and len(stranger) >= len(measure.owner_of(facts.host)):
        yield _sign("person-no", Group.PERSON, -CERTAIN, f"a person decided that {stranger} does not belong")


def _of_origin(origin: HostOrigin) -> Iterator[Sign]:
    if origin is HostOrigin.VHOST:
        yield _sign("vhost", Group.PRIOR, 3.0, "it is in the configuration of a server of the organisation")


def _of_name(facts: HostFacts, measure: ProfileMatcher) -> Iterator[Sign]:
    owner = _covering(facts.host, facts, measure)
    if owner:
        yield _sign(
            "below-domain", Group.NAME, 7.0, f"{facts.host} is in {owner}, a domain of the organisation"
        )


def _of_network(facts: HostFacts, measure: ProfileMatcher, sharing: Sharing) -> Iterator[Sign]:
    records = facts.records
    if records is None or records.status is not LookupStatus.FOUND:
        return
    held = measure.range_of(records.addresses)
    if held:
        weight = 3.0 * max(sharing.factor(f"ip:{address}") for address in records.addresses)
        yield _sign(
            "in-range",
            Group.NETWORK,
            weight,
            f"its address {records.addresses[0]} is in {held}, a network of the organisation",
        )
    chained = next((name for name in records.chain if measure.owner_of(name)), "")
    if chained and not measure.owner_of(facts.host):
        yield _sign(
            "alias", Group.NETWORK, 2.5, f"its name is an alias of {chained}, a host of the organisation"
        )


def _of_zone(facts: HostFacts, measure: ProfileMatcher, sharing: Sharing) -> Iterator[Sign]:
    if _covering(facts.domain, facts, measure):
        return
    share = _share(facts)
    servers = facts.name_servers
    own = [name for name in servers if _covering(name, facts, measure)]
    if own:
        factor = max(sharing.factor(f"ns:{name}") for name in own)
        is_whole = len(own) * 2 >= len(servers)
        text = (
            f"its name servers {', '.join(own[:3])} belong to the organisation"
            if is_whole
            else f"{own[0]}, a host of the organisation, is one of its name servers"
        )
        yield _sign("own-name-servers", Group.ZONE, share * factor * (3.5 if is_whole else 1.5), text)
    elif measure.name_servers & set(servers):
        shared = sorted(measure.name_servers & set(servers))
        factor = max(sharing.factor(f"ns:{name}") for name in shared)
        yield _sign(
            "same-name-servers",
            Group.ZONE,
            share * factor * 0.8,
            f"it shares the name server {shared[0]} with the organisation",
        )
    zone = facts.zone
    if zone is None:
        return
    if zone.soa_contact and _is_own_mail(zone.soa_contact, facts, measure):
        weight = share * sharing.factor(f"soa:{zone.soa_contact}") * 3.0
        yield _sign(
            "soa-contact",
            Group.ZONE,
            weight,
            f"the contact of its DNS zone has a mailbox at {zone.soa_contact}",
        )
    mail = next((name for name in zone.mail_hosts if _covering(name, facts, measure)), "")
    if mail:
        yield _sign(
            "mail-host",
            Group.ZONE,
            share * sharing.factor(f"mx:{mail}") * 3.0,
            f"its mail is delivered to {mail}, a host of the organisation",
        )
    policy = next((name for name in (*zone.spf, *zone.dmarc) if _is_own_mail(name, facts, measure)), "")
    if policy:
        weight = share * sharing.factor(f"spf:{policy}") * 2.0
        yield _sign(
            "mail-policy",
            Group.ZONE,
            weight,
            f"its mail policy (SPF or DMARC) names {policy}, a domain of the organisation",
        )


def _of_certificate(
    facts: HostFacts, measure: ProfileMatcher, sharing: Sharing, rarity: Rarity
) -> Iterator[Sign]:
    certificate = facts.certificate
    if certificate is None or not certificate.is_trusted:
        return
    key = f"certificate:{certificate.fingerprint}"
    domains = {registrable(name) for name in certificate.names}
    is_crowded = len(domains) > MOST_CERTIFICATE_DOMAINS
    if certificate.organisation and not is_crowded:
        kin, known = nearest(certificate.organisation, measure.names, rarity)
        text = f"its certificate is issued to {certificate.organisation}"
        if kin.kinship in (Kinship.SAME, Kinship.UNIT):
            yield _sign("certificate-organisation", Group.CERTIFICATE, 4.5 * sharing.factor(key), text)
        elif kin.kinship is Kinship.OTHER:
            yield _sign(
                "certificate-other", Group.CERTIFICATE, -2.0 * sharing.factor(key), f"{text}, not to {known}"
            )
    if _covering(facts.domain, facts, measure) or is_crowded:
        return
    own = sorted(name for name in certificate.names if _covering(name, facts, measure))
    foreign = {domain for domain in domains if not measure.owner_of(domain)} - {facts.domain}
    if own:
        weight = 3.0 / (1.0 + 0.6 * len(foreign)) * sharing.factor(key)
        yield _sign("certificate-names", Group.CERTIFICATE, weight, f"one certificate covers it and {own[0]}")


def _of_site(facts: HostFacts, measure: ProfileMatcher, sharing: Sharing, rarity: Rarity) -> Iterator[Sign]:
    front, imprint = facts.front, facts.imprint
    if imprint is not None:
        yield from _of_imprint(imprint, facts, measure, rarity)
    if front is None:
        return
    if (
        imprint is None
        and front.imprint
        and measure.owner_of(_host(front.imprint))
        and not measure.owner_of(facts.host)
    ):
        yield _sign(
            "imprint-there", Group.SITE, 4.0, f"it links to the organisation's imprint: {front.imprint}"
        )
    yield from _of_structured(front, measure, rarity)
    for name in front.copyright[:1]:
        kin, _ = nearest(name, measure.names, rarity)
        if kin.kinship in (Kinship.SAME, Kinship.UNIT):
            yield _sign("copyright", Group.SITE, 2.5, f"the copyright line names {name}")
        elif kin.kinship is Kinship.OTHER:
            yield _sign("copyright-other", Group.SITE, -1.5, f"the copyright line names {name}")
    if front.title and any(
        nearest(part, measure.names, rarity)[0].kinship in (Kinship.SAME, Kinship.UNIT)
        for part in _title_parts(front.title)
    ):
        yield _sign("title", Group.SITE, 1.2, f"its title names the organisation: {front.title}")
    if front.redirect and measure.owner_of(_host(front.redirect)) and not measure.owner_of(facts.host):
        yield _sign(
            "redirect",
            Group.SITE,
            0.8,
            f"it redirects to {_host(front.redirect)}; look-alike domains do that too",
        )
    known = {item.value for item in measure.profile.trackers}
    for tracker in front.trackers:
        if tracker in known:
            weight = 2.0 * sharing.factor(f"tracker:{tracker}")
            yield _sign(
                "counter", Group.SITE, weight, f"it uses the organisation's web analytics id {tracker}"
            )
    if facts.security is not None:
        contact = next(
            (domain for domain in facts.security.mail_domains if _is_own_mail(domain, facts, measure)), ""
        )
        if contact:
            yield _sign("security-contact", Group.SITE, 3.0, f"its security.txt names a contact at {contact}")


def _of_imprint(page: PageFacts, facts: HostFacts, measure: ProfileMatcher, rarity: Rarity) -> Iterator[Sign]:
    vat_ids = {item.value for item in measure.profile.vat_ids}
    vat = next((each for each in page.vat_ids if each in vat_ids), "")
    if vat:
        yield _sign("vat-id", Group.SITE, 6.0, f"its imprint gives the organisation's VAT id {vat}")
    mail = next((domain for domain in page.mail_domains if _is_own_mail(domain, facts, measure)), "")
    if mail:
        yield _sign("imprint-mail", Group.SITE, 3.0, f"its imprint gives a mailbox at {mail}")
    kins = [(nearest(name, measure.names, rarity)[0], name) for name in page.operators]
    own = next(((kin, name) for kin, name in kins if kin.kinship in (Kinship.SAME, Kinship.UNIT)), None)
    beside = next((name for kin, name in kins if kin.kinship is Kinship.BESIDE), "")
    if own is not None and not beside:
        yield _sign(
            "imprint",
            Group.SITE,
            5.5 * (0.6 + 0.4 * own[0].rarity),
            f"its imprint names {own[1]} as operator",
        )
    elif own is not None:
        yield _sign("imprint", Group.SITE, 2.0, f"its imprint names {own[1]}, but also {beside}")
    elif beside and not vat:
        yield _sign(
            "imprint-beside",
            Group.SITE,
            -1.5,
            f"its imprint names {beside}, which is not the organisation itself",
        )
    elif page.operators and not vat:
        # With a mailbox of the organisation it may be a unit with its own name.
        yield _sign(
            "imprint-other",
            Group.SITE,
            -2.0 if mail else -5.5,
            f"its imprint names {page.operators[0]} as operator",
        )
    elif page.persons and not vat:
        yield _sign("imprint-person", Group.SITE, -3.0, "its imprint names a private person as operator")


def _of_structured(page: PageFacts, measure: ProfileMatcher, rarity: Rarity) -> Iterator[Sign]:
    for name in page.parents:
        if nearest(name, measure.names, rarity)[0].kinship in (Kinship.SAME, Kinship.UNIT):
            yield _sign("parent", Group.SITE, 4.5, f"its JSON-LD names {name} as parent organisation")
            return
    for name in page.structured[:2]:
        kin, _ = nearest(name, measure.names, rarity)
        if kin.kinship in (Kinship.SAME, Kinship.UNIT):
            yield _sign("structured", Group.SITE, 4.0, f"its JSON-LD names {name}")
            return
        if kin.kinship is Kinship.OTHER:
            yield _sign("structured-other", Group.SITE, -2.0, f"its JSON-LD names {name}")
            return


def _of_registry(
    facts: HostFacts, measure: ProfileMatcher, sharing: Sharing, rarity: Rarity
) -> Iterator[Sign]:
    if facts.registration is None or facts.registration.status is not LookupStatus.FOUND:
        return
    if _covering(facts.domain, facts, measure):
        return
    registrant, share = facts.registration.registrant, _share(facts)
    mail = next((domain for domain in registrant.mail_domains if _is_own_mail(domain, facts, measure)), "")
    if mail:
        weight = share * 5.0 * sharing.factor(f"mail:{mail}")
        yield _sign("registrant-mail", Group.REGISTRY, weight, f"its registrant has a mailbox at {mail}")
    if registrant.name:
        kin, known = nearest(registrant.name, measure.names, rarity)
        text = f"its registrant is {registrant.name}"
        if kin.kinship in (Kinship.SAME, Kinship.UNIT):
            yield _sign("registrant", Group.REGISTRY, share * 5.0 * (0.6 + 0.4 * kin.rarity), text)
        elif kin.kinship is Kinship.BESIDE:
            yield _sign(
                "registrant-beside", Group.REGISTRY, -1.0 * share, f"{text}, which is not {known} itself"
            )
        elif kin.kinship is Kinship.OTHER and not mail:
            # Agencies register domains for their customers. If the imprint names the organisation, this is
            # the more likely explanation.
            key = f"registrant:{folded(registrant.name)}"
            if _names_it(facts, measure, rarity):
                weight = -0.8
            else:
                weight = -1.5 if sharing.others(key) > 1 or _AGENCY.search(registrant.name) else -4.0
            yield _sign("registrant-other", Group.REGISTRY, share * weight, f"{text}, not {known}")
        if registrant.address and any(
            similarity(registrant.address, item.value) > 0.85 for item in measure.profile.address
        ):
            yield _sign(
                "registrant-address",
                Group.REGISTRY,
                share * 0.8,
                "its registrant has the organisation's address",
            )
    elif registrant.is_person and not mail:
        yield _sign("registrant-person", Group.REGISTRY, -1.5 * share, "its registrant is a private person")


def _names_it(facts: HostFacts, measure: ProfileMatcher, rarity: Rarity) -> bool:
    """Whether the site itself names the organisation as operator or parent, or gives its VAT id."""
    if facts.imprint is not None and {item.value for item in measure.profile.vat_ids} & set(
        facts.imprint.vat_ids
    ):
        return True
    names = [
        name
        for page in (facts.imprint, facts.front)
        if page is not None
        for name in (*page.operators, *page.parents, *page.structured)
    ]
    return any(
        nearest(name, measure.names, rarity)[0].kinship in (Kinship.SAME, Kinship.UNIT) for name in names
    )


def _covering(name: str, facts: HostFacts, measure: ProfileMatcher) -> str:
    """The member domain that contains a name; empty if it is known only through this host, because that is
    not evidence about the host itself.
    """
    owner = measure.owner_of(name)
    return owner if owner and measure.teachers.get(owner) != facts.host else ""


def _is_own_mail(domain: str, facts: HostFacts, measure: ProfileMatcher) -> bool:
    return domain in measure.mail_domains or bool(_covering(domain, facts, measure))


def _share(facts: HostFacts) -> float:
    return 1.0 if facts.host in (facts.domain, f"www.{facts.domain}") else DEEP


def _title_parts(title: str) -> list[str]:
    return [
        part
        for part in title.replace("|", " - ").replace("–", " - ").replace("·", " - ").split(" - ")
        if part.strip()
    ][:6]


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0]
