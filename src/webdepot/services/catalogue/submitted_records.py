"""Catalogue records from the METS with MABxml that a sender submitted with containers: with the same URNs and
texts.
"""

from dataclasses import replace

from webdepot import durable
from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.exchange import catalogue, urn
from webdepot.exchange.catalogue import EDITABLE, CatalogueRecord, RecordLevel, Source
from webdepot.exchange.metadata import mab, markup, regbib
from webdepot.exchange.metadata.regbib import DeliveredLevel
from webdepot.model import Harvest
from webdepot.services.catalogue import records as records_service
from webdepot.services.depot import deposit_records
from webdepot.services.harvest import harvests


def keep_levels(archive: Archive, harvest: Harvest, described: bytes, *, sender: str) -> bool:
    """Write the records to the working folder of the harvest, for its package; return whether there were any.

    Nothing is written if the URN of the object is known already: it then gets a URN of ours.
    """
    levels = _read(described)
    names = [str(level.fields["urn"]).lower() for level in levels]
    if not levels or not all(map(urn.is_nbn, names)):
        return False
    with archive.database.reading() as connection:
        known = {
            name: record for name in names if (record := catalogue.find_urn(connection, name)) is not None
        }
    if names[-1] in known:
        return False
    records: list[CatalogueRecord] = []
    for name, level in zip(names, levels, strict=True):
        records.append(
            known.get(name)
            or _record(archive, harvest, name, level, records[-1].key if records else "", sender)
        )
    path = harvests.folder_of(archive, harvest) / deposit_records.FILE
    durable.write_whole(path, catalogue.to_document(records))
    return True


def _read(described: bytes) -> tuple[DeliveredLevel, ...]:
    """The levels of a METS document, each with a URN; empty if it is not such a document."""
    try:
        levels = regbib.levels_of(markup.parse(described, what="The description"))
    except InputError:
        return ()
    return levels if all(level.fields.get("urn") for level in levels) else ()


def _record(
    archive: Archive, harvest: Harvest, name: str, level: DeliveredLevel, parent: str, sender: str
) -> CatalogueRecord:
    now = archive.clock()
    record = CatalogueRecord(
        key=deposit_records.key_of_urn(name),
        level=level.level,
        parent=parent,
        urn=name,
        title=str(level.fields.get("title") or sender),
        collection=harvest.collection,
        foreign=({"kind": mab.FOREIGN, "xml": level.xml},),
        genre="Website" if level.level in (RecordLevel.SITE, RecordLevel.SLICE) else "",
        created_at=now,
        changed_at=now,
    )
    fields = records_service.valid_fields(
        {key: value for key, value in level.fields.items() if key in EDITABLE and key != "title"}
    )
    return replace(record, **fields, sources=dict.fromkeys((*fields, "title"), Source.PARTNER.value))
