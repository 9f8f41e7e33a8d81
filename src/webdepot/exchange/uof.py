"""UOF, the Universal Object Format of the kopal project: one ZIP with `mets.xml` at the top and the files in
`content/`.

METS profile 00000011: exactly one `fileGrp`, every file with size, date, checksum and an address that begins
with `file://./`; LMER in `techMD`, one for the object (persistent identifier) and one for each file (only the
format, the rest is in METS); one structural map ASSET that lists all files and all descriptions. A second map
shows the levels.

Reading is tolerant where the profile allows variation (descriptions of any kind) and strict about
completeness (the files).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from urllib.parse import quote, unquote

from lxml import etree

from webdepot.errors import InputError
from webdepot.exchange import urn
from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel
from webdepot.exchange.metadata import descriptions, lmer, mab, markup, regbib
from webdepot.exchange.metadata.lmer import LmerFile, LmerObject
from webdepot.exchange.metadata.markup import XSI, add
from webdepot.exchange.metadata.regbib import METS, SCHEMA, XLINK, DeliveredLevel, DeliveredObject
from webdepot.exchange.object_addresses import ObjectAddresses
from webdepot.exchange.transfer_zip import Transfer
from webdepot.times import from_iso, to_iso

NAME = "mets.xml"
CONTENT = "content"
PROFILE = "http://www.loc.gov/standards/mets/profiles/00000011.xml"


def to_xml(
    levels: Sequence[CatalogueRecord],
    transfer: Transfer,
    *,
    identifier: str,
    addresses: ObjectAddresses,
    created: datetime,
) -> bytes:
    """`mets.xml` of an exported object; `identifier` is its identifier in the depot."""
    own = levels[-1]
    spaces = {"mets": METS, "xlink": XLINK, "xsi": XSI, "lmerObject": lmer.OBJECT, "lmerFile": lmer.FILE}
    root = etree.Element(f"{{{METS}}}mets", nsmap=spaces)
    root.set(f"{{{XSI}}}schemaLocation", f"{METS} {SCHEMA}")
    root.set("OBJID", identifier)
    root.set("LABEL", markup.plain(f"{own.title}, {own.part}" if own.part else own.title))
    root.set("PROFILE", PROFILE)
    header = add(root, f"{{{METS}}}metsHdr", CREATEDATE=to_iso(created))
    add(
        add(header, f"{{{METS}}}agent", ROLE="CREATOR", TYPE="ORGANIZATION"),
        f"{{{METS}}}name",
        addresses.institution or "Webdepot",
    )
    for number, record in enumerate(levels):
        section = regbib.wrapping(root, "dmdSec", f"DMD{number}", "MABxml")
        section.append(
            mab.to_element(
                record,
                above=levels[number - 1] if number else None,
                identifier=f"MAB{number}",
                addresses=addresses,
            )
        )
    _technical(root, own, transfer)
    _files(root, transfer)
    asset = add(root, f"{{{METS}}}structMap", TYPE="ASSET")
    every = add(
        asset, f"{{{METS}}}div", TYPE="ASSET", DMDID=" ".join(f"DMD{number}" for number in range(len(levels)))
    )
    place = add(root, f"{{{METS}}}structMap", TYPE="LOGICAL")
    for number, record in enumerate(levels):
        place = add(
            place,
            f"{{{METS}}}div",
            TYPE=regbib.division(record.level),
            DMDID=f"DMD{number}",
            CONTENTIDS=record.urn,
        )
    for number in range(1, len(transfer.files) + 1):
        for parent in (every, place):
            add(parent, f"{{{METS}}}fptr", FILEID=f"F{number:05d}")
    data: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return data


def _technical(root: etree._Element, own: CatalogueRecord, transfer: Transfer) -> None:
    amd = add(root, f"{{{METS}}}amdSec", ID="AMD")
    start = next(
        number for number, file in enumerate(transfer.files, start=1) if file.member == transfer.start
    )
    facts = LmerObject(
        name=own.title,
        persistent_identifier=own.urn,
        object_version="1",
        master_creation_date=min(file.at for file in transfer.files),
        number_of_files=str(len(transfer.files)),
        start_file=f"F{start:05d}",
    )
    lmer.write_object(regbib.wrapping(amd, "techMD", "TM", "lmerObject"), facts)
    for number, file in enumerate(transfer.files, start=1):
        described = lmer.of_file(file, "")
        section = regbib.wrapping(amd, "techMD", f"TM{number:05d}", "lmerFile")
        lmer.write_file(section, LmerFile(format=described.format, registry=described.registry))


def _files(root: etree._Element, transfer: Transfer) -> None:
    group = add(add(root, f"{{{METS}}}fileSec"), f"{{{METS}}}fileGrp", ADMID="TM")
    for number, file in enumerate(transfer.files, start=1):
        element = add(
            group,
            f"{{{METS}}}file",
            ID=f"F{number:05d}",
            MIMETYPE=file.mime,
            CREATED=file.at,
            SIZE=str(file.size_bytes),
            CHECKSUM=file.sha256,
            CHECKSUMTYPE="SHA-256",
            ADMID=f"TM{number:05d}",
        )
        add(element, f"{{{METS}}}FLocat", LOCTYPE="URL").set(
            f"{{{XLINK}}}href", f"file://./{CONTENT}/{quote(file.member)}"
        )


def read(data: bytes) -> DeliveredObject:
    """The object that a `mets.xml` describes; InputError, with the reason, if it is not UOF.

    Files are those of METS; facts that only LMER has (format) come from the file's own section. Levels may be
    described in MABxml, MARCXML or Dublin Core, or not at all, and may have no URN: the importer assigns one.
    """
    root = markup.parse(data, what=NAME)
    if root.tag != f"{{{METS}}}mets":
        raise InputError(f"{NAME} is not METS: its root element is {str(root.tag)[:200]}.")
    inside = {
        section.get("ID", ""): content
        for section in root.iterfind(f"{{{METS}}}amdSec/{{{METS}}}techMD")
        if (content := section.find(f"{{{METS}}}mdWrap/{{{METS}}}xmlData")) is not None
    }
    objects = [lmer.read_object(content) for content in inside.values() if lmer.is_object(content)]
    if len(objects) != 1:
        raise InputError(f"{NAME} must have one object section of LMER, but has {len(objects)}.")
    files = tuple(_read_files(root, inside))
    if not files:
        raise InputError(f"{NAME} lists no files.")
    stated = objects[0].number_of_files
    if stated and stated != str(len(files)):
        raise InputError(f"LMER states {stated[:20]} files, but {NAME} lists {len(files)}.")
    facts = replace(objects[0], master_creation_date=_created(root, objects[0], files))
    levels = _read_levels(root, facts)
    return DeliveredObject(
        levels=levels, object=facts, files=files, foreign=(), is_web=levels[0].level is RecordLevel.SITE
    )


def _read_files(root: etree._Element, inside: Mapping[str, etree._Element]) -> Iterator[LmerFile]:
    for element in root.iterfind(f"{{{METS}}}fileSec//{{{METS}}}file"):
        place = element.find(f"{{{METS}}}FLocat")
        path = path_of(place.get(f"{{{XLINK}}}href", "") if place is not None else "")
        own = next(
            (
                inside[name]
                for name in element.get("ADMID", "").split()
                if name in inside and lmer.is_file(inside[name])
            ),
            None,
        )
        described = lmer.read_file(own) if own is not None else LmerFile()
        folder, _, name = path.rpartition("/")
        yield replace(
            described,
            file_identifier=element.get("ID", ""),
            path=f"/{folder}/" if folder else "/",
            name=name,
            size=element.get("SIZE", "") or described.size,
            file_date_time=element.get("CREATED", "") or described.file_date_time,
            file_checksum=element.get("CHECKSUM", "") or described.file_checksum,
            file_checksum_type=element.get("CHECKSUMTYPE", "") or described.file_checksum_type,
            mime_type=element.get("MIMETYPE", "") or described.mime_type,
        )


def path_of(href: str) -> str:
    """The path in the package of an address like `file://./content/a.pdf`; InputError if it is outside the
    package.
    """
    match = re.fullmatch(r"(?:file:(?://)?)?(?:\./)*+(.+)", href)
    path = unquote(match[1]) if match else ""
    if (
        not path
        or path.startswith("/")
        or "\\" in path
        or ":" in path.partition("/")[0]
        or {"..", ".", ""} & set(path.split("/"))
    ):
        raise InputError(f"{NAME} lists {href[:200]!r}, which is not a file of the package.")
    return path


def _created(root: etree._Element, facts: LmerObject, files: Sequence[LmerFile]) -> str:
    """When the object was created: from LMER, else from its newest file or the header."""
    header = root.find(f"{{{METS}}}metsHdr")
    newest = max((file.file_date_time for file in files), default="")
    for text in (
        facts.master_creation_date,
        newest,
        header.get("CREATEDATE", "") if header is not None else "",
    ):
        with suppress(ValueError):
            return to_iso(from_iso(text))
    raise InputError(f"{NAME} does not say when the object was created.")


def _read_levels(root: etree._Element, facts: LmerObject) -> tuple[DeliveredLevel, ...]:
    """All levels that are in MABxml; else one level, from another description or from the object's name. The
    lowest level gets the object's URN.
    """
    nothing = DeliveredLevel(level=RecordLevel.MONOGRAPH, fields={}, xml="", kind="")
    levels = list(descriptions.levels_of(root)) or [nothing]
    if not levels[-1].fields.get("urn") and urn.is_nbn(facts.persistent_identifier):
        levels[-1].fields["urn"] = facts.persistent_identifier
    if not levels[-1].fields.get("title"):
        levels[-1].fields["title"] = facts.name or root.get("LABEL", "") or facts.persistent_identifier
    return tuple(levels)
