"""Load an object of a partner or sender, whose files are verified, as a harvest of kind `import`, ready to be
deposited.

1. An object with files that the archive has under another name is refused: they cannot become a second
   object.
2. Containers become containers; other files become one WARC of resource records. Its name is derived from the
   URN, so that an interrupted run finds what it began.
3. Catalogue records, transfer object and the sender's own descriptions wait in the harvest's folder and
   become part of the package.

All or nothing: an object that cannot be loaded completely leaves nothing. Used for partners' objects
(`services.exchange.partner_ingest`) and for submissions without containers (`file_objects`).
"""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from webdepot import durable
from webdepot.archive import Archive
from webdepot.container import kinds, locations, loose_files
from webdepot.container.detect import Compression, detect
from webdepot.container.loose_files import LooseFile
from webdepot.errors import CorruptData, InputError
from webdepot.exchange import catalogue, incoming, transfer_zip
from webdepot.exchange.catalogue import EDITABLE, CatalogueRecord, Source
from webdepot.exchange.incoming import CheckedFile, RefusedObject
from webdepot.exchange.metadata import descriptions, regbib
from webdepot.exchange.metadata.lmer import PRONOM
from webdepot.exchange.metadata.regbib import DeliveredObject
from webdepot.exchange.transfer_zip import TransferFile, TransferForm
from webdepot.harvest import harvest_rows
from webdepot.model import Harvest, HarvestId, HarvestKind, HarvestState, Target
from webdepot.reasons import said
from webdepot.services.catalogue import records
from webdepot.services.depot import deposit, deposit_records
from webdepot.services.harvest import harvests
from webdepot.services.intake import container_copy, sources
from webdepot.services.selection import targets
from webdepot.times import from_iso, to_iso, to_timestamp
from webdepot.url import Url
from webdepot.version import VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Where an object comes from."""

    name: str
    """The name of the partner, or of the submitted file."""
    collection: str
    settings: Mapping[str, Any]
    """Kept with the harvest."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """Kept with each catalogue record: where its description comes from."""
    descriptions: Mapping[str, bytes | Path] = field(default_factory=dict)
    """What the sender put around the files, by path, unchanged: descriptions, manifests, older versions."""


def load(
    archive: Archive, sender: Sender, delivered: DeliveredObject, files: Sequence[CheckedFile], folder: Path
) -> Harvest:
    """Put files into the containers of a harvest, with everything that describes them; `folder` is for
    temporary files.
    """
    _refuse_known(archive, delivered, files)
    target = _target(archive, sender, delivered)
    harvest = _begin(archive, sender, delivered, target)
    try:
        _fill(archive, sender, delivered, files, folder, harvest)
    except BaseException:
        undo(archive, harvest)
        raise
    return harvest


def _refuse_known(archive: Archive, delivered: DeliveredObject, files: Sequence[CheckedFile]) -> None:
    """RefusedObject if the archive has one of the files in another harvest."""
    own = _harvest_id(delivered)
    with archive.database.reading() as connection:
        for file in files:
            known = locations.find_bytes(connection, file.sha256)
            if known is not None and known.harvest != own:
                raise RefusedObject(
                    f"{file.facts.name[:200]} is already in this archive, "
                    f"as {known.name} of harvest {known.harvest}"
                )


def undo(archive: Archive, harvest: Harvest) -> None:
    """Remove everything of an object that could not be taken in completely."""
    with archive.database.transaction() as connection:
        locations.remove_of_harvest(connection, harvest.id)
        harvest_rows.move(
            connection,
            harvest.id,
            HarvestState.FAILED,
            reason=said("not_taken_over", "could not be taken over"),
            ended_at=archive.clock(),
        )
    shutil.rmtree(harvests.folder_of(archive, harvest), ignore_errors=True)


def _fill(
    archive: Archive,
    sender: Sender,
    delivered: DeliveredObject,
    files: Sequence[CheckedFile],
    folder: Path,
    harvest: Harvest,
) -> None:
    with harvests.locked(harvests.folder_of(archive, harvest)):
        listed = _place(archive, sender, harvest, delivered, files, folder)
        first = delivered.object.start_file
        start = next(
            (incoming.member_of(file) for file in delivered.files if file.file_identifier == first),
            listed[0].member,
        )
        form = (
            TransferForm.CONTAINERS if all(_is_container(file.path) for file in files) else TransferForm.FILES
        )
        transfer_object = transfer_zip.measure(form, listed, start, archive.containers.open)
        levels = records_of(archive, sender, delivered)
        deposit.keep_submitted(archive, harvest, sender.descriptions)
        document = catalogue.to_document(levels, transfer_zip.to_document(transfer_object))
        # Last, because `is_loaded` takes this file as the sign that everything is there.
        durable.write_whole(harvests.folder_of(archive, harvest) / deposit_records.FILE, document)


def _place(
    archive: Archive,
    sender: Sender,
    harvest: Harvest,
    delivered: DeliveredObject,
    files: Sequence[CheckedFile],
    folder: Path,
) -> list[TransferFile]:
    """Take the files in; return where each is in our containers, in the order of the sender's list."""
    single = [file for file in files if not _is_container(file.path)]
    offsets: dict[Path, int] = {}
    wrapped = None
    if single:
        loose = [
            LooseFile(
                path=file.path,
                urls=incoming.urls_of(file, delivered, files),
                mime=file.facts.mime_type,
                date=_fetched_at(file, delivered),
            )
            for file in single
        ]
        target = folder / f"{harvest.id}-files.warc"
        info = {
            "software": f"webdepot {VERSION}",
            "description": f"files of {delivered.urn}, taken over from {sender.name}",
        }
        offsets = loose_files.write(target, loose, info=info, now=_date_of(delivered))
        wrapped = container_copy.take_container(archive, harvest, target)
    placed = []
    for file in files:
        if file.path in offsets and wrapped is not None:
            placed.append(
                _listed(
                    file, wrapped.name, offsets[file.path], delivered.urls.get(file.facts.file_identifier, "")
                )
            )
        else:
            container = container_copy.take_container(archive, harvest, file.path)
            if container.sha256 != file.sha256:
                raise RefusedObject(f"the records of {file.facts.name[:200]} cannot be opened separately")
            placed.append(_listed(file, container.name, 0))
    return placed


