"""Harvesting partners and taking in what they offer: foreign providers, patience, broken lists, bad objects; nothing half-taken."""

import hashlib
import io
import os
import signal
import warnings
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from exchange_samples import Warc, record
from lxml import etree
from partner_doubles import Desk, Offer, desk, foreign_provider, page, put, ranged

from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, RemoteError
from webdepot.exchange import catalogue, lmer, mab, partners, regbib, urn
from webdepot.exchange.catalogue import Level
from webdepot.exchange.oai.harvester import ProtocolError
from webdepot.exchange.partners import RecordState, RunState, UrnCheck
from webdepot.exchange.regbib import METS
from webdepot.services import cataloguing, exchanging, partnering, providing, replaying, searching, taking_over

PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n"


@pytest.fixture
def partner():
    with desk() as made:
        yield made


def website(number: int = 1, *, files: dict[str, bytes] | None = None) -> Offer:
    """A slice of a web site as an offline browser left it."""
    at = datetime(2005, 3, 2, tzinfo=UTC)
    site = record(
        "WD1",
        Level.SITE,
        title="Gartenschau",
        publisher="Stadt",
        addresses=("http://www.gartenschau.example/",),
        created_at=at,
        changed_at=at,
    )
    piece = record(f"WD1-{number}", Level.SLICE, parent="WD1", title="Gartenschau", part="2005-03-01", date="2005-03-01", created_at=at)
    pages = {
        "index.html": f"<!doctype html><title>Gartenschau {number}</title><link rel=stylesheet href=css/main.css><h1>Tulpen</h1>".encode(),
        "css/main.css": f"h1 {{ color: red }} /* {number} */".encode(),
        "dokumente/bericht.pdf": PDF + str(number).encode(),
    }
    mimes = {"index.html": "text/html", "css/main.css": "text/css", "dokumente/bericht.pdf": "application/pdf"}
    return Offer(levels=[site, piece], files=pages if files is None else files, mimes=mimes)


def article() -> Offer:
    journal = record("J1", Level.JOURNAL, title="Zeitschrift für Uhren", identifiers=("issn:1234-5679",))
    issue = record("J1-3", Level.ISSUE, parent="J1", title="Zeitschrift für Uhren", part="12 (2004), 3", date="2004")
    piece = record("J1-3-7", Level.ARTICLE, parent="J1-3", title="Über die Unruh", creators=("Huygens, Christiaan",), date="2004-03")
    return Offer(levels=[journal, issue, piece], files={"unruh.pdf": PDF}, mimes={"unruh.pdf": "application/pdf"})


def add(archive: Archive, partner: Desk, **more) -> None:
    partnering.add(archive, "p", f"{partner.url}/oai", **more)


def state(archive: Archive) -> tuple[dict[str, int], int, int]:
    """Records of the partner by state, records of the catalogue, containers on the shelf."""
    from webdepot.container import shelf

    with archive.database.reading() as connection:
        return partners.tally(connection, "p"), catalogue.count(connection), shelf.totals(connection)[0]


def refused(archive: Archive, offers, desk_: Desk, **how) -> str:
    """Offer something bad, and see that it is refused with words and that nothing of it stays."""
    put(desk_, offers, **how)
    if not partnering.every(archive):
        add(archive, desk_)
    exchanging.harvest(archive, "p", wait=no_wait)
    done = taking_over.ingest(archive, "p", wait=no_wait)
    assert (done.taken, len(done.refused)) == ([], len(offers)), done
    assert state(archive) == ({"refused": len(offers)}, 0, 0)
    assert not list((archive.home / "partners" / "p").glob("*.zip"))
    assert not list(archive.home.glob(".taking-*"))
    assert partnering.status(archive, "p").failures[0].reason == next(iter(done.refused.values()))
    return next(iter(done.refused.values()))


def oai_error(code: str) -> bytes:
    return (
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2026-03-02T00:00:00Z</responseDate><request/>'
        f'<error code="{code}">no</error></OAI-PMH>'
    ).encode()


