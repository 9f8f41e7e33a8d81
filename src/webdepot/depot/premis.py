"""PREMIS 3 of a package: `metadata/premis.xml`, for the tools of other depots.

https://www.loc.gov/standards/premis/v3/. One object for the package and one for each file (container, file of
rows, log). Records of containers are not objects, because no tool can read a million of them; they are in the
files of rows. Events are those of `log/events.jsonl`, agents the people and programs that acted.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from lxml import etree

from webdepot.provenance import Event
from webdepot.times import to_iso

PREMIS = "http://www.loc.gov/premis/v3"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
_LOCATION = f"{PREMIS} https://www.loc.gov/standards/premis/premis.xsd"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Terms of https://id.loc.gov/vocabulary/preservation/eventType.html where one exists.
_TYPES = {
    "harvested": "capture",
    "imported": "ingestion",
    "received": "accession",
    "kept": "ingestion end",
    "sealed": "creation",
    "recovered": "recovery",
    "checked": "validation",
    "identified": "format identification",
    "audited": "fixity check",
    "repaired": "recovery",
    "copied": "replication",
    "migrated": "migration",
    "withdrawn": "deaccession",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of a package as METS and PREMIS name it."""

    path: str
    """Logical path in the package."""
    size_bytes: int
    sha256: str
    mime: str
    format: str
    puid: str = ""
    use: str
    """`container`, `index`, `log` or `metadata`."""


def to_xml(identifier: str, title: str, files: Sequence[FileEntry], events: Iterable[Event]) -> bytes:
    """The PREMIS document; equal facts give equal bytes."""
    root = etree.Element(f"{{{PREMIS}}}premis", nsmap={None: PREMIS, "xsi": XSI}, version="3.0")
    root.set(f"{{{XSI}}}schemaLocation", _LOCATION)
    _entity(root, identifier, title)
    for file in files:
        _file(root, identifier, file)
    agents: dict[str, None] = {}
    for number, event in enumerate(events, start=1):
        _event(root, identifier, number, event)
        agents[event.agent] = None
    for agent in agents:
        _agent(root, agent)
    data: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return data


def plain(text: str) -> str:
    """The text without the characters that XML 1.0 does not allow."""
    return _FORBIDDEN.sub("\ufffd", text)


def _entity(root: etree._Element, identifier: str, title: str) -> None:
    entity = _object(root, "intellectualEntity", "URI", identifier)
    _add(entity, "originalName", title)


def _file(root: etree._Element, package: str, file: FileEntry) -> None:
    element = _object(root, "file", "local", f"{package}/{file.path}")
    facts = _add(element, "objectCharacteristics")
    fixity = _add(facts, "fixity")
    _add(fixity, "messageDigestAlgorithm", "SHA-256")
    _add(fixity, "messageDigest", file.sha256)
    _add(facts, "size", str(file.size_bytes))
    kind = _add(facts, "format")
    _add(_add(kind, "formatDesignation"), "formatName", file.format)
    if file.puid:
        registry = _add(kind, "formatRegistry")
        _add(registry, "formatRegistryName", "PRONOM")
        _add(registry, "formatRegistryKey", file.puid)
    _add(element, "originalName", file.path)
    relation = _add(element, "relationship")
    _add(relation, "relationshipType", "structural")
    _add(relation, "relationshipSubType", "is part of")
    related = _add(relation, "relatedObjectIdentifier")
    _add(related, "relatedObjectIdentifierType", "URI")
    _add(related, "relatedObjectIdentifierValue", package)


def _event(root: etree._Element, package: str, number: int, event: Event) -> None:
    element = _add(root, "event")
    identity = _add(element, "eventIdentifier")
    _add(identity, "eventIdentifierType", "local")
    _add(identity, "eventIdentifierValue", f"{package}/log/events.jsonl#{number}")
    _add(element, "eventType", _TYPES.get(event.action, event.action))
    _add(element, "eventDateTime", _moment(event.at))
    _add(
        _add(element, "eventDetailInformation"),
        "eventDetail",
        f"{event.action} {event.subject_kind} {event.subject}",
    )
    outcome = _add(element, "eventOutcomeInformation")
    _add(outcome, "eventOutcome", event.outcome.value)
    if event.message:
        _add(_add(outcome, "eventOutcomeDetail"), "eventOutcomeDetailNote", event.message)
    agent = _add(element, "linkingAgentIdentifier")
    _add(agent, "linkingAgentIdentifierType", "local")
    _add(agent, "linkingAgentIdentifierValue", event.agent)
    linked = _add(element, "linkingObjectIdentifier")
    _add(linked, "linkingObjectIdentifierType", "URI")
    _add(linked, "linkingObjectIdentifierValue", package)


def _agent(root: etree._Element, agent: str) -> None:
    element = _add(root, "agent")
    identity = _add(element, "agentIdentifier")
    _add(identity, "agentIdentifierType", "local")
    _add(identity, "agentIdentifierValue", agent)
    _add(element, "agentName", agent)
    _add(element, "agentType", "software" if agent.startswith("webdepot ") else "person")


def _object(root: etree._Element, kind: str, type_: str, value: str) -> etree._Element:
    element = _add(root, "object")
    element.set(f"{{{XSI}}}type", kind)
    identity = _add(element, "objectIdentifier")
    _add(identity, "objectIdentifierType", type_)
    _add(identity, "objectIdentifierValue", value)
    return element


def _add(parent: etree._Element, name: str, text: str | None = None) -> etree._Element:
    element = etree.SubElement(parent, f"{{{PREMIS}}}{name}")
    if text is not None:
        element.text = plain(text)
    return element


def _moment(at: datetime) -> str:
    return to_iso(at)
