"""Pictures of archived pages, as readers see them: where they are, who may see them, and small versions.

A picture is a screenshot that a harvest took, or that was made later from what is archived
(`services/depot/pictures.py`); it is a record of the harvest that has the page. It is shown only together
with the page: `lookup` asks the access gate about the capture, and harvests under review are in no index. It
is not shown if

    - the page has a warning, or is lent to one reader at a time: a picture has no text above it, and
      everybody could look at it,
    - an image or another file of the same host is closed to the reader: it may be in the picture.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

from webdepot.access import closed_areas, policy
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.container.reader import read_record
from webdepot.errors import Closed, NotFound
from webdepot.model import Capture
from webdepot.quality import screenshots
from webdepot.quality.screenshots import Screenshot
from webdepot.services.access import gate, lookup
from webdepot.services.access.browse import thumbnail_cache, thumbnail_maker

LARGEST_BYTES = 20 << 20
_MOST_EXAMINED = 200
"""Captures below a rule: if there are more, they are not examined, and there is no picture."""
_PAGES = frozenset({"text/html", "application/xhtml+xml"})


class PictureSize(Enum):
    """Width and height in pixels: twice as many as the page shows, for sharp screens."""

    CARD = (640, 400)
    HIT = (240, 150)


def find(archive: Archive, capture: Capture) -> Screenshot | None:
    """The picture of a capture in its harvest; None if there is none. The caller has checked the gate."""
    if not archive.database.remembered("has screenshots", screenshots.exist):
        return None
    with archive.database.reading() as connection:
        container = locations.find(connection, capture.location.container)
        return screenshots.find(connection, container.harvest, capture.url) if container else None


def find_shown(archive: Archive, capture: Capture, reader: Reader) -> Screenshot | None:
    """The picture of a capture, if there is one and this reader may see it."""
    return find(archive, capture) if _may_see(archive, capture, reader) else None


def find_many(
    archive: Archive, pages: Iterable[tuple[str, str]], *, collection: str, reader: Reader
) -> Mapping[str, Screenshot]:
    """Pictures of pages, given as addresses with timestamps, that this reader may see; by address."""
    if not archive.database.remembered("has screenshots", screenshots.exist):
        return {}
    pictures: dict[str, Screenshot] = {}
    for url, timestamp in pages:
        try:
            capture = lookup.find_closest(archive, url, timestamp, collection=collection, reader=reader)
        except (NotFound, Closed):
            continue
        picture = find_shown(archive, capture, reader)
        if picture is not None:
            pictures[url] = picture
    return pictures


def read(archive: Archive, picture: Screenshot) -> bytes:
    """The picture as it was taken; NotFound if it is too large."""
    with archive.containers.open(picture.location.container) as stream:
        record = read_record(stream, picture.location)
        with record.block() as block:
            data = block.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise NotFound(f"The screenshot of {picture.url} is larger than {LARGEST_BYTES} bytes.")
    return data


def small(
    archive: Archive, url: str, timestamp: str, size: PictureSize, *, collection: str, reader: Reader
) -> bytes:
    """A small picture of the version closest to a moment, as a JPEG of just that size.

    NotFound if there is none or the reader may not see it, Closed if a rule closes the page.
    """
    capture = lookup.find_closest(archive, url, timestamp, collection=collection, reader=reader)
    picture = find_shown(archive, capture, reader)
    if picture is None:
        raise NotFound(f"There is no picture of {url}.")
    place = picture.location
    name = f"picture {place.container} {place.offset} {size.name}"
    data = thumbnail_cache.find(archive, name)
    if data is None:
        data = thumbnail_maker.make(read(archive, picture), cut_to=size.value)
        thumbnail_cache.keep(archive, name, data)
    if not data:
        raise NotFound(f"The picture of {url} cannot be shown.")
    return data


def _may_see(archive: Archive, capture: Capture, reader: Reader) -> bool:
    if not gate.has_rules(archive):
        return True
    verdict = gate.of_key(archive, capture.key, reader).verdict(capture)
    has_warning = verdict is not policy.OPEN and bool(verdict.reason)
    if not verdict or has_warning or gate.is_lent(archive, capture, reader):
        return False
    host = capture.key.partition(")")[0] + ")"
    closed = gate.iter_closed_at(
        archive,
        host,
        closed_areas.after_prefix(host),
        capture.timestamp,
        reader,
        most=_MOST_EXAMINED,
    )
    try:
        return all(each.mime in _PAGES for each in closed)
    except gate.TooManyCaptures:
        return False
