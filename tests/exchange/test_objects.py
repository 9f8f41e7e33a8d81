"""Objects that are not web sites: theses, articles, images and folders, in bags, OCFL objects, ZIP and tar files
or loose, become packages that are described, found, shown and kept whole.
"""

import hashlib
import itertools
import json
import shutil
from pathlib import Path

import bagit
import ocfl
import pytest
from object_samples import (
    DC,
    DSPACE,
    JATS,
    MARC,
    MODS,
    NOTES,
    PAGE,
    delivered,
    folder_of,
    kept,
    take,
)
from typer.testing import CliRunner

from webdepot.access import cdx
from webdepot.access.cdx import Dialect
from webdepot.access.policy import ANYONE, AccessPoint, Reader
from webdepot.cli.main import build_app
from webdepot.depot.bundle.submission import SubmissionKind, SubmissionState
from webdepot.errors import InputError, NotPermitted
from webdepot.exchange import transfer_zip
from webdepot.exchange.catalogue import Access, RecordLevel
from webdepot.services.access import gate, search
from webdepot.services.access.cdx import cdx_server
from webdepot.services.access.replay import replay
from webdepot.services.catalogue import records
from webdepot.services.harvest import profiles, runner
from webdepot.services.intake import submissions
from webdepot.url import key


def test_a_thesis_in_a_bag_is_described_found_shown_kept_and_handed_on(archive, tmp_path):
    folder = folder_of(tmp_path / "thesis-17", {"thesis.html": PAGE, "data/notes.txt": NOTES, "dc.xml": DC})
    bagit.make_bag(str(folder), {"External-Identifier": "hdl:1887/17"}, checksums=["sha256"])
    done, own = take(archive, folder)
    assert (done.receipt.kind, done.warnings) == (SubmissionKind.BAG, ())
    assert (own.level, own.title, own.creators, own.date, own.access) == (
        RecordLevel.THESIS,
        "Pendulum clocks",
        ("Huygens, Christiaan",),
        "2004",
        Access.RESTRICTED,
    )
    assert "hdl:1887/17" in own.identifiers
    staff = Reader.staff("a")
    (hit,) = search.search(archive, "escapement", reader=staff).hits
    assert hit.url == f"{own.urn}/thesis.html"
    opened = replay.open_capture(archive, hit.url, "2004", collection="all", reader=staff)
    assert (opened.payload.read(), opened.capture.timestamp) == (PAGE, "20040924100000")
    opened.close()
    files = kept(archive, done.package.id)
    beginning = "metadata/submission/"
    around = {name.removeprefix(beginning) for name in files if name.startswith(beginning)}
    assert around == {
        "bagit.txt",
        "bag-info.txt",
        "manifest-sha256.txt",
        "tagmanifest-sha256.txt",
        "data/dc.xml",
    }
    assert DC.encode() in files.values()
    with archive.database.reading() as connection:
        stated = transfer_zip.find(connection, own.key).files
    assert {file.name: (file.puid, file.format) for file in stated} == {
        "thesis.html": ("fmt/471", "HTML 5"),
        "notes.txt": ("x-fmt/111", "PLAIN"),
    }
    with archive.database.transaction() as connection, pytest.raises(InputError, match="no web address"):
        runner.begin_of_target(connection, archive, own.target, profiles.options_of(archive, ""))
    zipped = Path(shutil.make_archive(str(tmp_path / "again"), "zip", folder))
    assert submissions.receive(archive, zipped, collection="theses").is_known


def test_restricted_rights_close_an_object_at_every_surface_for_the_public(archive, tmp_path):
    """Until its record says that it is open. The only file of the other one is at its web address."""
    own = take(archive, folder_of(tmp_path / "two", {"t.html": PAGE, "n.txt": NOTES, "dc.xml": DC}))[1]
    address = "https://repository.example/17.html"
    single = DC.replace("</oai_dc:dc>", f"<dc:identifier>{address}</dc:identifier></oai_dc:dc>")
    one = take(
        archive, folder_of(tmp_path / "one", {"o.html": PAGE.replace(b"Clocks", b"One"), "dc.xml": single})
    )[1]
    places = {f"{own.urn}/t.html": own, f"{own.urn}/n.txt": own, address: one}
    points = [Reader(access_point=point) for point in AccessPoint]
    for moment in ("restricted", "open", "restricted"):
        for record in (own, one):
            records.restrict(archive, record.key, moment)
        for reader, (url, _) in itertools.product(points, places.items()):
            is_open = moment == "open" or reader.access_point is not AccessPoint.PUBLIC
            (capture,) = archive.captures.scan(key(url), f"{key(url)} ")
            assert gate.is_open(archive, capture, reader) == is_open
            found = {hit.url for hit in search.search(archive, "escapement OR Friesland", reader=reader).hits}
            assert (url in found) == is_open
            if url == address:
                query = cdx.parse([("url", url)], Dialect.PYWB)
                assert bool(list(cdx_server.find(archive, query, reader=reader).captures)) == is_open
            if is_open:
                replay.open_capture(archive, url, "2004", collection="all", reader=reader).close()
            else:
                with pytest.raises(NotPermitted):
                    replay.open_capture(archive, url, "2004", collection="all", reader=reader)


