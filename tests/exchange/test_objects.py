"""Objects that are not web sites: theses, articles, images and folders, in bags, OCFL objects, ZIP and tar files
or loose, become packages that are described, found, shown and kept whole.
"""

import hashlib
import io
import itertools
import json
import os
import re
import shutil
import wave
import zipfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import bagit
import ocfl
import pytest
from exchange_samples import portal
from PIL import Image
from typer.testing import CliRunner

import small_warcs
from webdepot.access import cdx
from webdepot.access.cdx import Dialect
from webdepot.access.policy import ANYONE, AccessPoint, Reader
from webdepot.archive import Archive
from webdepot.cli.main import build_app
from webdepot.depot import package
from webdepot.depot.bundle.submission import Submission, SubmissionKind, SubmissionState
from webdepot.errors import InputError, NotPermitted
from webdepot.exchange import catalogue, transfer_zip
from webdepot.exchange.catalogue import Access, RecordLevel
from webdepot.exchange.incoming import RefusedObject
from webdepot.services import pipeline
from webdepot.services.access import gate, search
from webdepot.services.access.cdx import cdx_server
from webdepot.services.access.replay import replay
from webdepot.services.admin import setup
from webdepot.services.catalogue import records
from webdepot.services.depot import export
from webdepot.services.exchange import (
    oai_harvest,
    object_delivery,
    partner_admin,
    partner_ingest,
)
from webdepot.services.harvest import profiles, runner
from webdepot.services.intake import loose_objects, submissions
from webdepot.url import key

PAGE = b"<!doctype html><title>Clocks</title><p>The escapement of Huygens, with cycloidal cheeks.</p>"
NOTES = b"Tower clocks of Friesland, a list."
WRITTEN = datetime(2004, 9, 24, 10, tzinfo=UTC)
DC = """<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>Pendulum clocks</dc:title><dc:creator>Huygens, Christiaan</dc:creator><dc:type>doctoralThesis</dc:type>
<dc:date>2004</dc:date><dc:rights>info:eu-repo/semantics/restrictedAccess</dc:rights></oai_dc:dc>"""
OPEN = DC.replace("info:eu-repo/semantics/restrictedAccess", "CC BY 4.0")
DSPACE = """<dublin_core schema="dc"><dcvalue element="title" qualifier="none">Pendulum clocks</dcvalue>
<dcvalue element="contributor" qualifier="author">Huygens, Christiaan</dcvalue>
<dcvalue element="date" qualifier="available">2020-01-01</dcvalue><dcvalue element="date" qualifier="issued">2004</dcvalue>
<dcvalue element="type" qualifier="none">Thesis or dissertation</dcvalue></dublin_core>"""
MARC = """<collection xmlns="http://www.loc.gov/MARC21/slim"><record><leader>00000naa a2200000uu 4500</leader>
<datafield tag="100" ind1="1" ind2=" "><subfield code="a">Huygens, Christiaan,</subfield></datafield>
<datafield tag="245" ind1="1" ind2="0"><subfield code="a">On cheeks /</subfield></datafield>
<datafield tag="773" ind1="0" ind2=" "><subfield code="t">Horology.</subfield><subfield code="x">1234-5679</subfield>
<subfield code="g">Vol. 12, no. 3 (2004), p. 1-9</subfield></datafield></record></collection>"""
MODS = """<mods xmlns="http://www.loc.gov/mods/v3"><titleInfo><nonSort>The</nonSort><title>pendulum</title></titleInfo>
<name type="personal"><namePart type="family">Huygens</namePart><namePart type="given">Christiaan</namePart>
<role><roleTerm type="code">aut</roleTerm></role></name><name><namePart>A printer</namePart><role><roleTerm>prt</roleTerm></role></name>
<genre>thesis</genre><originInfo><publisher>Leiden</publisher><dateIssued>2004-05</dateIssued></originInfo>
<language><languageTerm type="code">eng</languageTerm></language><identifier type="doi">10.1000/1</identifier>
<accessCondition>CC BY</accessCondition></mods>"""
JATS = """<?xml version="1.0"?><!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Publishing DTD v1.2//EN" "JATS.dtd">
<article xml:lang="en"><front><journal-meta><journal-title-group><journal-title>Horology</journal-title></journal-title-group>
<issn>1234-5679</issn></journal-meta><article-meta><article-id pub-id-type="doi">10.1000/2</article-id>
<title-group><article-title>On the <italic>verge</italic></article-title></title-group><contrib-group>
<contrib contrib-type="author"><name><surname>Fromanteel</surname><given-names>Ahasuerus</given-names></name></contrib></contrib-group>
<pub-date><day>5</day><month>3</month><year>2004</year></pub-date><volume>12</volume><issue>3</issue></article-meta></front>
<body><p>The verge and its crown wheel.</p></body></article>"""


