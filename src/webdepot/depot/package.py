"""Packages: one harvest as a self-describing OCFL object (OAIS archival information package, ISO 14721).

    warc/NAME                    containers, byte for byte as they were written or imported
    index/captures.cdxj.gz       one line for each capture
    index/formats.jsonl.gz       one row for each distinct payload: its format and whether it is valid
    index/findings.jsonl.gz      the findings about the harvest
    metadata/package.json        target, harvest, settings, counts, verdict: all that a database needs (below)
    metadata/dublin_core.xml     and other descriptions that the caller gives
    metadata/premis.xml          files and events in PREMIS 3
    metadata/mets.xml            table of contents in METS
    log/crawl.log …              logs as they were written
    log/events.jsonl             events, as a chain of hashed lines (`chain`)

`read` returns everything that `build` was given, so that rows and indexes can be rebuilt on an empty machine.
package.json, version 1: `format`, `format_version`, `id`, `urn`, `title`, `stored_at`, `agent`, `target`,
`harvest`, `containers`, `verdict`, `finding_counts`, `decisions`, `tools`, `surveys`; with the names of
`model.py`, and dates in ISO 8601. A `reason` that the program wrote is followed by `reason_said`, its key and
values, so that pages can show it in other languages; it may be missing.
"""

# Longer than other modules because writing and reading package.json must agree, line by line.

import hashlib
import io
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from webdepot.depot import event_chain, mets, premis, rows
from webdepot.depot.ocfl import objects
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.ocfl.objects import Source
from webdepot.depot.premis import FileEntry
from webdepot.errors import CorruptData, InputError
from webdepot.model import (
    Answer,
    Capture,
    Container,
    ContainerState,
    Finding,
    Harvest,
    HarvestId,
    HarvestKind,
    HarvestState,
    Package,
    PackageId,
    Purpose,
    Target,
    TargetId,
    Verdict,
)
from webdepot.ports.object_store import ObjectStore
from webdepot.provenance import Event
from webdepot.reasons import from_told, to_told
from webdepot.text import file_names
from webdepot.times import from_iso
from webdepot.url import Url

OWN_OBJECTS = "info:webdepot/"
"""Prefix of the identifiers of objects that are not packages: tombstones, the register."""
FORMAT = "webdepot-package"
FORMAT_VERSION = 1
FACTS = "metadata/package.json"
CAPTURES = "index/captures.cdxj.gz"
FORMATS = "index/formats.jsonl.gz"
FINDINGS = "index/findings.jsonl.gz"
EVENTS = "log/events.jsonl"
DUBLIN_CORE = "metadata/dublin_core.xml"
PREMIS = "metadata/premis.xml"
METS = "metadata/mets.xml"
LONGEST_COLLECTION = 60
_LONGEST_HARVEST = 100
_NAMESPACE = uuid.UUID("6b1b4a1e-9a53-5a0c-8d0e-1c7f0a9d2c11")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSource:
    """A sealed container with its expected checksum; `build` fails if its bytes have changed."""

    name: str
    path: Path
    size_bytes: int
    sha256: str
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageContent:
    """All sources of a package. Files are only read; files of rows are written by `rows.write_*`, or are gzip
    members to be joined.
    """

    id: PackageId
    urn: str
    title: str
    target: Target
    harvest: Harvest
    containers: tuple[ContainerSource, ...]
    captures: Path
    formats: tuple[Path, ...]
    findings: Path
    logs: tuple[Path, ...]
    verdict: Verdict
    events: tuple[Event, ...]
    """The history so far; `build` adds the event of the deposit."""
    descriptions: Mapping[str, bytes]
    """File name (`dublin_core.xml`) to content, for `metadata/`."""
    agent: str
    stored_at: datetime
    address: str = ""
    """A URI of the institution, for the OCFL version; may be empty."""
    decisions: tuple[Mapping[str, Any], ...] = ()
    """Verdicts on the target (selection, permission) as JSON values."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """Programs and signature sets with their versions."""
    submitted: Mapping[str, Path] = field(default_factory=dict)
    """Files that came with the containers of others, by path below `metadata/`."""
    surveys: tuple[Mapping[str, Any], ...] = ()
    """Facts about the survey of each container that are not in its rows, as JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFacts:
    """Everything about a package that is in the depot."""

    package: Package
    target: Target
    harvest: Harvest
    containers: tuple[Container, ...]
    """`place` is the key in the store."""
    verdict: Verdict
    finding_counts: Mapping[str, int]
    decisions: tuple[Mapping[str, Any], ...]
    tools: Mapping[str, str]
    surveys: tuple[Mapping[str, Any], ...]
    inventory: Inventory