def test_the_text_of_an_article_in_jats_is_found(archive, tmp_path):
    own = take(archive, folder_of(tmp_path / "v", {"verge.xml": JATS}))[1]
    (hit,) = search.search(archive, '"crown wheel"', reader=ANYONE).hits
    assert (hit.url, hit.title) == (f"{own.urn}/verge.xml", "On the verge")
    assert not search.search(archive, "Fromanteel", reader=ANYONE).hits, "front matter is in the catalogue"


def test_an_object_in_ocfl_keeps_its_identifier_and_its_older_versions(archive, tmp_path):
    folder_of(tmp_path / "source" / "v1", {"a.txt": b"first words"})
    folder_of(tmp_path / "source" / "v2", {"a.txt": NOTES, "b.txt": b"more"})
    ocfl.Object(identifier="ark:/12345/x").build(
        srcdir=str(tmp_path / "source"), versions_metadata={}, objdir=str(tmp_path / "object")
    )
    done, own = take(archive, tmp_path / "object")
    assert (done.receipt.kind, own.title) == (SubmissionKind.OCFL, "object")
    assert "ark:/12345/x" in own.identifiers
    assert delivered(archive, own.key) == {"a.txt": NOTES, "b.txt": b"more"}
    assert b"first words" in kept(archive, done.package.id).values()
    (tmp_path / "object" / "v1" / "content" / "a.txt").write_bytes(b"other words")
    bad = submissions.receive(archive, tmp_path / "object", collection="theses").receipt
    assert bad.state is SubmissionState.REFUSED
    assert bad.reasons[0].startswith("E092: v1/content/a.txt is damaged: expected sha512 ")


def test_a_valid_ocfl_object_without_content_is_declined_as_nothing_to_keep(archive, tmp_path):
    version = {"created": "2019-01-01T02:03:04Z", "message": "", "state": {}, "user": {"name": "A"}}
    inventory = json.dumps(
        {
            "id": "ark:/12345/y",
            "type": "https://ocfl.io/1.1/spec/#inventory",
            "digestAlgorithm": "sha512",
            "head": "v1",
            "manifest": {},
            "versions": {"v1": version},
        }
    ).encode()
    sums = {"inventory.json.sha512": f"{hashlib.sha512(inventory).hexdigest()} inventory.json\n"}
    files = {"inventory.json": inventory, **sums}
    files |= {f"v1/{name}": data for name, data in files.items()}
    folder = folder_of(tmp_path / "object", {"0=ocfl_object_1.1": "ocfl_object_1.1\n", **files})
    receipt = submissions.receive(archive, folder, collection="theses").receipt
    reason = "the object is valid, but its newest version has no files: there is nothing to keep"
    assert (receipt.state, receipt.reasons) == (SubmissionState.REFUSED, (reason,))


