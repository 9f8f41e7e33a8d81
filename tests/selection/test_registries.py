"""Registry answers: whois layouts and RDAP objects give the holder, but no personal data; garbage gives nothing."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.selection.domains.facts import LookupStatus, Network, Registration, from_json, to_json
from webdepot.selection.domains.lookup import whois_parser
from webdepot.selection.domains.lookup.registrant import (
    mail_domains_in,
    network_of_rdap,
    of_fields,
    registration_of_rdap,
)

FOLDER = Path(__file__).parent / "whois"
NOW = datetime(2026, 11, 15, tzinfo=UTC)


def read(name: str, domain: str) -> Registration:
    return whois_parser.registration_of(
        whois_parser.decoded((FOLDER / name).read_bytes()), domain, source="whois", at=NOW
    )


@pytest.mark.parametrize(
    ("name", "domain", "holder", "mails", "server"),
    [
        ("de_old.txt", "uni-konstanz.de", "Universität Konstanz", (), "uranos.dns.uni-konstanz.de"),
        (
            "de_new.txt",
            "uni-konstanz.de",
            "Universität Konstanz",
            ("uni-konstanz.de",),
            "uranos.dns.uni-konstanz.de",
        ),
        ("nl.txt", "uva.nl", "Universiteit van Amsterdam", (), "ns1.uva.nl"),
        (
            "eu.txt",
            "european-library.eu",
            "Stiftung Bibliothek",
            ("bibliothek.example",),
            "ns1.bibliothek.example",
        ),
        ("at.txt", "univie.ac.at", "Universität Wien", ("univie.ac.at",), "ns3.univie.ac.at"),
        (
            "fr.txt",
            "sorbonne-universite.fr",
            "Sorbonne Université",
            ("sorbonne-universite.fr",),
            "ns1.sorbonne-universite.fr",
        ),
        ("ch.txt", "unibas.ch", "Universität Basel", (), "dns-1.unibas.ch"),
        ("uk.txt", "example.co.uk", "University of Example", (), "ns0.example.co.uk"),
        (
            "gtld.txt",
            "example.org",
            "Example Research Foundation",
            ("research.example",),
            "ns1.research.example",
        ),
        ("generic.txt", "laitos.example", "Tutkimuslaitos Oy", ("laitos.example",), "ns1.laitos.example"),
    ],
)
def test_each_layout_gives_its_holder_and_not_the_registrar(
    name: str, domain: str, holder: str, mails: tuple[str, ...], server: str
) -> None:
    found = read(name, domain)
    assert found.status is LookupStatus.FOUND
    assert found.registrant.name == holder
    assert found.registrant.mail_domains == mails
    assert found.name_servers[0] == server
    assert "registrar.example" not in str(found)


@pytest.mark.parametrize(
    ("name", "domain"), [("eu_hidden.txt", "hidden.eu"), ("gtld_redacted.txt", "hidden.com")]
)
def test_redacted_holders_are_redacted_and_not_somebody_else(name: str, domain: str) -> None:
    found = read(name, domain).registrant
    assert found.name == ""
    assert found.is_redacted
    assert found.mail_domains == ()


def test_of_a_person_only_the_fact_is_kept() -> None:
    found = read("de_person.txt", "privat.de")
    assert found.registrant.is_person
    assert "Erika" not in json.dumps(to_json(found))
    assert "Hauptstr" not in json.dumps(to_json(found))
    assert "gmx" not in json.dumps(to_json(found))


def test_old_answers_come_in_latin_1() -> None:
    assert b"\xe4" in (FOLDER / "de_old.txt").read_bytes()
    assert read("de_old.txt", "uni-konstanz.de").registrant.address.startswith("Universitätsstraße")


@pytest.mark.parametrize(
    ("name", "address", "bounds", "holder"),
    [
        ("ripe.txt", "134.34.3.1", ("134.34.0.0", "134.34.255.255"), "Universitaet Konstanz"),
        ("arin.txt", "18.7.7.7", ("18.0.0.0", "18.31.255.255"), "Massachusetts Institute of Technology"),
    ],
)
def test_networks_come_with_their_holder_and_not_wider_than_held(
    name: str, address: str, bounds: tuple[str, str], holder: str
) -> None:
    text = whois_parser.decoded((FOLDER / name).read_bytes())
    found = whois_parser.network_of(text, address, source="whois", at=NOW)
    assert (found.first, found.last) == bounds
    assert found.holder.name == holder
    assert found.contains(address)
    assert not found.contains("192.0.2.1")
    assert "Erika" not in json.dumps(to_json(found))
    assert whois_parser.network_of(text, "192.0.2.1", source="whois", at=NOW).status is LookupStatus.FAILED


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('No match for "NOSUCH.COM".\r\n', LookupStatus.NONE),
        ("Status: free\n", LookupStatus.NONE),
        ("% query rate limit exceeded, try again later\n", LookupStatus.FAILED),
        ("Your connection limit exceeded. Please slow down and try again later.", LookupStatus.FAILED),
        ("", LookupStatus.FAILED),
        ("\x00\x01\x02 garbage", LookupStatus.FAILED),
    ],
)
def test_answers_without_a_holder(text: str, status: LookupStatus) -> None:
    assert whois_parser.registration_of(text, "nosuch.com", source="whois", at=NOW).status is status


def test_referrals() -> None:
    assert whois_parser.referral_of("domain: DE\nrefer:        whois.denic.de\n") == "whois.denic.de"
    assert whois_parser.referral_of("ReferralServer:  whois://whois.ripe.net\n") == "whois.ripe.net"
    assert whois_parser.referral_of("nothing") == ""


@given(
    st.binary(max_size=3000),
    st.sampled_from(["a.de", "a.nl", "a.eu", "a.at", "a.fr", "a.ch", "a.uk", "a.com", "a.zz"]),
)
def test_no_bytes_break_the_readers(data: bytes, domain: str) -> None:
    text = whois_parser.decoded(data)
    whois_parser.registration_of(text, domain, source="whois", at=NOW)
    whois_parser.network_of(text, "192.0.2.1", source="whois", at=NOW)
    whois_parser.referral_of(text)


_keys = st.sampled_from(
    ["entities", "roles", "vcardArray", "nameservers", "ldhName", "startAddress", "endAddress", "x"]
)
_leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.sampled_from(["registrant", "vcard", "fn", "127.0.0.1"])
)
_json = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=30,
)


@given(
    st.dictionaries(
        st.sampled_from(["entities", "nameservers", "startAddress", "endAddress", "cidr0_cidrs", "links"]),
        _json,
        max_size=5,
    )
)
def test_malformed_rdap_is_read_as_far_as_it_goes(answer: dict[str, object]) -> None:
    found = registration_of_rdap(answer, source="rdap", at=NOW)
    assert from_json(Registration, json.loads(json.dumps(to_json(found)))) == found
    network = network_of_rdap(answer, source="rdap", at=NOW)
    assert from_json(Network, json.loads(json.dumps(to_json(network)))) == network


def test_rdap_takes_the_registrant_and_never_the_registrars_abuse_desk() -> None:
    answer = {
        "entities": [
            {"roles": ["registrar"], "vcardArray": ["vcard", [["fn", {}, "text", "Registrar GmbH"]]],
             "entities": [{"roles": ["abuse"], "vcardArray": ["vcard", [["email", {}, "text", "abuse@registrar.example"]]]}]},
            {"roles": ["registrant"], "vcardArray": ["vcard", [
                ["kind", {}, "text", "org"], ["fn", {}, "text", "Universität Konstanz"],
                ["adr", {"label": "Universitätsstr. 10"}, "text", ["", "", "", "", "", "", ""]],
                ["email", {}, "text", "hostmaster@uni-konstanz.de"]]]},
        ],
        "nameservers": [{"ldhName": "NS1.Uni-Konstanz.DE."}],
    }  # fmt: skip
    found = registration_of_rdap(answer, source="rdap", at=NOW)
    assert found.registrant.name == "Universität Konstanz"
    assert found.registrant.address == "Universitätsstr. 10"
    assert found.registrant.mail_domains == ("uni-konstanz.de",)
    assert found.name_servers == ("ns1.uni-konstanz.de",)


def test_jscontact_is_read_too() -> None:
    card = {
        "kind": "org",
        "name": {"full": "Uni X"},
        "organizations": {"o": {"name": "Uni X"}},
        "emails": {"e": {"address": "a@uni-x.example"}},
    }
    found = registration_of_rdap(
        {"entities": [{"roles": ["registrant"], "jscard_0": card}]}, source="rdap", at=NOW
    )
    assert (found.registrant.name, found.registrant.mail_domains) == ("Uni X", ("uni-x.example",))


def test_free_mail_says_nothing() -> None:
    assert mail_domains_in("a@gmail.com, b@uni.example") == ("uni.example",)
    assert of_fields(
        name="Erika Muster", kind="individual", mails=["erika@institut.example"]
    ).mail_domains == ("institut.example",)
