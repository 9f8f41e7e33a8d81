"""The university of Musterstadt: five sectors, guests, look-alikes and a shared cloud, all on loopback."""

from pathlib import Path

from closed_network import ClosedNetwork, Domain, Site

UNI = {
    "fn": "Universität Musterstadt",
    "kind": "org",
    "org": "Universität Musterstadt",
    "email": "hostmaster@uni-musterstadt.example",
    "adr": "Seestr. 10; Musterstadt",
}
OWN_SERVERS = ("ns1.uni-musterstadt.example", "ns2.uni-musterstadt.example")
HOSTER = ("ns1.hoster.test", "ns2.hoster.test")
CLOUD = ("ns1.cloud.test", "ns2.cloud.test")
UNI_IMPRINT = (
    "<h1>Impressum</h1><p>Universität Musterstadt<br>Seestraße 10<br>12345 Musterstadt</p>"
    "<p>USt-IdNr.: DE 123 456 789</p><p>E-Mail: info (at) uni-musterstadt.example</p>"
)
CROWD = (*(f"shop{number}.example" for number in range(30)), "laden.example", "tagung-muster.example")
MEMBERS = {
    "uni-musterstadt.example": 1,
    "www.uni-musterstadt.example": 1,
    "bib.uni-musterstadt.example": 1,
    "institut-see.example": 1,
    "kongress-muster.example": 2,
    "studie-muster.test": 2,
    "tagung-muster.example": 2,
    "archiv-muster.example": 3,
}
"""What can be found from the root by links, with its sector."""
STRANGERS = {"partner.example", "verein.example", "uni-musterstad.example", "laden.example", "hotel.example"}


def page(title: str, links: tuple[str, ...] = (), body: str = "", imprint: str = "/impressum") -> str:
    anchors = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
    foot = f'<footer><a href="{imprint}">Impressum</a></footer>' if imprint else ""
    head = f"<!doctype html><html lang=de><head><title>{title}</title></head>"
    return f"{head}<body><h1>{title}</h1>{body}<ul>{anchors}</ul>{foot}</body></html>"


def imprint(operator: str, more: str = "") -> str:
    return page(
        "Impressum",
        body=f"<p>Angaben gemäß § 5 DDG</p><p>{operator}<br>Hauptstraße 1<br>54321 Anderstadt</p>{more}",
        imprint="",
    )


def http(host: str, path: str = "/") -> str:
    return f"http://{host}:{{http}}{path}"