def folder_of(path: Path, files: dict[str, bytes | str]) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        os.utime(path / name, (WRITTEN.timestamp(), WRITTEN.timestamp()))
    return path


def take(archive: Archive, path: Path):
    done = submissions.receive(archive, path, collection="theses")
    assert done.receipt.reasons == ()
    assert done.package is not None
    return done, records.get(archive, done.package.urn)


def delivered(archive: Archive, key: str, *, reader: Reader = ANYONE) -> dict[str, bytes]:
    """The files that a partner fetches."""
    found = object_delivery.hand_over(archive, key, reader=reader)
    with zipfile.ZipFile(io.BytesIO(b"".join(found.pieces(0, found.layout.size_bytes)))) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def kept(archive: Archive, identifier: str) -> dict[str, bytes]:
    facts = package.read(archive.store, identifier)
    files = {}
    for name in facts.inventory.files():
        with package.open_file(archive.store, facts, name) as stream:
            files[name] = stream.read()
    return files


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


LIST = """filename,dc.title,dc.creator,dc.creator,dc.date,dc.type,journal,issn,volume,issue
a/thesis.html,Pendulum clocks,"Huygens, Christiaan","Coster, Salomon",2004,doctoralThesis,,,,
12-3/verge.xml|12-3/data|12-3/object.csv,On the verge,,,2004,article,Horology,1234-5679,12,3
"""


def test_a_list_of_objects(archive, tmp_path):
    folder = folder_of(
        tmp_path,
        {
            "a/thesis.html": PAGE,
            "12-3/verge.xml": JATS,
            "12-3/data/t.csv": b"t;x\n",
            "12-3/object.csv": b"its own table",
            "list.csv": LIST,
        },
    )
    done = list(submissions.receive_each(archive, folder / "list.csv", collection="theses"))
    thesis, article = (records.get(archive, each.package.urn) for each in done)
    assert (thesis.level, thesis.creators) == (RecordLevel.THESIS, ("Huygens, Christiaan", "Coster, Salomon"))
    assert delivered(archive, thesis.key) == {"thesis.html": PAGE}
    assert (article.level, records.get(archive, article.parent).part) == (RecordLevel.ARTICLE, "12 (2004), 3")
    assert delivered(archive, article.key) == {
        "verge.xml": JATS.encode(),
        "data/t.csv": b"t;x\n",
        "object.csv": b"its own table",
    }
    assert (folder / "12-3/object.csv").read_bytes() == b"its own table"  # files are linked, not copied
    assert b"On the verge,,,2004" in kept(archive, done[1].package.id)["metadata/submission/object.csv"]
    again = submissions.receive_each(archive, folder / "list.csv", collection="theses")
    assert [each.is_known for each in again] == [True, True]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("absent.pdf,Title", "list.csv, line 2: there is no file absent.pdf"),
        ("../secret,Title", "line 2: '../secret' is not a path below the folder of the list"),
        ("link.txt,Title", "line 2: link.txt is a symbolic link"),
        ("a.txt,", "line 2: there is no title"),
        (",Title", "line 2: there is no file"),
        ("a.txt,Title,more", "line 2: there are 3 values for 2 columns"),
        ('"a.txt,Title', "is not CSV in UTF-8"),
        ("", "list.csv lists no objects"),
    ],
)
def test_a_wrong_list_is_refused_before_its_first_object(archive, tmp_path, row, words):
    folder = folder_of(tmp_path / "in", {"a.txt": NOTES, "list.csv": f"filename,title\n{row}\n"})
    (folder / "link.txt").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match=re.escape(words)):
        list(submissions.receive_each(archive, folder / "list.csv", collection="theses"))
    assert records.list_records(archive) == []


METS_FILE = '<file ID="F{n}" MIMETYPE="{mime}" SIZE="{size}" CREATED="2020-01-01T00:00:00" CHECKSUM="{sum}" CHECKSUMTYPE="SHA-256"><FLocat LOCTYPE="URL" x:type="simple" x:href="{href}"/></file>'