def no_wait(seconds: float) -> None:
    """For tests that do not look at the pauses."""


def test_a_loose_site_becomes_a_package_that_replays_and_goes_out_as_it_came(archive, partner):
    offer = website()
    put(partner, [offer])
    add(archive, partner)
    assert exchanging.harvest(archive, "p").new == 1
    done = taking_over.ingest(archive, "p")
    assert (done.taken, done.refused) == ([offer.levels[-1].urn], {})
    own = cataloguing.get(archive, offer.levels[-1].urn)
    seen = cataloguing.view(archive, own.key)
    assert [level.urn for level in seen.levels] == [level.urn for level in offer.levels]
    assert (seen.levels[0].publisher, own.date, own.origin["identifier"]) == ("Stadt", "2005-03-01", "oai:p.example:WD1-1")
    for url in ("http://www.gartenschau.example/", "http://www.gartenschau.example/index.html"):
        opened = replaying.open_capture(archive, url, "20050301093000", collection="all", reader=Reader.staff("test"))
        assert opened.payload.read() == offer.files["index.html"]
        opened.close()
    hits = searching.search(archive, "Tulpen", reader=Reader.staff("test")).hits
    assert {hit.url for hit in hits} <= {"http://www.gartenschau.example/", "http://www.gartenschau.example/index.html"}
    assert hits
    found = providing.hand_over(archive, own.key, reader=Reader.staff("test"))
    data = b"".join(found.pieces(0, found.layout.size_bytes))
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == offer.files
    before = state(archive)
    assert exchanging.harvest(archive, "p").new == 0
    again = taking_over.ingest(archive, "p")
    assert (again.taken, again.updated, again.known) == ([], [], 0)
    assert state(archive) == before


def test_an_article_with_its_journal_goes_in_and_out(archive, partner):
    offer = article()
    put(partner, [offer])
    add(archive, partner)
    exchanging.harvest(archive, "p")
    assert taking_over.ingest(archive, "p").taken == [offer.levels[-1].urn]
    with archive.database.reading() as connection:
        own = catalogue.find_urn(connection, offer.levels[-1].urn)
        levels = catalogue.levels(connection, own)
    assert [level.level for level in levels] == [Level.JOURNAL, Level.ISSUE, Level.ARTICLE]
    assert (levels[0].identifiers, levels[1].part, levels[2].creators) == (("issn:1234-5679",), "12 (2004), 3", ("Huygens, Christiaan",))
    answer = providing.answer(
        archive,
        [("verb", "GetRecord"), ("metadataPrefix", "oai_mets_lmer"), ("identifier", f"oai:localhost.localdomain:{own.key}")],
        portal_url="http://b.example",
    )
    root = etree.fromstring(answer).find(f".//{{{METS}}}mets")
    assert regbib.check(root) == []
    again = regbib.read(root)
    assert [level.fields["urn"] for level in again.levels] == [level.urn for level in offer.levels]
    assert [file.file_checksum for file in again.files] == [hashlib.sha256(PDF).hexdigest()]


def test_what_we_do_not_understand_is_kept_and_handed_on(archive, partner):
    offer = website()

    def strange(root: etree._Element) -> None:
        amd = root.find(f"{{{METS}}}amdSec")
        xml = (
            f'<m:techMD xmlns:m="{METS}" ID="Z"><m:mdWrap MDTYPE="OTHER" OTHERMDTYPE="lmerProcess"><m:xmlData>'
            f'<p:oldObjectVersion xmlns:p="{lmer.PROCESS}">1</p:oldObjectVersion></m:xmlData></m:mdWrap></m:techMD>'
        )
        amd.append(etree.fromstring(xml))
        field = etree.SubElement(root.find(f".//{{{mab.MAB}}}datensatz"), f"{{{mab.MAB}}}feld", nr="902", ind=" ")
        field.text = "Kette & Schuss"

    put(partner, [offer], change=strange)
    add(archive, partner)
    exchanging.harvest(archive, "p")
    assert taking_over.ingest(archive, "p").refused == {}
    own = cataloguing.get(archive, offer.levels[-1].urn)
    answer = providing.answer(
        archive,
        [("verb", "GetRecord"), ("metadataPrefix", "oai_mets_lmer"), ("identifier", f"oai:localhost.localdomain:{own.key}")],
        portal_url="http://b.example",
    )
    assert b"oldObjectVersion" in answer
    assert b"Kette &amp; Schuss" in answer
    cataloguing.write(archive, own.parent, {"title": "Die Gartenschau"})
    changed = providing.answer(
        archive,
        [("verb", "GetRecord"), ("metadataPrefix", "oai_mets_lmer"), ("identifier", f"oai:localhost.localdomain:{own.key}")],
        portal_url="http://b.example",
    )
    assert b"Die Gartenschau" in changed
    assert b"Kette &amp; Schuss" in changed, "a field that only the partner knows stays when a person edits another one"