def id_of(harvest: HarvestId) -> PackageId:
    """The identifier of a harvest's package: always the same, so that a deposit can be repeated."""
    return PackageId(uuid.uuid5(_NAMESPACE, harvest).urn)


def is_identifier(text: str) -> bool:
    """Whether a text can be the identifier of a package."""
    return re.fullmatch(r"urn:uuid:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text) is not None


def build(store: ObjectStore, content: PackageContent) -> PackageFacts:
    """Write a package to the depot, complete or not at all; nothing if it already has all containers.

    A package that exists with fewer containers gets a new version. CorruptData if a container has changed
    since it was sealed.
    """
    inventory = objects.finish_write(store, content.id)
    if inventory is not None and _holds_all(inventory, content):
        return read(store, content.id)
    existing = _bytes(store, inventory, EVENTS) if inventory is not None else b""
    objects.put_version(
        store,
        content.id,
        _files(content, existing),
        message=f"Harvest {content.harvest.id} kept"
        if inventory is None
        else f"Harvest {content.harvest.id} kept again with more in it",
        user=content.agent,
        address=content.address,
        created=content.stored_at,
        expected={_container_path(source.name): source.sha256 for source in content.containers},
    )
    return read(store, content.id)


def extend(
    store: ObjectStore,
    package: PackageId,
    files: Mapping[str, Source],
    *,
    containers: tuple[ContainerSource, ...] = (),
    events: tuple[Event, ...],
    message: str,
    agent: str,
    created: datetime,
    address: str = "",
    changes: Mapping[str, object] | None = None,
) -> PackageFacts:
    """Write a new version with further files (conversions, a later identification or check).

    Harvested content is not changed. `containers` are added to package.json; repeating the call adds nothing.
    `changes` are new values in package.json (`verdict`, `surveys`, `finding_counts`); earlier versions keep
    theirs.
    """
    inventory = objects.read_inventory(store, package)
    facts = json.loads(_bytes(store, inventory, FACTS))
    known = {each["name"] for each in facts["containers"]}
    facts |= changes or {}
    facts["containers"] += [_container_document(each) for each in containers if each.name not in known]
    more: dict[str, Source] = {_container_path(source.name): source.path for source in containers}
    more |= files
    more[EVENTS] = event_chain.extend(_bytes(store, inventory, EVENTS), events)
    more[FACTS] = _json(facts)
    kept = [_held(store, inventory, path) for path in inventory.files() if path not in (*more, PREMIS, METS)]
    described = inventory.files().get(DUBLIN_CORE) and _bytes(store, inventory, DUBLIN_CORE)
    entries = kept + _entries(more, containers)
    more |= _descriptions(
        package,
        facts["title"],
        entries,
        more[EVENTS],
        created=created,
        agent=agent,
        dublin_core=described or b"",
    )
    expected = {_container_path(source.name): source.sha256 for source in containers}
    objects.put_version(
        store, package, more, message=message, user=agent, address=address, created=created, expected=expected
    )
    return read(store, package)


def read(store: ObjectStore, package: PackageId) -> PackageFacts:
    """The facts in `metadata/package.json`, with the places of the containers; CorruptData if damaged."""
    inventory = objects.read_inventory(store, package)
    where = f"{package} {FACTS}"
    try:
        facts = json.loads(_bytes(store, inventory, FACTS))
        if facts["format"] != FORMAT or facts["format_version"] > FORMAT_VERSION:
            raise InputError(
                f"Package {package} has the newer format {facts['format_version']}. Install a newer Webdepot."
            )
        return _facts(store, inventory, facts)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise CorruptData(
            f"{where} cannot be used: {error!r}. Restore it from another copy.", where=where
        ) from error


def is_package(identifier: str) -> bool:
    """Whether an object is a package; the others are tombstones and the register."""
    return not identifier.startswith(OWN_OBJECTS)


def iter_packages(store: ObjectStore) -> Iterator[PackageId]:
    """Every package of the depot, from the store alone."""
    return (PackageId(identifier) for identifier in objects.iter_objects(store) if is_package(identifier))


def iter_captures(store: ObjectStore, facts: PackageFacts) -> Iterator[Capture]:
    with open_file(store, facts, CAPTURES) as stream:
        yield from rows.read_captures(stream, where=f"{facts.package.id} {CAPTURES}")


def iter_formats(store: ObjectStore, facts: PackageFacts) -> Iterator[dict[str, Any]]:
    with open_file(store, facts, FORMATS) as stream:
        yield from rows.read_rows(stream, where=f"{facts.package.id} {FORMATS}")


def iter_findings(store: ObjectStore, facts: PackageFacts) -> Iterator[Finding]:
    with open_file(store, facts, FINDINGS) as stream:
        yield from rows.read_findings(stream, where=f"{facts.package.id} {FINDINGS}")


def iter_events(store: ObjectStore, facts: PackageFacts) -> Iterator[Event]:
    with open_file(store, facts, EVENTS) as stream:
        yield from event_chain.read(stream, where=f"{facts.package.id} {EVENTS}")


def iter_events_since(store: ObjectStore, facts: PackageFacts, version: int) -> Iterator[Event]:
    """The events that later versions added to those of this version."""
    key = objects.content_key(facts.inventory, EVENTS, version=version)
    with store.open(key) as stream:
        count = sum(1 for _ in event_chain.read(stream, where=key))
    yield from islice(iter_events(store, facts), count, None)


def open_file(store: ObjectStore, facts: PackageFacts, logical: str) -> BinaryIO:
    """Any file of a package by its path in it; NotFound if it has no such file."""
    return store.open(objects.content_key(facts.inventory, logical))


def _files(content: PackageContent, existing_events: bytes) -> dict[str, Source]:
    kept = Event(
        at=content.stored_at,
        agent=content.agent,
        action="kept",
        subject_kind="package",
        subject=content.id,
        message=f"Harvest {content.harvest.id} was put into the depot.",
        detail={"containers": len(content.containers), "urn": content.urn},
    )
    files: dict[str, Source] = {_container_path(source.name): source.path for source in content.containers}
    files |= {CAPTURES: content.captures, FORMATS: content.formats, FINDINGS: content.findings}
    files |= {f"log/{path.name}": path for path in content.logs}
    files |= {f"metadata/{name}": data for name, data in content.descriptions.items()}
    files |= {f"metadata/{name}": path for name, path in content.submitted.items()}
    files[EVENTS] = event_chain.extend(existing_events, (*content.events, kept))
    files[FACTS] = _json(_document(content))
    entries = _entries(files, content.containers)
    described = content.descriptions.get("dublin_core.xml", b"")
    more = _descriptions(
        content.id,
        content.title,
        entries,
        files[EVENTS],
        created=content.stored_at,
        agent=content.agent,
        dublin_core=described,
    )
    return files | more


def _descriptions(
    identifier: str,
    title: str,
    entries: list[FileEntry],
    events: Source,
    *,
    created: datetime,
    agent: str,
    dublin_core: bytes,
) -> dict[str, Source]:
    """PREMIS over all files, then METS over all files and PREMIS."""
    if not isinstance(events, bytes):
        raise TypeError("the log of events must be in memory")
    entries = sorted(entries, key=lambda entry: (entry.use != "container", entry.path))
    premis_xml = premis.to_xml(identifier, title, entries, event_chain.read(io.BytesIO(events), where=EVENTS))
    entries.append(_entry(PREMIS, len(premis_xml), hashlib.sha256(premis_xml).hexdigest()))
    mets_xml = mets.to_xml(identifier, title, entries, created=created, agent=agent, dublin_core=dublin_core)
    return {PREMIS: premis_xml, METS: mets_xml}


def _entries(files: Mapping[str, Source], containers: tuple[ContainerSource, ...]) -> list[FileEntry]:
    """The entries of new files in METS and PREMIS; containers were measured when they were sealed."""
    measured = {_container_path(each.name): (each.size_bytes, each.sha256) for each in containers}
    return [_entry(path, *(measured.get(path) or objects.measure(source))) for path, source in files.items()]


def _held(store: ObjectStore, inventory: Inventory, path: str) -> FileEntry:
    return _entry(path, store.size(objects.content_key(inventory, path)) or 0, inventory.files()[path])


def _entry(path: str, size_bytes: int, sha256: str) -> FileEntry:
    use, mime, name, puid = _kind(path)
    return FileEntry(
        path=path, size_bytes=size_bytes, sha256=sha256, mime=mime, format=name, puid=puid, use=use
    )


def format_of(path: str) -> str:
    """The name of the format of a file, by its path in the package."""
    return _kind(path)[2]


def _kind(path: str) -> tuple[str, str, str, str]:
    """Use, media type, format and PRONOM identifier of a file, by its path in the package."""
    folder, _, name = path.partition("/")
    if folder == "warc":
        is_arc = name.lower().endswith((".arc", ".arc.gz"))
        return (
            ("container", "application/x-arc", "ARC", "x-fmt/219")
            if is_arc
            else ("container", "application/warc", "WARC", "fmt/289")
        )
    use = {"index": "index", "log": "log"}.get(folder, "metadata")
    for ending, mime, label, puid in _ENDINGS:
        if name.endswith(ending):
            return use, mime, label, puid
    return use, "application/octet-stream", "unknown", ""


_ENDINGS = (
    (".cdxj.gz", "application/gzip", "CDXJ, gzip", "x-fmt/266"),
    (".jsonl.gz", "application/gzip", "JSON lines, gzip", "x-fmt/266"),
    (".jsonl", "application/x-ndjson", "JSON lines", ""),
    (".json", "application/json", "JSON", "fmt/817"),
    (".xml", "application/xml", "XML", "fmt/101"),
    (".log", "text/plain", "plain text", "x-fmt/111"),
)


def _document(content: PackageContent) -> dict[str, object]:
    with content.findings.open("rb") as stream:
        counts = Counter(finding.code for finding in rows.read_findings(stream, where=str(content.findings)))
    containers = [_container_document(each) for each in content.containers]
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "id": content.id,
        "urn": content.urn,
        "title": content.title,
        "stored_at": content.stored_at,
        "agent": content.agent,
        "target": asdict(content.target),
        "harvest": {**asdict(content.harvest), **to_told(content.harvest.reason)},
        "containers": containers,
        "verdict": {**asdict(content.verdict), **to_told(content.verdict.reason)},
        "finding_counts": dict(sorted(counts.items())),
        "decisions": list(content.decisions),
        "tools": dict(content.tools),
        "surveys": list(content.surveys),
    }


