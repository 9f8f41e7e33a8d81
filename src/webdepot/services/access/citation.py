"""The citation of a version: its title, where it is shown, and the persistent identifier of its harvest."""

from collections.abc import Callable

from webdepot.access.citation import Citation, CitationForm, write
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.exchange import catalogue
from webdepot.model import Capture
from webdepot.services.access.replay import replay
from webdepot.services.access.replay.replay import VersionPlace


def find_urn(archive: Archive, capture: Capture) -> str:
    """The URN of a capture's harvest; empty if it has none (not in the depot, or not catalogued)."""
    with archive.database.reading() as connection:
        container = locations.find(connection, capture.location.container)
        record = catalogue.find_of_harvest(connection, container.harvest) if container else None
    return record.urn if record else ""


def cite(
    archive: Archive,
    url: str,
    timestamp: str,
    *,
    collection: str,
    reader: Reader,
    address_of: Callable[[Capture], str],
) -> Citation:
    """The citation of the version closest to a moment; `address_of` says where the portal shows a capture.

    NotFound if there is none, Closed if a rule refuses it.
    """
    place = replay.find_place(archive, url, timestamp, collection=collection, reader=reader)
    return of_place(archive, place, address=address_of(place.capture))


def cite_as(
    archive: Archive,
    url: str,
    timestamp: str,
    form: CitationForm,
    *,
    collection: str,
    reader: Reader,
    address_of: Callable[[Capture], str],
) -> str:
    """The citation of `cite` as a file for a reference manager."""
    cited = cite(archive, url, timestamp, collection=collection, reader=reader, address_of=address_of)
    return write(cited, form)


def of_place(archive: Archive, place: VersionPlace, *, address: str) -> Citation:
    capture = place.capture
    return Citation(
        title=place.title or capture.url,
        url=capture.url,
        timestamp=capture.timestamp,
        archive=archive.config.archive.name,
        address=address,
        urn=find_urn(archive, capture),
    )
