"""A complaint is decided: the page is closed at once in every interface (replay, look-up, search, lists for
machines, exchange, downloads), and open again on every one of them when the decision is lifted.
"""

import gzip
from collections.abc import Iterator

import pytest
from museum import EDITIONS, NOW, SITE, Served, Warc, ask, serving

from catalogue_records import all_records
from webdepot.access.policy import AccessPoint, Reader
from webdepot.archive import Archive
from webdepot.errors import NotPermitted
from webdepot.exchange.catalogue import CatalogueRecord
from webdepot.selection.cases import Decision
from webdepot.services import pipeline
from webdepot.services.admin import setup
from webdepot.services.exchange import object_delivery, partner_admin
from webdepot.services.permission import complaints
from webdepot.services.permission.complaints import Ruling

PAGE, OTHER, WORD = f"{SITE}/secret-clock.html", f"{SITE}/open.html", "zeigerwerk"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("complaint")
    warc = Warc(folder / "site.warc.gz")
    for number, stamp in enumerate(EDITIONS[:2]):
        warc.response(
            PAGE,
            stamp,
            f"<title>Clock {number}</title><p>The {WORD} of this clock, edition {number}.</p>".encode(),
        )
        warc.response(OTHER, stamp, f"<title>Open</title><p>Everything else, edition {number}.</p>".encode())
    home = folder / "home"
    setup.create(home, clock=lambda: NOW)
    with Archive.open(home, clock=lambda: NOW) as archive:
        pipeline.import_files(archive, [warc.write()], collection="museums")
    with serving(home) as running:
        yield running


def surfaces(served: Served) -> dict[str, bool]:
    """Whether the page is shown or mentioned on each surface that the public has."""
    portal, stamp = served.portal, EDITIONS[0]

    def text(url: str) -> str:
        answer = ask(url)
        return (
            gzip.decompress(answer.body).decode(errors="replace")
            if answer.body[:2] == b"\x1f\x8b"
            else answer.body.decode(errors="replace")
        )

    def is_open(url: str) -> bool:
        return ask(url).status in (200, 206, 302, 307)

    with served.archive() as archive:
        key = next(each.key for each in every_record(archive) if each.is_object)
    told = {
        f"/search/export?q={WORD}&form={form}": "secret-clock" for form in ("csv", "jsonl", "solr", "warc")
    }
    told |= {
        f"/search?q={WORD}": "secret-clock.html",
        f"/api/search?q={WORD}": "secret-clock.html",
        f"/search.atom?q={WORD}": "secret-clock.html",
        f"/cdx/search/cdx?url={PAGE}": "secret-clock.html",
        f"/all/cdx?url={SITE}/*&matchType=prefix": "secret-clock.html",
    }
    shown = {path: word in text(portal + path) for path, word in told.items()}
    shown |= {
        path: is_open(portal + path)
        for path in (f"/all/*/{PAGE}", f"/cite?url={PAGE}&at={stamp}", f"/transfer/{key}.zip")
    }
    shown["frame"] = is_open(f"{served.frame}/all/{stamp}/{PAGE}")
    shown["still"] = is_open(f"{served.replay}/all/{stamp}ns_/{PAGE}")
    shown["compared"] = WORD in text(f"{served.frame}/compare?url={PAGE}&at={stamp}&with={EDITIONS[1]}")
    shown["times"] = stamp in text(f"{served.replay}/all/timemap/link/{PAGE}")
    shown["raw"] = WORD in text(f"{served.replay}/all/{stamp}id_/{PAGE}")
    shown["part of the object"] = (
        ask(f"{portal}/transfer/{key}.zip", headers={"Range": "bytes=0-9"}).status == 206
    )
    shown["link to the object"] = f"/transfer/{key}.zip" in text(f"{portal}/title/{key}")
    return shown


def every_record(archive: Archive) -> list[CatalogueRecord]:
    with archive.database.reading() as connection:
        return list(all_records(connection))


def test_a_decision_closes_every_surface_and_lifting_opens_them_all(served: Served):
    before = surfaces(served)
    assert all(before.values()), [name for name, is_shown in before.items() if not is_shown]
    with served.archive() as archive:
        case = complaints.complain(archive, url=PAGE, words="It is mine.")
        complaints.decide(archive, case.reference, Ruling(decision=Decision.CLOSED, public_text="Closed."))
    try:
        closed = surfaces(served)
        assert not any(closed.values()), [name for name, is_shown in closed.items() if is_shown]
        assert ask(f"{served.replay}/all/{EDITIONS[0]}id_/{OTHER}").status == 200, "nothing else is closed"
        with served.archive() as archive:
            partner_too(archive)
    finally:
        with served.archive() as archive:
            complaints.lift(archive, case.reference, reason="settled")
    assert surfaces(served) == before


def partner_too(archive: Archive) -> None:
    """A partner with a token does not get an object that contains a closed page either."""
    partner_admin.add(archive, "north", "http://127.0.0.1:9/oai")
    token = partner_admin.issue_token(archive, "north")
    key = next(each.key for each in every_record(archive) if each.is_object)
    with pytest.raises(NotPermitted):
        object_delivery.hand_over(archive, key, reader=Reader(access_point=AccessPoint.PARTNER), token=token)
    partner_admin.remove(archive, "north")
