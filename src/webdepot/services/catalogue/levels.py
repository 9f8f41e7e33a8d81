"""What a sender wrote about containers in METS with MABxml becomes their records in the catalogue: same URNs,
same words.
"""

from dataclasses import replace

from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.exchange import catalogue, urn
from webdepot.exchange.catalogue import EDITABLE, Level, Record, Source
from webdepot.exchange.metadata import mab, markup, regbib
from webdepot.exchange.metadata.regbib import DeliveredLevel
from webdepot.model import Harvest
from webdepot.services.catalogue import records as records_service
from webdepot.services.depot import titles
from webdepot.services.harvest import harvests


def keep_levels(archive: Archive, harvest: Harvest, described: bytes, *, sender: str) -> bool:
    """Put the levels beside the harvest, for its package; whether there were any. An object that is known by
    its URN gets a URN of ours.
    """
    levels = _read(described)
    names = [str(level.fields["urn"]).lower() for level in levels]
    if not levels or not all(map(urn.is_nbn, names)):
        return False
    with archive.database.reading() as connection:
        known = {name: found for name in names if (found := catalogue.find_urn(connection, name)) is not None}
    if names[-1] in known:
        return False
    records: list[Record] = []
    for name, level in zip(names, levels, strict=True):
        records.append(
            known.get(name)
            or _record(archive, harvest, name, level, records[-1].key if records else "", sender)
        )
    (harvests.folder_of(archive, harvest) / titles.FILE).write_bytes(catalogue.to_document(records))
    return True


def _read(described: bytes) -> tuple[DeliveredLevel, ...]:
    """The levels of a METS document, each with a URN; empty when it is of another kind."""
    try:
        levels = regbib.levels_of(markup.parse(described, what="The description"))
    except InputError:
        return ()
    return levels if all(level.fields.get("urn") for level in levels) else ()


def _record(
    archive: Archive, harvest: Harvest, name: str, level: DeliveredLevel, parent: str, sender: str
) -> Record:
    now = archive.clock()
    made = Record(
        key=titles.key_of_urn(name),
        level=level.level,
        parent=parent,
        urn=name,
        title=str(level.fields.get("title") or sender),
        collection=harvest.collection,
        foreign=({"kind": mab.FOREIGN, "xml": level.xml},),
        genre="Website" if level.level in (Level.SITE, Level.SLICE) else "",
        created_at=now,
        changed_at=now,
    )
    fields = records_service.fitting(
        {key: value for key, value in level.fields.items() if key in EDITABLE and key != "title"}
    )
    return replace(made, **fields, sources=dict.fromkeys((*fields, "title"), Source.PARTNER.value))
