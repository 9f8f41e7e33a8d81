"""The provider of OAI-PMH: every verb, error and format, tokens, windows; each answer against the schemas
(see `oai_rules`).
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from exchange_samples import record, stock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from oai_rules import NS, checked, errors, headers, token

from webdepot.errors import TooExpensive
from webdepot.exchange import catalogue
from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.metadata import lmer
from webdepot.exchange.metadata.lmer import Version
from webdepot.exchange.metadata.mab import MAB
from webdepot.exchange.metadata.marc import MARC
from webdepot.exchange.oai import provider
from webdepot.exchange.oai.provider import FORMATS, Repository
from webdepot.exchange.object_addresses import ObjectAddresses
from webdepot.query_budget import QueryBudget, spending
from webdepot.services.exchange import oai_provider, partner_admin

NOW = datetime(2026, 6, 1, 12, 0, 0, 500_000, tzinfo=UTC)
SLICES, WITHDRAWN = 250, 5
BASE = "http://depot.example.org"
REPOSITORY = Repository(
    name="Archive of Clocks",
    base_url=f"{BASE}/oai",
    domain="depot.example.org",
    admin_email="clocks@example.org",
    addresses=ObjectAddresses(portal_url=BASE, institution="Archive of Clocks", code="DE-9999"),
    secret=b"x" * 32,
)
OBJECT = "oai:depot.example.org:2026-gartenschau-000100"


@pytest.fixture(scope="module")
def stocked(tmp_path_factory):
    from webdepot.archive import Archive
    from webdepot.services.admin import setup

    home = tmp_path_factory.mktemp("oai") / "home"
    setup.create(home)
    with Archive.open(home) as archive:
        stock(archive, slices=SLICES, withdrawn=WITHDRAWN)
        yield archive


def ask(archive, now=NOW, repository=REPOSITORY, **arguments) -> etree._Element:
    pairs = [(name.rstrip("_"), value) for name, value in arguments.items()]
    with archive.database.reading() as connection:
        return checked(provider.respond(pairs, repository, connection, now))


def ask_pairs(archive, *pairs) -> etree._Element:
    with archive.database.reading() as connection:
        return checked(provider.respond(pairs, REPOSITORY, connection, NOW))


def harvest(archive, verb="ListRecords", **arguments) -> list[tuple[str, bool]]:
    """Everything, page by page."""
    root = ask(archive, verb=verb, **arguments)
    found = headers(root)
    while following := token(root):
        root = ask(archive, verb=verb, resumptionToken=following)
        assert root.find(".//o:resumptionToken", NS).get("cursor") == str(len(found))
        found += headers(root)
    return found


@pytest.mark.parametrize("prefix", sorted(FORMATS))
def test_an_answer_has_at_most_so_many_files(stocked, monkeypatch, prefix):
    everything = harvest(stocked, metadataPrefix=prefix)
    monkeypatch.setattr(provider, "MOST_FILES_IN_RESPONSE", 50)
    first = headers(ask(stocked, verb="ListRecords", metadataPrefix=prefix))
    assert 25 <= len(first) < 40  # two files each; a site and withdrawn slices have none
    assert harvest(stocked, metadataPrefix=prefix) == everything
    monkeypatch.setattr(provider, "MOST_FILES_IN_RESPONSE", 1)
    assert len(headers(ask(stocked, verb="GetRecord", identifier=OBJECT, metadataPrefix=prefix))) == 1


def test_whoever_is_not_a_partner_must_stay_within_the_budget_of_a_request(stocked):
    partner_admin.add(stocked, "nlb", "https://nlb.example/oai")
    token = partner_admin.issue_token(stocked, "nlb")
    pairs = [("verb", "ListRecords"), ("metadataPrefix", "oai_mets_lmer")]
    with spending(QueryBudget(0.0)):
        with pytest.raises(TooExpensive):
            oai_provider.answer(stocked, pairs, portal_url=BASE)
        assert headers(checked(oai_provider.answer(stocked, pairs, portal_url=BASE, token=token)))


def test_identify(stocked):
    root = ask(stocked, verb="Identify")
    found = root.find("o:Identify", NS)
    assert [etree.QName(child).localname for child in found] == [
        *("repositoryName", "baseURL", "protocolVersion", "adminEmail", "earliestDatestamp"),
        *("deletedRecord", "granularity", "compression", "description"),
    ]
    assert found.findtext("o:baseURL", None, NS) == "http://depot.example.org/oai"
    assert found.findtext("o:deletedRecord", None, NS) == "persistent"
    assert found.findtext("o:earliestDatestamp", None, NS) == "2026-03-01T09:30:00Z"


@pytest.mark.parametrize("prefix", FORMATS)
def test_every_format_of_every_record(stocked, prefix):
    found = harvest(stocked, metadataPrefix=prefix)
    only = FORMATS[prefix].objects_only
    # site, journal and issue have no files
    assert len(found) == len(set(found)) == SLICES + (2 if only else 5)
    assert sum(is_deleted for _, is_deleted in found) == WITHDRAWN
    assert harvest(stocked, verb="ListIdentifiers", metadataPrefix=prefix) == found


def test_sets_with_parents_and_children(stocked):
    specs = [each.text for each in ask(stocked, verb="ListSets").iterfind(".//o:setSpec", NS)]
    assert {
        "open_access",
        "collection:gardens",
        "ddc:712",
        "doc-type:Website",
        "doc-type:article",
        "site:site-www-example-org-0001",
    } <= set(specs)
    assert len(harvest(stocked, metadataPrefix="oai_dc", set="collection:gardens")) == SLICES + 1
    assert len(harvest(stocked, metadataPrefix="oai_mets_lmer", set="collection:gardens")) == SLICES
    assert len(harvest(stocked, metadataPrefix="oai_dc", set="ddc")) == 1
    assert len(harvest(stocked, metadataPrefix="oai_dc", set="doc-type")) == SLICES + 5
    assert errors(ask(stocked, verb="ListRecords", metadataPrefix="oai_dc", set="no:such")) == [
        "noRecordsMatch"
    ]


BAD = [
    ({}, ["badVerb"]),
    ({"junk": "1"}, ["badVerb"]),
    ({"verb": "junk"}, ["badVerb"]),
    ({"verb": "listrecords"}, ["badVerb"]),
    ({"verb": "Identify", "metadataPrefix": "oai_dc"}, ["badArgument"]),
    ({"verb": "GetRecord", "metadataPrefix": "oai_dc"}, ["badArgument"]),
    ({"verb": "GetRecord", "identifier": OBJECT}, ["badArgument"]),
    ({"verb": "GetRecord"}, ["badArgument", "badArgument"]),
    ({"verb": "ListIdentifiers", "until": "junk"}, ["badArgument"]),
    ({"verb": "ListIdentifiers", "from_": "junk"}, ["badArgument"]),
    ({"verb": "ListRecords", "metadataPrefix": "oai_dc", "from_": "junk"}, ["badArgument"]),
    ({"verb": "ListRecords", "metadataPrefix": "oai_dc", "until": "2026-02-31"}, ["badArgument"]),
    ({"verb": "ListRecords", "metadataPrefix": "oai_dc", "until": "2026-02-01T00:00Z"}, ["badArgument"]),
    ({"verb": "ListRecords", "metadataPrefix": "oai_dc", "until": "2026-02-01T00:00:00.5Z"}, ["badArgument"]),
    ({"verb": "ListRecords"}, ["badArgument"]),
    (
        {
            "verb": "ListRecords",
            "metadataPrefix": "oai_dc",
            "from_": "2002-02-05",
            "until": "2002-02-06T05:35:00Z",
        },
        ["badArgument"],
    ),
    (
        {"verb": "ListRecords", "metadataPrefix": "oai_dc", "from_": "2026-02-05", "until": "2026-02-04"},
        ["badArgument"],
    ),
    ({"verb": "ListRecords", "metadataPrefix": "oai_dc", "set": "a b"}, ["badArgument"]),
    ({"verb": "ListRecords", "resumptionToken": "junk"}, ["badResumptionToken"]),
    ({"verb": "ListRecords", "resumptionToken": ""}, ["badResumptionToken"]),
    ({"verb": "ListSets", "resumptionToken": "junk"}, ["badResumptionToken"]),
    ({"verb": "ListIdentifiers", "resumptionToken": "junk", "until": "2000-02-05"}, ["badArgument"]),
    (
        {"verb": "ListRecords", "metadataPrefix": "oai_dc", "resumptionToken": "junk", "until": "1990-01-10"},
        ["badArgument"],
    ),
    ({"verb": "ListRecords", "metadataPrefix": "mods"}, ["cannotDisseminateFormat"]),
    ({"verb": "GetRecord", "metadataPrefix": "mods", "identifier": OBJECT}, ["cannotDisseminateFormat"]),
    (
        {
            "verb": "GetRecord",
            "metadataPrefix": "oai_mets_lmer",
            "identifier": "oai:depot.example.org:journal-1",
        },
        ["cannotDisseminateFormat"],
    ),
    ({"verb": "GetRecord", "metadataPrefix": "oai_dc", "identifier": 'invalid"id'}, ["idDoesNotExist"]),
    (
        {"verb": "GetRecord", "metadataPrefix": "oai_dc", "identifier": "oai:depot.example.org:none"},
        ["idDoesNotExist"],
    ),
    (
        {"verb": "GetRecord", "metadataPrefix": "oai_dc", "identifier": "oai:depot.example.org:\x00<"},
        ["idDoesNotExist"],
    ),
    ({"verb": "ListMetadataFormats", "identifier": "oai:other.example:1"}, ["idDoesNotExist"]),
    ({"verb": "ListRecords", "metadataPrefix": "oai_dc", "until": "2025-03-01"}, ["noRecordsMatch"]),
    ({"verb": "ListRecords", "metadataPrefix": "oai_dc", "from_": "2030-01-01"}, ["noRecordsMatch"]),
]


@pytest.mark.parametrize(("arguments", "codes"), BAD, ids=lambda value: str(value)[:60])
def test_errors_exactly_as_the_specification_has_them(stocked, arguments, codes):
    root = ask(stocked, **arguments)
    assert errors(root) == codes
    is_repeated = not {"badVerb", "badArgument"} & set(codes)
    assert bool(root.find("o:request", NS).attrib) == is_repeated
    assert all(error.text for error in root.iterfind("o:error", NS))


def test_an_argument_or_verb_twice(stocked):
    assert errors(ask_pairs(stocked, ("verb", "Identify"), ("verb", "Identify"))) == ["badVerb"]
    pairs = (("verb", "ListRecords"), ("metadataPrefix", "oai_dc"), ("metadataPrefix", "oai_dc"))
    assert errors(ask_pairs(stocked, *pairs)) == ["badArgument"]


def test_a_record_is_found_by_its_own_datestamp(stocked):
    root = ask(stocked, verb="GetRecord", metadataPrefix="oai_mets_lmer", identifier=OBJECT)
    stamp = root.findtext(".//o:datestamp", None, NS)
    for since, until in ((stamp, stamp), (stamp[:10], stamp[:10])):
        assert (OBJECT, False) in harvest(stocked, metadataPrefix="oai_mets_lmer", from_=since, until=until)
    before = (datetime.fromisoformat(stamp) - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (OBJECT, False) not in harvest(stocked, metadataPrefix="oai_mets_lmer", until=before)


def test_formats_of_one_record(stocked):
    prefixes = [
        each.text
        for each in ask(stocked, verb="ListMetadataFormats", identifier=OBJECT).iterfind(
            ".//o:metadataPrefix", NS
        )
    ]
    assert prefixes == list(FORMATS)
    found = ask(stocked, verb="ListMetadataFormats", identifier="oai:depot.example.org:journal-1")
    assert [each.text for each in found.iterfind(".//o:metadataPrefix", NS)] == ["oai_dc", "marc21", "epicur"]


def test_a_whole_list_has_no_token_and_the_last_page_an_empty_one(stocked):
    assert token(ask(stocked, verb="ListRecords", metadataPrefix="oai_dc", set="ddc")) is None
    root = ask(stocked, verb="ListRecords", metadataPrefix="oai_dc")
    first = root.find(".//o:resumptionToken", NS)
    assert (first.get("cursor"), first.get("completeListSize")) == ("0", str(SLICES + 5))
    assert first.get("expirationDate") >= (NOW + timedelta(hours=24)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for _ in range(2):
        root = ask(stocked, verb="ListRecords", resumptionToken=token(root))
    assert token(root) == ""


def test_a_token_is_repeatable_signed_bound_to_its_verb_and_ends(stocked):
    given = token(ask(stocked, verb="ListRecords", metadataPrefix="oai_dc"))
    first, second = (ask(stocked, verb="ListRecords", resumptionToken=given) for _ in range(2))
    assert etree.tostring(first) == etree.tostring(second)
    assert errors(ask(stocked, verb="ListIdentifiers", resumptionToken=given)) == ["badResumptionToken"]
    late = NOW + timedelta(hours=49)
    assert errors(ask(stocked, now=late, verb="ListRecords", resumptionToken=given)) == ["badResumptionToken"]
    for at in (0, 10, 30, len(given) - 1):
        changed = given[:at] + ("A" if given[at] != "A" else "B") + given[at + 1 :]
        assert errors(ask(stocked, verb="ListRecords", resumptionToken=changed)) == ["badResumptionToken"]
    other = replace(REPOSITORY, secret=b"y" * 32)
    assert errors(ask(stocked, repository=other, verb="ListRecords", resumptionToken=given)) == [
        "badResumptionToken"
    ]


def test_a_change_between_two_pages_loses_nothing(archive):
    stock(archive, slices=40, withdrawn=0)
    few = replace(REPOSITORY, page_size=10)
    root = ask(archive, repository=few, verb="ListRecords", metadataPrefix="oai_mets_lmer")
    seen = headers(root)
    later = NOW + timedelta(seconds=30)
    changed = ("2026-gartenschau-000002", "2026-gartenschau-000030")
    with archive.database.transaction() as connection:
        for key in changed:
            found = catalogue.find(connection, key)
            catalogue.put(connection, replace(found, title="changed", changed_at=later))
        catalogue.put(
            connection, record("new-one", RecordLevel.SITE, title="n", changed_at=later, created_at=later)
        )
    while following := token(root):
        root = ask(
            archive,
            repository=few,
            verb="ListRecords",
            resumptionToken=following,
            now=later + timedelta(minutes=1),
        )
        seen += headers(root)
    assert len(seen) == len(set(seen)) == 41, "the one that left the window is missing, nothing stands twice"
    again = ask(
        archive,
        repository=few,
        verb="ListIdentifiers",
        metadataPrefix="oai_dc",
        from_="2026-06-01T12:00:00Z",
        now=later,
    )
    assert {identifier.rpartition(":")[2] for identifier, _ in headers(again)} == {*changed, "new-one"}


def test_the_formats_agree(stocked):
    def metadata(prefix: str) -> etree._Element:
        root = ask(
            stocked, verb="GetRecord", metadataPrefix=prefix, identifier="oai:depot.example.org:article-1"
        )
        return root.find(".//o:metadata", NS)[0]

    mets = metadata("oai_mets_lmer")
    lowest = mets.findall(f".//{{{MAB}}}datensatz")[-1]
    assert len(mets.findall(f".//{{{MAB}}}datensatz")) == 3, "all levels go with every object"
    mab = {(field.get("nr"), field.get("ind")): "".join(field.itertext()) for field in lowest}
    marc = {
        (field.get("tag"), sub.get("code")): sub.text
        for field in metadata("marc21").iterfind(f"{{{MARC}}}datafield")
        for sub in field
    }
    dc = [(etree.QName(child).localname, child.text) for child in metadata("oai_dc")]
    urn = mab["552", "b"]
    assert urn == mets.findtext(f".//{{{lmer.OBJECT}}}persistentIdentifier")
    assert ("identifier", urn) in dc
    coded = metadata("marc21").find(f"{{{MARC}}}controlfield[@tag='008']").text
    assert (len(coded), coded[15:18], coded[23], coded[35:38], coded[38:]) == (40, "xx ", "o", "|||", "|c")
    assert mab["331", " "] == marc["245", "a"] == "Über die Unruh"
    assert ("title", "Über die Unruh") in dc
    assert mab["100", " "] == marc["100", "a"] == "Huygens, Christiaan"
    assert mab["426", "a"] == "200403"
    assert marc["264", "c"] == "2004-03"
    assert ("date", "2004-03") in dc
    assert mab["552", "a"] == "10.1000/182"
    links = [field for field in metadata("marc21") if field.get("tag") == "856"]
    assert [[sub.text for sub in field if sub.get("code") in "ux"] for field in links][2] == [
        f"{BASE}/transfer/article-1.zip",
        "Transfer-URL",
    ]
    assert mets.findtext(f".//{{{lmer.OBJECT}}}transferURL") == f"{BASE}/transfer/article-1.zip"


def test_lmer_of_old_for_a_partner_that_asks_for_it(stocked):
    old = replace(REPOSITORY, lmer=Version.OLD)
    root = ask(stocked, repository=old, verb="GetRecord", metadataPrefix="oai_mets_lmer", identifier=OBJECT)
    assert root.find(f".//{{{lmer.OBJECT}}}name") is None
    assert root.findtext(f".//{{{lmer.ONE_SCHEMA}}}transferChecksumType") == "SHA-256"
    assert root.findtext(f".//{{{lmer.ONE_SCHEMA}}}format") == "WARC 1.1"


def test_provenance_of_a_partners_record(archive):
    at = datetime(2026, 3, 1, tzinfo=UTC)
    origin = {
        "partner": "b",
        "base_url": "http://b.example/oai",
        "identifier": "oai:b.example:1",
        "datestamp": "2026-02-01T00:00:00Z",
        "namespace": "http://www.loc.gov/METS/",
        "harvested_at": "2026-02-02T00:00:00Z",
    }
    with archive.database.transaction() as connection:
        catalogue.put(connection, record("one", RecordLevel.SITE, title="t", origin=origin, changed_at=at))
    telling = replace(REPOSITORY, with_provenance=True)
    root = ask(
        archive,
        repository=telling,
        verb="GetRecord",
        metadataPrefix="oai_dc",
        identifier="oai:depot.example.org:one",
    )
    assert root.findtext(".//{*}originDescription/{*}identifier") == "oai:b.example:1"
    assert (
        ask(archive, verb="GetRecord", metadataPrefix="oai_dc", identifier="oai:depot.example.org:one").find(
            ".//o:about", NS
        )
        is None
    )


def test_an_empty_depot_answers_too(archive):
    assert errors(ask(archive, verb="ListRecords", metadataPrefix="oai_dc")) == ["noRecordsMatch"]
    assert (
        ask(archive, verb="Identify").findtext(".//o:earliestDatestamp", None, NS) == "2026-06-01T12:00:00Z"
    )
    assert ask(archive, verb="ListSets").find(".//o:setSpec", NS).text == "open_access"


TEXT = st.text(max_size=30)
NAMES = (
    st.sampled_from(["verb", "identifier", "metadataPrefix", "from", "until", "set", "resumptionToken", "x"])
    | TEXT
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            NAMES, TEXT | st.sampled_from(["ListRecords", "GetRecord", "oai_dc", OBJECT, "2026-01-01"])
        ),
        max_size=5,
    )
)
def test_any_request_has_a_valid_answer(stocked, pairs):
    ask_pairs(stocked, *pairs)
