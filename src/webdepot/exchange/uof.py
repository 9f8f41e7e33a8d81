"""UOF, the Universal Object Format of the kopal project: one ZIP with `mets.xml` at its top and the files below `content/`.

METS profile 00000011: exactly one `fileGrp`, every file with size, date and checksum and an address that begins with `file://./`; LMER in
`techMD`, one for the object (persistent identifier) and one for each file (format only, the rest is METS's own); one structural map ASSET
that lists all files and all descriptions. A second map shows the levels.
"""

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from lxml import etree

from webdepot.errors import InputError
from webdepot.exchange import lmer, mab, markup, regbib
from webdepot.exchange.addresses import Addresses
from webdepot.exchange.catalogue import Record
from webdepot.exchange.lmer import LmerFile, LmerObject
from webdepot.exchange.markup import XSI, add
from webdepot.exchange.regbib import METS, SCHEMA, XLINK, DeliveredLevel
from webdepot.exchange.transfer import Transfer
from webdepot.times import to_iso

NAME = "mets.xml"
CONTENT = "content"
PROFILE = "http://www.loc.gov/standards/mets/profiles/00000011.xml"
_LONGEST_BYTES = 64 << 20


def to_xml(levels: Sequence[Record], transfer: Transfer, *, identifier: str, addresses: Addresses, created: datetime) -> bytes:
    """`mets.xml` of an object that leaves the depot; `identifier` is what it is called there."""
    own = levels[-1]
    spaces = {"mets": METS, "xlink": XLINK, "xsi": XSI, "lmerObject": lmer.OBJECT, "lmerFile": lmer.FILE}
    root = etree.Element(f"{{{METS}}}mets", nsmap=spaces)
    root.set(f"{{{XSI}}}schemaLocation", f"{METS} {SCHEMA}")
    root.set("OBJID", identifier)
    root.set("LABEL", markup.plain(f"{own.title}, {own.part}" if own.part else own.title))
    root.set("PROFILE", PROFILE)
    header = add(root, f"{{{METS}}}metsHdr", CREATEDATE=to_iso(created))
    add(add(header, f"{{{METS}}}agent", ROLE="CREATOR", TYPE="ORGANIZATION"), f"{{{METS}}}name", addresses.institution or "Webdepot")
    for number, record in enumerate(levels):
        section = regbib.wrapping(root, "dmdSec", f"DMD{number}", "MABxml")
        section.append(mab.to_element(record, above=levels[number - 1] if number else None, identifier=f"MAB{number}", addresses=addresses))
    _technical(root, own, transfer)
    _files(root, transfer)
    asset = add(root, f"{{{METS}}}structMap", TYPE="ASSET")
    every = add(asset, f"{{{METS}}}div", TYPE="ASSET", DMDID=" ".join(f"DMD{number}" for number in range(len(levels))))
    place = add(root, f"{{{METS}}}structMap", TYPE="LOGICAL")
    for number, record in enumerate(levels):
        place = add(place, f"{{{METS}}}div", TYPE=regbib.division(record.level), DMDID=f"DMD{number}", CONTENTIDS=record.urn)
    for number in range(1, len(transfer.files) + 1):
        for parent in (every, place):
            add(parent, f"{{{METS}}}fptr", FILEID=f"F{number:05d}")
    data: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return data


def _technical(root: etree._Element, own: Record, transfer: Transfer) -> None:
    amd = add(root, f"{{{METS}}}amdSec", ID="AMD")
    start = next(number for number, file in enumerate(transfer.files, start=1) if file.member == transfer.start)
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
        told = lmer.of_file(file, "")
        section = regbib.wrapping(amd, "techMD", f"TM{number:05d}", "lmerFile")
        lmer.write_file(section, LmerFile(format=told.format, registry=told.registry))


def _files(root: etree._Element, transfer: Transfer) -> None:
    group = add(add(root, f"{{{METS}}}fileSec"), f"{{{METS}}}fileGrp", ADMID="TM")
    for number, file in enumerate(transfer.files, start=1):
        made = add(
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
        add(made, f"{{{METS}}}FLocat", LOCTYPE="URL").set(f"{{{XLINK}}}href", f"file://./{CONTENT}/{quote(file.member)}")


def read_levels(data: bytes) -> tuple[DeliveredLevel, ...]:
    """The levels that a `mets.xml` describes in MABxml, each with a URN; empty when it is of another kind."""
    try:
        root = markup.parse(data[:_LONGEST_BYTES], what=NAME)
    except InputError:
        return ()
    if root.tag != f"{{{METS}}}mets":
        return ()
    levels = regbib.levels_of(root)
    return levels if levels and all(level.fields.get("urn") for level in levels) else ()