def csip(files: dict[str, bytes], **swap: str) -> str:
    """`METS.xml` of an E-ARK package with these files."""
    listed = "".join(
        METS_FILE.format(
            n=n, mime="text/html", size=len(data), sum=hashlib.sha256(data).hexdigest(), href=name
        )
        for n, (name, data) in enumerate(files.items())
    )
    dc = OPEN.encode()
    text = (
        '<mets xmlns="http://www.loc.gov/METS/" xmlns:x="http://www.w3.org/1999/xlink" xmlns:csip="https://DILCIS.eu/XML/METS/CSIPExtensionMETS" '
        'OBJID="ark:/1/eark" TYPE="Text" PROFILE="https://earkcsip.dilcis.eu/profile/E-ARK-CSIP.xml">'
        '<metsHdr CREATEDATE="2020-01-01T00:00:00" csip:OAISPACKAGETYPE="SIP"><agent ROLE="CREATOR" TYPE="OTHER" OTHERTYPE="SOFTWARE"><name>n</name><note csip:NOTETYPE="SOFTWARE VERSION">1</note></agent></metsHdr>'
        f'<dmdSec ID="D" CREATED="2020-01-01T00:00:00"><mdRef LOCTYPE="URL" MDTYPE="DC" MIMETYPE="application/xml" CREATED="2020-01-01T00:00:00" x:type="simple" x:href="metadata/descriptive/dc.xml" SIZE="{len(dc)}" CHECKSUM="{hashlib.sha256(dc).hexdigest()}" CHECKSUMTYPE="SHA-256"/></dmdSec>'
        f'<fileSec ID="S"><fileGrp USE="Representations/rep1" ID="G">{listed}</fileGrp></fileSec>'
        '<structMap TYPE="PHYSICAL" LABEL="CSIP" ID="M"><div ID="V" LABEL="ark:/1/eark"><div ID="N" LABEL="Metadata" DMDID="D"/><div ID="R" LABEL="Representations"><fptr FILEID="G"/></div></div></structMap></mets>'
    )
    return text.replace(swap["old"], swap["new"]) if swap else text


EARK = {"representations/rep1/data/thesis.html": PAGE}


def eark(path: Path, **swap: str) -> Path:
    return folder_of(
        path,
        {
            "METS.xml": csip(EARK, **swap),
            "metadata/descriptive/dc.xml": OPEN,
            "schemas/mets.xsd": b"<x/>",
            **EARK,
        },
    )


def test_an_e_ark_package(archive, tmp_path):
    done, own = take(archive, eark(tmp_path / "sip"))
    assert (own.level, own.title) == (RecordLevel.THESIS, "Pendulum clocks")
    assert "ark:/1/eark" in own.identifiers
    assert delivered(archive, own.key) == EARK
    names = kept(archive, done.package.id)
    for name in ("METS.xml", "metadata/descriptive/dc.xml", "schemas/mets.xsd"):
        assert f"metadata/submission/{name}" in names


BAD_CSIP = {
    "OBJID": ('OBJID="ark:/1/eark"', "", "CSIP1: METS.xml has no OBJID"),
    "header": ("metsHdr", "other", "CSIP117: METS.xml has no metsHdr"),
    "date": ('CREATEDATE="2020-01-01T00:00:00"', "", "CSIP7: "),
    "kind": ("csip:OAISPACKAGETYPE", "KIND", "CSIP9: "),
    "agent": ("CREATOR", "OTHER", "CSIP11: "),
    "size": (f'SIZE="{len(PAGE)}" CREATED', "CREATED", "CSIP69: the file 'F0' of METS.xml has no SIZE"),
    "other size": (f'SIZE="{len(PAGE)}" CREATED', 'SIZE="1" CREATED', "but 1 are listed"),
    "checksum": (hashlib.sha256(PAGE).hexdigest(), "00", "thesis.html is damaged: expected SHA-256 00"),
    "address": ("representations/rep1/data/thesis.html", "../../etc/passwd", "is not a file of the package"),
    "absent": ("data/thesis.html", "data/other.html", "data/other.html is listed but not in the package"),
    "map": ('LABEL="CSIP"', "", "CSIP80, CSIP82: "),
    "program": ('TYPE="OTHER" OTHERTYPE="SOFTWARE"', 'TYPE="INDIVIDUAL"', "CSIP12: "),
    "version": ("SOFTWARE VERSION", "IDENTIFICATIONCODE", "CSIP16: "),
    "section": ('<dmdSec ID="D" CREATED="2020-01-01T00:00:00">', '<dmdSec ID="D">', "CSIP19: "),
    "locator": ('mdRef LOCTYPE="URL"', 'mdRef LOCTYPE="OTHER"', "CSIP22: "),
    "metadata": (f'SIZE="{len(OPEN)}"', 'SIZE="1"', "CSIP27: metadata/descriptive/dc.xml has"),
    "groups": ('LABEL="Metadata"', 'LABEL="Data"', "CSIP88, CSIP90: "),
    "no section": ('DMDID="D"', 'DMDID="D F0"', "CSIP92: the division Metadata of METS.xml refers to 'F0'"),
    "SIP": (
        'E-ARK-CSIP.xml"><metsHdr CREATEDATE="2020-01-01T00:00:00" csip:OAISPACKAGETYPE="SIP"',
        'E-ARK-SIP.xml"><metsHdr CREATEDATE="2020-01-01T00:00:00" csip:OAISPACKAGETYPE="AIP"',
        "SIP4: ",
    ),
    "type": ('TYPE="Text"', 'TYPE="Other"', "CSIP2: METS.xml has the TYPE Other, but no OTHERTYPE"),
    "pointer": ('FILEID="G"', 'FILEID="H"', "points to 'H', which does not exist"),
}


