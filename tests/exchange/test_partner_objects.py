"""Ingest of what partners offer: loose sites, articles, theses, changed objects, interrupted transfers."""

import hashlib
import io
import os
import re
import signal
import zipfile
from dataclasses import replace

import pytest
from exchange_samples import Warc, ask, portal
from lxml import etree
from oai_rules import checked
from partner_doubles import page, put, ranged
from partner_offers import PDF, THESIS_FILES, THESIS_URN, add, article, no_wait, state, thesis_mets, website

from webdepot.access.policy import ANYONE, Reader
from webdepot.archive import Archive
from webdepot.errors import NotPermitted
from webdepot.exchange import catalogue
from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.metadata import lmer, mab, regbib
from webdepot.exchange.metadata.regbib import METS
from webdepot.services.access import search
from webdepot.services.access.replay import replay
from webdepot.services.admin import setup
from webdepot.services.catalogue import records
from webdepot.services.exchange import (
    oai_harvest,
    oai_provider,
    object_delivery,
    partner_admin,
    partner_ingest,
)


def test_a_loose_site_becomes_a_package_that_replays_and_goes_out_as_it_came(archive, partner):
    offer = website()
    put(partner, [offer])
    add(archive, partner)
    assert oai_harvest.harvest(archive, "p").new == 1
    done = partner_ingest.ingest(archive, "p")
    assert (done.taken, done.refused) == ([offer.levels[-1].urn], {})
    own = records.get(archive, offer.levels[-1].urn)
    seen = records.view(archive, own.key)
    assert [level.urn for level in seen.levels] == [level.urn for level in offer.levels]
    assert (seen.levels[0].publisher, own.date, own.origin["identifier"]) == (
        "Stadt",
        "2005-03-01",
        "oai:p.example:WD1-1",
    )
    for url in ("http://www.gartenschau.example/", "http://www.gartenschau.example/index.html"):
        opened = replay.open_capture(
            archive, url, "20050301093000", collection="all", reader=Reader.staff("test")
        )
        assert opened.payload.read() == offer.files["index.html"]
        opened.close()
    hits = search.search(archive, "Tulpen", reader=Reader.staff("test")).hits
    assert {hit.url for hit in hits} <= {
        "http://www.gartenschau.example/",
        "http://www.gartenschau.example/index.html",
    }
    assert hits
    found = object_delivery.hand_over(archive, own.key, reader=Reader.staff("test"))
    data = b"".join(found.pieces(0, found.layout.size_bytes))
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == offer.files
    before = state(archive)
    assert oai_harvest.harvest(archive, "p").new == 0
    again = partner_ingest.ingest(archive, "p")
    assert (again.taken, again.updated, again.known) == ([], [], 0)
    assert state(archive) == before


def test_an_article_with_its_journal_goes_in_and_out(archive, partner):
    offer = article()
    put(partner, [offer])
    add(archive, partner)
    oai_harvest.harvest(archive, "p")
    assert partner_ingest.ingest(archive, "p").taken == [offer.levels[-1].urn]
    with archive.database.reading() as connection:
        own = catalogue.find_urn(connection, offer.levels[-1].urn)
        levels = catalogue.levels(connection, own)
    assert [level.level for level in levels] == [RecordLevel.JOURNAL, RecordLevel.ISSUE, RecordLevel.ARTICLE]
    assert (levels[0].identifiers, levels[1].part, levels[2].creators) == (
        ("issn:1234-5679",),
        "12 (2004), 3",
        ("Huygens, Christiaan",),
    )
    answer = oai_provider.answer(
        archive,
        [
            ("verb", "GetRecord"),
            ("metadataPrefix", "oai_mets_lmer"),
            ("identifier", f"oai:localhost.localdomain:{own.key}"),
        ],
        portal_url="http://b.example",
    )
    root = etree.fromstring(answer).find(f".//{{{METS}}}mets")
    assert regbib.check(root) == []
    again = regbib.read(root)
    assert [level.fields["urn"] for level in again.levels] == [level.urn for level in offer.levels]
    assert [file.file_checksum for file in again.files] == [hashlib.sha256(PDF).hexdigest()]


def offer_thesis(partner) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in THESIS_FILES.items():
            packed.writestr(name, data)
    document = thesis_mets(partner.url, buffer.getvalue())
    partner.answers["/transfer/diss290.zip"] = ranged(buffer.getvalue())
    partner.answers["/oai"] = lambda arguments, headers: (
        200,
        {"Content-Type": "text/xml"},
        page({"diss290": document}),
    )


