"""The evidence model: each sign alone and together, negative evidence, sharing, and curators' decisions."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.selection.domains.facts import (
    Certificate,
    HostFacts,
    HostRecords,
    LookupStatus,
    PageFacts,
    Registrant,
    Registration,
    ZoneRecords,
    registrable,
)
from webdepot.selection.domains.names import Rarity
from webdepot.selection.domains.organisations import KnownHost
from webdepot.selection.domains.ownership_evidence import (
    REPEATED,
    Group,
    HostOrigin,
    Sign,
    log_odds,
    score_of,
    signs_of,
)
from webdepot.selection.domains.profile import OrganisationProfile, ProfileMatcher, SourcedValue
from webdepot.selection.domains.sharing import Sharing

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def told(*values: str) -> tuple[SourcedValue, ...]:
    return tuple(SourcedValue(value=value, source="test", at=NOW) for value in values)


PROFILE = OrganisationProfile(
    root="uni-konstanz.example",
    host="www.uni-konstanz.example",
    names=told("Universität Konstanz"),
    ranges=told("192.0.2.0/24", "2001:db8::/32"),
    name_servers=told("ns1.uni-konstanz.example", "dns.research.example"),
    mail_domains=told("uni-konstanz.example"),
    vat_ids=told("DE142319234"),
    domains=told("uni-konstanz.example"),
    strangers=told("guest.uni-konstanz.example"),
)


def site(host: str, **parts: object) -> HostFacts:
    facts = HostFacts(
        host=host,
        domain=registrable(host),
        records=HostRecords(status=LookupStatus.FOUND, addresses=("198.51.100.7",)),
    )
    return replace(facts, **parts)  # type: ignore[arg-type]


def page(**parts: object) -> PageFacts:
    return PageFacts(url="http://x.example/", status=200, **parts)  # type: ignore[arg-type]


def registered(**parts: object) -> Registration:
    return Registration(status=LookupStatus.FOUND, registrant=Registrant(**parts))  # type: ignore[arg-type]


def judged(
    facts: HostFacts, sharing: Sharing | None = None, profile: OrganisationProfile = PROFILE
) -> tuple[float, list[str]]:
    signs = signs_of(facts, ProfileMatcher(profile), HostOrigin.MEMBER, sharing or Sharing(), Rarity())
    return score_of(signs, HostOrigin.MEMBER), [sign.code for sign in signs]


@pytest.mark.parametrize(
    ("host", "is_below"),
    [
        ("kaart.uni-konstanz.example", True),
        ("uni-konstanz.example", True),
        ("notuni-konstanz.example", False),
        ("uni-konstanz.example.evil.example", False),
    ],
)
def test_only_hosts_of_a_member_domain_lie_below_it(host: str, is_below: bool) -> None:
    score, codes = judged(site(host))
    assert ("below-domain" in codes) == is_below
    assert (score > 0.9) == is_below


def test_the_range_alone_asks_and_does_not_decide() -> None:
    score, codes = judged(
        site("guest.example", records=HostRecords(status=LookupStatus.FOUND, addresses=("192.0.2.9",)))
    )
    assert codes == ["in-range"]
    assert 0.25 < score < 0.75
    other_spelling = HostRecords(status=LookupStatus.FOUND, addresses=("2001:0DB8:0:0::9",))
    assert judged(site("guest.example", records=other_spelling))[1] == ["in-range"]


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({"registration": registered(mail_domains=("mail.uni-konstanz.example",))}, "registrant-mail"),
        ({"registration": registered(name="Universitaet Konstanz, Rechenzentrum")}, "registrant"),
        ({"imprint": page(operators=("University of Konstanz",))}, "imprint"),
        ({"imprint": page(vat_ids=("DE142319234",), operators=("Transfer GmbH",))}, "vat-id"),
        ({"certificate": Certificate(fingerprint="1", organisation="Universität Konstanz", names=("a.example",), is_trusted=True)},
         "certificate-organisation"),
        ({"front": page(parents=("Universität Konstanz",), structured=("Institut für Seen",))}, "parent"),
        ({"front": page(imprint="https://www.uni-konstanz.example/impressum")}, "imprint-there"),
    ],
)  # fmt: skip
def test_strong_signs_are_enough_alone(parts: dict[str, object], code: str) -> None:
    score, codes = judged(site("www.institute.example", **parts))
    assert codes[0] == code
    assert score > 0.75


@pytest.mark.parametrize(
    "parts",
    [
        {"registration": registered(name="Universität Koblenz")},
        {"registration": registered(is_redacted=True)},
        {"imprint": page(operators=("Agentur Blau GmbH",))},
        {"imprint": page(persons=True)},
        {"imprint": page(operators=("Freunde der Universität Konstanz e.V.",))},
        {"imprint": page(operators=("Stadtwerke Konstanz GmbH",), others=("Universität Konstanz",))},
        {
            "certificate": Certificate(
                fingerprint="1", organisation="Universität Konstanz", names=("a.example",), is_trusted=False
            )
        },
        {"front": page(redirect="https://www.uni-konstanz.example/")},
        {
            "zone": ZoneRecords(
                status=LookupStatus.FOUND, name_servers=("dns.research.example", "dns2.research.example")
            )
        },
    ],
)
def test_these_do_not_make_a_member(parts: dict[str, object]) -> None:
    assert judged(site("www.other.example", **parts))[0] < 0.25


def test_a_guest_in_the_range_with_an_imprint_of_its_own_is_ignored() -> None:
    records = HostRecords(status=LookupStatus.FOUND, addresses=("192.0.2.9",))
    zone = ZoneRecords(status=LookupStatus.FOUND, name_servers=("ns1.uni-konstanz.example",))
    score, _ = judged(
        site("guest.example", records=records, zone=zone, imprint=page(operators=("Verein Seeblick e.V.",)))
    )
    assert score < 0.35


def test_a_sign_that_many_others_share_loses_its_weight() -> None:
    zone = ZoneRecords(status=LookupStatus.FOUND, name_servers=("ns1.uni-konstanz.example",))
    sharing = Sharing()
    alone = judged(site("a.example", zone=zone), sharing)[0]
    for number in range(6):
        sharing.note_stranger(["ns:ns1.uni-konstanz.example"], f"owner {number}")
    assert judged(site("a.example", zone=zone), sharing)[0] < alone - 0.3


def test_a_crowded_certificate_is_no_evidence() -> None:
    crowd = ("www.uni-konstanz.example", *(f"shop{number}.example" for number in range(40)))
    crowded = Certificate(fingerprint="1", organisation="CDN Inc.", names=crowd, is_trusted=True)
    short = Certificate(
        fingerprint="2", organisation="", names=("www.uni-konstanz.example", "b.example"), is_trusted=True
    )
    assert judged(site("b.example", certificate=crowded))[1] == []
    assert judged(site("b.example", certificate=short))[1] == ["certificate-names"]


def test_the_registry_says_less_about_deep_hosts() -> None:
    city = registered(name="Stadt Ulm")
    mail_policy = ZoneRecords(
        status=LookupStatus.FOUND,
        mail_hosts=("mx.uni-konstanz.example",),
        name_servers=("ns1.uni-konstanz.example",),
    )
    records = HostRecords(status=LookupStatus.FOUND, addresses=("192.0.2.9",))
    deep = judged(site("konstanz.city.example", registration=city, zone=mail_policy, records=records))[0]
    assert judged(site("city.example", registration=city, records=records))[0] < 0.05
    assert deep > 0.05


def test_an_agency_may_register_for_the_organisation() -> None:
    agency = registered(name="Agentur Blau GmbH")
    assert (
        judged(site("a.example", registration=agency, imprint=page(operators=("Universität Konstanz",))))[0]
        > 0.75
    )
    assert judged(site("a.example", registration=agency))[0] < 0.05


def test_a_persons_no_beats_the_domain() -> None:
    assert judged(site("guest.uni-konstanz.example"))[0] < 0.01
    assert judged(site("www.guest.uni-konstanz.example"))[1][0] == "person-no"


def test_every_sign_has_words_and_a_weight() -> None:
    facts = site(
        "www.institute.example",
        registration=registered(name="Universität Konstanz", mail_domains=("uni-konstanz.example",)),
    )
    for sign in signs_of(facts, ProfileMatcher(PROFILE), HostOrigin.MEMBER, Sharing(), Rarity()):
        assert sign.words
        assert sign.weight


@given(st.lists(st.tuples(st.sampled_from(list(Group)), st.floats(-6, 6).filter(bool)), max_size=12))
def test_more_evidence_for_never_lowers_the_score(drawn: list[tuple[Group, float]]) -> None:
    signs = [Sign(code="x", group=group, weight=weight, words="x") for group, weight in drawn]
    stronger = [*signs, Sign(code="y", group=Group.PERSON, weight=7.0, words="y")]
    assert score_of(stronger, HostOrigin.MEMBER) >= score_of(signs, HostOrigin.MEMBER)
    assert 0.0 <= score_of(signs, HostOrigin.FOREIGN) <= 1.0


def test_signs_of_one_source_repeat_each_other() -> None:
    signs = [Sign(code=code, group=Group.ZONE, weight=2.0, words=code) for code in "ab"]
    assert log_odds(signs, HostOrigin.VHOST) == pytest.approx(2.0 + REPEATED * 2.0)


def test_idn_hosts_are_compared_as_a_labels_and_shown_in_their_letters() -> None:
    known = {
        "case": 1,
        "score": 1.0,
        "own": True,
        "signs": (),
        "origin": "",
        "linked_by": (),
        "decision": "",
        "decided_by": "",
    }
    host = KnownHost(
        host="www.xn--mnchen-3ya.example", domain="xn--mnchen-3ya.example", judged_at=NOW, **known
    )  # type: ignore[arg-type]
    assert host.shown == "www.münchen.example"
    assert KnownHost(host="xn--\u00ff", domain="x", judged_at=NOW, **known).shown == "xn--\u00ff"  # type: ignore[arg-type]
