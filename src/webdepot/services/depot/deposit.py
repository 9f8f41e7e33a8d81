"""Deposit a harvest in the depot, and rebuild its database rows from the depot alone.

1. Write the description of the harvest (captures, findings, Dublin Core) to its working folder.
2. Build the package in the depot: complete or not at all, durable on return.
3. In one transaction: the row of the package, the new places of its containers, the harvest's state, the
   copies that other places need, the event.
4. Copy the package to the other places; the next audit copies it to a place that cannot be reached now.
5. Remove the working folder.

Each step can be repeated; after a crash between them nothing is lost and nothing incomplete is visible.
"""

import dataclasses
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from io import BytesIO
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from webdepot import durable
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot import holdings, package, package_content, rows
from webdepot.depot.ocfl import objects
from webdepot.depot.package_content import SUBMISSION, ContainerSource, PackageContent, PackageFacts
from webdepot.errors import Conflict, CorruptData, NotFound, cause_of
from webdepot.exchange import catalogue, transfer_zip
from webdepot.exchange.metadata import dublin_core
from webdepot.formats import results
from webdepot.harvest import harvest_rows
from webdepot.harvest.report.log import JSON_NAME
from webdepot.model import (
    Answer,
    Capture,
    Harvest,
    HarvestId,
    HarvestKind,
    HarvestState,
    Package,
    PackageId,
    Verdict,
)
from webdepot.ports.object_store import ObjectStore
from webdepot.provenance import Event, append, iter_of
from webdepot.quality import finding_rows
from webdepot.reasons import from_told
from webdepot.selection import target_verdicts, targets
from webdepot.services.depot import deposit_records, file_formats, storage_places, versions
from webdepot.services.depot.deposit_records import PackageOrigin
from webdepot.services.depot.site_metadata import StartPage
from webdepot.services.harvest import harvests
from webdepot.services.index import derived_files
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.services.quality import harvest_check, identification
from webdepot.times import from_iso
from webdepot.version import VERSION

RECEIVING = "receiving"
"""The action of the event before a package of another archive is copied into the depot."""
ELSEWHERE = " (another archive)"
"""Added to the names of people and programs of another archive."""