def _container_document(each: ContainerSource) -> dict[str, object]:
    return {"name": each.name, "size_bytes": each.size_bytes, "sha256": each.sha256, "records": each.records}


def _json(document: Mapping[str, object]) -> bytes:
    return (json.dumps(document, ensure_ascii=False, indent=1, default=_plain) + "\n").encode(
        errors="replace"
    )


def _facts(store: ObjectStore, inventory: Inventory, facts: dict[str, Any]) -> PackageFacts:
    harvest = _harvest(facts["harvest"])
    if inventory.id != id_of(harvest.id):
        raise ValueError(f"{inventory.id} is not the identifier of the package of harvest {harvest.id}")
    package = Package(
        id=PackageId(inventory.id),
        harvest=harvest.id,
        urn=_text(facts["urn"]),
        title=_text(facts["title"]),
        version=inventory.head,
        size_bytes=_size_bytes(store, inventory),
        stored_at=from_iso(facts["stored_at"]),
    )
    verdict = facts["verdict"]
    return PackageFacts(
        package=package,
        target=_target(facts["target"]),
        harvest=harvest,
        containers=tuple(_container(inventory, harvest.id, each) for each in facts["containers"]),
        verdict=Verdict(answer=Answer(verdict["answer"]), rule=verdict["rule"], reason=from_told(verdict)),
        finding_counts=facts["finding_counts"],
        decisions=tuple(facts["decisions"]),
        tools=facts["tools"],
        surveys=tuple(facts.get("surveys", ())),
        inventory=inventory,
    )


