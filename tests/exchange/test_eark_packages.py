"""E-ARK packages: what the rules of CSIP refuse, and what they only warn about."""

import hashlib
from pathlib import Path

import pytest
from object_samples import (
    OPEN,
    PAGE,
    delivered,
    folder_of,
    kept,
    take,
)

from webdepot.depot.bundle.submission import Submission, SubmissionKind
from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.incoming import RefusedObject
from webdepot.services.intake import loose_objects

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
