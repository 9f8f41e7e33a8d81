"""A generated world with labels: one university with domains in all five sectors, and other organisations. It
answers as `Sources`.

Pages are real HTML and registry responses real RDAP objects, parsed by the program itself; only the network
is left out. The evidence that a member shows is random. Members that show none are marked as not findable.

Proportions (70 % of registrants redacted, imprints on 75-80 % of sites, typing errors, subsidiaries, guests,
secondaries, shared clouds) follow published figures where there are any; the others are estimates. Every
world has a different town, different names and numbers.
"""

# Longer than other modules because it is mostly the table of the generated organisations.

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network

from bench.discovery_words import AGENCIES, TOWNS, UNITS, WORDS

from webdepot.selection.domains import page_facts
from webdepot.selection.domains.facts import (
    Certificate,
    HostRecords,
    LookupStatus,
    Network,
    PageFacts,
    Registration,
    ZoneRecords,
    registrable,
)
from webdepot.selection.domains.lookup.registrant import network_of_rdap, registration_of_rdap

NOW = datetime(2026, 11, 15, tzinfo=UTC)


@dataclass
class Place:
    """A host of the world with its label."""

    host: str
    is_member: bool
    case: int = 0
    findable: bool = True
    address: str = ""
    chain: tuple[str, ...] = ()
    certificate: Certificate | None = None
    pages: dict[str, str] = field(default_factory=dict)
    redirect: str = ""
    trap: str = ""
    """Why a foreign host looks like a member, or a member like a foreign host."""


@dataclass
class Zone:
    name_servers: tuple[str, ...]
    soa: str = ""
    mail: tuple[str, ...] = ()
    spf: tuple[str, ...] = ()
    dmarc: tuple[str, ...] = ()
    registrant: dict[str, str] | None = None


