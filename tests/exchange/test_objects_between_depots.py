"""Objects of every kind pass from depot to depot with digests, records and rights."""

import hashlib
import zipfile
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import bagit
import pytest
from exchange_samples import portal
from object_samples import (
    DC,
    JATS,
    NOTES,
    OPEN,
    PAGE,
    WRITTEN,
    delivered,
    folder_of,
    picture,
    sound,
    take,
)

import small_warcs
from webdepot.access.policy import ANYONE, AccessPoint, Reader
from webdepot.archive import Archive
from webdepot.errors import NotPermitted
from webdepot.exchange import catalogue
from webdepot.exchange.catalogue import Access
from webdepot.services import pipeline
from webdepot.services.access import search
from webdepot.services.access.replay import replay
from webdepot.services.admin import setup
from webdepot.services.catalogue import records
from webdepot.services.depot import export
from webdepot.services.exchange import (
    oai_harvest,
    partner_admin,
    partner_ingest,
)
from webdepot.services.intake import submissions


def every_kind(archive: Archive, folder: Path) -> dict[str, str]:
    """Submit one object of each kind; their URNs by kind."""
    thesis = folder_of(folder / "thesis", {"thesis.html": PAGE, "data/notes.txt": NOTES, "dc.xml": OPEN})
    bagit.make_bag(str(thesis), {"External-Identifier": "hdl:1887/17"}, checksums=["sha256"])
    closed = folder_of(folder / "closed", {"closed.html": PAGE + b"Closed.", "n.txt": NOTES, "dc.xml": DC})
    issue = folder_of(folder / "issue", {"1/verge.xml": JATS, "2/cheeks.html": PAGE, "list.csv": ISSUE})
    copy = folder_of(
        folder / "disc", {"README.TXT": b"Volume 1", "DATA/CLOCKS.CSV": b"maker;year\nCoster;1657\n"}
    )
    album = folder / "album.zip"
    with zipfile.ZipFile(album, "w") as packed:
        packed.writestr("album/dc.xml", OPEN.replace("Pendulum clocks", "Clock towers"))
        for name, colour in (("front.png", "red"), ("sub/back.png", "blue")):
            packed.writestr(f"album/{name}", picture(colour))
    chimes = folder_of(
        folder / "chimes", {"chimes.wav": sound(), "dc.xml": OPEN.replace("Pendulum clocks", "Chimes")}
    )
    urns = {
        name: take(archive, path)[1].urn
        for name, path in (
            ("thesis", thesis), ("closed thesis", closed), ("folder", copy), ("pictures", album), ("sound", chimes),
        )
    }  # fmt: skip
    articles = submissions.receive_each(archive, issue / "list.csv", collection="theses")
    urns |= {f"article {number}": each.package.urn for number, each in enumerate(articles, 1)}
    site = small_warcs.write_warc(
        folder / "site.warc.gz", {"https://clocks.example/": PAGE + b"On line."}, when=WRITTEN
    )
    pipeline.import_files(
        archive, [site], collection="sites", on_package=lambda report: urns.update(site=report.package.urn)
    )
    return urns


ISSUE = """filename,title,creator,date,type,journal,issn,volume,issue,rights
1/verge.xml,On the verge,"Fromanteel, Ahasuerus",2004,article,Horology,1234-5679,12,3,CC BY
2/cheeks.html,On cheeks,"Huygens, Christiaan",2004,article,Horology,1234-5679,12,3,CC BY
"""


def test_objects_of_every_kind_go_from_depot_to_depot_with_digests_records_and_rights(archive, tmp_path):
    """A thesis, one with restricted access, articles of an issue, a folder, pictures, sound and a web site, from A
    over HTTP to B, and from B to C.
    """
    urns = every_kind(archive, tmp_path)
    depots = [archive]
    with ExitStack() as stack:
        for name in ("b", "c"):
            setup.create(tmp_path / name)
            following = stack.enter_context(Archive.open(tmp_path / name, agent=name))
            partner_admin.add(depots[-1], name, "http://partner.example/oai")
            token = partner_admin.issue_token(depots[-1], name)
            with portal(depots[-1].home) as url:
                partner_admin.add(following, "p", f"{url}/oai", token=token)
                oai_harvest.harvest(following, "p")
                done = partner_ingest.ingest(following, "p")
            assert (sorted(done.taken), done.refused) == (sorted(urns.values()), {})
            depots.append(following)
        for kind, urn in urns.items():
            seen = {repr(seen_of(depot, urn)) for depot in depots}
            assert len(seen) == 1, (kind, seen)
        last = depots[-1]
        assert "CC BY 4.0" in repr(seen_of(last, urns["pictures"]))
        one, two = (records.get(last, urns[f"article {number}"]) for number in (1, 2))
        assert one.parent == two.parent
        assert records.get(last, one.parent).part == "12 (2004), 3"
        for depot in depots:
            closed = records.get(depot, urns["closed thesis"])
            assert closed.access is Access.RESTRICTED
            with pytest.raises(NotPermitted):
                replay.open_capture(
                    depot, f"{closed.urn}/closed.html", "2004", collection="all", reader=Reader()
                )
        assert search.search(last, "cycloidal", reader=ANYONE).hits
        for depot, title in product(depots, ("Clock towers", "Chimes", "Pendulum clocks", "Horology")):
            found = search.search(depot, title, reader=ANYONE, relax=True).catalogue
            assert [(entry.record.title, entry.record.access) for entry in found] == [(title, Access.OPEN)]
        opened = replay.open_capture(last, "https://clocks.example/", "2004", collection="all", reader=ANYONE)
        assert opened.payload.read() == PAGE + b"On line."
        opened.close()


def seen_of(depot: Archive, urn: str) -> object:
    """What must be the same in every depot: files, and the records of all levels."""
    with depot.database.reading() as connection:
        own = catalogue.find_urn(connection, urn)
        levels = catalogue.levels(connection, own)
    staff = Reader(access_point=AccessPoint.STAFF)
    files = sorted(
        (name, hashlib.sha256(data).hexdigest())
        for name, data in delivered(depot, own.key, reader=staff).items()
    )
    names = (
        "level",
        "urn",
        "title",
        "creators",
        "date",
        "part",
        "identifiers",
        "rights",
        "access",
        "languages",
    )
    return files, [[getattr(level, name) for name in names] for level in levels]


def test_restricted_rights_stay_restricted_elsewhere(archive, tmp_path):
    _, own = take(archive, folder_of(tmp_path / "thesis", {"thesis.html": PAGE, "dc.xml": DC}))
    export.export(archive, own.urn, export.PackageForm.UOF, tmp_path / "out.zip")
    setup.create(tmp_path / "b")
    with Archive.open(tmp_path / "b", agent="b") as other:
        there = take(other, tmp_path / "out.zip")[1]
        assert (there.urn, there.rights, there.access) == (own.urn, own.rights, Access.RESTRICTED)
