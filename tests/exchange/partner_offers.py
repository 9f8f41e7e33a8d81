"""What partners in tests offer, and what is checked after a run."""

import hashlib
from datetime import UTC, datetime

from exchange_samples import record
from lxml import etree
from partner_doubles import Desk, Offer, put

from catalogue_records import all_records
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.exchange import partners, urn
from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.metadata import lmer
from webdepot.services.exchange import oai_harvest, partner_admin, partner_ingest

PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n"


def website(number: int = 1, *, files: dict[str, bytes] | None = None) -> Offer:
    """A slice of a web site as an offline browser left it."""
    at = datetime(2005, 3, 2, tzinfo=UTC)
    site = record(
        "WD1",
        RecordLevel.SITE,
        title="Gartenschau",
        publisher="Stadt",
        addresses=("http://www.gartenschau.example/",),
        created_at=at,
        changed_at=at,
    )
    piece = record(
        f"WD1-{number}",
        RecordLevel.SLICE,
        parent="WD1",
        title="Gartenschau",
        part="2005-03-01",
        date="2005-03-01",
        created_at=at,
    )
    pages = {
        "index.html": f"<!doctype html><title>Gartenschau {number}</title><link rel=stylesheet href=css/main.css><h1>Tulpen</h1>".encode(),
        "css/main.css": f"h1 {{ color: red }} /* {number} */".encode(),
        "dokumente/bericht.pdf": PDF + str(number).encode(),
    }
    mimes = {
        "index.html": "text/html",
        "css/main.css": "text/css",
        "dokumente/bericht.pdf": "application/pdf",
    }
    return Offer(levels=[site, piece], files=pages if files is None else files, mimes=mimes)


def article() -> Offer:
    journal = record(
        "J1", RecordLevel.JOURNAL, title="Zeitschrift für Uhren", identifiers=("issn:1234-5679",)
    )
    issue = record(
        "J1-3",
        RecordLevel.ISSUE,
        parent="J1",
        title="Zeitschrift für Uhren",
        part="12 (2004), 3",
        date="2004",
    )
    piece = record(
        "J1-3-7",
        RecordLevel.ARTICLE,
        parent="J1-3",
        title="Über die Unruh",
        creators=("Huygens, Christiaan",),
        date="2004-03",
    )
    return Offer(
        levels=[journal, issue, piece], files={"unruh.pdf": PDF}, mimes={"unruh.pdf": "application/pdf"}
    )


def add(archive: Archive, partner: Desk, **more) -> None:
    partner_admin.add(archive, "p", f"{partner.url}/oai", **more)


def state(archive: Archive) -> tuple[dict[str, int], int, int]:
    """Records of the partner by state, records of the catalogue, containers on the shelf."""
    with archive.database.reading() as connection:
        records = sum(1 for _ in all_records(connection))
        return partners.tally(connection, "p"), records, locations.totals(connection)[0]


def refused(archive: Archive, offers, desk_: Desk, **how) -> str:
    """Offer something bad, and see that it is refused with words and that nothing of it stays."""
    put(desk_, offers, **how)
    if not partner_admin.every(archive):
        add(archive, desk_)
    oai_harvest.harvest(archive, "p", wait=no_wait)
    done = partner_ingest.ingest(archive, "p", wait=no_wait)
    assert (done.taken, len(done.refused)) == ([], len(offers)), done
    assert state(archive) == ({"refused": len(offers)}, 0, 0)
    assert not list((archive.home / "partners" / "p").glob("*.zip"))
    assert not list(archive.home.glob(".taking-*"))
    assert partner_admin.status(archive, "p").failures[0].reason == next(iter(done.refused.values()))
    return next(iter(done.refused.values()))


def no_wait(seconds: float) -> None:
    """For tests that do not look at the pauses."""


def checksum(value: str):
    def change(root: etree._Element) -> None:
        root.find(f".//{{{lmer.OBJECT}}}transferChecksum").text = value

    return change


