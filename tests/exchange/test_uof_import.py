"""Objects in UOF that a person imports: files of any kind become a package that is kept, described,
found, shown and exported.
"""

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from exchange_samples import Warc
from lxml import etree
from typer.testing import CliRunner

from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.cli.main import build_app
from webdepot.depot.bundle.submission import SubmissionKind, SubmissionState
from webdepot.exchange import urn
from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.metadata import mab, regbib
from webdepot.exchange.metadata.lmer import FILE, OBJECT
from webdepot.exchange.metadata.regbib import METS
from webdepot.services.access import search
from webdepot.services.access.replay import replay
from webdepot.services.admin import setup
from webdepot.services.catalogue import records
from webdepot.services.depot import export
from webdepot.services.exchange import oai_provider, object_delivery
from webdepot.services.intake import submissions

NAME = urn.mint("urn:nbn:de:example", "diss-2004-17")
PAGE = (
    b"<!doctype html><title>Pendulum clocks</title><p>The escapement of Huygens, with cycloidal cheeks.</p>"
)
THESIS = {
    "content/thesis.html": (PAGE, "text/html", "HTML 4.01"),
    "content/data/readings.csv": (b"t;x\n0;1\n", "text/csv", "CSV"),
}
MAB_THESIS = f"""<m:dmdSec ID="D1"><m:mdWrap MDTYPE="OTHER" OTHERMDTYPE="MABxml"><m:xmlData>
<datensatz xmlns="{mab.MAB}" typ="h" status="n" mabVersion="M2.0"><feld nr="001" ind=" ">TH17</feld>
<feld nr="037" ind="b">eng</feld><feld nr="100" ind=" ">Huygens, Christiaan</feld><feld nr="331" ind=" ">Pendulum clocks</feld>
<feld nr="412" ind=" ">University of Leiden</feld><feld nr="425" ind="a">2004</feld><feld nr="519" ind=" ">Leiden, Univ., Diss., 2004</feld>
<feld nr="552" ind="b">{NAME}</feld></datensatz></m:xmlData></m:mdWrap></m:dmdSec>"""
DC_THESIS = """<m:dmdSec ID="D1"><m:mdWrap MDTYPE="DC"><m:xmlData xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>Pendulum clocks</dc:title><dc:creator>Huygens, Christiaan</dc:creator><dc:type>doctoralThesis</dc:type><dc:date>2004</dc:date>
<dc:language>eng</dc:language></m:xmlData></m:mdWrap></m:dmdSec>"""
MARC_THESIS = """<m:dmdSec ID="D1"><m:mdWrap MDTYPE="MARC"><m:xmlData><record xmlns="http://www.loc.gov/MARC21/slim">
<leader>00000nam a2200000uu 4500</leader>
<datafield tag="100" ind1="1" ind2=" "><subfield code="a">Huygens, Christiaan,</subfield></datafield>
<datafield tag="245" ind1="1" ind2="0"><subfield code="a">Pendulum clocks :</subfield><subfield code="b">a treatise /</subfield></datafield>
<datafield tag="264" ind1=" " ind2="1"><subfield code="b">University of Leiden,</subfield><subfield code="c">2004.</subfield></datafield>
<datafield tag="502" ind1=" " ind2=" "><subfield code="a">Dissertation</subfield></datafield>
</record></m:xmlData></m:mdWrap></m:dmdSec>"""


