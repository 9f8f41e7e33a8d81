"""METS of a package: `metadata/mets.xml`, a table of contents for other systems.

https://www.loc.gov/standards/mets/ 1.12.1. Dublin Core is embedded; events are in premis.xml, which is
linked; files are listed with size and SHA-256: one entry for each file of the package, and none for the
content of containers.
"""

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from lxml import etree

from webdepot.depot.premis import FileEntry, plain
from webdepot.text import untrusted_xml
from webdepot.times import to_iso

METS = "http://www.loc.gov/METS/"
XLINK = "http://www.w3.org/1999/xlink"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
_LOCATION = f"{METS} http://www.loc.gov/standards/mets/mets.xsd"
LONGEST_BYTES = 16 << 20


def to_xml(
    identifier: str,
    title: str,
    files: Sequence[FileEntry],
    *,
    created: datetime,
    agent: str,
    dublin_core: bytes = b"",
    premis: str = "premis.xml",
) -> bytes:
    """The METS document; `premis` is the address of the PREMIS file relative to it."""
    root = etree.Element(f"{{{METS}}}mets", nsmap={None: METS, "xlink": XLINK, "xsi": XSI})
    root.set(f"{{{XSI}}}schemaLocation", _LOCATION)
    root.set("OBJID", identifier)
    root.set("LABEL", plain(title))
    root.set("TYPE", "harvest of a web site")
    header = _add(root, "metsHdr", CREATEDATE=to_iso(created))
    _add(
        _add(header, "agent", ROLE="CREATOR", TYPE="OTHER", OTHERTYPE="software or person"), "name"
    ).text = plain(agent)
    described = _embed(root, dublin_core)
    provenance = _add(_add(root, "amdSec", ID="amd"), "digiprovMD", ID="premis")
    link = _add(provenance, "mdRef", LOCTYPE="URL", MDTYPE="PREMIS", MIMETYPE="application/xml")
    link.set(f"{{{XLINK}}}href", premis)
    _file_section(root, files)
    _structure(root, title, files, described)
    data: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return data


def _embed(root: etree._Element, dublin_core: bytes) -> bool:
    """Embed the Dublin Core; False if there is none that can be read."""
    source = dublin_core[:LONGEST_BYTES]
    try:
        element = untrusted_xml.parse(source, remove_blank_text=True) if source else None
    except etree.XMLSyntaxError:
        element = None
    if element is None:
        return False
    wrap = _add(_add(root, "dmdSec", ID="dc"), "mdWrap", MDTYPE="DC", MIMETYPE="text/xml")
    _add(wrap, "xmlData").append(element)
    return True


def _file_section(root: etree._Element, files: Sequence[FileEntry]) -> None:
    if not files:  # the schema forbids an empty section
        return
    section = _add(root, "fileSec")
    for use in dict.fromkeys(file.use for file in files):
        group = _add(section, "fileGrp", USE=use)
        for number, file in enumerate(files):
            if file.use != use:
                continue
            entry = _add(
                group,
                "file",
                ID=f"file-{number}",
                MIMETYPE=file.mime,
                SIZE=str(file.size_bytes),
                CHECKSUM=file.sha256,
                CHECKSUMTYPE="SHA-256",
                ADMID="premis",
            )
            place = _add(entry, "FLocat", LOCTYPE="URL")
            place.set(f"{{{XLINK}}}href", "../" + quote(file.path))


def _structure(root: etree._Element, title: str, files: Sequence[FileEntry], described: bool) -> None:
    whole = _add(_add(root, "structMap", TYPE="physical"), "div", LABEL=plain(title), TYPE="package")
    if described:
        whole.set("DMDID", "dc")
    for number, file in enumerate(files):
        part = _add(whole, "div", TYPE=file.use, LABEL=plain(file.path))
        _add(part, "fptr", FILEID=f"file-{number}")


def _add(parent: etree._Element, name: str, **attributes: str) -> etree._Element:
    return etree.SubElement(parent, f"{{{METS}}}{name}", attributes)
