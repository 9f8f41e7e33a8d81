"""METS by the LZA-RegBib profile, the record of `oai_mets_lmer`: one MABxml record for each level, LMER for
the object and each file.

The rules P1 to P21 of the profile (Altenhöner and Steinke, 2005), as far as a document can show them:
everything inline, one `amdSec` with only `techMD`, no `fileSec`, no `structLink`, no `behaviorSec`; a
`structMap` whose FILEIDs are LMER's file identifiers, which are the IDs of their `techMD` (METS requires an
XML ID as the target). One OAI response contains many records, so every ID begins with the key of its record.

`read` returns everything in the document; `check` returns the breaches of the profile, one line each.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from lxml import etree

from webdepot.errors import InputError
from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel
from webdepot.exchange.metadata import lmer, mab, markup
from webdepot.exchange.metadata.lmer import LmerFile, LmerObject, Version
from webdepot.exchange.metadata.markup import XSI, add
from webdepot.exchange.object_addresses import ObjectAddresses
from webdepot.exchange.transfer_zip import Transfer
from webdepot.times import from_iso, to_iso

METS = "http://www.loc.gov/METS/"
SCHEMA = "http://www.loc.gov/standards/mets/mets.xsd"
XLINK = "http://www.w3.org/1999/xlink"
FOREIGN_SECTION = "techMD"
CAPTURE = "capture"
"""Division of one file from the web: its CONTENTIDS is the original address, and the file's date is the time
when it was fetched.
"""
_IN_ADDRESSES = "%:/?#[]@!$&'()*+,;=~"
_DIVISIONS = {
    RecordLevel.SITE: "website",
    RecordLevel.SLICE: "timeslice",
    RecordLevel.JOURNAL: "journal",
    RecordLevel.ISSUE: "issue",
    RecordLevel.ARTICLE: "article",
    RecordLevel.MONOGRAPH: "monograph",
    RecordLevel.THESIS: "thesis",
}
_LEVELS = {name: level for level, name in _DIVISIONS.items()} | {
    "dissertation": RecordLevel.THESIS,
    "slice": RecordLevel.SLICE,
    "site": RecordLevel.SITE,
}
MOST_FILES = 1_000_000
_THESIS_NOTE = "519"
"""Field of MAB that only theses have: where and when the degree was awarded."""


def identifier_of(key: str) -> str:
    """A key as the beginning of an XML ID, which must not begin with a digit."""
    return "R-" + re.sub(r"[^A-Za-z0-9._-]", "_", key)


def to_element(
    levels: Sequence[CatalogueRecord],
    transfer: Transfer,
    *,
    addresses: ObjectAddresses,
    version: Version = Version.NEW,
) -> etree._Element:
    """The record of an object: the last of these levels, with all levels above it."""
    own, prefix = levels[-1], identifier_of(levels[-1].key)
    title = f"{own.title}, {own.part}" if own.part else own.title
    spaces = {"mets": METS, "xlink": XLINK, "xsi": XSI, None: mab.MAB}
    spaces |= (
        {"lmerObject": lmer.OBJECT, "lmerFile": lmer.FILE}
        if version is Version.NEW
        else {"lmer": lmer.ONE_SCHEMA}
    )
    root = etree.Element(f"{{{METS}}}mets", nsmap=spaces)
    root.set(f"{{{XSI}}}schemaLocation", f"{METS} {SCHEMA}")
    root.set("OBJID", own.urn)
    root.set(
        "TYPE",
        f"{_DIVISIONS[levels[0].level]}-{_DIVISIONS[own.level]}"
        if len(levels) > 1
        else _DIVISIONS[own.level],
    )
    root.set("LABEL", markup.plain(title))
    header = add(root, f"{{{METS}}}metsHdr", CREATEDATE=to_iso(own.changed_at), RECORDSTATUS="PRODUCTION")
    add(
        add(header, f"{{{METS}}}agent", ROLE="ARCHIVIST", TYPE="ORGANIZATION"),
        f"{{{METS}}}name",
        addresses.institution or "Webdepot",
    )
    for number, record in enumerate(levels):
        above = levels[number - 1] if number else None
        section = wrapping(root, "dmdSec", f"{prefix}_DMD{number}", "MABxml")
        section.append(
            mab.to_element(record, above=above, identifier=f"{prefix}_MAB{number}", addresses=addresses)
        )
    _technical(root, levels, transfer, title, addresses, version)
    _structure(root, levels, transfer, prefix)
    return root


def _technical(
    root: etree._Element,
    levels: Sequence[CatalogueRecord],
    transfer: Transfer,
    title: str,
    addresses: ObjectAddresses,
    version: Version,
) -> None:
    own, prefix = levels[-1], identifier_of(levels[-1].key)
    amd = add(root, f"{{{METS}}}amdSec", ID=f"{prefix}_AMD")
    identifiers = {
        file.member: f"{prefix}_F{number:05d}" for number, file in enumerate(transfer.files, start=1)
    }
    facts = LmerObject(
        name=title,
        persistent_identifier=own.urn,
        group_identifier=levels[-2].urn if len(levels) > 1 else "",
        object_version="1",
        transfer_url=addresses.transfer(own.key, transfer.form),
        transfer_format="ZIP",
        transfer_checksum=transfer.sha256,
        transfer_checksum_type="SHA-256",
        master_creation_date=min(file.at for file in transfer.files),
        metadata_creation_date=to_iso(own.changed_at),
        metadata_record_creator=addresses.institution or "Webdepot",
        number_of_files=str(len(transfer.files)),
        start_file=identifiers[transfer.start],
    )
    lmer.write_object(wrapping(amd, "techMD", f"{prefix}_TM", "lmerObject"), facts, version)
    for file in transfer.files:
        section = wrapping(amd, "techMD", identifiers[file.member], "lmerFile")
        lmer.write_file(section, lmer.of_file(file, identifiers[file.member], version), version)
    for number, xml in enumerate(each["xml"] for each in own.foreign if each.get("kind") == FOREIGN_SECTION):
        section = markup.parse(xml.encode(), what="a section of a partner")
        section.set("ID", f"{prefix}_X{number:03d}")
        amd.append(section)


def _structure(
    root: etree._Element, levels: Sequence[CatalogueRecord], transfer: Transfer, prefix: str
) -> None:
    place = add(root, f"{{{METS}}}structMap", TYPE="LOGICAL")
    for number, record in enumerate(levels):
        label = record.part if record.part and number else record.title
        place = add(
            place,
            f"{{{METS}}}div",
            TYPE=_DIVISIONS[record.level],
            LABEL=label,
            DMDID=f"{prefix}_DMD{number}",
            CONTENTIDS=record.urn,
        )
    place.set("ADMID", f"{prefix}_TM")
    for number, file in enumerate(transfer.files, start=1):
        holder = (
            add(place, f"{{{METS}}}div", TYPE=CAPTURE, CONTENTIDS=quote(file.url, safe=_IN_ADDRESSES))
            if file.url
            else place
        )
        add(holder, f"{{{METS}}}fptr", FILEID=f"{prefix}_F{number:05d}")


def wrapping(parent: etree._Element, name: str, identifier: str, kind: str) -> etree._Element:
    """Add a METS section with its wrapper; the element for the content."""
    section = add(parent, f"{{{METS}}}{name}", ID=identifier)
    label = {"lmerObject": "LMERobject", "lmerFile": "LMERfile"}.get(kind)
    more = {"LABEL": label} if label else {}
    wrap = add(
        section, f"{{{METS}}}mdWrap", None, MDTYPE="OTHER", OTHERMDTYPE=kind, MIMETYPE="text/xml", **more
    )
    return add(wrap, f"{{{METS}}}xmlData")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredLevel:
    """One level as a partner describes it."""

    level: RecordLevel
    fields: dict[str, Any]
    """Fields for the catalogue; `urn`, and the partner's `key` and `parent`."""
    xml: str
    """The record as received."""
    kind: str = mab.FOREIGN
    """Its format, as in `CatalogueRecord.foreign`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredObject:
    """An object as a partner describes it."""

    levels: tuple[DeliveredLevel, ...]
    """From the top down."""
    object: LmerObject
    files: tuple[LmerFile, ...]
    foreign: tuple[str, ...]
    """Sections of unknown kinds."""
    is_web: bool
    urls: Mapping[str, str] = field(default_factory=dict)
    """Original web addresses by file identifier, as far as the sender gives them."""
    is_rewritten: bool = False
    """Whether links in its pages lead to the paths of files instead of their addresses."""

    @property
    def urn(self) -> str:
        return self.object.persistent_identifier.lower()


def read(root: etree._Element) -> DeliveredObject:
    """The object that a METS document describes; InputError if it is not METS or has no object section."""
    if root.tag != f"{{{METS}}}mets":
        raise InputError(f"The record is not METS: its root element is {str(root.tag)[:200]}.")
    objects, files, foreign = [], [], []
    for section in root.iterfind(f"{{{METS}}}amdSec/{{{METS}}}techMD"):
        inside = section.find(f"{{{METS}}}mdWrap/{{{METS}}}xmlData")
        if inside is not None and lmer.is_object(inside):
            objects.append(lmer.read_object(inside))
        elif inside is not None and lmer.is_file(inside):
            files.append(lmer.read_file(inside))
        else:
            foreign.append(markup.verbatim(section))
    if len(objects) != 1:
        raise InputError(f"P8: there are {len(objects)} object sections of LMER instead of one")
    levels = levels_of(root)
    is_web = levels[0].level is RecordLevel.SITE if levels else False
    return DeliveredObject(
        levels=levels,
        object=objects[0],
        files=tuple(files),
        foreign=tuple(foreign),
        is_web=is_web,
        urls=_urls(root),
    )


def _urls(root: etree._Element) -> dict[str, str]:
    urls = {}
    for division in root.iterfind(f"{{{METS}}}structMap//{{{METS}}}div[@TYPE='{CAPTURE}']"):
        pointer, address = division.find(f"{{{METS}}}fptr"), division.get("CONTENTIDS", "").strip()
        if pointer is not None and re.match(r"https?://[^/\s]+/\S*\Z", address):
            urls[pointer.get("FILEID", "")] = address
    return urls


def check(root: etree._Element) -> list[str]:
    """The breaches of the profile, each with the number of the rule; empty if there are none."""
    return list(_breaches(root))


def _breaches(root: etree._Element) -> Iterator[str]:
    described = root.findall(f"{{{METS}}}dmdSec")
    administrative = root.findall(f"{{{METS}}}amdSec")
    if not described:
        yield "P1: there is no dmdSec"
    for section in described:
        records = section.findall(f"{{{METS}}}mdWrap/{{{METS}}}xmlData/{{{mab.MAB}}}datensatz")
        if len(records) != 1:
            yield f"P1: a dmdSec has {len(records)} MABxml records"
        elif not (mab.from_element(records[0]).get("urn", "")).lower().startswith("urn:nbn:"):
            yield "P12: a level has no URN in field 552b"
    if len(administrative) != 1:
        yield f"P2: there are {len(administrative)} amdSec"
        return
    for name, rule in (("rightsMD", "P3"), ("sourceMD", "P3"), ("digiprovMD", "P3")):
        if administrative[0].find(f"{{{METS}}}{name}") is not None:
            yield f"{rule}: LMER is in {name}"
    if root.find(f".//{{{METS}}}mdRef") is not None:
        yield "P4: metadata are referenced, not embedded"
    for name, rule in (("fileSec", "P5"), ("structLink", "P6"), ("behaviorSec", "P6")):
        if root.find(f"{{{METS}}}{name}") is not None:
            yield f"{rule}: there is a {name}"
    if root.find(f"{{{METS}}}structMap") is None:
        yield "P7: there is no structMap"
    try:
        delivered = read(root)
    except InputError as error:
        yield str(error)
        return
    yield from _breaches_of_object(root, delivered)
    yield from _breaches_of_files(delivered)


def _breaches_of_object(root: etree._Element, delivered: DeliveredObject) -> Iterator[str]:
    facts = delivered.object
    if not facts.persistent_identifier.lower().startswith("urn:"):
        yield "P9: the persistent identifier is not a URN"
    if not facts.transfer_url:
        yield "P9: there is no Transfer-URL"
    if facts.transfer_format.upper() != "ZIP":
        yield f"P9: the transfer format is {facts.transfer_format[:20]!r} and not ZIP"
    if not _is_moment(facts.master_creation_date):
        yield "P9: there is no creation date"
    known = {file.file_identifier for file in delivered.files}
    if facts.start_file not in known:
        yield "P9: the start file is not one of the files"
    if facts.number_of_files != str(len(delivered.files)):
        stated = facts.number_of_files[:20] or "no number of"
        yield f"P10: the object states {stated} files, {len(delivered.files)} are described"
    for pointer in root.iterfind(f"{{{METS}}}structMap//{{{METS}}}fptr"):
        if pointer.get("FILEID", "") not in known:
            yield f"P7: FILEID {pointer.get('FILEID', '')[:100]} is not a file identifier"
            break
    if [level.fields.get("urn", "").lower() for level in delivered.levels].count(delivered.urn) != 1:
        yield "P13: the URN of LMER is not the 552b of exactly one level"


def _breaches_of_files(delivered: DeliveredObject) -> Iterator[str]:
    if not delivered.files:
        yield "P10: no file is described"
    if len(delivered.files) > MOST_FILES:
        yield f"P10: more than {MOST_FILES} files"
    seen: set[str] = set()
    for file in delivered.files:
        place = f"{file.path}{file.name}"
        where = place[:200] or file.file_identifier[:100]
        if not file.path.startswith("/"):
            yield f"P11: {where} has no folder that begins with a slash"
        if not file.name or "/" in file.name:
            yield f"P11: {where} has no name"
        if not re.fullmatch(r"[0-9]{1,18}", file.size, re.ASCII):
            yield f"P11: {where} has no size"
        if not _is_moment(file.file_date_time):
            yield f"P11: {where} has no date"
        if not file.mime_type or not file.format:
            yield f"P11: {where} has no MIME type or format"
        if place in seen:
            yield f"P11: {where} is described twice"
        seen.add(place)


def _described(root: etree._Element) -> dict[str, etree._Element]:
    """The MABxml records by the ID of their section."""
    records = {}
    for section in root.iterfind(f"{{{METS}}}dmdSec"):
        record = section.find(f"{{{METS}}}mdWrap/{{{METS}}}xmlData/{{{mab.MAB}}}datensatz")
        if record is not None:
            records[section.get("ID", "")] = record
    return records


def levels_of(root: etree._Element) -> tuple[DeliveredLevel, ...]:
    """The levels that a METS document describes in MABxml, from the top down."""
    return _levels(root, _described(root))


def level_of(record: etree._Element) -> RecordLevel:
    """The level of a MABxml record, by its own fields."""
    return _level("", record)


def division(level: RecordLevel) -> str:
    """The name of a level in a structural map."""
    return _DIVISIONS[level]


def _levels(root: etree._Element, described: dict[str, etree._Element]) -> tuple[DeliveredLevel, ...]:
    """The levels in the order of the structural map; if one is missing there, in the order of the links
    between the records.
    """
    named: dict[str, str] = {}
    for element in root.iterfind(f"{{{METS}}}structMap//{{{METS}}}div"):
        if element.get("TYPE", "").lower() in _LEVELS:
            for identifier in element.get("DMDID", "").split():
                named.setdefault(identifier, element.get("TYPE", ""))
    order = [identifier for identifier in named if identifier in described]
    order += [identifier for identifier in described if identifier not in named]
    read = {identifier: mab.from_element(described[identifier]) for identifier in order}
    if len(order) != len(named.keys() & described.keys()):
        order = _by_links(order, read)
    return tuple(
        DeliveredLevel(
            level=_level(named.get(identifier, ""), described[identifier]),
            fields=read[identifier],
            xml=markup.verbatim(described[identifier]),
        )
        for identifier in order
    )


def _by_links(order: list[str], read: dict[str, dict[str, Any]]) -> list[str]:
    keys = {fields.get("key", ""): identifier for identifier, fields in read.items()}

    def depth(identifier: str, steps: int = 0) -> int:
        above = keys.get(read[identifier].get("parent", ""), "")
        return steps if not above or steps > 10 else depth(above, steps + 1)

    return sorted(order, key=depth)


def _level(name: str, record: etree._Element) -> RecordLevel:
    if name.lower() in _LEVELS:
        return _LEVELS[name.lower()]
    coded = {field.get("nr"): markup.text_of(field) for field in markup.children(record, "feld")}
    if coded.get("052", "").startswith("iws"):
        return RecordLevel.SITE
    if coded.get("051", "").startswith("hw"):
        return RecordLevel.SLICE
    if coded.get("052", "").startswith("p"):
        return RecordLevel.JOURNAL
    if coded.get(_THESIS_NOTE):
        return RecordLevel.THESIS
    return {"h": RecordLevel.MONOGRAPH, "u": RecordLevel.ISSUE, "y": RecordLevel.ARTICLE}.get(
        record.get("typ", "h"), RecordLevel.MONOGRAPH
    )


def _is_moment(text: str) -> bool:
    try:
        from_iso(text)
    except ValueError:
        return False
    return True