def build(folder: Path) -> ClosedNetwork:
    sites = [
        Site(
            "uni-musterstadt.example",
            "127.10.0.1",
            {
                "/": f"redirect:{'/start'}",
                "/start": page("Universität Musterstadt", (http("www.uni-musterstadt.example"),)),
            },
        ),
        Site(
            "www.uni-musterstadt.example",
            "127.10.0.1",
            {
                "/": page(
                    "Startseite – Universität Musterstadt",
                    (
                        http("bib.uni-musterstadt.example"),
                        http("institut-see.example"),
                        http("kongress-muster.example"),
                        http("partner.example"),
                        "/einrichtungen",
                    ),
                ),
                "/einrichtungen": page(
                    "Einrichtungen",
                    (
                        http("studie-muster.test"),
                        http("verein.example"),
                        http("laden.example"),
                        http("tagung-muster.example"),
                        http("uni-musterstad.example"),
                        http("gibtsnicht.example"),
                    ),
                ),
                "/impressum": page("Impressum", body=UNI_IMPRINT, imprint=""),
            },
            tls=True,
            certificate_organisation="Universität Musterstadt",
            certificate_names=("www.uni-musterstadt.example", "uni-musterstadt.example"),
        ),
        Site(
            "bib.uni-musterstadt.example",
            "127.10.0.2",
            {"/": page("Bibliothek", imprint="http://www.uni-musterstadt.example:{http}/impressum")},
        ),
        Site(
            "institut-see.example",
            "127.10.0.3",
            {
                "/": page("Institut für Seen"),
                "/impressum": imprint("Institut für Seen der Universität Musterstadt"),
            },
        ),
        Site("kongress-muster.example", "127.20.0.1", {"/": page("Kongress 2026", imprint="")}),
        Site(
            "studie-muster.test",
            "127.20.0.1",
            {
                "/": page("Die Studie"),
                "/impressum": imprint(
                    "Lehrstuhl für Hydrologie, Universitaet Musterstadt",
                    "<p>Gestaltung: Agentur Blau GmbH</p>",
                ),
            },
        ),
        Site(
            "partner.example",
            "127.30.0.1",
            {
                "/": page("Partner AG", (http("archiv-muster.example"), http("hotel.example"))),
                "/impressum": imprint("Partner AG", "<p>Projektpartner: Universität Musterstadt</p>"),
            },
        ),
        Site("archiv-muster.example", "127.10.0.4", {"/": page("Archiv")}),
        Site(
            "verein.example",
            "127.10.0.9",
            {"/": page("Ruderverein"), "/impressum": imprint("Ruderverein Musterstadt e.V.")},
        ),
        Site(
            "laden.example",
            "127.40.0.1",
            {"/": page("Laden"), "/impressum": imprint("Laden GmbH")},
            tls=True,
            certificate_names=CROWD,
        ),
        Site(
            "tagung-muster.example",
            "127.40.0.1",
            {"/": page("Tagung", imprint="")},
            tls=True,
            certificate_names=CROWD,
        ),
        Site(
            "uni-musterstad.example",
            "127.30.0.2",
            {"/": "redirect:http://www.uni-musterstadt.example:$server_port/"},
        ),
        Site(
            "hotel.example",
            "127.30.0.3",
            {"/": page("Hotel am See"), "/impressum": imprint("Hotel am See GmbH")},
        ),
        Site("verborgen.example", "127.10.0.5", {"/": page("Verborgen")}),
        Site(
            "fern.example",
            "127.20.0.2",
            {"/": page("Fern"), "/impressum": imprint("Universität Musterstadt", "<p>DE123456789</p>")},
        ),
    ]
    own = {"name_servers": OWN_SERVERS, "soa": "hostmaster.uni-musterstadt.example"}
    domains = [
        Domain(
            "uni-musterstadt.example",
            **own,
            registrant=UNI,
            records=("@ MX 10 mail.uni-musterstadt.example.", "mail A 127.10.0.25", '@ TXT "v=spf1 mx -all"'),
        ),
        Domain("institut-see.example", **own),
        Domain("archiv-muster.example", **own),
        Domain("verborgen.example", **own),
        Domain(
            "kongress-muster.example",
            HOSTER,
            registrant={
                **UNI,
                "org": "",
                "fn": "Kongress",
                "kind": "individual",
                "email": "kongress@uni-musterstadt.example",
            },
        ),
        Domain("studie-muster.test", HOSTER),
        Domain("tagung-muster.example", CLOUD, registrant={"fn": "Universitaet Musterstadt", "kind": "org"}),
        Domain(
            "partner.example",
            HOSTER,
            registrant={
                "fn": "Partner AG",
                "org": "Partner AG",
                "kind": "org",
                "email": "info@partner.example",
            },
        ),
        Domain("verein.example", **own, registrant={"fn": "Ruderverein Musterstadt e.V.", "kind": "org"}),
        Domain("laden.example", CLOUD, registrant={"fn": "Laden GmbH", "kind": "org"}),
        Domain("hotel.example", HOSTER),
        Domain(
            "uni-musterstad.example",
            HOSTER,
            registrant={"fn": "Max Muster", "kind": "individual", "email": "max@gmx.de"},
        ),
        Domain("fern.example", HOSTER),
        Domain("schleife.example", HOSTER, records=("a CNAME b", "b CNAME a", "www A 127.20.0.9")),
    ]
    networks = {
        "127.0.0.0/8": {"fn": "Internet Exchange", "kind": "org"},
        "127.10.0.0/24": {"fn": "Universitaet Musterstadt", "kind": "org"},
        "127.20.0.0/24": {"fn": "Hoster GmbH", "kind": "org"},
        "127.40.0.0/24": {"fn": "Cloud Inc.", "kind": "org"},
    }
    network = ClosedNetwork(folder, domains, sites, networks)
    network.logged = {
        "uni-musterstadt.example": ["*.bib.uni-musterstadt.example"],
        "Universität Musterstadt": ["fern.example", "www.uni-musterstadt.example"],
    }
    return network