def _listed(file: CheckedFile, container: str, offset: int, url: str = "") -> TransferFile:
    facts = file.facts
    kind = kinds.of_file(file.path) if _is_container(file.path) else None
    is_key = facts.registry == PRONOM
    folder = facts.path if facts.path.endswith("/") else facts.path + "/"
    return TransferFile(
        path=folder,
        name=facts.name,
        size_bytes=file.size_bytes,
        sha256=file.sha256,
        mime=facts.mime_type,
        format=kind.label if kind else facts.format,
        puid=facts.format if is_key else kind.puid if kind else "",
        at=to_iso(from_iso(facts.file_date_time)),
        container=container,
        offset=offset,
        url=url,
    )


def records_of(archive: Archive, sender: Sender, delivered: DeliveredObject) -> tuple[CatalogueRecord, ...]:
    """The sender's levels as records of our catalogue, with the keys that their URNs have here."""
    now = archive.clock()
    levels: list[CatalogueRecord] = []
    for number, level in enumerate(delivered.levels):
        known = descriptions.with_access(level.fields)
        fields = {name: value for name, value in known.items() if name in EDITABLE}
        name = str(level.fields["urn"]).lower()
        is_lowest = number == len(delivered.levels) - 1
        foreign = [{"kind": level.kind, "xml": level.xml}] if level.xml else []
        if is_lowest:
            foreign += [{"kind": regbib.FOREIGN_SECTION, "xml": xml} for xml in delivered.foreign]
        with archive.database.reading() as connection:
            before = catalogue.find_urn(connection, name)
        levels.append(
            CatalogueRecord(
                key=before.key if before else deposit_records.key_of_urn(name),
                level=level.level,
                parent=levels[-1].key if levels else "",
                urn=name,
                title=str(fields.pop("title", "")) or delivered.object.name or name,
                collection=sender.collection,
                foreign=tuple(foreign),
                origin=sender.origin,
                sources=dict.fromkeys((*fields, "title"), Source.PARTNER.value),
                created_at=before.created_at if before else now,
                changed_at=now,
                **records.valid_fields(fields),
            )
        )
    return tuple(levels)


def _target(archive: Archive, sender: Sender, delivered: DeliveredObject) -> Target:
    seeds = [Url(each) for each in incoming.seeds_of(delivered)]
    top = delivered.levels[0].fields.get("title") or delivered.object.name or delivered.urn
    target = targets.nominate(archive, seeds, collection=sender.collection, name=str(top)[:300])
    targets.admit(archive, target, [targets.operators_decision(archive)])
    return target


def _harvest_id(delivered: DeliveredObject) -> HarvestId:
    """Derived from the URN, so that an interrupted run finds what it began."""
    mark = hashlib.sha256(delivered.urn.encode()).hexdigest()[:12]
    return HarvestId(f"{to_timestamp(_date_of(delivered))}-partner-{mark}")


def find_harvest(archive: Archive, delivered: DeliveredObject) -> Harvest | None:
    with archive.database.reading() as connection:
        name = _harvest_id(delivered)
        return harvest_rows.get(connection, name) if harvest_rows.exists(connection, name) else None


def is_loaded(archive: Archive, harvest: Harvest) -> bool:
    """Whether an earlier run, which was interrupted later, loaded everything of a harvest."""
    return (harvests.folder_of(archive, harvest) / deposit_records.FILE).exists()


def _begin(archive: Archive, sender: Sender, delivered: DeliveredObject, target: Target) -> Harvest:
    begun = find_harvest(archive, delivered)
    if begun is not None:
        with archive.database.transaction() as connection:
            harvest_rows.move(connection, begun.id, HarvestState.RUNNING)
        return harvests.get(archive, begun.id)
    harvest = Harvest(
        id=_harvest_id(delivered),
        target=target.id,
        kind=HarvestKind.IMPORT,
        state=HarvestState.RUNNING,
        seeds=target.seeds,
        collection=sender.collection,
        settings={**sender.settings, "urn": delivered.urn},
        started_at=archive.clock(),
    )
    with archive.database.transaction() as connection:
        harvest_rows.begin(connection, harvest)
    return harvest


def _fetched_at(file: CheckedFile, delivered: DeliveredObject) -> datetime:
    """When a file was fetched: its own date if the sender gives its web address, otherwise that of the
    object.

    The date of a file without a web address is only when it was written.
    """
    has_url = file.facts.file_identifier in delivered.urls
    return from_iso(file.facts.file_date_time) if has_url else _date_of(delivered)


def _date_of(delivered: DeliveredObject) -> datetime:
    return from_iso(delivered.object.master_creation_date)


def _is_container(path: Path) -> bool:
    """Whether a file can be a container without a change; one that is compressed as one piece cannot."""
    if not path.name.lower().endswith(sources.SUFFIXES):
        return False
    try:
        with path.open("rb") as stream:
            return detect(stream, path.name).compression is not Compression.WHOLE
    except (InputError, CorruptData):
        return False