def _text(value: object) -> str:
    """A text of package.json. The file may come from others, and anything else would end in the database."""
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:100]} is not a text")
    return value


def _name(value: object, longest: int = file_names.LONGEST_NAME_BYTES) -> str:
    """A name in package.json that becomes a part of a path."""
    name = _text(value)
    if not file_names.is_name(name) or len(name) > longest:
        raise ValueError(f"{name[:200]!r} is not a valid name")
    return name


def _target(facts: dict[str, Any]) -> Target:
    return Target(
        id=TargetId(int(facts["id"])),
        name=_text(facts["name"]),
        seeds=tuple(Url(_text(seed)) for seed in facts["seeds"]),
        collection=_name(facts["collection"], LONGEST_COLLECTION),
        purpose=Purpose(facts["purpose"]),
        created_at=from_iso(facts["created_at"]),
    )


def _harvest(facts: dict[str, Any]) -> Harvest:
    return Harvest(
        id=HarvestId(_name(facts["id"], _LONGEST_HARVEST)),
        target=TargetId(int(facts["target"])),
        kind=HarvestKind(facts["kind"]),
        state=HarvestState(facts["state"]),
        seeds=tuple(Url(_text(seed)) for seed in facts["seeds"]),
        collection=_name(facts["collection"], LONGEST_COLLECTION),
        settings=dict(facts["settings"]),
        started_at=from_iso(facts["started_at"]),
        ended_at=from_iso(facts["ended_at"]) if facts["ended_at"] else None,
        reason=from_told(facts),
        counts=dict(facts["counts"]),
    )


