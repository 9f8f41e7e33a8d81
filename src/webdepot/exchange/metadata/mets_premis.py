"""`mets_premis`: the record for partners with current standards. METS 1.12 with MARCXML for each level,
PREMIS 3 for object and files, and a list of the files with their addresses in the ZIP at the Transfer-URL.
"""

from collections.abc import Sequence

from lxml import etree

from webdepot.exchange.catalogue import CatalogueRecord
from webdepot.exchange.metadata import marc, markup
from webdepot.exchange.metadata.markup import XSI, add
from webdepot.exchange.metadata.regbib import METS, SCHEMA, XLINK, identifier_of
from webdepot.exchange.object_addresses import ObjectAddresses
from webdepot.exchange.transfer_zip import Transfer, TransferFile
from webdepot.times import to_iso

PREMIS = "http://www.loc.gov/premis/v3"


def to_element(
    levels: Sequence[CatalogueRecord], transfer: Transfer, *, addresses: ObjectAddresses
) -> etree._Element:
    own, prefix = levels[-1], identifier_of(levels[-1].key)
    root = etree.Element(
        f"{{{METS}}}mets", nsmap={"mets": METS, "premis": PREMIS, "xlink": XLINK, "xsi": XSI}
    )
    root.set(f"{{{XSI}}}schemaLocation", f"{METS} {SCHEMA}")
    root.set("OBJID", own.urn)
    root.set("LABEL", markup.plain(f"{own.title}, {own.part}" if own.part else own.title))
    header = add(root, f"{{{METS}}}metsHdr", CREATEDATE=to_iso(own.changed_at))
    add(
        add(header, f"{{{METS}}}agent", ROLE="ARCHIVIST", TYPE="ORGANIZATION"),
        f"{{{METS}}}name",
        addresses.institution or "Webdepot",
    )
    for number in range(len(levels)):
        section = add(root, f"{{{METS}}}dmdSec", ID=f"{prefix}_DMD{number}")
        inside = add(
            add(section, f"{{{METS}}}mdWrap", MDTYPE="MARC", MIMETYPE="text/xml"), f"{{{METS}}}xmlData"
        )
        inside.append(
            marc.to_element(
                levels[: number + 1], transfer if number == len(levels) - 1 else None, addresses=addresses
            )
        )
    amd = add(root, f"{{{METS}}}amdSec", ID=f"{prefix}_AMD")
    _entity(_premis(amd, f"{prefix}_P", "PREMIS:OBJECT"), own, transfer, addresses)
    for number, file in enumerate(transfer.files, start=1):
        _file(_premis(amd, f"{prefix}_P{number:05d}", "PREMIS:OBJECT"), own, file)
    group = add(
        add(root, f"{{{METS}}}fileSec"), f"{{{METS}}}fileGrp", USE=transfer.form.value, ADMID=f"{prefix}_P"
    )
    for number, file in enumerate(transfer.files, start=1):
        _listed(group, file, number, prefix, addresses.transfer(own.key, transfer.form))
    place = add(root, f"{{{METS}}}structMap", TYPE="LOGICAL")
    for number, record in enumerate(levels):
        place = add(
            place,
            f"{{{METS}}}div",
            TYPE=record.level.value,
            LABEL=record.title,
            DMDID=f"{prefix}_DMD{number}",
            CONTENTIDS=record.urn,
        )
    for number in range(1, len(transfer.files) + 1):
        add(place, f"{{{METS}}}fptr", FILEID=f"{prefix}_F{number:05d}")
    return root


def _premis(amd: etree._Element, identifier: str, kind: str) -> etree._Element:
    section = add(amd, f"{{{METS}}}techMD", ID=identifier)
    inside = add(add(section, f"{{{METS}}}mdWrap", MDTYPE=kind, MIMETYPE="text/xml"), f"{{{METS}}}xmlData")
    return add(inside, f"{{{PREMIS}}}object")


def _entity(
    element: etree._Element, own: CatalogueRecord, transfer: Transfer, addresses: ObjectAddresses
) -> None:
    element.set(f"{{{XSI}}}type", "premis:representation")
    for kind, value in (("URN", own.urn), ("URL", addresses.transfer(own.key, transfer.form))):
        _identified(element, kind, value)
    significant = add(element, f"{{{PREMIS}}}significantProperties")
    add(significant, f"{{{PREMIS}}}significantPropertiesType", "transfer object, SHA-256 and bytes")
    add(significant, f"{{{PREMIS}}}significantPropertiesValue", f"{transfer.sha256} {transfer.size_bytes}")
    add(element, f"{{{PREMIS}}}originalName", own.title)


def _file(element: etree._Element, own: CatalogueRecord, file: TransferFile) -> None:
    element.set(f"{{{XSI}}}type", "premis:file")
    _identified(element, "local", f"{own.urn}#{file.member}")
    facts = add(element, f"{{{PREMIS}}}objectCharacteristics")
    fixity = add(facts, f"{{{PREMIS}}}fixity")
    add(fixity, f"{{{PREMIS}}}messageDigestAlgorithm", "SHA-256")
    add(fixity, f"{{{PREMIS}}}messageDigest", file.sha256)
    add(facts, f"{{{PREMIS}}}size", str(file.size_bytes))
    kind = add(facts, f"{{{PREMIS}}}format")
    add(add(kind, f"{{{PREMIS}}}formatDesignation"), f"{{{PREMIS}}}formatName", file.format)
    if file.puid:
        registry = add(kind, f"{{{PREMIS}}}formatRegistry")
        add(registry, f"{{{PREMIS}}}formatRegistryName", "PRONOM")
        add(registry, f"{{{PREMIS}}}formatRegistryKey", file.puid)
    add(element, f"{{{PREMIS}}}originalName", file.member)


def _identified(element: etree._Element, kind: str, value: str) -> None:
    identity = add(element, f"{{{PREMIS}}}objectIdentifier")
    add(identity, f"{{{PREMIS}}}objectIdentifierType", kind)
    add(identity, f"{{{PREMIS}}}objectIdentifierValue", value)


def _listed(group: etree._Element, file: TransferFile, number: int, prefix: str, zip_url: str) -> None:
    element = add(
        group,
        f"{{{METS}}}file",
        ID=f"{prefix}_F{number:05d}",
        MIMETYPE=file.mime,
        SIZE=str(file.size_bytes),
        CREATED=file.at,
        CHECKSUM=file.sha256,
        CHECKSUMTYPE="SHA-256",
        ADMID=f"{prefix}_P{number:05d}",
    )
    place = add(element, f"{{{METS}}}FLocat", LOCTYPE="URL")
    place.set(f"{{{XLINK}}}href", f"{zip_url}#{markup.plain(file.member)}")