class World:
    """`Sources` of a generated internet. Everything depends only on the seed."""

    def __init__(self, seed: int, *, size: int = 1200, frankness: float = 1.0) -> None:
        """With `frankness` below 1, sites show less evidence."""
        self.random = random.Random(seed)
        self.frankness = frankness
        self.asked: Counter[str] = Counter()
        self.page_requests: Counter[str] = Counter()
        self.places: dict[str, Place] = {}
        self.zones: dict[str, Zone] = {}
        self.logged: dict[str, list[str]] = {}
        self._kept: dict[tuple[str, str], object] = {}
        self._used: set[str] = set()
        self.town = self.random.choice(TOWNS)
        self.kind = self.random.choice(
            ["Universität", "Universität", "Technische Universität", "Pädagogische Hochschule"]
        )
        self.name = f"{self.kind} {self.town}"
        short = {"Universität": "uni", "Technische Universität": "tu", "Pädagogische Hochschule": "ph"}[
            self.kind
        ]
        self.root = f"{short}-{ascii_of(self.town)}.de"
        self.vat = f"DE{self.random.randrange(10**8, 10**9)}"
        self.range = f"10.{self.random.randrange(1, 200)}.0.0/16"
        self._build(size)

    # --- the builder ---

    def _build(self, size: int) -> None:
        pick = self.random
        own_servers = (f"dns1.{self.root}", f"dns2.{self.root}", "dns.forschungsnetz.net")
        self.own_servers = own_servers
        redacted = pick.random() < 0.4
        self.zones[self.root] = Zone(
            own_servers,
            soa=self.root,
            mail=(f"mx.{self.root}",),
            registrant=None
            if redacted
            else {"org": self.name, "fn": self.name, "kind": "org", "email": f"hostmaster@{self.root}"},
        )
        for name in (
            self.root,
            f"www.{self.root}",
            f"dns1.{self.root}",
            f"dns2.{self.root}",
            f"mx.{self.root}",
        ):
            self._place(name, True, 1, self._inside())
        for service in ("dns1", "dns2", "mx"):
            del self.places[f"{service}.{self.root}"]
            self._records[f"{service}.{self.root}"] = self._inside()
        members = [self._below(number) for number in range(size // 10)]
        members += [self._own_domain(1) for _ in range(size // 14)]
        outside = [self._outside_member(2) for _ in range(size // 8)]
        third = [self._own_domain(3) for _ in range(size // 40)]
        fourth = [self._own_domain(4) for _ in range(size // 40)]
        fifth = [self._outside_member(5) for _ in range(size // 60)]
        strangers = [self._stranger() for _ in range(size // 2)]
        strangers += [self._guest() for _ in range(size // 50)]
        strangers += [self._secondary() for _ in range(size // 60)]
        strangers += [self._lookalike() for _ in range(size // 100)]
        strangers += [self._neighbour() for _ in range(size // 25)]
        far = [self._stranger() for _ in range(size // 4)]
        self._link(members, outside, third, strangers, far)
        self.logged[self.root] = [place.host for place in fourth if place.host.endswith(self.root)] + [
            place.host for place in members[:20]
        ]
        self.logged[self.name] = [place.host for place in [*fourth[::2], *fifth[::2]]]
        for place in fourth:
            place.findable = place.findable and (
                place.host in self.logged[self.root] or place.host in self.logged[self.name]
            )
        for place in fifth:
            place.findable = place.findable and place.host in self.logged[self.name]

    @property
    def _records(self) -> dict[str, str]:
        return self._kept.setdefault(("records", ""), {})  # type: ignore[return-value]

    def _inside(self) -> str:
        network = ip_network(self.range)
        return str(network[self.random.randrange(10, 60_000)])

    def _hosted(self) -> str:
        """An address of a hosting company: few addresses, many customers."""
        return (
            f"172.{self.random.randrange(16, 20)}.{self.random.randrange(4)}.{self.random.randrange(1, 30)}"
        )

    def _domain(self, suffixes: str = "de de de com org eu net info") -> str:
        while True:
            name = "-".join(self.random.sample(WORDS, self.random.randrange(1, 3))) + (
                str(self.random.randrange(99)) if self.random.random() < 0.3 else ""
            )
            domain = f"{name}.{self.random.choice(suffixes.split())}"
            if domain not in self._used:
                self._used.add(domain)
                return domain

    def _place(self, host: str, is_member: bool, case: int, address: str, **more: object) -> Place:
        place = Place(host=host, is_member=is_member, case=case, address=address, **more)
        self.places[host] = place
        place.pages["/"] = ""
        return place

    def _spelled(self) -> str:
        """The name of the organisation, in the forms people use."""
        pick = self.random
        spellings = [self.name] * 5 + [
            f"{pick.choice(UNITS)}, {self.name}",
            f"{self.name}, {pick.choice(UNITS)}",
            f"{pick.choice(UNITS)} der {self.name}",
        ]
        spellings += [
            self.name.replace("ä", "ae").replace("ö", "oe").replace("ü", "ue").replace("ß", "ss"),
            self.name.upper(),
        ]
        if self.kind == "Universität":
            spellings += [f"University of {self.town}", f"Uni {self.town}"]
        name = pick.choice(spellings)
        if pick.random() < 0.06:
            at = pick.randrange(2, len(name) - 1)
            name = name[: at - 1] + name[at] + name[at - 1] + name[at + 1 :]
        return name

    def _imprint(self, operator: str, *, mail: str = "", vat: str = "", more: str = "") -> str:
        heading = self.random.choice(["Impressum", "Impressum", "Imprint", "Anbieterkennzeichnung"])
        label = self.random.choice(
            ["Angaben gemäß § 5 DDG", "", "Herausgeber", "Anbieter:", "Verantwortlich für den Inhalt"]
        )
        lines = [
            f"<h1>{heading}</h1>",
            f"<p>{label}</p>" if label else "",
            f"<p>{operator}<br>Hauptstraße {self.random.randrange(1, 99)}<br>12345 {self.random.choice(TOWNS)}</p>",
        ]
        lines += [f"<p>E-Mail: {mail}</p>" if mail else "", f"<p>USt-IdNr.: {vat}</p>" if vat else "", more]
        if self.random.random() < 0.3:
            lines.append(f"<p>Gestaltung und Umsetzung: {self.random.choice(AGENCIES)}</p>")
        if self.random.random() < 0.2:
            lines.append("<p>Gefördert durch die Deutsche Forschungsgemeinschaft</p>")
        return "".join(lines)

    def _below(self, number: int) -> Place:
        host = f"{self.random.choice(WORDS)}{number}.{self.root}"
        place = self._place(host, True, 1, self._inside())
        if self.random.random() < 0.5:
            place.pages["/impressum"] = self._imprint(self._spelled(), mail=f"info@{self.root}")
        return place

    def _own_domain(self, case: int) -> Place:
        """A domain of the organisation on its own servers."""
        pick = self.random
        domain = self._domain()
        signs = 1
        zone = Zone(
            (f"ns1.hoster{pick.randrange(5)}.net", f"ns2.hoster{pick.randrange(5)}.net"),
            soa="hoster.net",
            registrant=self._registrant(0.7),
        )
        if pick.random() < 0.85 * self.frankness:
            zone.name_servers, zone.soa = self.own_servers, self.root
            signs += 1
        self.zones[domain] = zone
        place = self._place(pick.choice([domain, f"www.{domain}"]), True, case, self._inside())
        if pick.random() < 0.75 * self.frankness:
            place.pages["/impressum"] = self._imprint(
                self._spelled(), mail=f"info@{self.root}" if pick.random() < 0.5 else ""
            )
            signs += 1
        # Only in the range: it cannot be distinguished from a guest.
        place.findable = signs > 1 or zone.registrant is not None
        return place

    def _registrant(self, redacted: float) -> dict[str, str] | None:
        if self.random.random() < redacted:
            return None
        name = self._spelled()
        if self.random.random() < 0.5:
            return {"fn": name, "org": name, "kind": "org", "email": f"domains@{self.root}"}
        return {"fn": name, "org": name, "kind": "org"}

    def _outside_member(self, case: int) -> Place:
        """A domain of the organisation at a hosting company or in a cloud."""
        pick = self.random
        domain = self._domain()
        zone = Zone(
            (f"ns1.hoster{pick.randrange(5)}.net", f"ns2.hoster{pick.randrange(5)}.net"),
            soa="hoster.net",
            registrant=self._registrant(0.72),
        )
        if zone.registrant is None and pick.random() < 0.05:
            agency = pick.choice(AGENCIES)
            zone.registrant = {"fn": agency, "org": agency, "kind": "org", "email": "domains@agentur.net"}
        signs = zone.registrant is not None and zone.registrant["org"] not in AGENCIES
        if pick.random() < 0.2:
            zone.name_servers, zone.soa, signs = self.own_servers, self.root, True
        if pick.random() < 0.15:
            zone.mail, zone.spf, signs = (f"mx.{self.root}",), (f"_spf.{self.root}",), True
        self.zones[domain] = zone
        place = self._place(pick.choice([domain, f"www.{domain}"]), True, case, self._hosted())
        is_subsidiary = pick.random() < 0.08
        if pick.random() < 0.8 * self.frankness:
            operator = f"{pick.choice(WORDS).title()} Transfer GmbH" if is_subsidiary else self._spelled()
            vat = self.vat if is_subsidiary or pick.random() < 0.15 else ""
            mail = f"{pick.choice(WORDS)}@{self.root}" if pick.random() < 0.6 else ""
            place.pages["/impressum"] = self._imprint(operator, mail=mail, vat=vat)
            signs = True
        elif pick.random() < 0.3:
            place.pages["/"] = (
                f'<script type="application/ld+json">{{"@type":"Organization","name":"{domain}",'
                f'"parentOrganization":{{"@type":"CollegeOrUniversity","name":"{self.name}"}}}}</script>'
            )
            signs = True
        if pick.random() < 0.06:
            place.certificate = Certificate(
                fingerprint=domain, organisation=self.name, names=(place.host,), is_trusted=True
            )
            signs = True
        elif pick.random() < 0.3:
            place.certificate = self._crowded(place.host)
        place.findable = bool(signs)
        return place

    def _crowded(self, host: str) -> Certificate:
        number = self.random.randrange(4)
        return Certificate(
            fingerprint=f"cloud{number}",
            organisation="Cloud Inc.",
            names=(host, *(f"shop{number}{at}.com" for at in range(30))),
            is_trusted=True,
        )

    def _stranger_name(self) -> str:
        pick, word = self.random, self.random.choice(WORDS).title()
        other = pick.choice([town for town in TOWNS if town != self.town])
        return pick.choice(
            [
                f"{word} GmbH", f"{word} AG", f"{word} Verlag GmbH & Co. KG", f"Universität {other}", f"Hochschule {other}",
                f"{word} e.V.", f"Stiftung {word}", f"Institut für {word}forschung gGmbH", f"Museum {other}", f"Stadt {other}",
                f"Technische Universität {other}",
            ]
        )  # fmt: skip

    def _stranger(self) -> Place:
        pick = self.random
        domain = self._domain("de com org net eu info nl at ch")
        owner = self._stranger_name()
        zone = Zone(
            (f"ns1.hoster{pick.randrange(5)}.net", f"ns2.hoster{pick.randrange(5)}.net"), soa="hoster.net"
        )
        if pick.random() < 0.28:
            zone.registrant = {"fn": owner, "org": owner, "kind": "org", "email": f"info@{domain}"}
        elif pick.random() < 0.1:
            zone.registrant = {"fn": "Erika Muster", "kind": "individual", "email": "erika@gmx.de"}
        if owner.startswith(("Universität", "Hochschule", "Technische")) and pick.random() < 0.5:
            zone.name_servers = (f"ns.{domain}", "dns.forschungsnetz.net")
        self.zones[domain] = zone
        place = self._place(pick.choice([domain, f"www.{domain}"]), False, 2, self._hosted())
        if pick.random() < 0.78 * self.frankness:
            more = ""
            if pick.random() < 0.12:
                more = pick.choice(
                    [
                        f"<p>Projektpartner: {self.name}</p>",
                        f"<p>In Zusammenarbeit mit der {self.name}</p>",
                        f"<p>Gefördert durch: {self.name}</p>",
                    ]
                )
                place.trap = "partner"
            place.pages["/impressum"] = self._imprint(owner, mail=f"info@{domain}", more=more)
        if pick.random() < 0.3:
            place.certificate = self._crowded(place.host)
        return place

    def _guest(self) -> Place:
        """In the range and often on the name servers, but of another organisation."""
        pick = self.random
        domain, owner = (
            self._domain(),
            pick.choice(
                [
                    f"Ruderverein {self.town} e.V.",
                    "Tanzclub Blau e.V.",
                    "Wind Energie GmbH",
                    f"Studierendenwerk {self.town}",
                ]
            ),
        )
        servers = self.own_servers if pick.random() < 0.5 else ("ns1.hoster1.net", "ns2.hoster1.net")
        registrant = {"fn": owner, "org": owner, "kind": "org"} if pick.random() < 0.4 else None
        self.zones[domain] = Zone(
            servers, soa=self.root if servers is self.own_servers else "hoster.net", registrant=registrant
        )
        place = self._place(domain, False, 1, self._inside(), trap="guest")
        if pick.random() < 0.85 * self.frankness:
            place.pages["/impressum"] = self._imprint(owner)
        return place

    def _secondary(self) -> Place:
        """Another institution whose secondary name server the organisation runs."""
        domain, owner = self._domain(), self._stranger_name()
        self.zones[domain] = Zone((f"ns1.{domain}", f"ns2.{domain}", f"dns1.{self.root}"), soa=domain)
        place = self._place(f"www.{domain}", False, 2, self._hosted(), trap="secondary")
        if self.random.random() < 0.8 * self.frankness:
            place.pages["/impressum"] = self._imprint(owner, mail=f"info@{domain}")
        return place

    def _lookalike(self) -> Place:
        domain = f"{self.root.partition('.')[0]}{self.random.randrange(10**6)}.com"
        self.zones[domain] = Zone(("ns1.parking.net", "ns2.parking.net"), soa="parking.net")
        place = self._place(domain, False, 2, self._hosted(), trap="look-alike")
        place.redirect = f"http://www.{self.root}/"
        return place

    def _neighbour(self) -> Place:
        """Similar names: friends, student union, town, clinic, a school in the same town."""
        pick, town = self.random, self.town
        owner = pick.choice(
            [
                f"Freunde der {self.name} e.V.", f"Studierendenwerk {town}", f"Stadt {town}", f"Universitätsklinikum {town}",
                f"Hochschule {town}", f"Volkshochschule {town}", f"Stadtwerke {town} GmbH", f"Universität {pick.choice(TOWNS)}furt",
            ]
        )  # fmt: skip
        domain = self._domain()
        registrant = {"fn": owner, "org": owner, "kind": "org"} if pick.random() < 0.35 else None
        self.zones[domain] = Zone(
            ("ns1.hoster2.net", "ns2.hoster2.net"), soa="hoster.net", registrant=registrant
        )
        place = self._place(f"www.{domain}", False, 2, self._hosted(), trap="neighbour")
        if pick.random() < 0.9 * self.frankness:
            place.pages["/impressum"] = self._imprint(owner, mail=f"info@{domain}")
        return place

    def _link(
        self,
        members: list[Place],
        outside: list[Place],
        third: list[Place],
        strangers: list[Place],
        far: list[Place],
    ) -> None:
        pick = self.random
        links: dict[str, list[str]] = {place.host: [] for place in self.places.values()}
        home = [self.places[f"www.{self.root}"], *members]
        for at, place in enumerate(members):
            # Every internal site is linked from an earlier one, so that a path over internal servers exists.
            links[home[pick.randrange(0, max(1, min(at + 1, 25)))].host].append(place.host)
        linked = [place for place in strangers if not place.redirect]
        for place in outside:
            source = pick.choice(home) if pick.random() < 0.85 else pick.choice(linked)
            links[source.host].append(place.host)
        for place in strangers:
            links[pick.choice(home).host].append(place.host)
        for place in third:
            links[pick.choice(linked).host].append(place.host)
        for place in far:
            links[pick.choice(linked).host].append(place.host)
        links[self.root] = [f"www.{self.root}"]
        links[f"www.{self.root}"] += [place.host for place in members[:15]]
        for host, targets in links.items():
            self._write_front(self.places[host], targets)

    def _write_front(self, place: Place, targets: list[str]) -> None:
        anchors = "".join(f'<li><a href="http://{target}/">{target}</a></li>' for target in targets)
        imprint = '<a href="/impressum">Impressum</a>' if "/impressum" in place.pages else ""
        is_root = place.host in (self.root, f"www.{self.root}")
        if is_root:
            place.pages["/impressum"] = self._imprint(self.name, mail=f"info@{self.root}", vat=self.vat)
            imprint = '<a href="/impressum">Impressum</a>'
            title = self.name
        elif place.is_member and self.random.random() < 0.25:
            title = f"{self.random.choice(WORDS).title()} | {self.name}"
        else:
            title = self.random.choice(WORDS).title()
        place.pages["/"] = (
            f"<html><head><title>{title}</title>{place.pages['/']}</head><body><ul>{anchors}</ul>{imprint}</body></html>"
        )

    # --- Sources ---

    async def host(self, host: str) -> HostRecords:
        self.asked["dns"] += 1
        place = self.places.get(host)
        address = place.address if place else self._records.get(host, "")
        if not address:
            return HostRecords(status=LookupStatus.NONE, detail="no such name")
        return HostRecords(
            status=LookupStatus.FOUND, addresses=(address,), chain=place.chain if place else ()
        )

    async def zone(self, domain: str) -> ZoneRecords:
        self.asked["dns"] += 1
        zone = self.zones.get(domain)
        if zone is None:
            return ZoneRecords(status=LookupStatus.NONE)
        return ZoneRecords(
            status=LookupStatus.FOUND,
            name_servers=zone.name_servers,
            soa_contact=zone.soa,
            mail_hosts=zone.mail,
            spf=zone.spf,
            dmarc=zone.dmarc,
        )

    async def certificate(self, host: str, addresses: tuple[str, ...]) -> Certificate | None:
        self.asked["tls"] += 1
        place = self.places.get(host)
        return place.certificate if place else None

    async def page(self, url: str, *, as_imprint: bool = False) -> PageFacts | None:
        scheme, _, rest = url.partition("://")
        host, _, path = rest.partition("/")
        place = self.places.get(host)
        self.asked["page"] += 1
        self.page_requests[host] += 1
        if place is None or (scheme == "https" and place.certificate is None):
            return None
        if place.redirect:
            return PageFacts(url=url, status=302, redirect=place.redirect)
        html = place.pages.get(f"/{path}")
        if html is None:
            return PageFacts(url=url, status=404)
        return page_facts.parse_html(url, html, as_imprint=as_imprint)

    async def registration(self, domain: str) -> Registration:
        kept = self._kept.get(("domain", domain))
        if isinstance(kept, Registration):
            return kept
        self.asked["registry"] += 1
        zone = self.zones.get(domain)
        if zone is None:
            return Registration(status=LookupStatus.NONE)
        fields = zone.registrant or {"fn": "REDACTED FOR PRIVACY", "org": "REDACTED FOR PRIVACY"}
        card = ["vcard", [[name, {}, "text", value] for name, value in fields.items()]]
        registrar = [
            "vcard",
            [["fn", {}, "text", "Registrar GmbH"], ["email", {}, "text", "abuse@registrar.net"]],
        ]
        answer = {
            "entities": [
                {"roles": ["registrant"], "vcardArray": card},
                {"roles": ["registrar", "abuse"], "vcardArray": registrar},
            ],
            "nameservers": [{"ldhName": name} for name in zone.name_servers],
        }
        registration = registration_of_rdap(answer, source="rdap", at=NOW)
        self._kept["domain", domain] = registration
        return registration

    async def network(self, address: str) -> Network:
        self.asked["registry"] += 1
        mine = ip_network(self.range)
        is_mine = ip_address(address) in mine
        network = mine if is_mine else ip_network(f"{address}/24", strict=False)
        card = [
            "vcard",
            [["fn", {}, "text", self.name if is_mine else "Hoster GmbH"], ["kind", {}, "text", "org"]],
        ]
        answer = {
            "startAddress": str(network[0]),
            "endAddress": str(network[-1]),
            "entities": [{"roles": ["registrant"], "vcardArray": card}],
        }
        return network_of_rdap(answer, source="rdap", at=NOW)

    async def logged_below(self, domain: str) -> tuple[str, ...]:
        return tuple(self.logged.get(domain, ()))

    async def logged_for(self, organisation: str) -> tuple[str, ...]:
        return tuple(self.logged.get(organisation, ()))

    def domains(self) -> set[str]:
        return {registrable(host) for host in self.places}


def ascii_of(text: str) -> str:
    return text.lower().replace("ä", "ae").replace("ö", "oe").replace("ü", "ue").replace("ß", "ss")
