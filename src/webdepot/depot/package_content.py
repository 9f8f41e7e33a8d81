"""What a package is made of: its sources, the paths of its files, and the facts read from it."""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from webdepot.container.writer import Sealed
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.model import (
    Container,
    Harvest,
    HarvestId,
    Package,
    PackageId,
    Target,
    Verdict,
)
from webdepot.provenance import Event

FACTS = "metadata/package.json"
CAPTURES = "index/captures.cdxj.gz"
FORMATS = "index/formats.jsonl.gz"
FINDINGS = "index/findings.jsonl.gz"
EVENTS = "log/events.jsonl"
DUBLIN_CORE = "metadata/dublin_core.xml"
PREMIS = "metadata/premis.xml"
METS = "metadata/mets.xml"
SUBMISSION = "submission"
"""The folder of the sender's other files: in the working folder, later below `metadata` in the package."""
_NAMESPACE = uuid.UUID("6b1b4a1e-9a53-5a0c-8d0e-1c7f0a9d2c11")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSource:
    """A sealed container with its expected checksum; `build` fails if its bytes have changed."""

    name: str
    path: Path
    size_bytes: int
    sha256: str
    records: int


def source_of(sealed: Sealed) -> ContainerSource:
    """A container that was just written."""
    return ContainerSource(
        name=sealed.name,
        path=sealed.path,
        size_bytes=sealed.size_bytes,
        sha256=sealed.sha256,
        records=sealed.records,
    )


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


def format_of(path: str) -> str:
    """The name of the format of a file, by its path in the package."""
    return kind_of(path)[2]


def kind_of(path: str) -> tuple[str, str, str, str]:
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


def container_path(name: str) -> str:
    return f"warc/{name}"