def keep(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> Package:
    """The harvest's package, built now if it does not exist yet. Conflict if the harvest is not finished."""
    if harvest.state not in (HarvestState.FINISHED, HarvestState.KEPT):
        raise Conflict(
            f"Harvest {harvest.id} is {harvest.state.value}; only a finished harvest can be deposited."
        )
    with harvests.locked(harvests.folder_of(archive, harvest)):
        kept = find_package(archive, harvest.id)
        if kept is None:
            _fetch_folder(archive, harvest, watch)
            watch(
                Progress(
                    phase=Phase.KEEP,
                    done=0,
                    total=len(_containers(archive, harvest.id)),
                    note="writing the description",
                )
            )
            facts = package.build(archive.store, _content(archive, harvest))
            _record(archive, facts, PackageOrigin.NEW)
            kept = facts.package
        storage_places.copy_out(archive, kept.id)
        harvests.remove_folder(archive, harvest)
    return kept


def _fetch_folder(archive: Archive, harvest: Harvest, watch: Watch) -> None:
    """Bring the working folder of a harvest from the working place, if harvesters ran it and another machine
    checked it. Results that only that machine had are computed again.
    """
    folder, parts = harvests.folder_of(archive, harvest), harvests.parts_of(archive, harvest)
    if not parts or (folder / JSON_NAME).exists():
        return
    rows_folder = identification.rows_folder(archive, harvest)
    durable.make_folders(rows_folder)
    with archive.database.reading() as connection:
        held = locations.of_harvest(connection, harvest.id)
    for _ in identification.iter_surveys(archive, held, rows_folder, watch):
        pass
    harvests.gather(archive, harvest, parts)
    harvest_check.check(archive, harvest, watch=watch)


def keep_submitted(archive: Archive, harvest: Harvest, files: Mapping[str, bytes | Path]) -> None:
    """Put the sender's other files into the working folder; `keep` adds them to the package."""
    folder = harvests.folder_of(archive, harvest) / SUBMISSION
    for name, content in files.items():
        durable.make_folders((folder / name).parent)
        with (
            BytesIO(content) if isinstance(content, bytes) else content.open("rb") as source,
            durable.whole_file(folder / name) as sink,
        ):
            shutil.copyfileobj(source, sink)


def find_package(archive: Archive, harvest: HarvestId) -> Package | None:
    with archive.database.reading() as connection:
        return holdings.find_of_harvest(connection, harvest)


def adopt(archive: Archive) -> list[Package]:
    """Add the packages that are in the depot but not in the database; CorruptData if one cannot be read."""

    def refuse(message: str) -> None:
        raise CorruptData(message, where=str(archive.depot_address))

    return list(iter_adopted(archive, on_failure=refuse))


def iter_adopted(
    archive: Archive, *, on_failure: Callable[[str], None], received: Collection[str] = ()
) -> Iterator[Package]:
    """As `adopt`, one by one; `on_failure` gets a message for each package that cannot be read. `received`
    names packages of other archives that the database does not know as such.
    """
    with archive.database.reading() as connection:
        known = set(holdings.iter_ids(connection))
    for identifier in package.iter_packages(archive.store):
        if identifier in known:
            continue
        try:
            objects.finish_write(archive.store, identifier)
            facts = package.read(archive.store, identifier)
            is_received = identifier in received or _is_announced(archive, identifier)
            _record(archive, facts, PackageOrigin.RECEIVED if is_received else PackageOrigin.RESTORED)
        except (CorruptData, NotFound) as error:
            on_failure(f"{identifier}: {error}")
        else:
            yield facts.package


def announce(archive: Archive, identifier: PackageId) -> None:
    """Record that a package of another archive is about to be copied into the depot, so that it is never
    taken for one of ours, not even after a kill or in a rebuild.
    """
    if not _is_announced(archive, identifier):
        with archive.database.transaction() as connection:
            append(connection, archive.event(RECEIVING, "package", identifier))


def _is_announced(archive: Archive, identifier: PackageId) -> bool:
    with archive.database.reading() as connection:
        return any(event.action == RECEIVING for event in iter_of(connection, "package", identifier))


def rehearse(archive: Archive, store: ObjectStore, facts: PackageFacts) -> None:
    """Write the rows of a package of another archive that is not in the depot yet, and undo that: CorruptData
    if they cannot be written.
    """
    try:
        with archive.database.transaction() as connection:
            _write_rows(archive, connection, store, facts, PackageOrigin.FOREIGN)
            connection.rollback()
    except (
        SQLAlchemyError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise CorruptData(
            f"The package {facts.package.id} cannot be used: {cause_of(error)}.", where=facts.package.id
        ) from error


def record_foreign(archive: Archive, identifier: PackageId) -> Package:
    """Write the rows of a package of another archive that is in the depot."""
    facts = package.read(archive.store, identifier)
    _record(archive, facts, PackageOrigin.FOREIGN)
    return facts.package


def _record(archive: Archive, facts: PackageFacts, origin: PackageOrigin) -> None:
    with archive.database.transaction() as connection:
        _write_rows(archive, connection, archive.store, facts, origin)


def _write_rows(
    archive: Archive, connection: Connection, store: ObjectStore, facts: PackageFacts, origin: PackageOrigin
) -> None:
    """Write the rows of a package: target, harvest, containers, findings, catalogue, history.

    Rows that exist already stay as they are.
    """
    if not harvest_rows.exists(connection, facts.harvest.id):
        _restore(store, connection, facts, is_ours=origin.is_ours)
    elif origin is PackageOrigin.FOREIGN:
        raise CorruptData(
            f"Harvest {facts.harvest.id} is already in this archive, in another package.",
            where=facts.package.id,
        )
    versions.write_rows(archive, connection, store, facts)
    harvest_rows.move(connection, facts.harvest.id, HarvestState.KEPT, reason=facts.harvest.reason)
    target = harvest_rows.get(connection, facts.harvest.id).target
    deposit_records.restore(archive, connection, store, facts, target, origin)
    event = archive.event(
        "kept",
        "package",
        facts.package.id,
        message=f"harvest {facts.harvest.id} in {_counted(len(facts.containers))}",
        detail={"urn": facts.package.urn, "bytes": facts.package.size_bytes},
    )
    append(connection, event)


def _restore(store: ObjectStore, connection: Connection, facts: PackageFacts, *, is_ours: bool) -> None:
    """Write the rows of target and harvest from a package; a target may get another number than before.

    Decisions and events of another archive are kept as a record, marked as such; nothing here follows from
    them.
    """
    mark = "" if is_ours else ELSEWHERE
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
        target_verdicts.keep_verdict(
            connection,
            target.id,
            decision["question"],
            verdict,
            agent=f"{decision['agent'][:180]}{mark}",
            now=now,
        )
    settings = dict(facts.harvest.settings) | ({} if is_ours else {harvest_rows.RECEIVED: True})
    harvest_rows.begin(
        connection,
        dataclasses.replace(facts.harvest, target=target.id, state=HarvestState.KEPT, settings=settings),
    )
    finding_rows.replace(connection, facts.harvest.id, package.iter_findings(store, facts))
    finding_rows.judge(connection, facts.harvest.id, facts.verdict, at=facts.package.stored_at)
    formats = package.iter_formats(store, facts)
    results.restore(connection, facts.harvest.id, formats, facts.surveys, at=facts.package.stored_at)
    for event in package.iter_events(store, facts):
        if not is_ours and not _is_about(event, facts):
            continue
        is_targets = (event.subject_kind, event.subject) == ("target", str(facts.target.id))
        subject = str(target.id) if is_targets else event.subject
        append(connection, dataclasses.replace(event, subject=subject, agent=f"{event.agent[:180]}{mark}"))


def _is_about(event: Event, facts: PackageFacts) -> bool:
    """Whether an event is about a package, and not about something else that has the same name here."""
    own: dict[str, set[str]] = {
        "target": {str(facts.target.id)},
        "harvest": {facts.harvest.id},
        "package": {facts.package.id},
        "container": {each.name for each in facts.containers},
    }
    return event.subject in own.get(event.subject_kind, set())


def _content(archive: Archive, harvest: Harvest) -> PackageContent:
    """The content of the package; the file of captures is written to the working folder first."""
    folder = harvests.folder_of(archive, harvest)
    with archive.database.reading() as connection:
        target = targets.get(connection, harvest.target)
        decisions = tuple(target_verdicts.iter_verdicts(connection, target.id))
        history = tuple(_history(connection, harvest))
        verdict = finding_rows.find_verdict(connection, harvest.id)
        surveys = results.facts_of(connection, harvest.id)
    containers = _containers(archive, harvest.id)
    start = StartPage(() if harvest.kind is HarvestKind.IMPORT else harvest.seeds)
    rows.write_captures(folder / "captures.cdxj.gz", start.watch(_iter_captures(archive, harvest.id)))
    identifier = package_content.id_of(harvest.id)
    levels, transfer_object = deposit_records.levels_for(
        archive,
        target,
        harvest,
        folder,
        containers,
        site_values=start.read_values(
            {each.name: each.path for each in containers}, archive.config.archive.languages
        ),
    )
    if transfer_object is not None:
        captures = _iter_captures(archive, harvest.id)
        transfer_object = file_formats.fill_in(archive, transfer_object, captures)
    own = levels[-1]
    title = f"{own.title}, {own.date}" if own.date else own.title
    described = dublin_core.of_levels(levels, identifiers=(identifier,))
    transfer_document = transfer_zip.to_document(transfer_object) if transfer_object else None
    catalogued = catalogue.to_document(levels, transfer_document)
    return PackageContent(
        id=identifier,
        urn=own.urn,
        title=title,
        target=target,
        harvest=harvest,
        containers=containers,
        captures=folder / "captures.cdxj.gz",
        formats=tuple(sorted(identification.rows_folder(archive, harvest).glob("*.jsonl.gz"))),
        findings=harvest_check.findings_file(archive, harvest),
        logs=tuple(path for path in (folder / "crawl.log", folder / "crawl.jsonl") if path.exists()),
        verdict=harvest_check.NOT_CHECKED if verdict is None else verdict,
        surveys=surveys,
        events=history,
        descriptions={"dublin_core.xml": dublin_core.to_xml(described), deposit_records.FILE: catalogued},
        submitted=_submitted(folder / SUBMISSION),
        agent=archive.agent,
        stored_at=archive.clock(),
        address=archive.config.archive.contact,
        decisions=decisions,
        # As the surveys name it: asking the engine itself would start it, which takes a second.
        tools={"webdepot": VERSION, "formats": ", ".join(sorted({each["engine"] for each in surveys}))},
    )


def _submitted(folder: Path) -> dict[str, Path]:
    return {
        f"{SUBMISSION}/{path.relative_to(folder).as_posix()}": path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _containers(archive: Archive, harvest: HarvestId) -> tuple[ContainerSource, ...]:
    with archive.database.reading() as connection:
        held = locations.of_harvest(connection, harvest)
    return tuple(
        ContainerSource(
            name=container.name,
            path=archive.containers.path(container.name),
            size_bytes=container.size_bytes,
            sha256=container.sha256,
            records=container.records,
        )
        for container in held
    )


def _iter_captures(archive: Archive, harvest: HarvestId) -> Iterator[Capture]:
    with archive.database.reading() as connection:
        held = locations.of_harvest(connection, harvest)
    for container in held:
        yield from derived_files.iter_captures(archive, container)


def _history(connection: Connection, harvest: Harvest) -> Iterator[Event]:
    yield from iter_of(connection, "target", str(harvest.target))
    yield from iter_of(connection, "harvest", harvest.id)
    for container in locations.of_harvest(connection, harvest.id):
        yield from iter_of(connection, "container", container.name)


def _counted(containers: int) -> str:
    return "1 container" if containers == 1 else f"{containers} containers"
