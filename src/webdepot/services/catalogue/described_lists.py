"""Descriptions in a list of sites: the Dublin Core columns of Archive-It and others become catalogue records.

A value is written unless a person has filled that field of the record, so an import can be repeated, also
after it was interrupted.
"""

from collections.abc import Sequence
from contextlib import suppress

from webdepot.archive import Archive
from webdepot.errors import InputError, NotFound
from webdepot.exchange.catalogue import Source
from webdepot.services.catalogue import records
from webdepot.services.selection import targets
from webdepot.services.selection.csv_lists import ListRow

Remark = tuple[int, str]
"""Line number, and what was not taken from it."""


def describe(archive: Archive, rows: Sequence[ListRow], *, by: str = "") -> list[Remark]:
    """Write the descriptions of sites that were imported; return what the catalogue refuses."""
    remarks: list[Remark] = []
    for row in rows:
        if not row.description:
            continue
        known = targets.find_known(archive, row.nomination.seeds[0])
        if known is None:
            continue
        with suppress(NotFound):
            record = records.site_record(archive, known.dossier.target)
            changes = {}
            for name, values in row.description.items():
                if record.sources.get(name) == Source.PERSON:
                    continue
                try:
                    value = values if isinstance(getattr(record, name), tuple) else " ".join(values)
                    changes[name] = records.checked(name, value)
                except InputError as error:
                    remarks.append((row.line, str(error)))
            if changes:
                records.write(archive, record.key, changes, source=Source.PERSON, by=by)
    return remarks