def test_everything_from_a_foreign_provider(archive, partner):
    """Pages, deletions and all, from the ETH library's server; only headers matter here, the objects are not fetched."""
    documents = {f"{number:03d}": website(number).mets(partner.url) for number in range(25)}
    server = foreign_provider(documents, {"003", "017"})

    def answer(arguments, headers):
        return 200, {"Content-Type": "text/xml"}, server.handleRequest(dict(arguments))

    partner.answers["/oai"] = answer
    add(archive, partner)
    listed = exchanging.harvest(archive, "p")
    assert (listed.run.records, listed.run.pages, listed.run.deleted, listed.new) == (25, 3, 2, 25)
    with archive.database.reading() as connection:
        kept = partners.in_state(connection, "p", RecordState.NEW, limit=100)
    assert [each.identifier for each in kept] == [f"oai:p.example:{name}" for name in sorted(documents)]
    read = regbib.read(etree.fromstring(kept[5].xml))
    assert read.urn == website(5).levels[-1].urn


def test_a_run_is_incremental_by_the_partners_clock(archive, partner):
    put(partner, [website()])
    add(archive, partner, set_spec="a:b")
    exchanging.harvest(archive, "p")
    exchanging.harvest(archive, "p")
    first, second = [arguments for path, arguments, _ in partner.asked if path == "/oai"]
    assert "from" not in first
    assert (second["from"], second["set"], second["metadataPrefix"]) == ("2026-03-02T00:00:00Z", "a:b", "oai_mets_lmer")
    exchanging.harvest(archive, "p", from_the_beginning=True)
    assert "from" not in partner.asked[-1][1]


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_come_again_later(archive, partner, form):
    put(partner, [website()])
    good, times = partner.answers["/oai"], []
    later = format_datetime(archive.clock() + timedelta(seconds=40), usegmt=True)

    def busy(arguments, headers):
        times.append(1)
        return (503, {"Retry-After": "7" if form == "seconds" else later}, b"busy") if len(times) < 3 else good(arguments, headers)

    partner.answers["/oai"] = busy
    add(archive, partner)
    pauses: list[float] = []
    assert exchanging.harvest(archive, "p", wait=pauses.append).new == 1
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
        exchanging.harvest(archive, "p", wait=no_wait)
    status = partnering.status(archive, "p")
    assert (status.last.state, status.last.pages, status.counts) == (RunState.FAILED, 300, {"new": 300})
    assert "answers 500" in status.last.error
    alive = 1000
    partner.asked.clear()
    done = exchanging.harvest(archive, "p", wait=no_wait)
    assert (done.run.state, done.run.pages, done.run.records) == (RunState.COMPLETE, 500, 500)
    assert partner.asked[0][1]["resumptionToken"] == "300", "nothing is asked for twice"
    assert done.run.first_response == "2026-03-02T00:00:00Z"


