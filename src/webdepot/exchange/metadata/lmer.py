"""LMER, the preservation metadata of the German National Library, in METS sections: written (1.2 and 1.0) and
read.

Namespaces and names of 1.2 are those of METS profile 00000011 (UOF). The original schemas are no longer
available, so some names are reconstructed from descriptions; they are only in the tables below, so that a
correction needs one line. The elements are directly in `mets:xmlData`. Reading is tolerant: local names in
any namespace that begins with http://www.ddb.de/LMER, the checksum type as an attribute or as a separate
element, unknown elements are kept.

LMER 1.0 had one schema for all sections and the checksum type as a separate field; its namespace is not
known, and the one here is a guess. It is written only for partners whose settings say so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lxml import etree

from webdepot.errors import InputError
from webdepot.exchange.metadata import markup
from webdepot.exchange.metadata.markup import add
from webdepot.exchange.transfer_zip import TransferFile

PREFIX = "http://www.ddb.de/LMER"
OBJECT = f"{PREFIX}object"
FILE = f"{PREFIX}file"

ONE_SCHEMA = PREFIX
"""The namespace of LMER 1.0; a guess."""
PRONOM = "PRONOM"
OWN_REGISTRY = "LZA-RegBib"


class Version(StrEnum):
    NEW = "1.2"
    OLD = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class LmerObject:
    """The object section. The order of the fields is the order of the elements."""

    name: str = ""
    persistent_identifier: str = ""
    group_identifier: str = ""
    object_version: str = ""
    transfer_url: str = ""
    transfer_format: str = ""
    transfer_checksum: str = ""
    transfer_checksum_type: str = ""
    master_creation_date: str = ""
    metadata_creation_date: str = ""
    metadata_record_creator: str = ""
    number_of_files: str = ""
    start_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LmerFile:
    """A file section."""

    file_identifier: str = ""
    path: str = ""
    name: str = ""
    size: str = ""
    file_date_time: str = ""
    file_checksum: str = ""
    file_checksum_type: str = ""
    mime_type: str = ""
    format: str = ""
    registry: str = ""
    category: str = ""
    linked_to: tuple[str, ...] = ()
    unknown: tuple[str, ...] = field(default=())
    """XML of unknown elements."""


_OBJECT_NAMES = {
    "name": "name",
    "persistent_identifier": "persistentIdentifier",
    "group_identifier": "groupIdentifier",
    "object_version": "objectVersion",
    "transfer_url": "transferURL",
    "transfer_format": "transferFormat",
    "transfer_checksum": "transferChecksum",
    "master_creation_date": "masterCreationDate",
    "metadata_creation_date": "metadataCreationDate",
    "metadata_record_creator": "metadataRecordCreator",
    "number_of_files": "numberOfFiles",
    "start_file": "startFile",
}
_FILE_NAMES = {
    "file_identifier": "fileIdentifier",
    "path": "path",
    "name": "name",
    "size": "size",
    "file_date_time": "fileDateTime",
    "file_checksum": "fileChecksum",
    "mime_type": "mimeType",
    "format": "format",
    "category": "category",
}
_CHECKSUM_TYPE = "CHECKSUMTYPE"
_OLD_CHECKSUM_TYPES = {"transferChecksum": "transferChecksumType", "fileChecksum": "fileChecksumType"}


def write_object(parent: etree._Element, facts: LmerObject, version: Version = Version.NEW) -> None:
    space = OBJECT if version is Version.NEW else ONE_SCHEMA
    for attribute, name in _OBJECT_NAMES.items():
        value = getattr(facts, attribute)
        if value:
            element = add(parent, f"{{{space}}}{name}", value)
            if name == "transferChecksum":
                _write_type(parent, element, space, facts.transfer_checksum_type, version)


def write_file(parent: etree._Element, facts: LmerFile, version: Version = Version.NEW) -> None:
    space = FILE if version is Version.NEW else ONE_SCHEMA
    for attribute, name in _FILE_NAMES.items():
        value = getattr(facts, attribute)
        if not value:
            continue
        element = add(parent, f"{{{space}}}{name}", value)
        if name == "fileChecksum":
            _write_type(parent, element, space, facts.file_checksum_type, version)
        if name == "format" and facts.registry and version is Version.NEW:
            element.set("REGISTRYNAME", facts.registry)
    for identifier in facts.linked_to:
        add(parent, f"{{{space}}}linkedTo", identifier)
    for xml in facts.unknown:
        parent.append(markup.parse(xml.encode(), what="a part of LMER"))


def _write_type(
    parent: etree._Element, checksum: etree._Element, space: str, kind: str, version: Version
) -> None:
    if version is Version.NEW:
        checksum.set(_CHECKSUM_TYPE, kind)
    else:
        add(parent, f"{{{space}}}{_OLD_CHECKSUM_TYPES[markup.local(checksum)]}", kind)


def of_file(file: TransferFile, identifier: str, version: Version = Version.NEW) -> LmerFile:
    """The LMER section of a file of a transfer object."""
    by_key = bool(file.puid) and version is Version.NEW
    return LmerFile(
        file_identifier=identifier,
        path=file.path,
        name=file.name,
        size=str(file.size_bytes),
        file_date_time=file.at,
        file_checksum=file.sha256,
        file_checksum_type="SHA-256",
        mime_type=file.mime,
        format=file.puid if by_key else file.format,
        registry=PRONOM if by_key else OWN_REGISTRY,
    )


def is_object(section: etree._Element) -> bool:
    """Whether the elements in a METS section are LMER's object section."""
    return any(markup.local(child) == "persistentIdentifier" for child in _elements(section))