def pdf(words: str) -> bytes:
    """A PDF with one page and these words on it, whole enough for every reader."""
    stream = f"BT /F1 24 Tf 72 700 Td ({words}) Tj ET".encode()
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    data, places = bytearray(b"%PDF-1.4\n"), []
    for number, part in enumerate(parts, start=1):
        places.append(len(data))
        data += b"%d 0 obj%b endobj\n" % (number, part)
    start = len(data)
    data += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(data + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % start)


THESIS_URN = urn.mint("urn:nbn:de:hbz:385", "diss-290")
THESIS_FILES = {"diss.pdf": pdf("The cycloidal pendulum"), "anhang/messung.csv": b"t;x\n0;1\n"}


def thesis_mets(base: str, packed: bytes) -> bytes:
    """A dissertation as a university library of that time offered it: written by hand, MD5 sums, times
    without zone, one level.
    """
    sections = "".join(
        f'<m:techMD ID="DISS290_F{number}"><m:mdWrap MDTYPE="OTHER" OTHERMDTYPE="lmerFile"><m:xmlData>'
        f"<f:fileIdentifier>DISS290_F{number}</f:fileIdentifier><f:path>{folder}</f:path><f:name>{name}</f:name><f:size>{len(data)}</f:size>"
        f'<f:fileDateTime>2004-07-01T12:00:00</f:fileDateTime><f:fileChecksum CHECKSUMTYPE="MD5">{hashlib.md5(data).hexdigest()}'
        f'</f:fileChecksum><f:mimeType>{mime}</f:mimeType><f:format REGISTRYNAME="LZA-RegBib">{kind}</f:format>'
        "</m:xmlData></m:mdWrap></m:techMD>"
        for number, (folder, name, mime, kind, data) in enumerate(
            (
                ("/", "diss.pdf", "application/pdf", "PDF 1.4", THESIS_FILES["diss.pdf"]),
                ("/anhang", "messung.csv", "text/csv", "CSV", THESIS_FILES["anhang/messung.csv"]),
            )
        )
    )
    fields = (
        ("001", " ", "HT013"),
        ("037", "b", "eng"),
        ("050", " ", "||||||||g|||||"),
        ("051", " ", "m|||||||"),
        ("100", " ", "Huygens, Christiaan"),
        ("331", " ", "On the pendulum"),
        ("425", "a", "2004"),
        ("519", " ", "Köln, Univ., Diss., 2004"),
        ("552", "b", THESIS_URN),
        ("700", "b", "529"),
    )
    described = "".join(
        f'<feld nr="{number}" ind="{indicator}">{text}</feld>' for number, indicator, text in fields
    )
    return (
        f'<m:mets xmlns:m="http://www.loc.gov/METS/" xmlns:o="{lmer.OBJECT}" xmlns:f="{lmer.FILE}"><m:dmdSec ID="DISS290_D"><m:mdWrap '
        'MDTYPE="OTHER" OTHERMDTYPE="MABxml"><m:xmlData><datensatz xmlns="http://www.ddb.de/professionell/mabxml/mabxml-1.xsd" '
        f'typ="h" status="n" mabVersion="M2.0">{described}</datensatz></m:xmlData></m:mdWrap></m:dmdSec><m:amdSec>'
        '<m:techMD ID="DISS290_O"><m:mdWrap MDTYPE="OTHER" OTHERMDTYPE="lmerObject"><m:xmlData>'
        f"<o:persistentIdentifier>{THESIS_URN}</o:persistentIdentifier><o:transferURL>{base}/transfer/diss290.zip</o:transferURL>"
        f'<o:transferFormat>ZIP</o:transferFormat><o:transferChecksum CHECKSUMTYPE="MD5">{hashlib.md5(packed).hexdigest()}'
        "</o:transferChecksum><o:masterCreationDate>2004-07-02T08:00:00</o:masterCreationDate><o:numberOfFiles>2</o:numberOfFiles>"
        f"<o:startFile>DISS290_F0</o:startFile></m:xmlData></m:mdWrap></m:techMD>{sections}</m:amdSec>"
        '<m:structMap><m:div TYPE="dissertation" DMDID="DISS290_D"><m:fptr FILEID="DISS290_F0"/><m:fptr FILEID="DISS290_F1"/></m:div>'
        "</m:structMap></m:mets>"
    ).encode()