def test_a_thesis_is_taken_in_found_shown_and_handed_on_to_a_third_depot(archive, partner, tmp_path):
    """From a university library to us, from us over HTTP to the next: the same URN, files and words, also
    those we have no field for.
    """
    offer_thesis(partner)
    add(archive, partner)
    oai_harvest.harvest(archive, "p")
    done = partner_ingest.ingest(archive, "p")
    assert (done.taken, done.refused, done.warnings) == ([THESIS_URN], {}, [])
    setup.create(tmp_path / "next")
    with portal(archive.home) as url, Archive.open(tmp_path / "next", agent="test") as following:
        front = ask(f"{url}/urn/{THESIS_URN}")
        shown = ask(url + front.headers["Location"]).text
        assert "Thesis" in shown and "Huygens, Christiaan: On the pendulum" in shown
        link = re.search(r'href="([^"]+diss\.pdf)"', shown)[1]
        to_frame = ask(url + link).headers["Location"]
        asked = re.search(rf"/all/([0-9]{{14}})/{THESIS_URN}/diss\.pdf$", to_frame)[1]
        opened = replay.open_capture(
            archive, f"{THESIS_URN}/diss.pdf", asked, collection="all", reader=ANYONE
        )
        opened.close()
        assert opened.capture.timestamp == "20040702080000", "the moment it has here"
        partner_admin.add(following, "a", f"{url}/oai")
        oai_harvest.harvest(following, "a")
        assert partner_ingest.ingest(following, "a").taken == [THESIS_URN]
        for depot in (archive, following):
            own = records.get(depot, THESIS_URN)
            assert (own.level, own.title, own.creators, own.date, own.ddc) == (
                RecordLevel.THESIS,
                "On the pendulum",
                ("Huygens, Christiaan",),
                "2004",
                ("529",),
            )
            assert [hit.url for hit in search.search(depot, "cycloidal", reader=ANYONE).hits] == [
                f"{THESIS_URN}/diss.pdf"
            ]
            opened = replay.open_capture(
                depot, f"{THESIS_URN}/diss.pdf", "2004", collection="all", reader=ANYONE
            )
            assert (opened.payload.read(), opened.capture.mime) == (
                THESIS_FILES["diss.pdf"],
                "application/pdf",
            )
            opened.close()
            found = object_delivery.hand_over(depot, own.key, reader=ANYONE)
            with zipfile.ZipFile(io.BytesIO(b"".join(found.pieces(0, found.layout.size_bytes)))) as packed:
                assert {name: packed.read(name) for name in packed.namelist()} == THESIS_FILES
            told = oai_provider.answer(
                depot,
                [
                    ("verb", "ListRecords"),
                    ("metadataPrefix", "oai_mets_lmer"),
                    ("set", "doc-type:doctoralThesis"),
                ],
                portal_url=url,
            )
            assert "Köln, Univ., Diss., 2004".encode() in told
            checked(told)
    partner.answers["/oai"] = lambda arguments, headers: (
        200,
        {},
        page({}, deleted=("diss290",), stamp="2026-04-01T00:00:00Z"),
    )
    oai_harvest.harvest(archive, "p")
    assert partner_ingest.ingest(archive, "p").withdrawn == ["oai:p.example:diss290"]
    assert search.search(archive, "cycloidal", reader=ANYONE).hits == []
    with pytest.raises(NotPermitted, match="Withdrawn by the partner"):
        replay.open_capture(archive, f"{THESIS_URN}/diss.pdf", "2004", collection="all", reader=ANYONE)


def test_what_we_do_not_understand_is_kept_and_handed_on(archive, partner):
    offer = website()

    def strange(root: etree._Element) -> None:
        amd = root.find(f"{{{METS}}}amdSec")
        xml = (
            f'<m:techMD xmlns:m="{METS}" ID="Z"><m:mdWrap MDTYPE="OTHER" OTHERMDTYPE="lmerProcess"><m:xmlData>'
            f'<p:oldObjectVersion xmlns:p="{lmer.PREFIX}process">1</p:oldObjectVersion></m:xmlData></m:mdWrap></m:techMD>'
        )
        amd.append(etree.fromstring(xml))
        field = etree.SubElement(
            root.find(f".//{{{mab.MAB}}}datensatz"), f"{{{mab.MAB}}}feld", nr="902", ind=" "
        )
        field.text = "Kette & Schuss"

    put(partner, [offer], change=strange)
    add(archive, partner)
    oai_harvest.harvest(archive, "p")
    assert partner_ingest.ingest(archive, "p").refused == {}
    own = records.get(archive, offer.levels[-1].urn)
    answer = oai_provider.answer(
        archive,
        [
            ("verb", "GetRecord"),
            ("metadataPrefix", "oai_mets_lmer"),
            ("identifier", f"oai:localhost.localdomain:{own.key}"),
        ],
        portal_url="http://b.example",
    )
    assert b"oldObjectVersion" in answer
    assert b"Kette &amp; Schuss" in answer
    records.write(archive, own.parent, {"title": "Die Gartenschau"})
    changed = oai_provider.answer(
        archive,
        [
            ("verb", "GetRecord"),
            ("metadataPrefix", "oai_mets_lmer"),
            ("identifier", f"oai:localhost.localdomain:{own.key}"),
        ],
        portal_url="http://b.example",
    )
    assert b"Die Gartenschau" in changed
    assert b"Kette &amp; Schuss" in changed, (
        "a field that only the partner knows stays when a person edits another one"
    )


