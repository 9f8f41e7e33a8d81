"""METS with a list of files, as senders other than partners write it: the files, and where they are.

Packages of E-ARK follow the Common Specification for Information Packages (CSIP 2,
https://earkcsip.dilcis.eu/): `METS.xml` at the top and in each representation; `csip_rules` checks them.
Other METS need only list its files.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from lxml import etree

from webdepot.errors import InputError
from webdepot.exchange.metadata.markup import local
from webdepot.exchange.metadata.regbib import METS, XLINK

NAME = "METS.xml"
_PROFILE = re.compile(r"e-?ark|dilcis", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file as METS lists it."""

    path: str
    """From the folder of the METS file; it cannot lead out of the package."""
    use: str
    section: str
    """`file`, or the section with the reference: `dmdSec`, `digiprovMD`, `rightsMD` and others."""
    size: str
    checksum: str
    checksum_type: str
    mime: str


def is_package(root: etree._Element) -> bool:
    """Whether a METS document says that it is an E-ARK package."""
    return is_profile(root.get("PROFILE", "")) or bool(csip_maps(root))


def is_profile(text: str) -> bool:
    """Whether this is the address of a METS profile of E-ARK."""
    return _PROFILE.search(text[:500]) is not None


def csip_maps(root: etree._Element) -> list[etree._Element]:
    """The structural maps of CSIP; there must be exactly one."""
    return [
        each for each in root.iterfind(f"{{{METS}}}structMap") if each.get("LABEL", "").startswith("CSIP")
    ]


def iter_files(root: etree._Element, folder: str = "") -> Iterator[ListedFile]:
    """The files of the file section, and those that sections refer to, of a METS file in this folder of the
    package. InputError if a path is unsafe. Entries without an address are left out.
    """
    for element in root.iterfind(f"{{{METS}}}fileSec//{{{METS}}}file"):
        place = element.find(f"{{{METS}}}FLocat")
        group = element.getparent()
        yield from _listed(element, place, group.get("USE", "") if group is not None else "", folder)
    for reference in root.iter(f"{{{METS}}}mdRef"):
        yield from _listed(reference, reference, "Metadata", folder)


def _listed(
    element: etree._Element, place: etree._Element | None, use: str, folder: str
) -> Iterator[ListedFile]:
    href = place.get(f"{{{XLINK}}}href", "").strip() if place is not None else ""
    if not href:
        return
    parent = element.getparent()
    is_file = local(element) == "file"
    yield ListedFile(
        path=path_in(folder, href),
        use=use,
        section="file" if is_file or parent is None else local(parent),
        size=element.get("SIZE", ""),
        checksum=element.get("CHECKSUM", ""),
        checksum_type=element.get("CHECKSUMTYPE", ""),
        mime=element.get("MIMETYPE", ""),
    )


def path_in(folder: str, href: str) -> str:
    """The path in the package that an address in a METS file of this folder means: `file://./content/a.pdf`,
    also with backslashes; InputError if it is outside the package.
    """
    match = re.fullmatch(r"(?:file:(?://)?)?+(.+)", href)
    plain = unquote(match[1]).replace("\\", "/") if match else ""
    steps: list[str] = folder.split("/") if folder else []
    is_bad = not plain or plain.startswith("/") or ":" in plain.partition("/")[0] or "\0" in plain
    for step in plain.split("/"):
        if step == ".." and not steps:
            is_bad = True
        elif step == "..":
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    if is_bad or not steps:
        raise InputError(f"METS lists {href[:200]!r}, which is not a file of the package.")
    return "/".join(steps)
