"""Take in submissions: bags, OCFL objects, WACZ, UOF, ZIP and tar files, folders, single files, packages of
another Webdepot.

1. Unpack it to a temporary folder, recognise its kind, check structure, checksums and names, run the virus
   scanner.
2. Read every container: if one has no complete record, the whole submission is refused. The rows of a
   package of another Webdepot are written and undone, before anything of it gets into the depot.
3. A submission that was taken in before is recognised by its content, however it is packed now.
4. Refused: a copy of it goes to the quarantine, with the list of reasons. The sender's own file is not
   touched.
5. Taken in: the containers become a harvest of kind `import`, which is ingested like every harvest; the
   sender's other files (descriptions, lists of pages, logs, signatures) become part of the package; the check
   of the harvest uses a crawl log of Heritrix. A package of another Webdepot is kept as it is, under its own
   identifier. A submission without containers is one object, with any kind of files, and is treated like the
   objects of partners (`file_objects`).
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from webdepot import durable
from webdepot.archive import Archive, ScratchPurpose
from webdepot.container.reader import iter_records
from webdepot.depot import fixity, holdings, package, package_content, replication, tombstone
from webdepot.depot.bundle import submission
from webdepot.depot.bundle.submission import Receipt, Submission, SubmissionKind, SubmissionState
from webdepot.depot.ocfl import layout, validation
from webdepot.depot.ocfl import objects as ocfl_objects
from webdepot.depot.store.folder import FolderStore
from webdepot.errors import Conflict, CorruptData, InputError, NotFound, WebdepotError
from webdepot.exchange import uof
from webdepot.exchange.incoming import RefusedObject
from webdepot.harvest import harvest_rows
from webdepot.harvest.heritrix import crawl_log
from webdepot.harvest.report.log import LOG_NAME
from webdepot.model import Harvest, HarvestId, HarvestKind, HarvestState, Package, PackageId, Severity
from webdepot.provenance import Outcome, append
from webdepot.services.catalogue import submitted_records
from webdepot.services.depot import deposit, storage_places
from webdepot.services.harvest import harvests
from webdepot.services.intake import (
    file_objects,
    import_harvests,
    in_place,
    ingest,
    object_lists,
    objects,
    warc_files,
)
from webdepot.services.intake.imports import ImportReport
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.services.intake.object_lists import ListedObject
from webdepot.services.progress import Phase, Progress, Watch, unwatched


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSubmission:
    receipt: Receipt
    is_known: bool
    """Whether it had been taken in before, so that nothing was done."""
    package: Package | None
    report: ArchiveReport | None = None
    warnings: tuple[str, ...] = ()
    """What the sender should know."""


def receive(archive: Archive, path: Path, *, collection: str, watch: Watch = unwatched) -> ReceivedSubmission:
    """Check a submission and take it in, completely or not at all; a refusal is a result with reasons, not an
    error.
    """
    (received,) = _receive_parts(archive, path, collection, watch, is_one=True)
    return received


def receive_each(
    archive: Archive, path: Path, *, collection: str, watch: Watch = unwatched
) -> Iterator[ReceivedSubmission]:
    """As `receive`; one result for each object of a list (`object_lists`), also of one in a ZIP or tar file,
    of an OCFL storage root, or of a collection of WACZ files. InputError if a line of the list is wrong;
    then nothing is taken in.
    """
    if object_lists.is_list(path):
        yield from _receive_listed(archive, path.name, object_lists.read(path), collection, watch)
    else:
        yield from _receive_parts(archive, path, collection, watch)


def receive_folder(
    archive: Archive, folder: Path, *, collection: str, watch: Watch = unwatched
) -> Iterator[ReceivedSubmission]:
    """As `receive_each` for a folder in which somebody put files together: with a list of objects at its top,
    each line is an object, and the list must name every file.
    """
    if listing := object_lists.find_in(folder):
        whole = object_lists.read_whole(listing)
        yield from _receive_listed(archive, listing.name, whole, collection, watch)
    else:
        yield receive(archive, folder, collection=collection, watch=watch)


def _receive_listed(
    archive: Archive, name: str, objects: Sequence[ListedObject], collection: str, watch: Watch
) -> Iterator[ReceivedSubmission]:
    for listed in objects:
        with archive.scratch_folder(ScratchPurpose.UNPACK) as folder:
            watch(Progress(phase=Phase.IMPORT, done=0, note=f"{name}, line {listed.line}"))
            top = object_lists.lay_out(listed, folder)
            most_members = archive.config.depot.import_members
            opened = submission.open_up(top, folder / "submission", most_members=most_members)
            yield _receive(archive, opened, collection, folder, watch, listed=listed)


def _receive_parts(
    archive: Archive, path: Path, collection: str, watch: Watch, *, is_one: bool = False
) -> Iterator[ReceivedSubmission]:
    if not path.exists():
        raise InputError(f"There is no file or folder {path}.")
    with archive.scratch_folder(ScratchPurpose.UNPACK) as folder:
        watch(Progress(phase=Phase.IMPORT, done=0, note=f"checking {path.name}"))
        most_members = archive.config.depot.import_members
        opened = submission.open_up(path, folder / "submission", most_members=most_members)
        is_packed = opened.kind in (SubmissionKind.ZIP, SubmissionKind.TAR) and not opened.reasons
        if is_packed and not is_one and (listing := object_lists.find_in(opened.root)):
            whole = object_lists.read_whole(listing)
            yield from _receive_listed(archive, f"{path.name}/{listing.name}", whole, collection, watch)
            return
        parts = [] if is_one else submission.parts_of(opened)
        for number, part in enumerate(parts):
            watch(Progress(phase=Phase.IMPORT, done=0, note=f"{part.name}, {number + 1} of {len(parts)}"))
            one = submission.open_up(part, folder / f"part-{number}", most_members=most_members)
            yield _receive(archive, one, collection, folder, watch)
        if not parts:
            yield _receive(archive, opened, collection, folder, watch)


def _receive(
    archive: Archive,
    opened: Submission,
    collection: str,
    folder: Path,
    watch: Watch,
    *,
    listed: ListedObject | None = None,
) -> ReceivedSubmission:
    """Take in what was opened; `listed` describes an object of a list."""
    identifier = submission.id_of(opened)
    with archive.database.reading() as connection:
        before = submission.find(connection, identifier)
    if before is not None and before.state is SubmissionState.TAKEN and not opened.reasons:
        return ReceivedSubmission(receipt=before, is_known=True, package=_package_of(archive, before.harvest))
    reasons = list(_reasons(archive, opened, watch))
    if reasons:
        return _refuse(archive, opened, identifier, reasons)
    if submission.is_own_package(opened):
        return _take_package(archive, opened, identifier, folder, watch)
    is_object = opened.kind is SubmissionKind.UOF or listed or not submission.containers_of(opened)
    taken = (
        _take_object(archive, opened, identifier, collection, folder, watch, listed)
        if is_object
        else _take_containers(archive, opened, identifier, collection, watch)
    )
    return replace(taken, warnings=(*opened.warnings, *taken.warnings))


def _reasons(archive: Archive, opened: Submission, watch: Watch) -> Iterator[str]:
    """The reasons to refuse a submission. If it is unsafe to read, the check ends there."""
    yield from opened.reasons
    if opened.reasons:
        return
    yield from submission.scan(archive.config.depot.virus_scanner, opened.path)
    if opened.kind is SubmissionKind.OCFL and submission.is_own_package(opened):
        yield from _reasons_of_ocfl(archive, opened)
        return
    if opened.kind is SubmissionKind.UOF:
        return
    containers = submission.containers_of(opened)
    for number, path in enumerate(containers, start=1):
        watch(Progress(phase=Phase.IMPORT, done=number, total=len(containers), note=path.name))
        if not _has_records(path):
            yield f"{path.name} contains no complete record"
    if opened.kind is SubmissionKind.PACKAGE:
        try:
            yield from _withdrawn(archive, _identifier_of(opened))
        except InputError as error:
            yield str(error)


def _reasons_of_ocfl(archive: Archive, opened: Submission) -> Iterator[str]:
    """What is wrong with a package of Webdepot, beyond the rules of OCFL."""
    folder = validation.find_objects(opened.root)[0]
    identifier = validation.identifier_of(folder)
    if not package_content.is_identifier(identifier):
        yield "its object does not have the identifier of a package (urn:uuid:…)"
        return
    if folder.relative_to(opened.root).as_posix() != layout.folder_of(identifier):
        yield (
            f"the package {identifier} is not in its place in a storage root. "
            "Submit what this command wrote: webdepot package export --form ocfl"
        )
        return
    for finding in fixity.verify_package(FolderStore(opened.root), PackageId(identifier)):
        if finding.severity is Severity.ERROR:
            yield finding.message
    yield from _withdrawn(archive, identifier)


def _withdrawn(archive: Archive, identifier: str) -> Iterator[str]:
    with archive.database.reading() as connection:
        stone = tombstone.find(connection, identifier)
    if stone is not None:
        yield f"the package {identifier} was withdrawn on {stone.withdrawn_at:%Y-%m-%d}: {stone.reason}"


def _has_records(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return any(True for _ in iter_records(stream, path.name, on_finding=lambda _: None))
    except WebdepotError:
        return False


def _take_containers(
    archive: Archive, opened: Submission, identifier: str, collection: str, watch: Watch
) -> ReceivedSubmission:
    """Take in the containers of a submission. A repeated call continues from where the last one ended."""
    settings = {"submission": identifier}
    harvest = _find_begun(archive, collection, settings)
    if harvest is None:
        report = ImportReport()
        intake = warc_files.take_files(
            archive,
            submission.containers_of(opened),
            collection=collection,
            settings=settings,
            note=report.add,
            watch=watch,
        )
        skipped = [f"{outcome.file}: {outcome.reason}" for outcome in report.skipped]
        reasons = [*skipped, *_unfinished(archive, intake.known)]
        if reasons:
            if intake.harvest is not None:
                objects.undo(archive, intake.harvest)
            return _refuse(archive, opened, identifier, reasons)
        harvest = intake.harvest
    if harvest is None:  # the archive already had every single file
        receipt = _accept(archive, opened, identifier, "")
        return ReceivedSubmission(receipt=receipt, is_known=True, package=None)
    if harvest.state is not HarvestState.KEPT:
        others = submission.others_of(opened)
        deposit.keep_submitted(archive, harvest, others)
        _take_over_log(archive, harvest, others)
        described = submission.read_description(opened, uof.NAME)
        submitted_records.keep_levels(archive, harvest, described, sender=opened.path.name)
    done = ingest.take_in(archive, harvests.get(archive, harvest.id), deposit=True, watch=watch)
    receipt = _accept(archive, opened, identifier, harvest.id)
    return ReceivedSubmission(receipt=receipt, is_known=False, package=done.package, report=done)


def _take_over_log(archive: Archive, harvest: Harvest, others: Mapping[str, Path]) -> None:
    """Let the check of the harvest use the crawl log of the job that came with the containers, if there is
    exactly one: it says which addresses failed.
    """
    logs = [path for name, path in others.items() if name.rpartition("/")[2] == LOG_NAME]
    if len(logs) == 1:
        crawl_log.take_over(logs[0], harvests.folder_of(archive, harvest))


def _find_begun(archive: Archive, collection: str, settings: Mapping[str, object]) -> Harvest | None:
    """The harvest of this submission if an earlier call took in all its files and was interrupted later."""
    target = import_harvests.target_of(archive, collection)
    with archive.database.reading() as connection:
        ended = harvest_rows.of_target(connection, target.id, HarvestKind.IMPORT)
    return next((harvest for harvest in ended if harvest.settings == settings), None)


def _unfinished(archive: Archive, known: Mapping[HarvestId, str]) -> Iterator[str]:
    """The reasons to refuse a submission whose files belong to imports that are not complete."""
    for identifier, path in known.items():
        harvest = harvests.get(archive, identifier)
        if not ingest.is_complete(archive, harvest, deposit=harvest.settings != in_place.SETTINGS):
            yield (
                f"{Path(path).name} belongs to harvest {harvest.id}, which is not complete. "
                f"Complete it first: webdepot harvest resume {harvest.id}"
            )


def _take_package(
    archive: Archive, opened: Submission, identifier: str, folder: Path, watch: Watch
) -> ReceivedSubmission:
    try:
        held = _adopt(archive, opened, folder, watch)
    except (CorruptData, NotFound, InputError, Conflict) as error:
        return _refuse(archive, opened, identifier, [str(error)])
    receipt = _accept(archive, opened, identifier, held.harvest)
    return ReceivedSubmission(receipt=receipt, is_known=False, package=held)


def _take_object(
    archive: Archive,
    opened: Submission,
    identifier: str,
    collection: str,
    folder: Path,
    watch: Watch,
    listed: ListedObject | None,
) -> ReceivedSubmission:
    try:
        taken = file_objects.take(
            archive, opened, collection=collection, folder=folder, watch=watch, listed=listed
        )
    except RefusedObject as refused:
        return _refuse(archive, opened, identifier, list(refused.reasons))
    known, report = taken.known, taken.report
    held = known or (report.package if report else None)
    receipt = _accept(archive, opened, identifier, held.harvest if held else "")
    return ReceivedSubmission(
        receipt=receipt,
        is_known=known is not None,
        package=held,
        report=report,
        warnings=tuple(taken.warnings),
    )


def _adopt(archive: Archive, opened: Submission, folder: Path, watch: Watch) -> Package:
    """Take in a package of another Webdepot: byte for byte, under its own identifier, and indexed.

    CorruptData, NotFound, InputError or Conflict if it cannot be used, and then nothing of it is kept.
    """
    source = _source_of(archive, opened, folder)
    identifier = PackageId(next(ocfl_objects.iter_objects(source)))
    facts = package.read(source, identifier)
    ocfl_objects.frame(facts.inventory)  # CorruptData if it could not be copied
    with archive.database.reading() as connection:
        held = holdings.find(connection, identifier)
    existing = ocfl_objects.find_inventory(archive.store, identifier)
    if existing is not None and existing.files() != facts.inventory.files():
        raise Conflict(f"The depot has the package {identifier} with other files, which are not replaced.")
    if held is None:
        deposit.rehearse(archive, source, facts)
        deposit.announce(archive, identifier)
        if existing is None:
            result = replication.replicate(archive.store, {"submission": source}, facts.inventory)
            if result.lost:
                replication.remove(archive.store, identifier)
                raise CorruptData(f"{result.lost[0]} is damaged.", where=identifier)
        held = deposit.record_foreign(archive, identifier)
    storage_places.copy_out(archive, held.id)
    ingest.publish(archive, held.harvest, watch=watch)
    return held


def _source_of(archive: Archive, opened: Submission, folder: Path) -> FolderStore:
    """The submitted package as an OCFL object; one that came as files is made into one in `folder`."""
    if opened.kind is SubmissionKind.OCFL:
        return FolderStore(opened.root)
    source = FolderStore(folder / "package")
    root = opened.root / "data" if (opened.root / "data" / package_content.FACTS).is_file() else opened.root
    ocfl_objects.put_version(
        source,
        _identifier_of(opened),
        {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()},
        message=f"Received as {opened.path.name}",
        user=archive.agent,
        created=archive.clock(),
    )
    return source


def _identifier_of(opened: Submission) -> str:
    """The identifier in package.json; InputError if there is none."""
    for root in (opened.root / "data", opened.root):
        if (root / package_content.FACTS).is_file():
            try:
                identifier = json.loads((root / package_content.FACTS).read_bytes())["id"]
            except (ValueError, KeyError, TypeError, RecursionError):
                identifier = None
            if isinstance(identifier, str) and package_content.is_identifier(identifier):
                return identifier
    raise InputError(f"{opened.path.name} has no {package_content.FACTS} with the identifier of a package.")


def _refuse(archive: Archive, opened: Submission, identifier: str, reasons: list[str]) -> ReceivedSubmission:
    """Copy the submission to the quarantine and record the refusal."""
    place = archive.home / "quarantine" / identifier[:16]
    partial = place.with_name(f".{place.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    durable.make_folders(partial)
    if opened.path.is_dir():
        shutil.copytree(opened.path, partial / opened.path.name, symlinks=True)
    else:
        shutil.copy2(opened.path, partial / opened.path.name)
    refusal = {"name": opened.path.name, "kind": opened.kind.value, "reasons": reasons}
    (partial / "reasons.json").write_text(
        json.dumps(refusal, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    durable.sync_tree(partial)
    shutil.rmtree(place, ignore_errors=True)
    partial.rename(place)
    durable.sync_folder(place.parent)
    receipt = Receipt(
        id=identifier,
        name=opened.path.name,
        kind=opened.kind,
        state=SubmissionState.REFUSED,
        received_at=archive.clock(),
        agent=archive.agent,
        place=place.relative_to(archive.home).as_posix(),
        reasons=tuple(reasons[:1000]),
    )
    _record(archive, receipt)
    return ReceivedSubmission(receipt=receipt, is_known=False, package=None)


def _accept(archive: Archive, opened: Submission, identifier: str, harvest: str) -> Receipt:
    """Record that the submission was taken in."""
    receipt = Receipt(
        id=identifier,
        name=opened.path.name,
        kind=opened.kind,
        state=SubmissionState.TAKEN,
        received_at=archive.clock(),
        agent=archive.agent,
        harvest=harvest,
    )
    _record(archive, receipt, opened.warnings if not submission.is_own_package(opened) else ())
    return receipt


def _record(archive: Archive, receipt: Receipt, warnings: tuple[str, ...] = ()) -> None:
    is_taken = receipt.state is SubmissionState.TAKEN
    message = f"{receipt.name} ({receipt.kind.value})"
    event = archive.event(
        "received" if is_taken else "refused",
        "submission",
        receipt.id,
        outcome=Outcome.SUCCESS if is_taken else Outcome.FAILURE,
        message=f"{message}: {receipt.reasons[0]}" if receipt.reasons else message,
        detail={"harvest": receipt.harvest, **({"warnings": list(warnings[:20])} if warnings else {})},
    )
    with archive.database.transaction() as connection:
        submission.record(connection, receipt)
        append(connection, event)


def _package_of(archive: Archive, harvest: str) -> Package | None:
    return deposit.find_package(archive, harvests.get(archive, harvest).id) if harvest else None
