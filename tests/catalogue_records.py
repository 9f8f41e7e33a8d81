"""All records of a catalogue, as tests look at them."""

from sqlalchemy import Connection, select

from webdepot.exchange.catalogue import CatalogueRecord, from_row
from webdepot.exchange.tables import catalogue


def all_records(connection: Connection) -> list[CatalogueRecord]:
    """Withdrawn ones too, in the order of their changes."""
    rows = connection.execute(select(catalogue).order_by(catalogue.c.changed_at, catalogue.c.key)).mappings()
    return [from_row(row) for row in rows]