def test_killed_in_the_middle_of_a_list(archive, partner):
    def answer(arguments, headers):
        number = int(arguments.get("resumptionToken", "0"))
        return 200, {}, page({f"{number:05d}": b'<x xmlns="urn:x"/>'}, token=str(number + 1) if number < 30 else None)

    partner.answers["/oai"] = answer
    add(archive, partner)
    home = archive.home
    child = os.fork()
    if child == 0:
        with Archive.open(home) as own:
            exchanging.harvest(own, "p", watch=lambda progress: os.kill(os.getpid(), signal.SIGKILL) if progress.done == 12 else None)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    partner.asked.clear()
    done = exchanging.harvest(archive, "p")
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
        exchanging.harvest(archive, "p", wait=no_wait)
    done = exchanging.harvest(archive, "p")
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
        ("html", "no OAI-PMH"),
        ("nothing", "neither records nor an error"),
    ],
)
def test_pages_that_cannot_be_read(archive, partner, kind, words):
    partner.answers["/oai"] = lambda arguments, headers: (200, {}, bad_page(kind))
    add(archive, partner)
    with pytest.raises(RemoteError, match=words):
        exchanging.harvest(archive, "p", wait=no_wait)
    assert state(archive) == ({}, 0, 0)
    assert partnering.status(archive, "p").last.state is RunState.FAILED


def test_a_provider_that_goes_in_circles(archive, partner):
    def answer(arguments, headers):
        number = int(arguments.get("resumptionToken", "0"))
        return 200, {}, page({f"{number}": b'<x xmlns="urn:x"/>'}, token=str((number + 1) % 3))

    partner.answers["/oai"] = answer
    add(archive, partner)
    with pytest.raises(RemoteError, match="circles"):
        exchanging.harvest(archive, "p")
    assert len(partner.asked) <= 6


def test_an_error_of_the_protocol_and_an_empty_list(archive, partner):
    def error(code):
        return lambda arguments, headers: (200, {}, oai_error(code))

    add(archive, partner)
    partner.answers["/oai"] = error("cannotDisseminateFormat")
    with pytest.raises(ProtocolError, match="cannotDisseminateFormat"):
        exchanging.harvest(archive, "p")
    partner.answers["/oai"] = error("noRecordsMatch")
    assert exchanging.harvest(archive, "p").run.state is RunState.COMPLETE


