"""Take in an object with any kind of files (`webdepot package import`): a thesis, an article, a picture, a
copied disc, the files of a web site.

1. Read it: UOF (`uof`), METS with a list of files, such as an E-ARK package (`mets_objects`), or files with a
   description beside them (`loose_objects`).
2. An object whose URN is known and whose files are the same is known; if it was withdrawn, or has other
   files, it is refused.
3. An object without a URN:NBN gets one of ours, derived from its files.
4. The files become a harvest of kind `import` (`objects`), which is ingested like every harvest.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from webdepot.archive import Archive
from webdepot.depot import holdings
from webdepot.depot.bundle.submission import Submission, SubmissionKind
from webdepot.exchange import catalogue, transfer_zip, urn
from webdepot.exchange.incoming import CheckedFile, RefusedObject
from webdepot.exchange.metadata.regbib import DeliveredLevel, DeliveredObject
from webdepot.model import HarvestState, Package
from webdepot.services.intake import import_harvests, ingest, loose_objects, objects, uof
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.services.intake.loose_objects import ReadObject
from webdepot.services.intake.object_lists import ListedObject
from webdepot.services.intake.objects import Sender
from webdepot.services.progress import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenObject:
    known: Package | None = None
    """The package of an object that was there already."""
    report: ArchiveReport | None = None
    """Of a new one."""
    warnings: Sequence[str] = ()


def take(
    archive: Archive,
    opened: Submission,
    *,
    collection: str,
    folder: Path,
    watch: Watch,
    listed: ListedObject | None = None,
) -> TakenObject:
    """Take in an object, unless it is known. RefusedObject with all reasons, leaving nothing. `listed`
    describes an object of a list.
    """
    is_uof = opened.kind is SubmissionKind.UOF and listed is None
    read = uof.read(opened) if is_uof else loose_objects.read(opened, listed)
    delivered = _with_urns(archive, read)
    known = _find_known(archive, delivered, read.files)
    harvest = objects.find_harvest(archive, delivered)
    if known is not None and (harvest is None or ingest.is_complete(archive, harvest)):
        return TakenObject(known=known, warnings=read.warnings)
    sender = Sender(
        name=opened.path.name,
        collection=collection,
        settings={"submission": opened.path.name},
        descriptions=read.around,
    )
    if harvest is None or not (known or objects.is_loaded(archive, harvest)):
        harvest = objects.load(archive, sender, delivered, read.files, folder)
    finished = import_harvests.finish(archive, harvest) if harvest.state is HarvestState.RUNNING else harvest
    report = ingest.take_in(archive, finished, deposit=True, watch=watch)
    return TakenObject(report=report, warnings=read.warnings)


def _with_urns(archive: Archive, read: ReadObject) -> DeliveredObject:
    """The object with a URN at every level; a level without one gets ours, always the same for the same
    files. Levels above the lowest are recognised by ISSN, or by title and part.
    """
    delivered = read.delivered
    own = _hash("\n".join(sorted(file.sha256 for file in read.files)))
    levels: list[DeliveredLevel] = []
    for number, level in enumerate(delivered.levels):
        name = str(level.fields.get("urn", "")).lower()
        if not urn.is_nbn(name):
            is_lowest = number == len(delivered.levels) - 1
            suffix = own if is_lowest else _hash(_name_of(level, levels))
            name = urn.mint(archive.config.exchange.urn_namespace, f"{read.mark}-{suffix}")
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


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _name_of(level: DeliveredLevel, above: Sequence[DeliveredLevel]) -> str:
    fields = level.fields
    if above:
        return f"{level.level} {above[-1].fields['urn']} {fields.get('title', '')} {fields.get('part', '')}"
    issn = next((each for each in fields.get("identifiers", ()) if each.startswith("issn:")), "")
    return f"{level.level} {issn or fields.get('title', '')}"


def _find_known(archive: Archive, delivered: DeliveredObject, files: Sequence[CheckedFile]) -> Package | None:
    """The package of an object that is known; RefusedObject if it was withdrawn or has other files."""
    with archive.database.reading() as connection:
        record = catalogue.find_urn(connection, delivered.urn)
        known = transfer_zip.find(connection, record.key) if record is not None else None
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
