"""A harvest that readers do not see yet, shown to staff in replay: the reviewer looks before deciding.

Its pages have the addresses of a collection of their own, `/review-{harvest}/{timestamp}/{url}`. That
collection is in no index of the archive, so no other interface finds anything in it: lists, search, CDX and
Memento answer as for any collection that does not exist. Only the replay of single pages opens it
(`opened`), for staff alone.

Its captures, with those of its patches, are in a small index in the working folder, made when the first page
is opened, and deleted with that folder after the deposit. What a harvest repeats without storing it again is
found in the archive.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from webdepot.access.policy import AccessPoint, Reader
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.errors import NotFound
from webdepot.harvest import harvest_rows
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.model import Container, Harvest, HarvestId, HarvestState
from webdepot.services.harvest import harvests as harvests_service

PREFIX = "review-"
_INDEX = "preview.db"


def collection_of(harvest: Harvest) -> str:
    """The name under which replay shows the harvest."""
    return f"{PREFIX}{harvest.id}"


def find_harvest(collection: str) -> str:
    """The id of the harvest that a collection previews; empty for all other collections."""
    return collection.removeprefix(PREFIX) if collection.startswith(PREFIX) else ""


def can_be_opened(harvest: Harvest) -> bool:
    """Whether there is a preview: a harvest in the depot is replayed as everybody sees it."""
    return harvest.state is not HarvestState.KEPT


@contextmanager
def opened(archive: Archive, collection: str, reader: Reader) -> Iterator[Archive]:
    """The archive in which to look up an address of a collection: with the captures of the harvest, if staff
    ask for its preview, else the archive as it is.
    """
    is_asked = find_harvest(collection) and reader.access_point is AccessPoint.STAFF
    harvest = _find(archive, collection) if is_asked else None
    if harvest is None:
        yield archive
        return
    # It loads the parsers, which a server of archived pages does without.
    from webdepot.services.index import derived_files

    with closing(SqliteCaptureIndex(_folder_of(archive, harvest) / _INDEX)) as captures:
        containers = {each.name: each for each in _containers(archive, harvest)}
        for name in sorted(containers.keys() - captures.having(containers)):
            captures.add(name, derived_files.iter_captures(archive, containers[name]), collection=collection)
        yield archive.with_captures(captures)


def _find(archive: Archive, collection: str) -> Harvest | None:
    try:
        with archive.database.reading() as connection:
            harvest = harvest_rows.get(connection, HarvestId(find_harvest(collection)))
    except NotFound:
        return None
    return harvest if can_be_opened(harvest) and _folder_of(archive, harvest).exists() else None


def _folder_of(archive: Archive, harvest: Harvest) -> Path:
    return harvests_service.folder_of(archive, harvest)


def _containers(archive: Archive, harvest: Harvest) -> list[Container]:
    """The complete containers of the harvest and of its patches."""
    harvests = (harvest, *harvests_service.patches_of(archive, harvest))
    with archive.database.reading() as connection:
        return [each for one in harvests for each in locations.of_harvest(connection, one.id)]
