"""Resolve URNs, and deliver transfer objects to partners and readers.

The access rules decide who may fetch an object, for the access point of the request (the public, or a partner
that sends the token we issued). A ZIP holds everything, so it is delivered only if no rule closes any capture
in it. Restricted records are for partners only. Withdrawn objects are gone for everybody.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from webdepot.access.policy import AccessPoint, Reader
from webdepot.archive import Archive
from webdepot.errors import NotFound, NotPermitted, Withdrawn
from webdepot.exchange import catalogue, partners, transfer_zip
from webdepot.exchange.catalogue import Access, CatalogueRecord
from webdepot.exchange.transfer_zip import Layout, Transfer
from webdepot.reasons import said
from webdepot.services.access import gate
from webdepot.services.access.gate import TooManyCaptures
from webdepot.services.access.replay import session_cookies


class TokenNeeded(NotPermitted):
    """The object is for partners, and the request had no valid token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """A transfer object that may be delivered."""

    record: CatalogueRecord
    transfer: Transfer
    layout: Layout
    archive: Archive

    def pieces(self, first: int, stop: int) -> Iterator[bytes]:
        """The bytes from `first` up to but without `stop`."""
        return self.layout.pieces(first, stop, self.archive.containers.open)


def resolve(archive: Archive, urn: str) -> CatalogueRecord:
    """The record of a URN; NotFound if there is none, Withdrawn if it was withdrawn."""
    with archive.database.reading() as connection:
        record = catalogue.find_urn(connection, urn[:600])
    if record is None:
        raise NotFound(said("missing_urn", "This archive has no object with the URN {urn}.", urn=urn[:200]))
    if record.withdrawn_at is not None:
        raise Withdrawn(f"{record.urn} was withdrawn on {record.withdrawn_at:%Y-%m-%d}.")
    return record


def hand_over(
    archive: Archive, key: str, *, reader: Reader, token: str = "", unpacked: bool = False
) -> HandedOver:
    """The transfer object of a record, or its unpacked form.

    TokenNeeded or NotPermitted if this reader may not have it, Withdrawn if it was withdrawn.
    """
    with archive.database.reading() as connection:
        record = catalogue.find(connection, key)
        packed = transfer_zip.find(connection, key)
        wanted = transfer_zip.find_tree(connection, key) if unpacked else packed
        partner = partners.find_by_token(connection, token)
    if record is not None and record.withdrawn_at is not None:
        raise Withdrawn(f"{record.urn} was withdrawn on {record.withdrawn_at:%Y-%m-%d}.")
    if record is None or wanted is None or packed is None:
        raise NotFound(f"There is no transfer object for {key[:200]}.")
    asking = Reader(name=partner.name, access_point=AccessPoint.PARTNER) if partner else reader
    if record.access is Access.RESTRICTED and asking.access_point not in (
        AccessPoint.PARTNER,
        AccessPoint.STAFF,
    ):
        raise TokenNeeded(f"{record.urn} is for partners only. Send the token that you were given.")
    containers = {file.container for file in (*packed.files, *wanted.files)}
    if not _is_open(archive, containers, asking):
        refusal = NotPermitted if partner else TokenNeeded
        raise refusal(f"An access rule closes {record.urn}, or a part of it.")
    is_staff = asking.access_point is AccessPoint.STAFF
    if not unpacked and not is_staff and any(session_cookies.are_in(archive, name) for name in containers):
        raise NotPermitted(f"{record.urn} contains session cookies of a login, so it is not delivered.")
    return HandedOver(record=record, transfer=wanted, layout=Layout(wanted.files), archive=archive)


def is_open(archive: Archive, record: CatalogueRecord, reader: Reader) -> bool:
    """Whether a reader may fetch the object of a record."""
    try:
        hand_over(archive, record.key, reader=reader)
    except (NotPermitted, NotFound, Withdrawn):
        return False
    return True


def _is_open(archive: Archive, containers: set[str], reader: Reader) -> bool:
    """Whether no rule closes a capture in these containers; False if there are too many to examine."""
    try:
        return next(gate.iter_closed(archive, reader, containers=containers), None) is None
    except TooManyCaptures:
        return False