@pytest.mark.parametrize("case", BAD_CSIP)
def test_an_e_ark_package_that_is_wrong_is_refused(tmp_path, case):
    old, new, words = BAD_CSIP[case]
    folder = eark(tmp_path / "sip", old=old, new=new)
    with pytest.raises(RefusedObject) as refused:
        loose_objects.read(Submission(path=folder, kind=SubmissionKind.FOLDER, root=folder))
    assert words in "; ".join(refused.value.reasons)


WARNED_CSIP = {
    "label": ('LABEL="ark:/1/eark"', "", "CSIP86: the main division of METS.xml has no LABEL"),
    "described": (' DMDID="D"', "", "CSIP92: the division Metadata of METS.xml does not refer to 'D'"),
    "no pointer": ('<fptr FILEID="G"/>', "", "CSIP104, CSIP119, CSIP108, CSIP109: the structural map"),
    "media": ('MIMETYPE="text/html"', 'MIMETYPE="HTML"', "CSIP68: the MIMETYPE of the file"),
    "empty address": (
        'x:href="metadata/descriptive/dc.xml"',
        'x:href=""',
        "CSIP24: the href of the dmdSec 'D'",
    ),
}
"""Rules that the newest version of CSIP relaxed: SHOULD instead of MUST, or a recommendation."""


@pytest.mark.parametrize("case", WARNED_CSIP)
def test_an_e_ark_package_that_breaks_a_rule_of_level_should_is_accepted(tmp_path, case):
    old, new, words = WARNED_CSIP[case]
    folder = eark(tmp_path / "sip", old=old, new=new)
    read = loose_objects.read(Submission(path=folder, kind=SubmissionKind.FOLDER, root=folder))
    assert words in "; ".join(read.warnings)


def test_content_of_an_e_ark_package_may_be_in_folders_of_other_names(archive, tmp_path):
    """The folder `representations` is of level SHOULD (CSIPSTR9)."""
    own, other = "representations/rep1/data/thesis.html", "content/thesis.html"
    folder = eark(tmp_path / "sip", old=own, new=other)
    (folder / "content").mkdir()
    (folder / own).rename(folder / other)
    (folder / "METS.xml").write_text(
        (folder / "METS.xml").read_text().replace('"Representations/rep1"', '"Representations"')
    )
    done, own_record = take(archive, folder)
    assert delivered(archive, own_record.key) == {other: PAGE}
    assert any("CSIPSTR9" in each for each in done.warnings)


def test_an_e_ark_package_of_windows_is_taken_in_with_warnings(archive, tmp_path):
    """Backslashes, another case of a name, a schema of another size, paths from inside a representation."""
    folder = eark(tmp_path / "sip")
    schema = METS_FILE.format(n=9, mime="text/xml", size=1, sum="00", href="schemas\\METS.xsd")
    inner = METS_FILE.format(
        n=1, mime="text/html", size=len(PAGE), sum="", href="data\\thesis.html"
    ) + schema.replace("schemas", "..\\..\\schemas")
    mets = (folder / "METS.xml").read_text()
    (folder / "METS.xml").write_text(
        mets.replace("data/thesis.html", "data\\thesis.html")
        .replace("</fileGrp>", f"</fileGrp><fileGrp>{schema}</fileGrp>")
        .replace("<fileGrp>", '<fileGrp ID="H" USE="Schemas">')
    )
    (folder / "representations/rep1/METS.xml").write_text(
        f'<mets xmlns="http://www.loc.gov/METS/" xmlns:x="http://www.w3.org/1999/xlink"><fileSec><fileGrp>{inner}</fileGrp></fileSec></mets>'
    )
    done, own = take(archive, folder)
    assert delivered(archive, own.key) == EARK
    warnings = "; ".join(done.warnings)
    for words in (
        "CSIP69: schemas/METS.xsd has 4 bytes, but 1 are listed",
        "CSIP1: representations/rep1/METS.xml has no OBJID",
    ):
        assert words in warnings


def test_folders_of_an_e_ark_package_without_mets_are_refused(tmp_path):
    folder = eark(tmp_path / "sip")
    (folder / "METS.xml").unlink()
    with pytest.raises(RefusedObject, match="CSIPSTR4"):
        loose_objects.read(Submission(path=folder, kind=SubmissionKind.FOLDER, root=folder))


def picture(colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(file, "PNG")
    return file.getvalue()


def sound() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(8000)
        writer.writeframes(b"\0\1" * 800)
    return file.getvalue()


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