def test_a_storage_root_with_several_objects(archive, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    for number in (1, 2):
        folder_of(tmp_path / f"s{number}" / "v1", {"a.txt": f"text {number}".encode()})
        ocfl.Object(identifier=f"ark:/12345/{number}").build(
            srcdir=str(tmp_path / f"s{number}"), versions_metadata={}, objdir=str(root / f"o{number}")
        )
    (root / "0=ocfl_1.1").write_text("ocfl_1.1\n")
    for path in (root, Path(shutil.make_archive(str(tmp_path / "root"), "zip", root))):
        done = list(submissions.receive_each(archive, path, collection="theses"))
        urns = {each.package.urn for each in done}
        assert [each.is_known for each in done] == [path != root] * 2
        assert {delivered(archive, records.get(archive, urn).key)["a.txt"] for urn in urns} == {
            b"text 1",
            b"text 2",
        }
    one = submissions.receive(archive, root, collection="theses").receipt
    assert one.reasons == (
        "it contains 2 OCFL objects; a submission is one. Submit the folder of each object",
    )


def test_articles_of_one_issue_share_their_journal(archive, tmp_path):
    """One file with MARCXML beside it, and one that is JATS: both are below the same journal and issue."""
    folder = folder_of(tmp_path / "in", {"cheeks.html": PAGE, "cheeks.marc.xml": MARC})
    _, first = take(archive, folder / "cheeks.html")
    _, second = take(archive, folder_of(tmp_path / "verge", {"verge.xml": JATS}) / "verge.xml")
    assert (first.level, first.title, second.level, second.title) == (
        RecordLevel.ARTICLE,
        "On cheeks",
        RecordLevel.ARTICLE,
        "On the verge",
    )
    assert first.parent == second.parent
    issue = records.get(archive, first.parent)
    journal = records.get(archive, issue.parent)
    assert (issue.level, issue.part) == (RecordLevel.ISSUE, "12 (2004), 3")
    assert (journal.level, journal.title, journal.identifiers) == (
        RecordLevel.JOURNAL,
        "Horology",
        ("issn:1234-5679",),
    )
    assert second.date == "2004-03-05"
    assert delivered(archive, second.key) == {"verge.xml": JATS.encode()}


def test_an_article_is_found_by_its_title_after_the_works(archive, tmp_path):
    folder = folder_of(tmp_path / "in", {"cheeks.html": PAGE, "cheeks.marc.xml": MARC})
    _, article = take(archive, folder / "cheeks.html")

    def shown(text: str, *, reader: Reader = ANYONE) -> list[str]:
        return [entry.record.title for entry in search.search(archive, text, reader=reader).catalogue]

    assert shown("cheeks") == ["On cheeks"]
    assert shown("horology") == ["Horology"]
    assert records.list_records(archive, words="cheeks") == [], "the list of works has only works"
    listed = {subject for subject, _ in records.list_subjects(archive, limit=100)}
    assert not listed & set(article.keywords)
    journal = records.get(archive, records.get(archive, article.parent).parent)
    records.write(archive, journal.key, {"title": "Zytglogge cheeks"})
    assert shown("cheeks") == ["Zytglogge cheeks", "On cheeks"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("dublin_core.xml", DSPACE, (RecordLevel.THESIS, "Pendulum clocks", "2004", ())),
        ("metadata/mods.xml", MODS, (RecordLevel.THESIS, "The pendulum", "2004-05", ("A printer",))),
        ("readme.xml", "<other><title>x</title></other>", (RecordLevel.MONOGRAPH, "box", "", ())),
    ],
)
def test_other_descriptions_in_a_zip_with_a_folder_around_everything(archive, tmp_path, name, text, expected):
    folder_of(
        tmp_path / "in" / "box", {"scan.png": b"\x89PNG\r\n\x1a\n not a picture", "n.txt": NOTES, name: text}
    )
    done, own = take(archive, Path(shutil.make_archive(str(tmp_path / "box"), "zip", tmp_path / "in")))
    assert (own.level, own.title, own.date, own.contributors) == expected
    names = {"scan.png", "n.txt"} | ({name} if expected[0] is RecordLevel.MONOGRAPH else set())
    assert set(delivered(archive, own.key)) == names
    assert done.package.harvest.startswith("20040924100000-"), "the time that the ZIP file says"


BAD = {
    "entities": ({"a.txt": b"x", "dc.xml": '<!DOCTYPE d [<!ENTITY x "boom">]><d>&x;</d>'}, "declares a document type"),
    "not XML": ({"a.txt": b"x", "marc.xml": "<record>"}, "not well-formed XML"),
    "an empty folder": ({}, "it contains no files: there is nothing to keep"),
    "nothing": ({"__MACOSX/a.txt": b"x"}, "no files besides those of an operating system"),
    "not a file name": ({"a\\b.txt": b"x"}, "is not a usable file name"),
    "a bag without its declaration": ({"data/a.txt": b"x", "manifest-md5.txt": b""}, "bagit.txt is missing"),
    "an object without its declaration": (
        {"inventory.json": b"{}", "inventory.json.sha512": b"x", "v1/content/a": b"x"},
        "E003: the object has no declarations",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_refused_whole_and_lies_in_the_quarantine(archive, tmp_path, case):
    files, words = BAD[case]
    folder = folder_of(tmp_path / "bad", files)
    receipt = submissions.receive(archive, folder, collection="theses").receipt
    assert receipt.state is SubmissionState.REFUSED
    assert words in "; ".join(receipt.reasons)
    lying = archive.home / receipt.place / "bad"
    assert {path.relative_to(lying).as_posix() for path in lying.rglob("*") if path.is_file()} == set(files)
    assert records.list_records(archive) == []


def test_by_the_command_with_warnings(archive, tmp_path):
    folder = folder_of(tmp_path / "disc", {"a.txt": NOTES})
    bagit.make_bag(str(folder), checksums=["md5"])
    listed = folder / "manifest-md5.txt"
    listed.write_text(listed.read_text().replace("  data", " *data"))
    (folder / "tagmanifest-md5.txt").unlink()
    done = CliRunner().invoke(
        build_app(), ["--home", str(archive.home), "package", "import", str(folder), "--json"]
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["kind"], told["state"]) == ("bag", "taken")
    assert told["warnings"] == ["manifest-md5.txt, line 1 has * before the path, as md5sum writes it"]
    assert search.search(archive, "Friesland", reader=ANYONE).hits
