"""Packages: one harvest as a self-describing OCFL object (OAIS archival information package, ISO 14721).

    warc/NAME                    containers, byte for byte as they were written or imported
    index/captures.cdxj.gz       one line for each capture
    index/formats.jsonl.gz       one row for each distinct payload: its format and whether it is valid
    index/findings.jsonl.gz      the findings about the harvest
    metadata/package.json        target, harvest, settings, counts, verdict: all that a database needs
    metadata/dublin_core.xml     and other descriptions that the caller gives
    metadata/premis.xml          files and events in PREMIS 3
    metadata/mets.xml            table of contents in METS
    log/crawl.log …              logs as they were written
    log/events.jsonl             events, as a chain of hashed lines (`event_chain`)

`read` returns everything that `build` was given, so that rows and indexes can be rebuilt on an empty machine.
"""

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, BinaryIO

from webdepot.depot import event_chain, mets, premis, rows
from webdepot.depot.ocfl import objects
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.ocfl.objects import Source
from webdepot.depot.package_content import (
    CAPTURES,
    DUBLIN_CORE,
    EVENTS,
    FACTS,
    FINDINGS,
    FORMATS,
    METS,
    PREMIS,
    ContainerSource,
    PackageContent,
    PackageFacts,
    container_path,
    kind_of,
)
from webdepot.depot.package_json import (
    FORMAT,
    FORMAT_VERSION,
    container_document,
    to_document,
    to_facts,
    to_json,
)
from webdepot.depot.premis import FileEntry
from webdepot.errors import CorruptData, InputError, cause_of
from webdepot.model import (
    Capture,
    Finding,
    PackageId,
)
from webdepot.ports.object_store import ObjectStore
from webdepot.provenance import Event

OWN_OBJECTS = "info:webdepot/"
"""Prefix of the identifiers of objects that are not packages: tombstones, the register."""


def build(store: ObjectStore, content: PackageContent) -> PackageFacts:
    """Write a package to the depot, complete or not at all; does nothing if it already has all containers.

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
        expected={container_path(source.name): source.sha256 for source in content.containers},
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
    facts["containers"] += [container_document(each) for each in containers if each.name not in known]
    more: dict[str, Source] = {container_path(source.name): source.path for source in containers}
    more |= files
    more[EVENTS] = event_chain.extend(_bytes(store, inventory, EVENTS), events)
    more[FACTS] = to_json(facts)
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
    expected = {container_path(source.name): source.sha256 for source in containers}
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
        return to_facts(store, inventory, facts)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise CorruptData(
            f"{where} cannot be used: {cause_of(error)}. Restore it from another copy.", where=where
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
    files: dict[str, Source] = {container_path(source.name): source.path for source in content.containers}
    files |= {CAPTURES: content.captures, FORMATS: content.formats, FINDINGS: content.findings}
    files |= {f"log/{path.name}": path for path in content.logs}
    files |= {f"metadata/{name}": data for name, data in content.descriptions.items()}
    files |= {f"metadata/{name}": path for name, path in content.submitted.items()}
    files[EVENTS] = event_chain.extend(existing_events, (*content.events, kept))
    files[FACTS] = to_json(to_document(content))
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
    measured = {container_path(each.name): (each.size_bytes, each.sha256) for each in containers}
    return [_entry(path, *(measured.get(path) or objects.measure(source))) for path, source in files.items()]


def _held(store: ObjectStore, inventory: Inventory, path: str) -> FileEntry:
    return _entry(path, store.size(objects.content_key(inventory, path)) or 0, inventory.files()[path])


def _entry(path: str, size_bytes: int, sha256: str) -> FileEntry:
    use, mime, name, puid = kind_of(path)
    return FileEntry(
        path=path, size_bytes=size_bytes, sha256=sha256, mime=mime, format=name, puid=puid, use=use
    )


def _holds_all(inventory: Inventory, content: PackageContent) -> bool:
    files = inventory.files()
    return all(files.get(container_path(source.name)) == source.sha256 for source in content.containers)


def _bytes(store: ObjectStore, inventory: Inventory, logical: str) -> bytes:
    with store.open(objects.content_key(inventory, logical)) as stream:
        return stream.read()
