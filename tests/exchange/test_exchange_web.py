"""The provider as partners use it: over HTTP, with clients of other projects; URNs, front pages,
transfer objects.
"""

import gzip
import hashlib
import io
import threading
import zipfile
from urllib.parse import quote

import pytest
from exchange_samples import Warc, ask, portal, stock
from lxml import etree
from oai_rules import NS, checked, errors, headers, token
from oaipmh.client import Client
from oaipmh.metadata import MetadataRegistry, oai_dc_reader
from sickle import Sickle

from webdepot.access.policy import AccessPoint, RuleAnswer
from webdepot.archive import Archive
from webdepot.exchange.catalogue import Access
from webdepot.services import pipeline
from webdepot.services.access import rules
from webdepot.services.admin import setup
from webdepot.services.catalogue import records
from webdepot.services.depot import withdrawal
from webdepot.services.exchange import partner_admin

SLICES, WITHDRAWN = 230, 5
PREFIXES = {
    "oai_dc": SLICES + 5,
    "marc21": SLICES + 5,
    "epicur": SLICES + 5,
    "oai_mets_lmer": SLICES + 2,
    "mets_premis": SLICES + 2,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    home = tmp_path_factory.mktemp("served") / "home"
    setup.create(
        home, settings='[exchange]\nrepository = "depot.example.org"\nadmin_email = "a@example.org"\n'
    )
    with Archive.open(home) as archive:
        stock(archive, slices=SLICES, withdrawn=WITHDRAWN)
    with portal(home) as url:
        yield url


@pytest.mark.parametrize("prefix", PREFIXES)
def test_sickle_harvests_everything_by_get_and_gzip(served, prefix):
    client = Sickle(f"{served}/oai")
    found = list(client.ListRecords(metadataPrefix=prefix))
    assert len({record.header.identifier for record in found}) == len(found) == PREFIXES[prefix]
    assert sum(record.deleted for record in found) == WITHDRAWN
    kept = list(client.ListRecords(metadataPrefix=prefix, ignore_deleted=True))
    assert len(kept) == PREFIXES[prefix] - WITHDRAWN
    assert client.Identify().granularity == "YYYY-MM-DDThh:mm:ssZ"


@pytest.mark.parametrize("prefix", PREFIXES)
def test_oaipmh_harvests_everything_by_post(served, prefix):
    registry = MetadataRegistry()
    for each in PREFIXES:
        registry.registerReader(each, oai_dc_reader if each == "oai_dc" else lambda element: element)
    client = Client(f"{served}/oai", registry)
    found = list(client.listRecords(metadataPrefix=prefix))
    assert len(found) == PREFIXES[prefix]
    assert sum(header.isDeleted() for header, _, _ in found) == WITHDRAWN
    assert {header.identifier() for header, _, _ in found} == {
        header.identifier() for header in client.listIdentifiers(metadataPrefix=prefix)
    }


def test_the_requests_of_the_reference_validator_by_get_and_post(served):
    """In its order; what it looks at is asserted, and every answer is valid."""

    def get(query: str) -> etree._Element:
        return checked(ask(f"{served}/oai?{query}").body)

    def post(query: str) -> etree._Element:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        return checked(ask(f"{served}/oai", "POST", headers=form, body=query.encode()).body)

    assert get("verb=Identify").findtext(".//o:baseURL", None, NS) == f"{served}/oai"
    first_set = get("verb=ListSets").findtext(".//o:setSpec", None, NS)
    listed = headers(get(f"verb=ListIdentifiers&metadataPrefix=oai_dc&set={first_set}"))
    identifier = next(found for found, is_deleted in listed if not is_deleted)
    assert "oai_dc" in [
        each.text
        for each in get(f"verb=ListMetadataFormats&identifier={identifier}").iterfind(
            ".//o:metadataPrefix", NS
        )
    ]
    record = get(f"verb=GetRecord&identifier={identifier}&metadataPrefix=oai_dc")
    assert first_set in [each.text for each in record.iterfind(".//o:setSpec", NS)]
    stamp = record.findtext(".//o:datestamp", None, NS)
    assert (identifier, False) in headers(
        get(f"verb=ListRecords&metadataPrefix=oai_dc&from={stamp}&until={stamp}")
    )
    bad = {
        "junk": "badVerb",
        "verb=junk": "badVerb",
        "verb=GetRecord&metadataPrefix=oai_dc": "badArgument",
        f"verb=GetRecord&identifier={identifier}": "badArgument",
        "verb=ListIdentifiers&until=junk": "badArgument",
        "verb=ListIdentifiers&from=junk": "badArgument",
        "verb=ListIdentifiers&resumptionToken=junk&until=2000-02-05": "badArgument",
        "verb=ListRecords&metadataPrefix=oai_dc&from=junk": "badArgument",
        "verb=ListRecords&resumptionToken=junk": "badResumptionToken",
        "verb=ListRecords&metadataPrefix=oai_dc&resumptionToken=junk&until=1990-01-10": "badArgument",
        "verb=ListRecords&metadataPrefix=oai_dc&until=junk": "badArgument",
        "verb=ListRecords": "badArgument",
        "verb=GetRecord&metadataPrefix=oai_dc&identifier=invalid%22id": "idDoesNotExist",
        "verb=ListRecords&metadataPrefix=oai_dc&from=2002-02-05&until=2002-02-06T05:35:00Z": "badArgument",
        "verb=ListRecords&metadataPrefix=oai_dc&until=2025-03-01T09:30:00Z": "noRecordsMatch",
    }
    for query, code in bad.items():
        assert set(errors(get(query))) == {code} == set(errors(post(query))), query
    assert post("verb=Identify").find("o:Identify", NS) is not None
    assert headers(post(f"verb=GetRecord&identifier={identifier}&metadataPrefix=oai_dc")) == [
        (identifier, False)
    ]
    root = get("verb=ListRecords&metadataPrefix=oai_dc")
    assert root.find(".//o:resumptionToken", NS).get("cursor") == "0"
    assert headers(get(f"verb=ListRecords&resumptionToken={quote(token(root))}"))


def test_gzip_only_for_those_who_take_it_and_a_style_sheet_for_people(served):
    plain = ask(f"{served}/oai?verb=Identify")
    packed = ask(f"{served}/oai?verb=Identify", headers={"Accept-Encoding": "gzip"})
    assert plain.headers["Content-Type"] == "text/xml; charset=utf-8"
    assert packed.headers["Content-Encoding"] == "gzip"
    assert checked(gzip.decompress(packed.body)).find("o:Identify", NS) is not None
    instruction = etree.fromstring(plain.body).getroottree().getroot().getprevious()
    sheet = ask(served + instruction.get("href"))
    assert sheet.status == 200
    page = etree.XSLT(etree.fromstring(sheet.body))(
        etree.fromstring(ask(f"{served}/oai?verb=ListRecords&metadataPrefix=oai_dc").body)
    )
    text = etree.tostring(page, encoding="unicode")
    assert "Die Gartenschau" in text
    assert "Next page" in text


def test_too_many_at_once_are_asked_to_come_again(tmp_path):
    setup.create(tmp_path / "home", settings="[exchange]\nmost_requests = 1\nrecords_per_page = 500\n")
    with Archive.open(tmp_path / "home") as archive:
        stock(archive, slices=500, withdrawn=0)
    with portal(tmp_path / "home") as url:
        answers = []

        def fetch() -> None:
            answers.append(ask(f"{url}/oai?verb=ListRecords&metadataPrefix=oai_mets_lmer"))

        threads = [threading.Thread(target=fetch) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        refused = [answer for answer in answers if answer.status == 503]
        assert refused
        assert {answer.status for answer in answers} == {200, 503}
        assert all(0 < int(answer.headers["Retry-After"]) <= 3600 for answer in refused)


def test_a_restart_keeps_tokens(served, tmp_path):
    setup.create(tmp_path / "home", settings="[exchange]\nrecords_per_page = 10\n")
    with Archive.open(tmp_path / "home") as archive:
        stock(archive, slices=15, withdrawn=0)
    with portal(tmp_path / "home") as url:
        given = token(checked(ask(f"{url}/oai?verb=ListRecords&metadataPrefix=oai_mets_lmer").body))
        first = ask(f"{url}/oai?verb=ListRecords&resumptionToken={given}").body
    with portal(tmp_path / "home") as url:
        again = ask(f"{url}/oai?verb=ListRecords&resumptionToken={given}").body
    assert headers(checked(first)) == headers(checked(again))
    assert len(headers(checked(again))) == 7


@pytest.fixture(scope="module")
def depot(tmp_path_factory):
    """A depot with two slices that really are there, served; and a token for a partner."""
    folder = tmp_path_factory.mktemp("depot")
    home = folder / "home"
    setup.create(home)
    keys = []
    with Archive.open(home, agent="test") as archive:
        for number in range(2):
            warc = Warc(folder / f"slice-{number}.warc.gz")
            warc.response(
                f"http://site{number}.example/",
                "20260301093000",
                b"<title>Clocks</title>" + bytes(300_000 * number),
            )
            taken = pipeline.import_files(archive, [warc.write()], collection=f"c{number}").taken
            keys.append(records.find_of_harvest(archive, taken.harvest.id).key)
        partner_admin.add(archive, "b", "http://127.0.0.1:9/oai")
        issued = partner_admin.issue_token(archive, "b")
    with portal(home) as url:
        yield url, home, keys, issued


def test_a_transfer_object_whole_and_in_ranges(depot):
    url, home, keys, _ = depot
    whole = ask(f"{url}/transfer/{keys[1]}.zip")
    assert (whole.status, whole.headers["Content-Type"]) == (200, "application/zip")
    with Archive.open(home) as archive:
        made = records.find_transfer(archive, keys[1])
    assert hashlib.sha256(whole.body).hexdigest() == made.sha256
    assert len(whole.body) == made.size_bytes == int(whole.headers["Content-Length"])
    with zipfile.ZipFile(io.BytesIO(whole.body)) as packed:
        assert packed.testzip() is None
        assert {
            info.filename: hashlib.sha256(packed.read(info)).hexdigest() for info in packed.infolist()
        } == {file.member: file.sha256 for file in made.files}
        assert all(
            info.flag_bits & 1 << 11 and info.compress_type == zipfile.ZIP_STORED
            for info in packed.infolist()
        )
    size = made.size_bytes
    for first, last in ((0, 0), (0, 99), (25, 40), (size // 2, size - 1), (size - 30, size - 1)):
        part = ask(f"{url}/transfer/{keys[1]}.zip", headers={"Range": f"bytes={first}-{last}"})
        assert (part.status, part.headers["Content-Range"]) == (206, f"bytes {first}-{last}/{size}")
        assert part.body == whole.body[first : last + 1]
    assert ask(f"{url}/transfer/{keys[1]}.zip", headers={"Range": f"bytes={size}-"}).status == 416
    other = ask(
        f"{url}/transfer/{keys[1]}.zip", headers={"Range": "bytes=5-9", "If-Range": '"something else"'}
    )
    assert (other.status, len(other.body)) == (200, size)
    assert ask(f"{url}/transfer/none.zip").status == 404


def test_restricted_objects_need_a_token(depot):
    url, home, keys, issued = depot
    with Archive.open(home, agent="test") as archive:
        records.write(archive, keys[0], {"access": Access.RESTRICTED})
        try:
            refused = ask(f"{url}/transfer/{keys[0]}.zip")
            assert refused.status == 401
            assert refused.headers["WWW-Authenticate"].startswith("Bearer")
            assert (
                ask(f"{url}/transfer/{keys[0]}.zip", headers={"Authorization": "Bearer wrong"}).status == 401
            )
            assert (
                ask(f"{url}/transfer/{keys[0]}.zip", headers={"Authorization": f"Bearer {issued}"}).status
                == 200
            )
            assert b"is for partners only" in refused.body
            page = ask(f"{url}/title/{keys[0]}")
            assert "Partners with a token" in page.text
        finally:
            records.write(archive, keys[0], {"access": Access.OPEN})


def test_rules_of_access_hold_for_transfer_objects_too(depot):
    url, home, keys, issued = depot
    with Archive.open(home, agent="test") as archive:
        assert ask(f"{url}/transfer/{keys[0]}.zip").status == 200
        (rule,) = rules.add(
            archive, "site0.example", answer=RuleAnswer.REFUSE, access_point=AccessPoint.PUBLIC
        )
        assert ask(f"{url}/transfer/{keys[0]}.zip").status == 401
        assert (
            ask(f"{url}/transfer/{keys[0]}.zip", headers={"Authorization": f"Bearer {issued}"}).status == 200
        )
        assert ask(f"{url}/transfer/{keys[1]}.zip").status == 200, "another site"
        rules.remove(archive, rule.id)
        (rule,) = rules.add(archive, "site0.example", answer=RuleAnswer.HIDE)
        assert (
            ask(f"{url}/transfer/{keys[0]}.zip", headers={"Authorization": f"Bearer {issued}"}).status == 403
        )
        rules.remove(archive, rule.id)


def test_urns_lead_to_front_pages(depot):
    url, home, keys, _ = depot
    with Archive.open(home) as archive:
        record = records.get(archive, keys[1])
        site = records.get(archive, record.parent)
    answer = ask(f"{url}/urn/{record.urn}")
    assert (answer.status, answer.headers["Location"]) == (303, f"/title/{record.key}")
    assert ask(f"{url}/urn/{record.urn.upper()}").status == 303
    assert ask(f"{url}/urn/urn:nbn:de:example-none").status == 404
    page = ask(f"{url}/title/{record.key}").text
    assert record.urn in page
    assert f"/transfer/{record.key}.zip" in page
    above = ask(f"{url}/title/{site.key}").text
    assert f"/title/{record.key}" in above
    assert site.urn in above


def test_what_is_withdrawn_is_gone_everywhere(tmp_path):
    setup.create(tmp_path / "home")
    warc = (
        Warc(tmp_path / "a.warc.gz")
        .response("http://a.example/", "20260301093000", b"<title>A</title>")
        .write()
    )
    with Archive.open(tmp_path / "home", agent="test") as archive:
        taken = pipeline.import_files(archive, [warc], collection="c").taken
        record = records.find_of_harvest(archive, taken.harvest.id)
        withdrawal.withdraw(archive, record.urn, reason="court order", approved_by="Bea")
    with portal(tmp_path / "home") as url:
        for path in (f"/urn/{record.urn}", f"/title/{record.key}", f"/transfer/{record.key}.zip"):
            assert ask(url + path).status == 410, path
        root = checked(ask(f"{url}/oai?verb=ListRecords&metadataPrefix=oai_mets_lmer").body)
        assert [is_deleted for _, is_deleted in headers(root)] == [True]
