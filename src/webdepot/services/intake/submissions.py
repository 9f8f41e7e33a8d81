"""Taking in submissions: bags, WACZ, ZIP and UOF files, folders of containers, packages of another Webdepot.

1. Unpack beside, recognise what it is, check structure, checksums and names; ask the virus scanner.
2. Read every container: one without a whole record refuses the submission. All or nothing.
3. A submission that was taken before is recognised by its bytes, however it is packed now.
4. Refused: a copy as it came goes into the quarantine, with the list of reasons beside it. The sender's own
   file is not touched.
5. Taken: the containers become a harvest of kind `import` and go the way of every harvest; what the sender
   wrote about it (bag-info, METS, datapackage) becomes part of the package. A package of another Webdepot is
   kept as it is, under its own identifier. An object in UOF, of whatever files, goes the way of partners'
   objects (`uof`).
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webdepot.archive import Archive
from webdepot.container.reader import iter_records
from webdepot.depot import copying, fixity, holdings, ocfl, package, tombstone
from webdepot.depot.bundle import submission
from webdepot.depot.bundle.submission import Receipt, Submission, SubmissionKind, SubmissionState
from webdepot.depot.store.folder import FolderStore
from webdepot.errors import CorruptData, InputError, NotFound, WebdepotError
from webdepot.exchange import uof
from webdepot.exchange.incoming import RefusedObject
from webdepot.model import Package, PackageId, Severity
from webdepot.provenance import Event, Outcome, append
from webdepot.services.catalogue import levels
from webdepot.services.depot import audit, deposit
from webdepot.services.harvest import harvests
from webdepot.services.index import indexer
from webdepot.services.intake import ingest, warc_files
from webdepot.services.intake import uof as uof_service
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.services.progress import Phase, Progress, Watch, unwatched


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    receipt: Receipt
    is_known: bool
    """It had been taken before: nothing was done."""
    package: Package | None
    report: ArchiveReport | None = None


def receive(archive: Archive, path: Path, *, collection: str, watch: Watch = unwatched) -> Received:
    """Check a submission and take it, whole or not at all; a refusal is a result with reasons, not an error."""
    if not path.exists():
        raise InputError(f"There is no file or folder {path}.")
    archive.home.joinpath("quarantine").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=archive.home) as folder:
        watch(Progress(phase=Phase.IMPORT, done=0, note=f"looking through {path.name}"))
        found = submission.open_up(path, Path(folder) / "submission")
        identifier = submission.id_of(found)
        with archive.database.reading() as connection:
            before = submission.find(connection, identifier)
        if before is not None and before.state is SubmissionState.TAKEN and not found.reasons:
            return Received(receipt=before, is_known=True, package=_package_of(archive, before.harvest))
        reasons = list(_reasons(archive, found, watch))
        if reasons:
            return _refused(archive, found, identifier, reasons)
        if found.kind is SubmissionKind.UOF:
            return _taken_uof(archive, found, identifier, collection, Path(folder), watch)
        return _taken(archive, found, identifier, collection, watch)


def _reasons(archive: Archive, found: Submission, watch: Watch) -> Iterator[str]:
    """Why it is not taken. What is unsafe to look at is not looked at further."""
    yield from found.reasons
    if found.reasons:
        return
    yield from submission.scan(archive.config.depot.virus_scanner, found.path)
    if found.kind is SubmissionKind.OCFL:
        yield from _reasons_of_ocfl(archive, found)
        return
    if found.kind is SubmissionKind.UOF:
        return
    containers = submission.containers_of(found)
    for number, path in enumerate(containers, start=1):
        watch(Progress(phase=Phase.IMPORT, done=number, total=len(containers), note=path.name))
        if not _has_records(path):
            yield f"{path.name} holds no whole record"
    if found.kind is SubmissionKind.PACKAGE:
        yield from _withdrawn(archive, _facts_of(found)["id"])


def _reasons_of_ocfl(archive: Archive, found: Submission) -> Iterator[str]:
    store = FolderStore(found.root)
    identifiers = list(ocfl.iter_objects(store))
    if len(identifiers) != 1:
        yield f"it holds {len(identifiers)} objects; one package at a time is taken"
        return
    for finding in fixity.verify_package(store, PackageId(identifiers[0])):
        if finding.severity is Severity.ERROR:
            yield finding.message
    yield from _withdrawn(archive, identifiers[0])


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


def _taken(archive: Archive, found: Submission, identifier: str, collection: str, watch: Watch) -> Received:
    if found.kind in (SubmissionKind.PACKAGE, SubmissionKind.OCFL):
        try:
            held = _adopted(archive, found, watch)
        except (CorruptData, NotFound, InputError) as error:
            return _refused(archive, found, identifier, [str(error)])
        return Received(
            receipt=_noted(archive, found, identifier, held.harvest), is_known=False, package=held
        )
    intake = warc_files.take(archive, submission.containers_of(found), collection=collection, watch=watch)
    if intake.harvest is None:  # every file was in the archive already, one by one
        with archive.database.reading() as connection:
            before = submission.find(connection, identifier)
        receipt = before or _noted(archive, found, identifier, "")
        return Received(receipt=receipt, is_known=True, package=_package_of(archive, receipt.harvest))
    described = submission.descriptions_of(found)
    deposit.keep_descriptions(archive, intake.harvest, described)
    levels.keep_levels(archive, intake.harvest, described.get(uof.NAME, b""), sender=found.path.name)
    report = ingest.take_in(archive, harvests.get(archive, intake.harvest.id), deposit=True, watch=watch)
    receipt = _noted(archive, found, identifier, intake.harvest.id)
    return Received(receipt=receipt, is_known=False, package=report.package, report=report)


def _taken_uof(
    archive: Archive, found: Submission, identifier: str, collection: str, folder: Path, watch: Watch
) -> Received:
    try:
        known, report = uof_service.take(archive, found, collection=collection, folder=folder, watch=watch)
    except RefusedObject as refused:
        return _refused(archive, found, identifier, list(refused.reasons))
    held = known or (report.package if report else None)
    receipt = _noted(archive, found, identifier, held.harvest if held else "")
    return Received(receipt=receipt, is_known=known is not None, package=held, report=report)


def _adopted(archive: Archive, found: Submission, watch: Watch) -> Package:
    """A package of another Webdepot, byte for byte under its own identifier, in the database and in the
    indexes.
    """
    if found.kind is SubmissionKind.OCFL:
        source = FolderStore(found.root)
        identifier = next(ocfl.iter_objects(source))
        copying.bring(archive.store, {"submission": source}, ocfl.read_inventory(source, identifier))
    else:
        root = found.root / "data" if (found.root / "data" / package.FACTS).is_file() else found.root
        facts = _facts_of(found)
        identifier = str(facts["id"])
        files = {
            path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()
        }
        if ocfl.find_inventory(archive.store, identifier) is None:
            expected = {f"warc/{each['name']}": each["sha256"] for each in facts["containers"]}
            ocfl.put_version(
                archive.store,
                identifier,
                files,
                message=f"Received as {found.path.name}",
                user=archive.agent,
                created=archive.clock(),
                expected=expected,
            )
    deposit.adopt(archive)
    with archive.database.reading() as connection:
        held = holdings.get(connection, identifier)
    audit.copy_out(archive, held.id)
    indexer.index_harvest(archive, held.harvest, watch=watch)
    return held


def _facts_of(found: Submission) -> dict[str, Any]:
    for root in (found.root / "data", found.root):
        if (root / package.FACTS).is_file():
            facts: dict[str, Any] = json.loads((root / package.FACTS).read_bytes())
            return facts
    raise NotFound(f"{found.path} has no {package.FACTS}.")


def _refused(archive: Archive, found: Submission, identifier: str, reasons: list[str]) -> Received:
    place = archive.home / "quarantine" / identifier[:16]
    partial = place.with_name(f".{place.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    if found.path.is_dir():
        shutil.copytree(found.path, partial / found.path.name, symlinks=True)
    else:
        shutil.copy2(found.path, partial / found.path.name)
    told = {"name": found.path.name, "kind": found.kind.value, "reasons": reasons}
    (partial / "reasons.json").write_text(
        json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    shutil.rmtree(place, ignore_errors=True)
    partial.rename(place)
    receipt = Receipt(
        id=identifier,
        name=found.path.name,
        kind=found.kind,
        state=SubmissionState.REFUSED,
        received_at=archive.clock(),
        agent=archive.agent,
        place=place.relative_to(archive.home).as_posix(),
        reasons=tuple(reasons[:1000]),
    )
    _record(archive, receipt)
    return Received(receipt=receipt, is_known=False, package=None)


def _noted(archive: Archive, found: Submission, identifier: str, harvest: str) -> Receipt:
    receipt = Receipt(
        id=identifier,
        name=found.path.name,
        kind=found.kind,
        state=SubmissionState.TAKEN,
        received_at=archive.clock(),
        agent=archive.agent,
        harvest=harvest,
    )
    _record(archive, receipt)
    return receipt


def _record(archive: Archive, receipt: Receipt) -> None:
    is_taken = receipt.state is SubmissionState.TAKEN
    event = Event(
        at=receipt.received_at,
        agent=receipt.agent,
        action="received" if is_taken else "refused",
        subject_kind="submission",
        subject=receipt.id,
        outcome=Outcome.SUCCESS if is_taken else Outcome.FAILURE,
        message=f"{receipt.name} ({receipt.kind.value})"
        + (f": {receipt.reasons[0]}" if receipt.reasons else ""),
        detail={"harvest": receipt.harvest},
    )
    with archive.database.transaction() as connection:
        submission.record(connection, receipt)
        append(connection, event)


def _package_of(archive: Archive, harvest: str) -> Package | None:
    return deposit.find_package(archive, harvests.get(archive, harvest).id) if harvest else None