def mets(files, *, described: str = MAB_THESIS, name: str = NAME, **more: str) -> bytes:
    """`mets.xml` of a UOF, written here and not by the code under test; `more` spoils it."""
    amd = "".join(
        f'<m:techMD ID="T{n}"><m:mdWrap MDTYPE="OTHER" OTHERMDTYPE="lmerFile"><m:xmlData>'
        f'<f:format REGISTRYNAME="LZA-RegBib">{kind}</f:format></m:xmlData></m:mdWrap></m:techMD>'
        for n, (_, _, kind) in enumerate(files.values())
    )
    listed = "".join(
        f'<m:file ID="F{n}" ADMID="T{n}" MIMETYPE="{mime}" CREATED="2004-09-24T10:00:00" SIZE="{len(data)}" CHECKSUMTYPE="SHA-1" '
        f'CHECKSUM="{hashlib.sha1(data).hexdigest()}"><m:FLocat LOCTYPE="URL" x:href="file://./{path}"/></m:file>'
        for n, (path, (data, mime, _)) in enumerate(files.items())
    )
    pointers = "".join(f'<m:fptr FILEID="F{n}"/>' for n in range(len(files)))
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?>{more.get("doctype", "")}<m:mets xmlns:m="{METS}" xmlns:x="http://www.w3.org/1999/xlink" '
        f'xmlns:o="{OBJECT}" xmlns:f="{FILE}" OBJID="internal-1" LABEL="an object"><m:metsHdr CREATEDATE="2004-10-01T00:00:00"/>'
        f'{described}<m:amdSec><m:techMD ID="T"><m:mdWrap MDTYPE="OTHER" OTHERMDTYPE="lmerObject"><m:xmlData>'
        f"<o:persistentIdentifier>{name}</o:persistentIdentifier><o:numberOfFiles>{more.get('count', len(files))}</o:numberOfFiles>"
        f"<o:startFile>F0</o:startFile></m:xmlData></m:mdWrap></m:techMD>{amd}</m:amdSec>"
        f'<m:fileSec><m:fileGrp ADMID="T">{listed}</m:fileGrp></m:fileSec>'
        f'<m:structMap TYPE="ASSET"><m:div TYPE="ASSET" DMDID="D1">{pointers}</m:div></m:structMap></m:mets>'
    )
    return text.replace(*more["swap"].split("|")).encode() if "swap" in more else text.encode()


