"""Is an answer of OAI-PMH right? By the schemas where WEBDEPOT_SCHEMAS names a folder with them, and by our
own checks always.

The folder has `driver.xsd` (imports all public schemas) and `lza-regbib.sch`. The schemas of xepicur and of
provenance are no longer public; two small ones of our own are beside this file.
"""

import os
from functools import cache
from pathlib import Path

from lxml import etree, isoschematron

from webdepot.exchange.metadata import regbib
from webdepot.exchange.metadata.regbib import METS
from webdepot.exchange.oai.protocol import OAI

HERE = Path(__file__).parent
NS = {"o": OAI, "m": METS}
VERBS = ("Identify", "ListMetadataFormats", "ListSets", "GetRecord", "ListIdentifiers", "ListRecords")


@cache
def schema() -> etree.XMLSchema | None:
    folder = os.environ.get("WEBDEPOT_SCHEMAS")
    if not folder:
        return None
    driver = f"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
      <xs:include schemaLocation="{Path(folder).absolute() / "driver.xsd"}"/>
      <xs:import namespace="urn:nbn:de:1111-2004033116" schemaLocation="{HERE / "xepicur.xsd"}"/>
      <xs:import namespace="http://www.openarchives.org/OAI/2.0/provenance" schemaLocation="{HERE / "provenance.xsd"}"/>
    </xs:schema>"""
    parser = etree.XMLParser(no_network=True)
    return etree.XMLSchema(etree.fromstring(driver, parser, base_url=str(HERE)))


@cache
def profile() -> isoschematron.Schematron | None:
    folder = os.environ.get("WEBDEPOT_SCHEMAS")
    return (
        isoschematron.Schematron(etree.parse(Path(folder) / "lza-regbib.sch"), store_report=True)
        if folder
        else None
    )


def checked(data: bytes) -> etree._Element:
    """The root of an answer that is right in every way we know."""
    root = etree.fromstring(data)
    assert root.tag == f"{{{OAI}}}OAI-PMH"
    names = [etree.QName(child).localname for child in root]
    assert names[:2] == ["responseDate", "request"]
    assert set(names[2:]) == {"error"} or (len(names) == 3 and names[2] in VERBS), names
    identifiers = list(root.xpath("//@ID | //*[local-name() = 'datensatz']/@id"))
    assert len(identifiers) == len(set(identifiers)), "an XML ID stands twice in one document"
    for record in root.iterfind(".//o:record", NS):
        _check_record(record)
    for document in root.iterfind(".//m:mets", NS):
        _check_mets(document)
    if known := schema():
        known.assertValid(root)
    return root


def _check_record(record: etree._Element) -> None:
    is_deleted = record.find("o:header", NS).get("status") == "deleted"
    assert (record.find("o:metadata", NS) is None) == is_deleted
    assert is_deleted or len(record.find("o:metadata", NS)) == 1


def _check_mets(document: etree._Element) -> None:
    order = [etree.QName(child).localname for child in document]
    assert order == sorted(order, key=("metsHdr", "dmdSec", "amdSec", "fileSec", "structMap").index)
    known = set(document.xpath(".//@ID"))
    for attribute in ("DMDID", "ADMID", "FILEID"):
        pointed = {value for text in document.xpath(f".//@{attribute}") for value in text.split()}
        assert pointed <= known, "libxml2 does not look where IDREF points"
    if (
        document.find("m:fileSec", NS) is None
        and document.find(".//{http://www.ddb.de/LMERobject}name") is not None
    ):
        assert regbib.check(document) == []
        if rules := profile():
            assert rules.validate(etree.fromstring(etree.tostring(document))), rules.validation_report


def errors(root: etree._Element) -> list[str]:
    return [error.get("code") for error in root.iterfind("o:error", NS)]


def headers(root: etree._Element) -> list[tuple[str, bool]]:
    """Identifier, and whether it is deleted."""
    return [
        (each.findtext("o:identifier", None, NS), each.get("status") == "deleted")
        for each in root.iterfind(".//o:header", NS)
    ]


def token(root: etree._Element) -> str | None:
    """The text of the resumption token; None when there is no such element."""
    found = root.find(".//o:resumptionToken", NS)
    return None if found is None else found.text or ""
