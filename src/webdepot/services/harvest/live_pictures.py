"""The last screenshots of a running harvest as small pictures, for staff who watch it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from webdepot.archive import Archive
from webdepot.errors import NotFound
from webdepot.harvest.report import last_pictures
from webdepot.model import Harvest
from webdepot.services.access import images
from webdepot.services.harvest import harvests, processes


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePicture:
    name: str
    """Its name among the pictures of its harvest."""
    url: str
    """The page that it shows."""


def last(archive: Archive, harvest: Harvest) -> Sequence[LivePicture]:
    """The last screenshots, newest first; of a harvest in several processes, those of all of them."""
    pictures = [
        (picture.number, LivePicture(name=f"{part}-{picture.number}", url=picture.url))
        for part, folder in enumerate(_folders(archive, harvest))
        for picture in last_pictures.read(folder)
    ]
    newest = sorted(pictures, key=lambda numbered: -numbered[0])[: last_pictures.MOST]
    return [picture for _, picture in newest]


def thumbnail(archive: Archive, harvest_id: str, name: str) -> bytes:
    """A small JPEG of one of them; NotFound if it is no longer one of the last."""
    folders = _folders(archive, harvests.get(archive, harvest_id))
    part, _, number = name.partition("-")
    is_number = part.isdecimal() and number.isdecimal() and len(name) < 20
    picture = (
        last_pictures.find(folders[int(part)], int(number))
        if is_number and int(part) < len(folders)
        else None
    )
    small = images.thumbnail_of(picture) if picture is not None else None
    if not small:
        raise NotFound("This screenshot is no longer stored: only the latest ones are kept.")
    return small


def _folders(archive: Archive, harvest: Harvest) -> list[Path]:
    folder = harvests.folder_of(archive, harvest)
    return [folder, *processes.existing(folder)]
