"""Putting a harvest into the depot, and making the database again from the depot alone.

1. Write what describes the harvest (captures, findings, Dublin Core) into its working folder.
2. Build the package in the depot: whole or not at all, durable on return.
3. One transaction: package row, containers moved, harvest kept, its copies in the other places waited for,
   event.
4. Copy it to the other places; one that is away gets it by the next audit.
5. Remove the working folder: the depot has it all.

Each step can be repeated; a kill between them leaves nothing lost and nothing half-visible.
"""

import dataclasses
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.depot import copies, holdings, migration, package, places, rows
from webdepot.depot.copies import Copy, CopyState
from webdepot.depot.migration import Conversion
from webdepot.depot.package import ContainerSource, PackageContent, PackageFacts
from webdepot.depot.places import MAIN
from webdepot.errors import Conflict, CorruptData, NotFound
from webdepot.exchange import catalogue, transfer
from webdepot.exchange.metadata import dublin_core
from webdepot.formats import results
from webdepot.harvest import runs
from webdepot.index import entry
from webdepot.model import (
    Answer,
    Capture,
    ContainerState,
    Harvest,
    HarvestId,
    HarvestKind,
    HarvestState,
    Package,
    Verdict,
)
from webdepot.provenance import Event, append, iter_of
from webdepot.quality import records
from webdepot.reasons import from_told
from webdepot.selection import targets
from webdepot.services.depot import audit, titles
from webdepot.services.depot.site_metadata import StartPage
from webdepot.services.harvest import harvests
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.services.quality import harvest_check
from webdepot.times import from_iso
from webdepot.version import VERSION

SUBMISSION = "submission"
"""Folder of what a sender wrote: below the working folder, later below `metadata/`."""


