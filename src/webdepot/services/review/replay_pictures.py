"""Screenshots of the replay of a harvest, to compare with the screenshots that were taken while harvesting.

The browser opens each page that has a screenshot, and every request of the page is answered from the captures
of the harvest; it reaches nothing else. What is missing in the archive is missing in the picture. The
pictures are in the working folder of the harvest, and are deleted with it after the deposit.
"""

import logging
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from shutil import rmtree

from webdepot import durable, event_loop
from webdepot.access.policy import AccessPoint, Reader
from webdepot.archive import Archive
from webdepot.errors import NotFound, WebdepotError
from webdepot.model import Harvest
from webdepot.quality import screenshots
from webdepot.services.depot import picture_maker
from webdepot.services.harvest import harvests
from webdepot.services.review import preview
from webdepot.times import to_timestamp

MOST_PICTURES = 20
_FOLDER = "replay-pictures"
_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg"}
_STAFF = Reader(access_point=AccessPoint.STAFF)
log = logging.getLogger(__name__)


def take_after_check(archive: Archive, harvest: Harvest) -> None:
    """Take the screenshots if a browser is installed. Never fails: a harvest can be reviewed without them."""
    if not picture_maker.find_browser(archive):
        return
    try:
        take(archive, harvest)
    except (WebdepotError, OSError) as error:
        log.warning(
            "screenshots of the replay could not be taken", extra={"harvest": harvest.id, "error": str(error)}
        )


def take(archive: Archive, harvest: Harvest) -> int:
    """Take a screenshot of the replay of each page that has a screenshot, at most `MOST_PICTURES`; earlier
    ones are replaced. Returns how many were taken. ConfigError if there is no browser.
    """
    with archive.database.reading() as connection:
        pages = [each.url for each in screenshots.of_harvest(connection, harvest.id, MOST_PICTURES)]
    if not pages or not preview.can_be_opened(harvest):
        return 0
    pictures = event_loop.run(_take(archive, harvest, pages))
    folder = _folder_of(archive, harvest)
    rmtree(folder, ignore_errors=True)
    durable.make_folders(folder)
    for url, (mime, picture) in pictures.items():
        durable.write_whole(folder / _name_of(url, mime), picture)
    return len(pictures)


def list_names(archive: Archive, harvest: Harvest) -> frozenset[str]:
    """Names of the screenshots that there are (`name_of`)."""
    folder = _folder_of(archive, harvest)
    return frozenset(path.stem for path in folder.iterdir()) if folder.is_dir() else frozenset()


def name_of(url: str) -> str:
    """The name of the screenshot of a page."""
    return sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def read(archive: Archive, number: str, name: str) -> tuple[str, bytes]:
    """Media type and bytes of a screenshot of the replay of a harvest; NotFound."""
    folder = _folder_of(archive, harvests.get(archive, number))
    for mime, suffix in _SUFFIXES.items():
        path = folder / f"{name}{suffix}"
        if name.isalnum() and path.is_file():
            return mime, path.read_bytes()
    raise NotFound("This screenshot does not exist.")


def _name_of(url: str, mime: str) -> str:
    return name_of(url) + _SUFFIXES[mime]


def _folder_of(archive: Archive, harvest: Harvest) -> Path:
    return harvests.folder_of(archive, harvest) / _FOLDER


async def _take(archive: Archive, harvest: Harvest, pages: Sequence[str]) -> Mapping[str, tuple[str, bytes]]:
    collection, timestamp = preview.collection_of(harvest), to_timestamp(harvest.started_at)
    pictures: dict[str, tuple[str, bytes]] = {}
    with preview.opened(archive, collection, _STAFF) as previewed:
        async with picture_maker.opened(previewed, collection=collection, reader=_STAFF) as maker:
            for url in pages:
                snapshot = await maker.open(url, timestamp, "scroll")
                if snapshot.picture:
                    pictures[url] = (snapshot.picture_mime, snapshot.picture)
    return pictures
