"""Run a migration tool over a package: convert each payload of its source format, and keep the results in a
new version.

1. Choose the payloads: by the identification in the package (PRONOM identifier or media type), otherwise by
   the media type that the server sent.
2. Convert each distinct payload once, with limits; a failure is reported and does not stop the others.
3. Write a new version of the package, complete or not at all: containers with the conversion records, their
   rows, the event.
4. Update the database, the other places and the index. Payloads converted before are not converted again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from webdepot import digest
from webdepot.archive import Archive, ScratchPurpose
from webdepot.container.new_records import NewRecord
from webdepot.container.reader import read_record
from webdepot.container.writer import ContainerWriter, Sealed
from webdepot.depot import holdings, migration_tools, package, package_content, rows
from webdepot.depot.migration_tools import Conversion, Tool
from webdepot.depot.package_content import PackageFacts
from webdepot.digest import CHUNK_BYTES
from webdepot.errors import CorruptData, NotFound
from webdepot.model import Capture, Package, PackageId, RecordKind
from webdepot.provenance import Outcome
from webdepot.services.depot import versions
from webdepot.services.index import indexer
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.times import to_timestamp
from webdepot.version import VERSION

LARGEST_INPUT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    package: Package
    tool: str
    converted: int
    known: int
    """Payloads that had been converted before."""
    failed: dict[str, str]
    """Address to the reason."""


def migrate(
    archive: Archive, identifier: str, tool_name: str, *, watch: Watch = unwatched
) -> MigrationReport:
    """Convert all payloads of the tool's source format in a package. Harvested content is not changed."""
    tool = migration_tools.get_tool(tool_name, archive.config.depot.migration_tools)
    with archive.database.reading() as connection:
        held = holdings.get(connection, identifier)
    facts = versions.catch_up(archive, held.id)
    chosen = _chosen(archive, facts, tool)
    with archive.database.reading() as connection:
        known = {
            payload
            for payload in chosen
            if any(each.mime == tool.target for each in migration_tools.find(connection, payload))
        }
    failed: dict[str, str] = {}
    waiting = {payload: capture for payload, capture in chosen.items() if payload not in known}
    if waiting:
        with archive.scratch_folder(ScratchPurpose.MIGRATE) as folder:
            converted, containers = _convert_all(archive, facts, tool, waiting, folder, failed, watch)
            if converted:
                _keep(archive, held.id, tool, converted, containers, failed, folder)
    # Also if nothing was converted: the last run may have been killed before this.
    indexer.index_harvest(archive, held.harvest)
    with archive.database.reading() as connection:
        held = holdings.get(connection, held.id)
    return MigrationReport(
        package=held, tool=tool.name, converted=len(waiting) - len(failed), known=len(known), failed=failed
    )


def _chosen(archive: Archive, facts: PackageFacts, tool: Tool) -> dict[str, Capture]:
    """Payload digest to the first capture that has it, for all payloads of the format."""
    identified = {
        row["digest"]
        for row in package.iter_formats(archive.store, facts)
        if tool.source in (row.get("puid"), row.get("mime"))
    }
    chosen: dict[str, Capture] = {}
    for capture in package.iter_captures(archive.store, facts):
        has_payload = capture.kind in (RecordKind.RESPONSE, RecordKind.RESOURCE) and capture.status in (
            0,
            200,
        )
        if has_payload and capture.digest and (capture.digest in identified or capture.mime == tool.source):
            chosen.setdefault(capture.digest, capture)
    return chosen


def _convert_all(
    archive: Archive,
    facts: PackageFacts,
    tool: Tool,
    waiting: dict[str, Capture],
    folder: Path,
    failed: dict[str, str],
    watch: Watch,
) -> tuple[list[Conversion], list[Sealed]]:
    sealed: list[Sealed] = []
    conversions: list[Conversion] = []
    writer = ContainerWriter(
        folder,
        prefix=f"{facts.harvest.id}-migration-{to_timestamp(archive.clock())}",
        size_bytes=archive.config.container.size_bytes,
        info={"software": f"webdepot {VERSION}", "description": f"conversions by {tool.name}"},
        clock=archive.clock,
        on_sealed=sealed.append,
    )
    for number, (payload, capture) in enumerate(waiting.items(), start=1):
        watch(
            Progress(
                phase=Phase.MIGRATE, done=number, total=len(waiting), errors=len(failed), note=capture.url
            )
        )
        try:
            conversions.append(_convert(archive, facts, tool, payload, capture, folder, writer))
        except (_ConversionFailed, CorruptData, NotFound) as error:
            failed[capture.url] = str(error)
    writer.close()
    return conversions, sealed


class _ConversionFailed(Exception):
    """The tool could not convert a payload."""


def _convert(
    archive: Archive,
    facts: PackageFacts,
    tool: Tool,
    source_digest: str,
    capture: Capture,
    folder: Path,
    writer: ContainerWriter,
) -> Conversion:
    source, output = folder / "input", folder / "output"
    output.unlink(missing_ok=True)
    with archive.containers.open(capture.location.container) as stream:
        record = read_record(stream, capture.location)
        original_id = record.fields.get("WARC-Record-ID") or ""
        with source.open("wb") as sink:
            content = record.content(LARGEST_INPUT_BYTES)
            while chunk := content.read(CHUNK_BYTES):
                sink.write(chunk)
    error = migration_tools.run(tool, source, output)
    if error:
        raise _ConversionFailed(error)
    now = archive.clock()
    with output.open("rb") as body:
        payload, size = digest.of_stream(body, "sha1")
        new = NewRecord(
            kind=RecordKind.CONVERSION,
            url=capture.url,
            date=now,
            content_type=tool.target,
            fields=(
                ("WARC-Refers-To", original_id),
                ("WARC-Payload-Digest", str(payload)),
                ("WARC-Source-Payload-Digest", source_digest),
                ("WARC-Conversion-Tool", tool.name),
            ),
            body=body,
            body_bytes=size,
        )
        (location,) = writer.write([new])
    return Conversion(
        digest=source_digest,
        mime=tool.target,
        package=facts.package.id,
        url=capture.url,
        original_mime=capture.mime,
        location=location,
        tool=tool.name,
        converted_at=now,
    )


def _keep(
    archive: Archive,
    identifier: PackageId,
    tool: Tool,
    converted: list[Conversion],
    containers: list[Sealed],
    failed: dict[str, str],
    folder: Path,
) -> None:
    path = folder / "conversions.jsonl.gz"
    event = archive.event(
        "migrated",
        "package",
        identifier,
        outcome=Outcome.WARNING if failed else Outcome.SUCCESS,
        message=f"{len(converted)} files by {tool.name} to {tool.target}, {len(failed)} failed",
        detail={
            "tool": tool.name,
            "source": tool.source,
            "target": tool.target,
            "failed": dict(list(failed.items())[:100]),
        },
    )
    sources = tuple(map(package_content.source_of, containers))
    with versions.newest(archive, identifier) as facts:
        rows.write_rows(path, (*_iter_rows(archive, facts), *map(migration_tools.to_row, converted)))
        versions.add(
            archive,
            facts,
            {migration_tools.CONVERSIONS: path},
            event=event,
            message=event.message,
            containers=sources,
        )


def _iter_rows(archive: Archive, facts: PackageFacts) -> Iterator[dict[str, object]]:
    """The rows of the conversions that a package already has."""
    if migration_tools.CONVERSIONS in facts.inventory.files():
        with package.open_file(archive.store, facts, migration_tools.CONVERSIONS) as stream:
            yield from rows.read_rows(stream, where=f"{facts.package.id} {migration_tools.CONVERSIONS}")
