"""What the page of an organisation shows: its profile and its hosts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webdepot.archive import Archive
from webdepot.selection.domains.organisations import KnownHost, Organisation
from webdepot.services.selection import organisations


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganisationView:
    organisation: Organisation
    every_host: Sequence[KnownHost]
    hosts: Sequence[KnownHost]
    """Those of the requested kind, up to the requested number."""
    counts: Mapping[str, int]
    """Hosts by kind."""


def view(archive: Archive, root: str, *, kind: str = "", limit: int) -> OrganisationView:
    """An organisation by its domain with up to `limit` hosts, only those of a kind (own, ask, other, wait)
    when one is given; NotFound.
    """
    organisation = organisations.get(archive, root)
    every_host = organisations.hosts_of(archive, organisation)
    return OrganisationView(
        organisation=organisation,
        every_host=every_host,
        hosts=organisations.hosts_of(archive, organisation, own=kind, limit=limit)
        if kind
        else every_host[:limit],
        counts=organisations.counts_of(archive, organisation),
    )
