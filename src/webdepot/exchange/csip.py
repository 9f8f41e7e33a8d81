"""METS with a list of files, as senders other than partners write it, and the rules of E-ARK packages.

The Common Specification for Information Packages (CSIP 2, https://earkcsip.dilcis.eu/): `METS.xml` at the top
and in each representation. Checked are the requirements of level MUST about header, files and structure that
a receiver depends on; the number of each is in its message. Other METS need only list its files.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from webdepot.errors import InputError
from webdepot.exchange import uof
from webdepot.exchange.metadata.markup import local
from webdepot.exchange.metadata.regbib import METS, XLINK

_PROFILE = "earkcsip"
_FILE_RULES = (
    ("ID", "CSIP67"),
    ("MIMETYPE", "CSIP68"),
    ("SIZE", "CSIP69"),
    ("CREATED", "CSIP70"),
    ("CHECKSUM", "CSIP71"),
    ("CHECKSUMTYPE", "CSIP72"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file as METS lists it."""

    path: str
    """Relative to the METS file."""
    use: str
    size: str
    checksum: str
    checksum_type: str
    mime: str
    created: str


def is_package(root: etree._Element) -> bool:
    """Whether a METS document says that it is an E-ARK package."""
    profile = root.get("PROFILE", "").lower()
    return _PROFILE in profile or "e-ark" in profile or "eark" in profile or _csip_map(root) is not None


def iter_files(root: etree._Element) -> Iterator[ListedFile]:
    """The files of the file section, and those that sections refer to; InputError if a path is unsafe."""
    for element in root.iterfind(f"{{{METS}}}fileSec//{{{METS}}}file"):
        place = element.find(f"{{{METS}}}FLocat")
        group = element.getparent()
        yield _listed(element, place, group.get("USE", "") if group is not None else "")
    for reference in root.iter(f"{{{METS}}}mdRef"):
        yield _listed(reference, reference, "Metadata")


def check(root: etree._Element, where: str) -> Iterator[str]:
    """One message for each requirement of CSIP that a METS file of an E-ARK package does not meet."""
    for name, code in (("OBJID", "CSIP1"), ("TYPE", "CSIP2"), ("PROFILE", "CSIP6")):
        if not root.get(name, "").strip():
            yield f"{code}: {where} has no {name}"
    header = root.find(f"{{{METS}}}metsHdr")
    if header is None:
        yield f"CSIP117: {where} has no metsHdr"
    else:
        yield from _check_header(header, where)
    section = root.find(f"{{{METS}}}fileSec")
    if section is not None:
        yield from _check_files(section, where)
    yield from _check_structure(root, where)


def _check_header(header: etree._Element, where: str) -> Iterator[str]:
    if not header.get("CREATEDATE", "").strip():
        yield f"CSIP7: the header of {where} has no CREATEDATE"
    if not _own(header, "OAISPACKAGETYPE"):
        yield f"CSIP9: the header of {where} has no OAISPACKAGETYPE"
    agents = [
        agent for agent in header.iterfind(f"{{{METS}}}agent") if agent.get("ROLE", "").upper() == "CREATOR"
    ]
    if not agents:
        yield f"CSIP11: the header of {where} has no agent with the role CREATOR"
    elif not any((agent.findtext(f"{{{METS}}}name") or "").strip() for agent in agents):
        yield f"CSIP14: the creator in the header of {where} has no name"


def _check_files(section: etree._Element, where: str) -> Iterator[str]:
    if not section.get("ID", "").strip():
        yield f"CSIP59: the file section of {where} has no ID"
    for group in section.iterfind(f"{{{METS}}}fileGrp"):
        for name, code in (("USE", "CSIP64"), ("ID", "CSIP65")):
            if not group.get(name, "").strip():
                yield f"{code}: a file group of {where} has no {name}"
        files = group.findall(f".//{{{METS}}}file")
        if not files:
            yield f"CSIP66: a file group of {where} has no file"
        for file in files:
            name_of = file.get("ID", "")[:100] or "a file"
            for name, code in _FILE_RULES:
                if not file.get(name, "").strip():
                    yield f"{code}: {name_of} in {where} has no {name}"
            place = file.find(f"{{{METS}}}FLocat")
            if place is None:
                yield f"CSIP76: {name_of} in {where} has no FLocat"
                continue
            if place.get("LOCTYPE") != "URL":
                yield f"CSIP77: the FLocat of {name_of} in {where} is not of the LOCTYPE URL"
            if place.get(f"{{{XLINK}}}type") != "simple":
                yield f"CSIP78: the FLocat of {name_of} in {where} is not of the type simple"
            if not place.get(f"{{{XLINK}}}href", "").strip():
                yield f"CSIP79: the FLocat of {name_of} in {where} has no address"


def _check_structure(root: etree._Element, where: str) -> Iterator[str]:
    if root.find(f"{{{METS}}}structMap") is None:
        yield f"CSIP80: {where} has no structural map"
        return
    found = _csip_map(root)
    if found is None:
        yield f"CSIP82: {where} has no structural map with the label CSIP"
        return
    if found.get("TYPE") != "PHYSICAL":
        yield f"CSIP81: the structural map of {where} is not of the type PHYSICAL"
    if not found.get("ID", "").strip():
        yield f"CSIP83: the structural map of {where} has no ID"
    top = found.find(f"{{{METS}}}div")
    if top is None:
        yield f"CSIP84: the structural map of {where} has no division"
        return
    for name, code in (("ID", "CSIP85"), ("LABEL", "CSIP86")):
        if not top.get(name, "").strip():
            yield f"{code}: the main division of {where} has no {name}"
    known = {element.get("ID") for element in root.iter() if element.get("ID")}
    for pointer in found.iter(f"{{{METS}}}fptr"):
        if pointer.get("FILEID") not in known:
            target = pointer.get("FILEID", "")[:100]
            yield f"the structural map of {where} points to {target!r}, which is not there"


def _csip_map(root: etree._Element) -> etree._Element | None:
    return next(
        (each for each in root.iterfind(f"{{{METS}}}structMap") if each.get("LABEL", "").startswith("CSIP")),
        None,
    )


def _own(element: etree._Element, name: str) -> str:
    """An attribute of any namespace."""
    return next((str(value) for key, value in element.items() if key.rpartition("}")[2] == name), "")


def _listed(element: etree._Element, place: etree._Element | None, use: str) -> ListedFile:
    href = place.get(f"{{{XLINK}}}href", "") if place is not None else ""
    if place is None or not href:
        raise InputError(f"METS lists {element.get('ID', local(element))[:100]!r} without an address.")
    return ListedFile(
        path=uof.path_of(href),
        use=use,
        size=element.get("SIZE", ""),
        checksum=element.get("CHECKSUM", ""),
        checksum_type=element.get("CHECKSUMTYPE", ""),
        mime=element.get("MIMETYPE", ""),
        created=element.get("CREATED", ""),
    )