def is_file(section: etree._Element) -> bool:
    names = {markup.local(child) for child in _elements(section)}
    return (
        bool(names & {"fileIdentifier", "path", "size", "mimeType", "format"})
        and "persistentIdentifier" not in names
    )


def read_object(section: etree._Element) -> LmerObject:
    return LmerObject(**_values(section, _OBJECT_NAMES, "transferChecksum", "transfer_checksum_type"))


def read_file(section: etree._Element) -> LmerFile:
    values = _values(section, _FILE_NAMES, "fileChecksum", "file_checksum_type")
    known = {*_FILE_NAMES.values(), "fileChecksumType", "linkedTo"}
    named = list(_elements(section))
    registry = next((child.get("REGISTRYNAME", "") for child in named if markup.local(child) == "format"), "")
    return LmerFile(
        **values,
        registry=registry,
        linked_to=tuple(markup.text_of(child) for child in named if markup.local(child) == "linkedTo"),
        unknown=tuple(markup.verbatim(child) for child in named if markup.local(child) not in known),
    )


def _elements(section: etree._Element) -> Iterator[etree._Element]:
    """The LMER elements of a section, also inside a wrapper element of 1.0."""
    for child in markup.children(section):
        if not markup.namespace(child).startswith(PREFIX):
            continue
        if any(markup.namespace(inner).startswith(PREFIX) for inner in markup.children(child)):
            yield from _elements(child)
        else:
            yield child


def _values(
    section: etree._Element, names: Mapping[str, str], checksum: str, type_name: str
) -> dict[str, Any]:
    values: dict[str, str] = {}
    by_name = {name: attribute for attribute, name in names.items()}
    for child in _elements(section):
        name = markup.local(child)
        if name in by_name:
            text = markup.text_of(child)
            if by_name[name] in values:
                raise InputError(f"LMER has the element {name} twice.")
            values[by_name[name]] = text
            if name == checksum and child.get(_CHECKSUM_TYPE):
                values[type_name] = child.get(_CHECKSUM_TYPE, "")
        elif name == _OLD_CHECKSUM_TYPES[checksum]:
            values[type_name] = markup.text_of(child)
    return values
