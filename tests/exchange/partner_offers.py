"""What partners of the tests offer, and what is looked at behind a run."""

from datetime import UTC, datetime

from exchange_samples import record
from lxml import etree
from partner_doubles import Desk, Offer, put

from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.exchange import catalogue, lmer, partners
from webdepot.exchange.catalogue import Level
from webdepot.services import exchanging, partnering, taking_over

PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n"


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


def no_wait(seconds: float) -> None:
    """For tests that do not look at the pauses."""


def checksum(value: str):
    def change(root: etree._Element) -> None:
        root.find(f".//{{{lmer.OBJECT}}}transferChecksum").text = value

    return change