def packed(files: list[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        warnings.simplefilter("ignore", UserWarning)  # a name twice is what is wanted
        for name, data in files:
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(member, data)
    return buffer.getvalue()


def checksum(value: str):
    def change(root: etree._Element) -> None:
        root.find(f".//{{{lmer.OBJECT}}}transferChecksum").text = value

    return change


def without_checksum(root: etree._Element) -> None:
    found = root.find(f".//{{{lmer.OBJECT}}}transferChecksum")
    found.getparent().remove(found)


FILES = list(website().files.items())
BAD_ZIPS = {
    "missing": (packed(FILES[:-1]), "is missing in the ZIP"),
    "extra": (packed([*FILES, ("more.txt", b"x")]), "is in the ZIP and not in the record"),
    "duplicate": (packed([*FILES, FILES[0]]), "is in it twice"),
    "traversing": (packed([*FILES[:-1], ("../evil.pdf", FILES[-1][1])]), "is no path inside the file"),
    "absolute": (packed([*FILES[:-1], ("/etc/passwd", FILES[-1][1])]), "is no path inside the file"),
    "backslash": (packed([*FILES[:-1], ("..\\evil.pdf", FILES[-1][1])]), "missing in the ZIP"),
    "no files": (packed([]), "holds no files"),
    "other bytes": (packed([*FILES[:-1], (FILES[-1][0], b"x" * len(FILES[-1][1]))]), "is damaged"),
    "other size": (packed([*FILES[:-1], (FILES[-1][0], b"x")]), "the record says"),
    "truncated": (packed(FILES)[:-50], "cannot be unpacked"),
    "no zip": (b"<html>sorry</html>", "cannot be unpacked"),
}


@pytest.mark.parametrize("kind", BAD_ZIPS)
def test_objects_that_are_not_what_the_record_says(archive, partner, kind):
    data, words = BAD_ZIPS[kind]
    assert words in refused(archive, [website()], partner, change=without_checksum, zips={"WD1-1": data})


def test_a_wrong_checksum(archive, partner):
    assert "the ZIP is damaged: expected SHA-256" in refused(archive, [website()], partner, change=checksum("0" * 64))


def test_a_zip_bomb(archive, partner):
    bomb = packed([("index.html", bytes(80 << 20)), *FILES[1:]])
    offer = replace(website(), files={**website().files, "index.html": bytes(80 << 20)})
    assert "would unpack to" in refused(archive, [offer], partner, zips={"WD1-1": bomb}, change=without_checksum)
    assert "is larger than the files" in refused_size(archive, partner)


def refused_size(archive: Archive, partner: Desk) -> str:
    """An answer without end."""
    put(partner, [website(2)], change=without_checksum, zips={"WD1-2": bytes(3 << 20)})
    exchanging.harvest(archive, "p", from_the_beginning=True)
    return taking_over.ingest(archive, "p", wait=no_wait).refused["oai:p.example:WD1-2"]


def number_of_files(root: etree._Element) -> None:
    root.find(f".//{{{lmer.OBJECT}}}numberOfFiles").text = "7"


def no_structure(root: etree._Element) -> None:
    root.remove(root.find(f"{{{METS}}}structMap"))


def no_level(root: etree._Element) -> None:
    for section in root.findall(f"{{{METS}}}dmdSec"):
        root.remove(section)


def no_urn(root: etree._Element) -> None:
    root.find(f".//{{{lmer.OBJECT}}}persistentIdentifier").text = "http://example.org/1"


def dangling(root: etree._Element) -> None:
    root.find(f".//{{{METS}}}fptr").set("FILEID", "nowhere")


def two_objects(root: etree._Element) -> None:
    amd = root.find(f"{{{METS}}}amdSec")
    amd.append(etree.fromstring(etree.tostring(amd[0])))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (number_of_files, "P10"),
        (no_structure, "P7"),
        (no_level, "P1"),
        (no_urn, "P9"),
        (dangling, "P7"),
        (two_objects, "P8"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_records_against_the_profile(archive, partner, change, rule):
    assert f"profile: {rule}" in refused(archive, [website()], partner, change=change)
    assert not [path for path, _, _ in partner.asked if path.startswith("/transfer")], "the object is not even asked for"


@pytest.mark.parametrize("check", UrnCheck)
def test_a_wrong_digit_is_a_warning_or_a_refusal(archive, partner, check):
    offer = article()
    wrong = urn.mint("urn:nbn:de:example", "j1-3-7")
    wrong = wrong[:-1] + str((int(wrong[-1]) + 1) % 10)
    offer.levels[-1] = replace(offer.levels[-1], urn=wrong)
    add(archive, partner, urn_check=check)
    if check is UrnCheck.REFUSE:
        assert f"the check digit of {wrong} is wrong" in refused(archive, [offer], partner)
    else:
        put(partner, [offer])
        exchanging.harvest(archive, "p")
        done = taking_over.ingest(archive, "p")
        assert done.taken == [wrong]
        assert "check digit" in done.warnings[0]


@pytest.mark.parametrize(
    ("status", "words"), [(404, "answers 404"), (401, "wants a token"), (403, "may not have it"), (503, "answers 503")]
)
def test_a_transfer_url_that_gives_nothing(archive, partner, status, words):
    put(partner, [website()])
    partner.answers["/transfer/WD1-1.zip"] = lambda arguments, headers: (status, {}, b"no")
    add(archive, partner)
    exchanging.harvest(archive, "p")
    done = taking_over.ingest(archive, "p", wait=no_wait)
    assert words in done.refused["oai:p.example:WD1-1"]
    assert state(archive) == ({"refused": 1}, 0, 0)
    put(partner, [website()])
    assert partnering.retry(archive, "p") == 1


def test_a_transfer_url_that_is_gone(archive, partner):
    put(partner, [website()])
    partner.answers["/transfer/WD1-1.zip"] = lambda arguments, headers: (410, {}, b"gone")
    add(archive, partner)
    exchanging.harvest(archive, "p")
    assert taking_over.ingest(archive, "p").withdrawn == ["oai:p.example:WD1-1"]


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
    exchanging.harvest(archive, "p")
    done = taking_over.ingest(archive, "p", wait=no_wait)
    assert done.taken == [offer.levels[-1].urn]
    assert [headers.get("range") for headers in times] == [None, "bytes=60000-", "bytes=120000-"]
    assert all(headers["authorization"] == "Bearer secret-token" for headers in times)


def test_a_partner_cannot_send_us_into_the_intranet(archive, partner):
    def elsewhere(root: etree._Element) -> None:
        root.find(f".//{{{lmer.OBJECT}}}transferURL").text = "http://10.1.2.3/secret.zip"

    assert "no whole answer" in refused(archive, [website()], partner, change=elsewhere)

    def local_file(root: etree._Element) -> None:
        root.find(f".//{{{lmer.OBJECT}}}transferURL").text = "file:///etc/passwd"

    put(partner, [website(2)], change=local_file)
    exchanging.harvest(archive, "p", from_the_beginning=True)
    assert "no address on the web" in taking_over.ingest(archive, "p").refused["oai:p.example:WD1-2"]


def test_a_changed_description_and_a_deletion(archive, partner, tmp_path):
    warc = Warc(tmp_path / "s.warc.gz").response("http://www.gartenschau.example/", "20050301093000", b"<title>Tulpen</title>").write()
    offer = website(files={"s.warc.gz": warc.read_bytes()})
    put(partner, [offer])
    add(archive, partner)
    exchanging.harvest(archive, "p")
    taking_over.ingest(archive, "p")
    own = cataloguing.get(archive, offer.levels[-1].urn)
    cataloguing.write(archive, own.parent, {"abstract": "von uns"})
    offer.levels[0] = replace(offer.levels[0], publisher="Land", abstract="von ihnen")
    put(partner, [offer])
    exchanging.harvest(archive, "p", from_the_beginning=True)
    done = taking_over.ingest(archive, "p")
    assert (done.taken, done.updated) == ([], [own.urn])
    site = cataloguing.get(archive, own.parent)
    assert (site.publisher, site.abstract) == ("Land", "von uns"), "what a person wrote stays"
    partner.answers["/oai"] = lambda arguments, headers: (200, {}, page({}, deleted=("WD1-1",), stamp="2026-04-01T00:00:00Z"))
    exchanging.harvest(archive, "p")
    assert taking_over.ingest(archive, "p").withdrawn == ["oai:p.example:WD1-1"]
    after = cataloguing.get(archive, own.urn)
    assert after.withdrawn_at is not None
    assert "Withdrawn by the partner p" in after.withdrawn_reason
    from webdepot.access.policy import ANYONE
    from webdepot.errors import NotPermitted

    with pytest.raises(NotPermitted, match="Withdrawn by the partner"):
        replaying.open_capture(archive, "http://www.gartenschau.example/", "20050301093000", collection="all", reader=ANYONE)


def test_partners_are_named_once_and_rightly(archive, partner):
    add(archive, partner)
    with pytest.raises(Conflict):
        add(archive, partner)
    for name, url in (("Not a name", "http://a.example/oai"), ("b", "ftp://a.example/"), ("c", "nonsense")):
        with pytest.raises(InputError):
            partnering.add(archive, name, url)


def test_killed_between_loading_and_keeping(archive, partner):
    """A run that was killed behind the download finds what it began, and fetches nothing again."""
    put(partner, [article()])
    add(archive, partner)
    exchanging.harvest(archive, "p")
    home = archive.home

    def blow(progress) -> None:
        if progress.phase == "identify":
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        with Archive.open(home) as own:
            taking_over.ingest(own, "p", watch=blow)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    partner.asked.clear()
    done = taking_over.ingest(archive, "p")
    assert done.taken == [article().levels[-1].urn]
    assert [path for path, _, _ in partner.asked] == []
