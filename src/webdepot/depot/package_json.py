"""`metadata/package.json`: all that a database needs to know about a package, written and read again.

Version 1: `format`, `format_version`, `id`, `urn`, `title`, `stored_at`, `agent`, `target`, `harvest`,
`containers`, `verdict`, `finding_counts`, `decisions`, `tools`, `surveys`; with the names of `model.py`, and
dates in ISO 8601. A `reason` that the program wrote is followed by `reason_said`, its key and values, so that
pages can show it in other languages; it may be missing.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from webdepot.depot import rows
from webdepot.depot.ocfl import objects
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.package_content import (
    FACTS,
    ContainerSource,
    PackageContent,
    PackageFacts,
    container_path,
    id_of,
)
from webdepot.model import (
    Answer,
    Container,
    ContainerState,
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
from webdepot.reasons import from_told, to_told
from webdepot.text import file_names
from webdepot.times import from_iso
from webdepot.url import Url

FORMAT = "webdepot-package"
FORMAT_VERSION = 1
LONGEST_COLLECTION = 60
_LONGEST_HARVEST = 100


def to_document(content: PackageContent) -> dict[str, object]:
    with content.findings.open("rb") as stream:
        counts = Counter(finding.code for finding in rows.read_findings(stream, where=str(content.findings)))
    containers = [container_document(each) for each in content.containers]
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


def container_document(each: ContainerSource) -> dict[str, object]:
    return {"name": each.name, "size_bytes": each.size_bytes, "sha256": each.sha256, "records": each.records}


def to_json(document: Mapping[str, object]) -> bytes:
    return (json.dumps(document, ensure_ascii=False, indent=1, default=_plain) + "\n").encode(
        errors="replace"
    )


def to_facts(store: ObjectStore, inventory: Inventory, facts: dict[str, Any]) -> PackageFacts:
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
    """A text of package.json. The file may come from others; anything else would end up in the database."""
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:100]} is not a string")
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
    if inventory.files().get(container_path(name), sha256) != sha256:
        raise ValueError(f"{name} has another checksum in {FACTS} than in the inventory")
    return Container(
        name=name,
        harvest=harvest,
        state=ContainerState.KEPT,
        size_bytes=int(facts["size_bytes"]),
        sha256=sha256,
        records=int(facts["records"]),
        place=objects.content_key(inventory, container_path(name)),
    )


def _size_bytes(store: ObjectStore, inventory: Inventory) -> int:
    return sum(store.size(objects.content_key(inventory, logical)) or 0 for logical in inventory.files())


def _plain(value: object) -> object:
    """A date and time as ISO 8601 text with full precision, for JSON."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} cannot be written to package.json")