def _container(inventory: Inventory, harvest: HarvestId, facts: dict[str, Any]) -> Container:
    name, sha256 = _name(facts["name"]), _text(facts["sha256"])
    if inventory.files().get(_container_path(name), sha256) != sha256:
        raise ValueError(f"{name} has another checksum in {FACTS} than in the inventory")
    return Container(
        name=name,
        harvest=harvest,
        state=ContainerState.KEPT,
        size_bytes=int(facts["size_bytes"]),
        sha256=sha256,
        records=int(facts["records"]),
        place=objects.content_key(inventory, _container_path(name)),
    )


def _holds_all(inventory: Inventory, content: PackageContent) -> bool:
    files = inventory.files()
    return all(files.get(_container_path(source.name)) == source.sha256 for source in content.containers)


def _size_bytes(store: ObjectStore, inventory: Inventory) -> int:
    return sum(store.size(objects.content_key(inventory, logical)) or 0 for logical in inventory.files())


def _container_path(name: str) -> str:
    return f"warc/{name}"


def _bytes(store: ObjectStore, inventory: Inventory, logical: str) -> bytes:
    with store.open(objects.content_key(inventory, logical)) as stream:
        return stream.read()


def _plain(value: object) -> object:
    """A date and time as ISO 8601 text with full precision, for JSON."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} cannot be written to package.json")
