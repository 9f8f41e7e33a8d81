"""Harvesting the list of a partner: other providers, retries, interrupted lists, pages that cannot be read."""

import os
import signal
from datetime import timedelta
from email.utils import format_datetime

import pytest
from lxml import etree
from partner_doubles import foreign_provider, page, put
from partner_offers import add, no_wait, state, website

from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, RemoteError
from webdepot.exchange import partners
from webdepot.exchange.metadata import regbib
from webdepot.exchange.oai.harvester import ProtocolError
from webdepot.exchange.partners import RecordState, RunState
from webdepot.services.exchange import oai_harvest, partner_admin


def oai_error(code: str) -> bytes:
    return (
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2026-03-02T00:00:00Z</responseDate><request/>'
        f'<error code="{code}">no</error></OAI-PMH>'
    ).encode()


def test_everything_from_a_foreign_provider(archive, partner):
    """Pages, deletions and all, from the ETH library's server; only headers matter here, the objects are not
    fetched.
    """
    documents = {f"{number:03d}": website(number).mets(partner.url) for number in range(25)}
    server = foreign_provider(documents, {"003", "017"})

    def answer(arguments, headers):
        return 200, {"Content-Type": "text/xml"}, server.handleRequest(dict(arguments))

    partner.answers["/oai"] = answer
    add(archive, partner)
    listed = oai_harvest.harvest(archive, "p")
    assert (listed.run.records, listed.run.pages, listed.run.deleted, listed.new) == (25, 3, 2, 25)
    with archive.database.reading() as connection:
        kept = partners.in_state(connection, "p", RecordState.NEW, limit=100)
    assert [each.identifier for each in kept] == [f"oai:p.example:{name}" for name in sorted(documents)]
    read = regbib.read(etree.fromstring(kept[5].xml))
    assert read.urn == website(5).levels[-1].urn


def test_a_run_is_incremental_by_the_partners_clock(archive, partner):
    put(partner, [website()])
    add(archive, partner, set_spec="a:b")
    oai_harvest.harvest(archive, "p")
    oai_harvest.harvest(archive, "p")
    first, second = [arguments for path, arguments, _ in partner.asked if path == "/oai"]
    assert "from" not in first
    assert (second["from"], second["set"], second["metadataPrefix"]) == (
        "2026-03-02T00:00:00Z",
        "a:b",
        "oai_mets_lmer",
    )
    oai_harvest.harvest(archive, "p", from_the_beginning=True)
    assert "from" not in partner.asked[-1][1]


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_come_again_later(archive, partner, form):
    put(partner, [website()])
    good, times = partner.answers["/oai"], []
    later = format_datetime(archive.clock() + timedelta(seconds=40), usegmt=True)

    def busy(arguments, headers):
        times.append(1)
        return (
            (503, {"Retry-After": "7" if form == "seconds" else later}, b"busy")
            if len(times) < 3
            else good(arguments, headers)
        )

    partner.answers["/oai"] = busy
    add(archive, partner)
    pauses: list[float] = []
    assert oai_harvest.harvest(archive, "p", wait=pauses.append).new == 1
    assert pauses == [7.0, 7.0] if form == "seconds" else all(20 < pause <= 40 for pause in pauses)
    assert len(pauses) == 2


def test_a_list_of_500_pages_that_dies_at_page_300_goes_on_there(archive, partner):
    alive = 300

    def answer(arguments, headers):
        number = int(arguments.get("resumptionToken", "0"))
        if number >= alive:
            return 500, {}, b"oh"
        following = str(number + 1) if number < 499 else None
        return 200, {}, page({f"{number:05d}": b'<x xmlns="urn:x"/>'}, token=following)

    partner.answers["/oai"] = answer
    add(archive, partner)
    with pytest.raises(RemoteError, match="500"):
        oai_harvest.harvest(archive, "p", wait=no_wait)
    status = partner_admin.status(archive, "p")
    assert (status.last.state, status.last.pages, status.counts) == (RunState.FAILED, 300, {"new": 300})
    assert "returned status 500" in status.last.error
    alive = 1000
    partner.asked.clear()
    done = oai_harvest.harvest(archive, "p", wait=no_wait)
    assert (done.run.state, done.run.pages, done.run.records) == (RunState.COMPLETE, 500, 500)
    assert partner.asked[0][1]["resumptionToken"] == "300", "nothing is asked for twice"
    assert done.run.first_response == "2026-03-02T00:00:00Z"