def pack(path: Path, described: bytes, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("mets.xml", described)
        for name, data in files.items():
            packed.writestr(name, data)
    return path


def bytes_of(files) -> dict[str, bytes]:
    return {name: data for name, (data, _, _) in files.items()}


def thesis(path: Path, **how) -> Path:
    return pack(path, mets(THESIS, **how), bytes_of(THESIS))


def take(archive: Archive, path: Path):
    done = submissions.receive(archive, path, collection="theses")
    assert done.receipt.reasons == ()
    return done


def test_a_thesis_becomes_a_package_that_is_found_shown_and_handed_on(archive, tmp_path):
    done = take(archive, thesis(tmp_path / "thesis.zip"))
    assert (done.receipt.kind, done.package.urn) == (SubmissionKind.UOF, NAME)
    own = records.get(archive, NAME)
    assert (own.level, own.title, own.creators, own.date, own.is_object) == (
        RecordLevel.THESIS,
        "Pendulum clocks",
        ("Huygens, Christiaan",),
        "2004",
        True,
    )
    (hit,) = search.search(archive, "escapement", reader=ANYONE).hits
    assert hit.url == f"{NAME}/thesis.html"
    opened = replay.open_capture(archive, hit.url, "20040924", collection="all", reader=ANYONE)
    assert opened.payload.read() == PAGE
    opened.close()
    found = object_delivery.hand_over(archive, own.key, reader=ANYONE)
    with zipfile.ZipFile(io.BytesIO(b"".join(found.pieces(0, found.layout.size_bytes)))) as packed:
        assert {f"content/{name}": packed.read(name) for name in packed.namelist()} == bytes_of(THESIS)
    asked = [
        ("verb", "GetRecord"),
        ("metadataPrefix", "oai_mets_lmer"),
        ("identifier", f"oai:localhost.localdomain:{own.key}"),
    ]
    root = etree.fromstring(oai_provider.answer(archive, asked, portal_url="http://b.example")).find(
        f".//{{{METS}}}mets"
    )
    assert regbib.check(root) == []
    assert b"Leiden, Univ., Diss., 2004" in etree.tostring(root), "a field that we have no use for goes on"
    again = submissions.receive(archive, thesis(tmp_path / "again.zip"), collection="theses")
    assert (again.is_known, again.package.id) == (True, done.package.id)


def test_out_again_and_into_another_depot(archive, tmp_path):
    take(archive, thesis(tmp_path / "thesis.zip"))
    export.export(archive, NAME, export.PackageForm.UOF, tmp_path / "out.zip")
    with zipfile.ZipFile(tmp_path / "out.zip") as packed:
        assert {name: packed.read(name) for name in packed.namelist() if name != "mets.xml"} == bytes_of(
            THESIS
        )
    setup.create(tmp_path / "elsewhere")
    with Archive.open(tmp_path / "elsewhere", agent="test") as other:
        take(other, tmp_path / "out.zip")
        there, here = (records.get(each, NAME) for each in (other, archive))
        assert (there.level, there.title, there.creators) == (here.level, here.title, here.creators)
        assert search.search(other, "escapement", reader=ANYONE).hits


@pytest.mark.parametrize(
    ("described", "more"), [(DC_THESIS, {}), (MARC_THESIS, {"subtitle": "a treatise"}), ("", None)]
)
def test_other_descriptions_and_no_urn(archive, tmp_path, described, more):
    """Dublin Core, MARCXML, or nothing: the object gets a URN of ours, the same each time, and keeps the
    sender's identifier.
    """
    done = take(archive, thesis(tmp_path / "a.zip", described=described, name="hdl:1887/17"))
    own = records.get(archive, done.package.urn)
    assert own.urn.startswith("urn:nbn:de:0000-uof-")
    assert urn.is_valid(own.urn)
    assert "hdl:1887/17" in own.identifiers
    if more is None:
        assert (own.level, own.title) == (RecordLevel.MONOGRAPH, "an object")
    else:
        assert (own.level, own.title, own.creators, own.date) == (
            RecordLevel.THESIS,
            "Pendulum clocks",
            ("Huygens, Christiaan",),
            "2004",
        )
        assert all(getattr(own, name) == value for name, value in more.items())
    assert submissions.receive(archive, tmp_path / "a.zip", collection="theses").is_known


def test_a_loose_site_is_replayed_at_its_own_addresses_and_containers_may_lie_beside(archive, tmp_path):
    warc = (
        Warc(tmp_path / "s.warc.gz")
        .response("http://www.uhren.example/late", "20040925000000", b"<title>Late</title>")
        .write()
    )
    described = (
        MAB_THESIS.replace('<feld nr="519" ind=" ">Leiden, Univ., Diss., 2004</feld>', "")
        .replace('<feld nr="100"', '<feld nr="052" ind=" ">iws||||ak|||l||</feld><feld nr="100"')
        .replace(
            "</datensatz>",
            '<feld nr="655" ind="e"><uf code="u">http://www.uhren.example/</uf></feld></datensatz>',
        )
    )
    files = {
        "content/index.html": (PAGE, "text/html", "HTML 4.01"),
        "content/s.warc.gz": (warc.read_bytes(), "application/warc", "WARC 1.1"),
    }
    take(archive, pack(tmp_path / "site.zip", mets(files, described=described), bytes_of(files)))
    assert records.get(archive, NAME).level is RecordLevel.SITE
    for address, words in (
        ("http://www.uhren.example/", PAGE),
        ("http://www.uhren.example/late", b"<title>Late</title>"),
    ):
        opened = replay.open_capture(archive, address, "2004", collection="all", reader=ANYONE)
        assert opened.payload.read() == words
        opened.close()


SECOND = (
    '<m:techMD ID="S"><m:mdWrap MDTYPE="OTHER"><m:xmlData><o:persistentIdentifier>urn:x</o:persistentIdentifier>'
    "</m:xmlData></m:mdWrap></m:techMD>"
)
BAD = {
    "missing": (
        {},
        {"content/data/readings.csv": None},
        "content/data/readings.csv is listed but not in the package",
    ),
    "extra": ({}, {"content/more.txt": b"x"}, "content/more.txt is in the package but not listed"),
    "damaged": (
        {},
        {"content/thesis.html": PAGE.replace(b"H", b"J")},
        "thesis.html is damaged: expected SHA-1",
    ),
    "other size": ({}, {"content/thesis.html": PAGE + b" "}, "are listed"),
    "wrong count": ({"count": "3"}, {}, "LMER states 3 files, but mets.xml lists 2"),
    "entities": ({"doctype": '<!DOCTYPE m [<!ENTITY x "boom">]>'}, {}, "declares a document type"),
    "traversing": (
        {"swap": "file://./content/thesis.html|file://./../../etc/passwd"},
        {},
        "which is not a file of the package",
    ),
    "elsewhere": (
        {"swap": "file://./content/thesis.html|http://evil.example/x"},
        {},
        "which is not a file of the package",
    ),
    "two objects": (
        {"swap": '<m:techMD ID="T0">|' + SECOND + '<m:techMD ID="T0">'},
        {},
        "must have one object section of LMER, but has 2",
    ),
    "cut": ({"swap": "</m:mets>|"}, {}, "not well-formed XML"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_not_as_it_says_is_refused_whole(archive, tmp_path, kind):
    how, other, words = BAD[kind]
    files = {name: data for name, data in {**bytes_of(THESIS), **other}.items() if data is not None}
    done = submissions.receive(
        archive, pack(tmp_path / "bad.zip", mets(THESIS, **how), files), collection="theses"
    )
    assert (done.receipt.state, done.package) == (SubmissionState.REFUSED, None)
    assert words in "; ".join(done.receipt.reasons)
    assert (archive.home / done.receipt.place / "bad.zip").exists()
    assert records.list_records(archive) == []


def test_other_files_under_a_known_urn_are_refused(archive, tmp_path):
    take(archive, thesis(tmp_path / "thesis.zip"))
    files = {"content/thesis.html": (PAGE + b"<p>Second edition.", "text/html", "HTML 4.01")}
    bad = submissions.receive(archive, pack(tmp_path / "bad.zip", mets(THESIS), {}), collection="theses")
    assert bad.receipt.state is SubmissionState.REFUSED, "also what is known is looked through"
    done = submissions.receive(
        archive, pack(tmp_path / "other.zip", mets(files), bytes_of(files)), collection="theses"
    )
    assert done.receipt.reasons == (
        f"{NAME} is already in the depot with other files, which are not replaced",
    )


def test_as_a_tar_file(archive, tmp_path):
    with tarfile.open(tmp_path / "thesis.tar.gz", "w:gz") as packed:
        for name, data in {"./mets.xml": mets(THESIS), **bytes_of(THESIS)}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
    take(archive, tmp_path / "thesis.tar.gz")
    assert records.get(archive, NAME).is_object


def test_a_tar_file_that_leads_out(archive, tmp_path):
    with tarfile.open(tmp_path / "bad.tar", "w") as packed:
        for name, kind in (
            ("../evil", tarfile.REGTYPE),
            ("link", tarfile.SYMTYPE),
            ("pipe", tarfile.FIFOTYPE),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            packed.addfile(member)
    reasons = submissions.receive(archive, tmp_path / "bad.tar", collection="theses").receipt.reasons
    assert reasons == (
        "'../evil' is not a path inside the file",
        "link is not a regular file",
        "pipe is not a regular file",
    )
    assert not (archive.home.parent / "evil").exists()


def test_by_the_command_from_a_folder(archive, tmp_path):
    with zipfile.ZipFile(thesis(tmp_path / "thesis.zip")) as packed:
        packed.extractall(tmp_path / "folder")
    done = CliRunner().invoke(
        build_app(), ["--home", str(archive.home), "package", "import", str(tmp_path / "folder"), "--json"]
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["kind"], told["state"]) == ("uof", "taken")