def test_a_transfer_url_that_is_gone(archive, partner):
    put(partner, [website()])
    partner.answers["/transfer/WD1-1.zip"] = lambda arguments, headers: (410, {}, b"gone")
    add(archive, partner)
    oai_harvest.harvest(archive, "p")
    assert partner_ingest.ingest(archive, "p").withdrawn == ["oai:p.example:WD1-1"]


def test_a_withdrawal_that_cannot_be_applied_waits_until_it_can(archive, partner):
    offer = website()
    put(partner, [offer])
    add(archive, partner)
    oai_harvest.harvest(archive, "p")
    partner_ingest.ingest(archive, "p")
    partner.answers["/oai"] = lambda arguments, headers: (
        200,
        {},
        page({}, deleted=("WD1-1",), stamp="2026-04-01T00:00:00Z"),
    )
    oai_harvest.harvest(archive, "p")
    depot = archive.home / "depot"
    depot.rename(archive.home / "away")
    failed = partner_ingest.ingest(archive, "p")
    assert (failed.withdrawn, list(failed.refused)) == ([], ["oai:p.example:WD1-1"])
    assert records.get(archive, offer.levels[-1].urn).withdrawn_at is None
    (archive.home / "away").rename(depot)
    assert partner_ingest.ingest(archive, "p").withdrawn == ["oai:p.example:WD1-1"]
    assert records.get(archive, offer.levels[-1].urn).withdrawn_at is not None


def test_a_download_that_breaks_goes_on_and_the_token_is_shown(archive, partner):
    offer = article()
    offer.files["unruh.pdf"] = PDF + os.urandom(200_000)
    put(partner, [offer])
    whole = ranged(offer.zip())
    times = []

    def breaking(arguments, headers):
        times.append(headers)
        status, more, body = whole(arguments, headers)
        if len(times) < 3:
            return status, more | {"Content-Length": str(len(body))}, body[:60_000]
        return status, more, body

    partner.answers["/transfer/J1-3-7.zip"] = breaking
    add(archive, partner, token="secret-token")
    oai_harvest.harvest(archive, "p")
    done = partner_ingest.ingest(archive, "p", wait=no_wait)
    assert done.taken == [offer.levels[-1].urn]
    assert [headers.get("range") for headers in times] == [None, "bytes=60000-", "bytes=120000-"]
    assert all(headers["authorization"] == "Bearer secret-token" for headers in times)


def test_a_changed_description_and_a_deletion(archive, partner, tmp_path):
    warc = (
        Warc(tmp_path / "s.warc.gz")
        .response("http://www.gartenschau.example/", "20050301093000", b"<title>Tulpen</title>")
        .write()
    )
    offer = website(files={"s.warc.gz": warc.read_bytes()})
    put(partner, [offer])
    add(archive, partner)
    oai_harvest.harvest(archive, "p")
    partner_ingest.ingest(archive, "p")
    own = records.get(archive, offer.levels[-1].urn)
    records.write(archive, own.parent, {"abstract": "von uns"})
    offer.levels[0] = replace(offer.levels[0], publisher="Land", abstract="von ihnen")
    put(partner, [offer])
    oai_harvest.harvest(archive, "p", from_the_beginning=True)
    done = partner_ingest.ingest(archive, "p")
    assert (done.taken, done.updated) == ([], [own.urn])
    site = records.get(archive, own.parent)
    assert (site.publisher, site.abstract) == ("Land", "von uns"), "what a person wrote stays"
    partner.answers["/oai"] = lambda arguments, headers: (
        200,
        {},
        page({}, deleted=("WD1-1",), stamp="2026-04-01T00:00:00Z"),
    )
    oai_harvest.harvest(archive, "p")
    assert partner_ingest.ingest(archive, "p").withdrawn == ["oai:p.example:WD1-1"]
    after = records.get(archive, own.urn)
    assert after.withdrawn_at is not None
    assert "Withdrawn by the partner p" in after.withdrawn_reason
    with pytest.raises(NotPermitted, match="Withdrawn by the partner"):
        replay.open_capture(
            archive, "http://www.gartenschau.example/", "20050301093000", collection="all", reader=ANYONE
        )


def test_killed_between_loading_and_keeping(archive, partner):
    """A run that was killed behind the download finds what it began, and fetches nothing again."""
    put(partner, [article()])
    add(archive, partner)
    oai_harvest.harvest(archive, "p")
    home = archive.home

    def blow(progress) -> None:
        if progress.phase == "identify":
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        with Archive.open(home) as own:
            partner_ingest.ingest(own, "p", watch=blow)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    partner.asked.clear()
    done = partner_ingest.ingest(archive, "p")
    assert done.taken == [article().levels[-1].urn]
    assert [path for path, _, _ in partner.asked] == []
