"""What a package needs of others: the records that its revisits refer to.

A later harvest stores pages that did not change as revisits. Their content is in the package of an earlier
harvest, so a package that leaves the archive is complete only together with those records.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot import holdings
from webdepot.model import Capture, RecordKind
from webdepot.services.access.replay import replay


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """Revisits of a package whose content is elsewhere."""

    revisits: int = 0
    packages: tuple[str, ...] = ()
    """Identifiers of the packages that have the content; containers that are not in the depot by name."""
    missing: int = 0
    """Revisits whose content this archive does not have."""


def iter_originals(
    archive: Archive, captures: Iterable[Capture], own: frozenset[str]
) -> Iterator[Capture | None]:
    """For each revisit the capture with its content, if that is not in the containers `own`; None if it is
    not in this archive.
    """
    for capture in captures:
        if capture.kind is RecordKind.REVISIT:
            original = replay.find_original(archive, capture)
            if original is None or original.location.container not in own:
                yield original


def find(archive: Archive, captures: Iterable[Capture], own: frozenset[str]) -> References:
    """What these captures need of other packages."""
    containers: dict[str, int] = {}
    missing = 0
    for original in iter_originals(archive, captures, own):
        if original is None:
            missing += 1
        else:
            name = original.location.container
            containers[name] = containers.get(name, 0) + 1
    packages = sorted({_package_of(archive, name) for name in containers})
    return References(revisits=sum(containers.values()), packages=tuple(packages), missing=missing)


def _package_of(archive: Archive, container: str) -> str:
    with archive.database.reading() as connection:
        place = locations.find(connection, container)
        package = holdings.find_of_harvest(connection, place.harvest) if place else None
    return package.id if package else container