def test_killed_in_the_middle_of_a_list(archive, partner):
    def answer(arguments, headers):
        number = int(arguments.get("resumptionToken", "0"))
        return (
            200,
            {},
            page({f"{number:05d}": b'<x xmlns="urn:x"/>'}, token=str(number + 1) if number < 30 else None),
        )

    partner.answers["/oai"] = answer
    add(archive, partner)
    home = archive.home
    child = os.fork()
    if child == 0:
        with Archive.open(home) as own:
            oai_harvest.harvest(
                own,
                "p",
                watch=lambda progress: os.kill(os.getpid(), signal.SIGKILL) if progress.done == 12 else None,
            )
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    partner.asked.clear()
    done = oai_harvest.harvest(archive, "p")
    assert (done.run.records, state(archive)[0]) == (31, {"new": 31})
    assert partner.asked[0][1]["resumptionToken"] == "12"


def test_a_token_that_ended_while_nobody_used_it(archive, partner):
    calls = []

    def answer(arguments, headers):
        calls.append(arguments)
        if len(calls) == 2:
            return 500, {}, b"oh"
        if arguments.get("resumptionToken") == "old":
            return (
                200,
                {},
                oai_error("badResumptionToken"),
            )
        return 200, {}, page({"1": b'<x xmlns="urn:x"/>'}, token="old" if len(calls) == 1 else None)

    partner.answers["/oai"] = answer
    add(archive, partner)
    with pytest.raises(RemoteError):
        oai_harvest.harvest(archive, "p", wait=no_wait)
    done = oai_harvest.harvest(archive, "p")
    assert (done.run.state, done.run.records, done.new) == (RunState.COMPLETE, 1, 0)


def bad_page(kind: str) -> bytes:
    title = {"control": "a\x0bb", "entity": "&x;"}.get(kind, "a")
    head = '<!DOCTYPE OAI-PMH [<!ENTITY x "boom">]>' if kind == "entity" else ""
    body = page({"1": f'<x xmlns="urn:x">{title}</x>'.encode()}).decode().replace("?>", f"?>{head}", 1)
    if kind == "cut":
        return body.encode()[:-40]
    if kind == "html":
        return b"<html><body>Welcome</body></html>"
    if kind == "nothing":
        return b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>x</responseDate><request/></OAI-PMH>'
    return body.encode()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("entity", "document type"),
        ("control", "well-formed"),
        ("cut", "well-formed"),
        ("html", "is not OAI-PMH"),
        ("nothing", "neither records nor an error"),
    ],
)
def test_pages_that_cannot_be_read(archive, partner, kind, words):
    partner.answers["/oai"] = lambda arguments, headers: (200, {}, bad_page(kind))
    add(archive, partner)
    with pytest.raises(RemoteError, match=words):
        oai_harvest.harvest(archive, "p", wait=no_wait)
    assert state(archive) == ({}, 0, 0)
    assert partner_admin.status(archive, "p").last.state is RunState.FAILED


def test_a_provider_that_goes_in_circles(archive, partner):
    def answer(arguments, headers):
        number = int(arguments.get("resumptionToken", "0"))
        return 200, {}, page({f"{number}": b'<x xmlns="urn:x"/>'}, token=str((number + 1) % 3))

    partner.answers["/oai"] = answer
    add(archive, partner)
    with pytest.raises(RemoteError, match="is a loop"):
        oai_harvest.harvest(archive, "p")
    assert len(partner.asked) <= 6


def test_an_error_of_the_protocol_and_an_empty_list(archive, partner):
    def error(code):
        return lambda arguments, headers: (200, {}, oai_error(code))

    add(archive, partner)
    partner.answers["/oai"] = error("cannotDisseminateFormat")
    with pytest.raises(ProtocolError, match="cannotDisseminateFormat"):
        oai_harvest.harvest(archive, "p")
    partner.answers["/oai"] = error("noRecordsMatch")
    assert oai_harvest.harvest(archive, "p").run.state is RunState.COMPLETE


def test_partners_are_named_once_and_rightly(archive, partner):
    add(archive, partner)
    with pytest.raises(Conflict):
        add(archive, partner)
    for name, url in (("Not a name", "http://a.example/oai"), ("b", "ftp://a.example/"), ("c", "nonsense")):
        with pytest.raises(InputError):
            partner_admin.add(archive, name, url)