def keep(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> Package:
    """The harvest's package, built now if it is not there yet. Conflict while the harvest is not finished."""
    if harvest.state not in (HarvestState.FINISHED, HarvestState.KEPT):
        raise Conflict(
            f"Harvest {harvest.id} is {harvest.state.value}; only a finished harvest goes into the depot."
        )
    with harvests.locked(harvests.folder_of(archive, harvest)):
        found = find_package(archive, harvest.id)
        if found is None:
            watch(
                Progress(
                    phase=Phase.KEEP,
                    done=0,
                    total=len(_containers(archive, harvest.id)),
                    note="writing the description",
                )
            )
            facts = package.build(archive.store, _content(archive, harvest))
            _record(archive, facts, is_new=True)
            found = facts.package
            audit.copy_out(archive, found.id)
        shutil.rmtree(harvests.folder_of(archive, harvest), ignore_errors=True)
    return found


def keep_descriptions(archive: Archive, harvest: Harvest, described: Mapping[str, bytes]) -> None:
    """What the sender of a submission wrote about it waits beside the containers for the package."""
    folder = harvests.folder_of(archive, harvest) / SUBMISSION
    for name, data in described.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def find_package(archive: Archive, harvest: HarvestId) -> Package | None:
    with archive.database.reading() as connection:
        return holdings.find_of_harvest(connection, harvest)


def adopt(archive: Archive) -> list[Package]:
    """Packages that are in the depot but not in the database: their rows made again from the depot alone."""

    def refuse(words: str) -> None:
        raise CorruptData(words, where=str(archive.depot_address))

    return list(iter_adopted(archive, on_failure=refuse))


def iter_adopted(archive: Archive, *, on_failure: Callable[[str], None]) -> Iterator[Package]:
    """As `adopt`, one by one; a package that cannot be read is told with its reason."""
    with archive.database.reading() as connection:
        known = set(holdings.iter_ids(connection))
    for identifier in package.iter_packages(archive.store):
        if identifier in known:
            continue
        try:
            facts = package.read(archive.store, identifier)
            _record(archive, facts)
        except (CorruptData, NotFound) as error:
            on_failure(f"{identifier}: {error}")
        else:
            yield facts.package


def _record(archive: Archive, facts: PackageFacts, *, is_new: bool = False) -> None:
    """The package as rows: target, harvest, containers, findings, catalogue, history. What is there already
    stays.
    """
    now = archive.clock()
    with archive.database.transaction() as connection:
        if not runs.exists(connection, facts.harvest.id):
            _restore(archive, connection, facts)
        _place_containers(connection, facts)
        migration.record(connection, _conversions(archive, facts))
        holdings.record(connection, facts.package, facts.inventory.sha256)
        _expect_copies(connection, facts, now)
        runs.move(connection, facts.harvest.id, HarvestState.KEPT, reason=facts.harvest.reason)
        titles.restore(
            archive, connection, facts, runs.get(connection, facts.harvest.id).target, is_new=is_new
        )
        event = Event(
            at=now,
            agent=archive.agent,
            action="kept",
            subject_kind="package",
            subject=facts.package.id,
            message=f"harvest {facts.harvest.id} in {len(facts.containers)} containers",
            detail={"urn": facts.package.urn, "bytes": facts.package.size_bytes},
        )
        append(connection, event)


def record_version(archive: Archive, facts: PackageFacts, event: Event) -> None:
    """A new version of a package that the database knows: more containers, conversions, one more event; other
    places wait for it.
    """
    with archive.database.transaction() as connection:
        _place_containers(connection, facts)
        migration.record(connection, _conversions(archive, facts))
        holdings.record(connection, facts.package, facts.inventory.sha256)
        _expect_copies(connection, facts, archive.clock())
        append(connection, event)


def _place_containers(connection: Connection, facts: PackageFacts) -> None:
    for container in facts.containers:
        if shelf.find(connection, container.name) is None:
            shelf.add(connection, container)
        shelf.move(connection, container.name, ContainerState.KEPT, container.place)


def _conversions(archive: Archive, facts: PackageFacts) -> Iterator[Conversion]:
    if migration.CONVERSIONS in facts.inventory.files():
        with package.open_file(archive.store, facts, migration.CONVERSIONS) as stream:
            yield from migration.from_rows(
                rows.read_rows(stream, where=f"{facts.package.id} {migration.CONVERSIONS}")
            )


def _expect_copies(connection: Connection, facts: PackageFacts, now: datetime) -> None:
    """The main place has it, read back; every other place waits for it, or for the new version of it."""
    held = facts.package
    for name in (MAIN, *(place.name for place in places.every(connection))):
        state = CopyState.WHOLE if name == MAIN else CopyState.WAITING
        version = held.version if name == MAIN else 0
        copy = Copy(
            place=name,
            package=held.id,
            version=version,
            state=state,
            size_bytes=held.size_bytes,
            checked_at=now,
        )
        copies.record(connection, copy)


def _restore(archive: Archive, connection: Connection, facts: PackageFacts) -> None:
    """Target and harvest of a package that came back from the depot; numbers of targets are given anew."""
    target, is_new = targets.register(
        connection,
        facts.target.seeds,
        name=facts.target.name,
        collection=facts.target.collection,
        purpose=facts.target.purpose,
        now=facts.target.created_at,
    )
    for decision in facts.decisions if is_new else ():
        verdict = Verdict(
            answer=Answer(decision["answer"]), rule=decision["rule"], reason=from_told(decision)
        )
        now = from_iso(decision["at"])
        targets.keep_verdict(
            connection, target.id, decision["question"], verdict, agent=decision["agent"], now=now
        )
    runs.begin(connection, dataclasses.replace(facts.harvest, target=target.id, state=HarvestState.KEPT))
    records.replace(connection, facts.harvest.id, package.iter_findings(archive.store, facts))
    records.judge(connection, facts.harvest.id, facts.verdict, at=facts.package.stored_at)
    formats = package.iter_formats(archive.store, facts)
    results.restore(connection, facts.harvest.id, formats, facts.surveys, at=facts.package.stored_at)
    for event in package.iter_events(archive.store, facts):
        append(connection, event)


def _content(archive: Archive, harvest: Harvest) -> PackageContent:
    """Everything the package is made of; the row files are written beside the containers first."""
    folder = harvests.folder_of(archive, harvest)
    with archive.database.reading() as connection:
        target = targets.get(connection, harvest.target)
        decisions = tuple(targets.iter_verdicts(connection, target.id))
        history = tuple(_history(connection, harvest))
        verdict = records.find_verdict(connection, harvest.id)
        surveys = results.facts_of(connection, harvest.id)
    containers = _containers(archive, harvest.id)
    start = StartPage(() if harvest.kind is HarvestKind.IMPORT else harvest.seeds)
    rows.write_captures(folder / "captures.cdxj.gz", start.watch(_iter_captures(archive, containers)))
    identifier = package.id_of(harvest.id)
    levels, handed_over = titles.levels_for(
        archive,
        target,
        harvest,
        folder,
        containers,
        said=start.words({each.name: each.path for each in containers}, archive.config.archive.languages),
    )
    own = levels[-1]
    title = f"{own.title}, {own.date}" if own.date else own.title
    described = dublin_core.of_levels(levels, identifiers=(identifier,))
    catalogued = catalogue.to_document(levels, transfer.to_document(handed_over) if handed_over else None)
    return PackageContent(
        id=identifier,
        urn=own.urn,
        title=title,
        target=target,
        harvest=harvest,
        containers=containers,
        captures=folder / "captures.cdxj.gz",
        formats=tuple(sorted(harvest_check.rows_folder(archive, harvest).glob("*.jsonl.gz"))),
        findings=harvest_check.findings_file(archive, harvest),
        logs=tuple(path for path in (folder / "crawl.log", folder / "crawl.jsonl") if path.exists()),
        verdict=harvest_check.NOT_CHECKED if verdict is None else verdict,
        surveys=surveys,
        events=history,
        descriptions={"dublin_core.xml": dublin_core.to_xml(described), titles.FILE: catalogued}
        | _submitted(folder / SUBMISSION),
        agent=archive.agent,
        stored_at=archive.clock(),
        address=archive.config.archive.contact,
        decisions=decisions,
        tools={"webdepot": VERSION, "formats": archive.identifier.engine},
    )


def _submitted(folder: Path) -> dict[str, bytes]:
    return {
        f"{SUBMISSION}/{path.name}": path.read_bytes() for path in sorted(folder.glob("*")) if path.is_file()
    }


def _containers(archive: Archive, harvest: HarvestId) -> tuple[ContainerSource, ...]:
    with archive.database.reading() as connection:
        held = shelf.of_harvest(connection, harvest)
    return tuple(
        ContainerSource(
            name=container.name,
            path=archive.container_path(container.name),
            size_bytes=container.size_bytes,
            sha256=container.sha256,
            records=container.records,
        )
        for container in held
    )


def _iter_captures(archive: Archive, containers: tuple[ContainerSource, ...]) -> Iterator[Capture]:
    for container in containers:
        # Damage was found and counted by the check of the harvest.
        yield from entry.of_container(container.path, container.name, on_finding=lambda _: None)


def _history(connection: Connection, harvest: Harvest) -> Iterator[Event]:
    yield from iter_of(connection, "target", str(harvest.target))
    yield from iter_of(connection, "harvest", harvest.id)
    for container in shelf.of_harvest(connection, harvest.id):
        yield from iter_of(connection, "container", container.name)
