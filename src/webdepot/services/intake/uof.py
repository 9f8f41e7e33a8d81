"""Take in an object in UOF (`webdepot package import`): a thesis, an article, the files of a web site,
containers.

1. Read `mets.xml`: every file it lists must be present with the listed size and checksum, and there must be
   no other file.
2. An object whose URN is known and whose files are the same is known; if it was withdrawn, or has other
   files, it is refused.
3. An object without a URN:NBN gets one of ours, derived from its files.
4. The files become a harvest of kind `import` (`objects`), which is ingested like every harvest.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from webdepot.archive import Archive
from webdepot.depot import holdings
from webdepot.depot.bundle import submission
from webdepot.depot.bundle.submission import Submission
from webdepot.errors import InputError
from webdepot.exchange import catalogue, incoming, transfer, uof, urn
from webdepot.exchange.incoming import CheckedFile, RefusedObject
from webdepot.exchange.metadata.lmer import LmerFile
from webdepot.exchange.metadata.regbib import DeliveredLevel, DeliveredObject
from webdepot.model import HarvestState, Package
from webdepot.services.intake import ingest, objects, warc_files
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.services.intake.objects import Sender
from webdepot.services.progress import Watch
from webdepot.times import from_iso, to_iso

UNKNOWN_MIME, UNKNOWN_FORMAT = "application/octet-stream", "UNKNOWN"
_MOST_REASONS = 50


def take(
    archive: Archive, opened: Submission, *, collection: str, folder: Path, watch: Watch
) -> tuple[Package | None, ArchiveReport | None]:
    """The package of an object that is known, or the report of a new one. RefusedObject with all reasons,
    leaving nothing.
    """
    described = (opened.root / submission.UOF_METS).read_bytes()
    delivered, files = _verify(opened, described)
    delivered = _with_urns(archive, delivered, files)
    known = _find_known(archive, delivered, files)
    harvest = objects.find_harvest(archive, delivered)
    if known is not None and (harvest is None or ingest.is_complete(archive, harvest)):
        return known, None
    sender = Sender(
        name=opened.path.name,
        collection=collection,
        settings={"submission": opened.path.name},
        descriptions={submission.UOF_METS: described},
    )
    if harvest is None or not (known or objects.is_loaded(archive, harvest)):
        harvest = objects.load(archive, sender, delivered, files, folder)
    finished = warc_files.finish(archive, harvest) if harvest.state is HarvestState.RUNNING else harvest
    return None, ingest.take_in(archive, finished, deposit=True, watch=watch)


def _verify(opened: Submission, described: bytes) -> tuple[DeliveredObject, list[CheckedFile]]:
    """The description of an object and its files; RefusedObject if they do not match."""
    try:
        delivered = uof.read(described)
    except InputError as error:
        raise RefusedObject(str(error)) from error
    reasons = list(_iter_mismatches(opened, delivered))
    checked: list[CheckedFile] = []
    if not reasons:
        reasons = list(incoming.check_files(opened.root, delivered, checked))
    if reasons:
        raise RefusedObject(*reasons[:_MOST_REASONS])
    is_below = all(file.path.startswith(f"/{uof.CONTENT}/") for file in delivered.files)
    files = [_complete(file, delivered, strip=is_below) for file in checked]
    return replace(delivered, files=tuple(file.facts for file in files)), files


def _iter_mismatches(opened: Submission, delivered: DeliveredObject) -> Iterator[str]:
    """One message for each file that is missing, listed twice, not listed, or has another size."""
    there = {path.relative_to(opened.root).as_posix(): path for path in submission.contents_of(opened)}
    listed = [incoming.member_of(file) for file in delivered.files]
    yield from (
        f"{name[:200]} is listed twice"
        for name in sorted({name for name in listed if listed.count(name) > 1})
    )
    yield from (
        f"{name[:200]} is listed but not in the package" for name in sorted(set(listed) - there.keys())
    )
    yield from (
        f"{name[:200]} is in the package but not listed" for name in sorted(there.keys() - set(listed))
    )
    for name, file in zip(listed, delivered.files, strict=True):
        if name in there and file.size and file.size != str(there[name].stat().st_size):
            yield f"{name[:200]} has {there[name].stat().st_size} bytes, but {file.size[:30]} are listed"


def _complete(file: CheckedFile, delivered: DeliveredObject, *, strip: bool) -> CheckedFile:
    """Fill in what METS may leave out; `strip` removes the folder `content/` from the path."""
    facts = file.facts
    try:
        at = to_iso(from_iso(facts.file_date_time))
    except ValueError:
        at = delivered.object.master_creation_date
    complete: LmerFile = replace(
        facts,
        path=facts.path.removeprefix(f"/{uof.CONTENT}") if strip else facts.path,
        size=str(file.size_bytes),
        file_date_time=at,
        mime_type=facts.mime_type or UNKNOWN_MIME,
        format=facts.format or UNKNOWN_FORMAT,
    )
    return replace(file, facts=complete)


def _with_urns(archive: Archive, delivered: DeliveredObject, files: Sequence[CheckedFile]) -> DeliveredObject:
    """The object with a URN at every level; a level without one gets ours, always the same for the same
    files.
    """
    own = hashlib.sha256("\n".join(sorted(file.sha256 for file in files)).encode()).hexdigest()[:20]
    levels: list[DeliveredLevel] = []
    for number, level in enumerate(delivered.levels):
        name = str(level.fields.get("urn", "")).lower()
        if not urn.is_nbn(name):
            is_lowest = number == len(delivered.levels) - 1
            title = f"{level.level} {level.fields.get('title', '')}"
            suffix = own if is_lowest else hashlib.sha256(title.encode()).hexdigest()[:20]
            name = urn.mint(archive.config.exchange.urn_namespace, f"uof-{suffix}")
        levels.append(replace(level, fields={**level.fields, "urn": name}))
    lowest, identifier = levels[-1], delivered.object.persistent_identifier
    if identifier and identifier.lower() != lowest.fields["urn"]:
        others = dict.fromkeys((*lowest.fields.get("identifiers", ()), identifier))
        levels[-1] = replace(lowest, fields={**lowest.fields, "identifiers": tuple(others)})
    return replace(
        delivered,
        levels=tuple(levels),
        object=replace(delivered.object, persistent_identifier=levels[-1].fields["urn"]),
    )


def _find_known(archive: Archive, delivered: DeliveredObject, files: Sequence[CheckedFile]) -> Package | None:
    """The package of an object that is known; RefusedObject if it was withdrawn or has other files."""
    with archive.database.reading() as connection:
        record = catalogue.find_urn(connection, delivered.urn)
        known = transfer.find(connection, record.key) if record is not None else None
        held = holdings.find(connection, record.package) if record is not None and record.package else None
    if record is None or (known is None and record.withdrawn_at is None):
        return None
    if record.withdrawn_at is not None:
        raise RefusedObject(f"{delivered.urn} was withdrawn here on {record.withdrawn_at:%Y-%m-%d}")
    if known is not None and sorted(file.sha256 for file in known.files) != sorted(
        file.sha256 for file in files
    ):
        raise RefusedObject(
            f"{delivered.urn} is already in the depot with other files, which are not replaced"
        )
    return held
