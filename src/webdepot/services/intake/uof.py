"""An object in UOF that somebody brings by hand (`webdepot package import`): a thesis, an article, a loose
web site, containers.

1. `mets.xml` is read; every file it lists must be there with the size and checksum it says, and no other file
   may be.
2. An object that is known by its URN and has the same files is known; one that was withdrawn, or has other
   files, is refused.
3. What has no URN of a national bibliography gets one of ours, which follows from its files.
4. The files become a harvest of kind `import` (`objects`) and go the way of every harvest: kept, indexed,
   described, handed on.
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
    archive: Archive, found: Submission, *, collection: str, folder: Path, watch: Watch
) -> tuple[Package | None, ArchiveReport | None]:
    """The package that holds it already, or the report of taking it in. Refused with every reason; nothing
    stays of it then.
    """
    described = (found.root / submission.UOF_METS).read_bytes()
    delivered, files = _verified(found, described)
    delivered = _named(archive, delivered, files)
    known = _find_known(archive, delivered, files)
    if known is not None:
        return known, None
    sender = Sender(
        name=found.path.name,
        collection=collection,
        settings={"submission": found.path.name},
        words={submission.UOF_METS: described},
    )
    harvest = objects.find_harvest(archive, delivered)
    if harvest is None or not objects.is_loaded(archive, harvest):
        harvest = objects.load(archive, sender, delivered, files, folder)
    finished = warc_files.finish(archive, harvest) if harvest.state is HarvestState.RUNNING else harvest
    return None, ingest.take_in(archive, finished, deposit=True, watch=watch)


def _verified(found: Submission, described: bytes) -> tuple[DeliveredObject, list[CheckedFile]]:
    try:
        delivered = uof.read(described)
    except InputError as error:
        raise RefusedObject(str(error)) from error
    reasons = list(_breaches(found, delivered))
    checked: list[CheckedFile] = []
    if not reasons:
        reasons = list(incoming.check_files(found.root, delivered, checked))
    if reasons:
        raise RefusedObject(*reasons[:_MOST_REASONS])
    is_below = all(file.path.startswith(f"/{uof.CONTENT}/") for file in delivered.files)
    told = [_complete(file, delivered, strip=is_below) for file in checked]
    return replace(delivered, files=tuple(file.facts for file in told)), told


def _breaches(found: Submission, delivered: DeliveredObject) -> Iterator[str]:
    """Files that are missing, listed twice, not listed, or of another size."""
    there = {path.relative_to(found.root).as_posix(): path for path in submission.contents_of(found)}
    listed = [incoming.member_of(file) for file in delivered.files]
    yield from (
        f"{name[:200]} is listed twice"
        for name in sorted({name for name in listed if listed.count(name) > 1})
    )
    yield from (
        f"{name[:200]} is listed, and is not in the package" for name in sorted(set(listed) - there.keys())
    )
    yield from (
        f"{name[:200]} is in the package, and is not listed" for name in sorted(there.keys() - set(listed))
    )
    for name, file in zip(listed, delivered.files, strict=True):
        if name in there and file.size and file.size != str(there[name].stat().st_size):
            yield f"{name[:200]} has {there[name].stat().st_size} bytes, and {file.size[:30]} are listed"


def _complete(file: CheckedFile, delivered: DeliveredObject, *, strip: bool) -> CheckedFile:
    """What METS need not say is filled in; `content/` is the package's own folder, not the object's."""
    facts = file.facts
    try:
        at = to_iso(from_iso(facts.file_date_time))
    except ValueError:
        at = delivered.object.master_creation_date
    told: LmerFile = replace(
        facts,
        path=facts.path.removeprefix(f"/{uof.CONTENT}") if strip else facts.path,
        size=str(file.size_bytes),
        file_date_time=at,
        mime_type=facts.mime_type or UNKNOWN_MIME,
        format=facts.format or UNKNOWN_FORMAT,
    )
    return replace(file, facts=told)


def _named(archive: Archive, delivered: DeliveredObject, files: Sequence[CheckedFile]) -> DeliveredObject:
    """Every level with a URN; what has none gets one of ours, the same whenever the same files come."""
    own = hashlib.sha256("\n".join(sorted(file.sha256 for file in files)).encode()).hexdigest()[:20]
    levels: list[DeliveredLevel] = []
    for number, level in enumerate(delivered.levels):
        name = str(level.fields.get("urn", "")).lower()
        if not urn.is_nbn(name):
            is_lowest = number == len(delivered.levels) - 1
            words = f"{level.level} {level.fields.get('title', '')}"
            mark = own if is_lowest else hashlib.sha256(words.encode()).hexdigest()[:20]
            name = urn.mint(archive.config.exchange.urn_namespace, f"uof-{mark}")
        levels.append(replace(level, fields={**level.fields, "urn": name}))
    lowest, given = levels[-1], delivered.object.persistent_identifier
    if given and given.lower() != lowest.fields["urn"]:
        others = dict.fromkeys((*lowest.fields.get("identifiers", ()), given))
        levels[-1] = replace(lowest, fields={**lowest.fields, "identifiers": tuple(others)})
    return replace(
        delivered,
        levels=tuple(levels),
        object=replace(delivered.object, persistent_identifier=levels[-1].fields["urn"]),
    )


def _find_known(archive: Archive, delivered: DeliveredObject, files: Sequence[CheckedFile]) -> Package | None:
    with archive.database.reading() as connection:
        record = catalogue.find_urn(connection, delivered.urn)
        made = transfer.find(connection, record.key) if record is not None else None
        held = holdings.find(connection, record.package) if record is not None and record.package else None
    if record is None or (made is None and record.withdrawn_at is None):
        return None
    if record.withdrawn_at is not None:
        raise RefusedObject(f"{delivered.urn} was withdrawn here on {record.withdrawn_at:%Y-%m-%d}")
    if made is not None and sorted(file.sha256 for file in made.files) != sorted(
        file.sha256 for file in files
    ):
        raise RefusedObject(f"{delivered.urn} is here already, with other files; what is in the depot stays")
    return held
