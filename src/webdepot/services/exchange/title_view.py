"""What the page of a title shows: its record, and what can be fetched or opened of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.errors import Withdrawn
from webdepot.exchange import object_files
from webdepot.exchange.metadata.languages import two_letters
from webdepot.exchange.transfer_zip import Transfer
from webdepot.services.catalogue import description, records
from webdepot.services.catalogue.records import RecordView
from webdepot.services.exchange import oai_provider, object_delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class TitleView:
    described: RecordView
    languages: Sequence[str]
    """Codes of two letters where there are such; those of the work, if the part has none."""
    transfer: Transfer | None
    """What can be fetched as one file."""
    tree: Transfer | None
    """The same object as single files, where it was unpacked."""
    places: Mapping[str, tuple[str, str]]
    """Address and timestamp at which a file of the object can be opened, by its name in the object."""
    is_open: bool
    """Whether this reader may fetch the object."""
    repository: str
    """The domain name in our OAI identifiers."""
    json_ld: str
    """The record for search engines (schema.org)."""


def view(archive: Archive, key: str, *, reader: Reader, portal_url: str) -> TitleView:
    """The page of a site, a slice, a journal or an article; NotFound, or Withdrawn when it is gone."""
    described = records.view(archive, key)
    record = described.record
    if record.withdrawn_at is not None:
        raise Withdrawn(f"{record.urn} was withdrawn on {record.withdrawn_at:%Y-%m-%d}.")
    is_open = record.is_object and object_delivery.is_open(archive, record, reader)
    transfer = records.find_transfer(archive, record.key) if record.is_object else None
    return TitleView(
        described=described,
        languages=[two_letters(code) for code in record.languages or described.levels[0].languages],
        transfer=transfer,
        tree=records.find_tree(archive, record.key) if record.is_object else None,
        places=object_files.shown_at(described.levels, transfer) if transfer and is_open else {},
        is_open=is_open,
        repository=oai_provider.domain_of(archive),
        json_ld=description.as_json_ld(archive, record.key, portal_url=portal_url),
    )
