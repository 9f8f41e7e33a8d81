"""Where the screenshots of a harvest are: `resource` records in its containers, with the address
`urn:view:URL` (browsertrix), `screenshot:URL` or `urn:screenshot:URL`. They show a page but are not versions
of it, so the capture index does not have them. Small ones (`urn:thumbnail:URL`) are used for pages that
have no other.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, delete, insert, select

from webdepot.container.record import Record
from webdepot.errors import NotFound
from webdepot.model import HarvestId, Location, RecordKind
from webdepot.quality.tables import screenshots

VIEW = "urn:view:"
"""The prefix of the screenshots that our harvests make."""
_THUMBNAIL = "urn:thumbnail:"
PREFIXES = (VIEW, "urn:screenshot:", "screenshot:", _THUMBNAIL)
MIMES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
_LONGEST_URL_BYTES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Screenshot:
    url: str
    """The page that it shows."""
    mime: str
    location: Location
    id: int = 0
    is_thumbnail: bool = False


def of_record(record: Record) -> Screenshot | None:
    """The screenshot in a record; None if the record is not a screenshot."""
    if record.kind is not RecordKind.RESOURCE or not record.url.startswith(PREFIXES):
        return None
    prefix = next(each for each in PREFIXES if record.url.startswith(each))
    mime = (record.fields.get("Content-Type") or "").partition(";")[0].strip().lower()
    if mime not in MIMES:
        return None
    return Screenshot(
        url=_cut(record.url[len(prefix) :]),
        mime=mime,
        location=record.location,
        is_thumbnail=prefix == _THUMBNAIL,
    )


def clear(connection: Connection, harvest: HarvestId) -> None:
    connection.execute(delete(screenshots).where(screenshots.c.harvest == harvest))


def add(connection: Connection, harvest: HarvestId, shots: Iterable[Screenshot]) -> None:
    """Record screenshots; a thumbnail only if its page has none yet."""
    for shot in shots:
        if shot.is_thumbnail and find(connection, harvest, shot.url) is not None:
            continue
        at = shot.location
        values = {"container": at.container, "offset": at.offset, "length": at.length}
        connection.execute(
            insert(screenshots).values(harvest=harvest, url=shot.url, mime=shot.mime, **values)
        )


def of_harvest(connection: Connection, harvest: HarvestId, limit: int) -> list[Screenshot]:
    chosen = (
        select(screenshots).where(screenshots.c.harvest == harvest).order_by(screenshots.c.id).limit(limit)
    )
    return [_screenshot(row) for row in connection.execute(chosen).mappings()]


def containers(connection: Connection, harvest: HarvestId) -> frozenset[str]:
    """The containers in which screenshots of a harvest are."""
    chosen = select(screenshots.c.container).where(screenshots.c.harvest == harvest).distinct()
    return frozenset(connection.execute(chosen).scalars())


def find(connection: Connection, harvest: HarvestId, url: str) -> Screenshot | None:
    """The screenshot of a page in a harvest; None if there is none."""
    chosen = (
        select(screenshots)
        .where(screenshots.c.harvest == harvest, screenshots.c.url == _cut(url))
        .order_by(screenshots.c.id)
        .limit(1)
    )
    row = connection.execute(chosen).mappings().one_or_none()
    return _screenshot(row) if row else None


def exist(connection: Connection) -> bool:
    """Whether there is any screenshot."""
    return connection.execute(select(screenshots.c.id).limit(1)).first() is not None


def get(connection: Connection, number: int) -> Screenshot:
    row = connection.execute(select(screenshots).where(screenshots.c.id == number)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no screenshot {number}.")
    return _screenshot(row)


def _cut(url: str) -> str:
    """An address, cut to the length that an index of the database allows."""
    return url.encode("utf-8", "replace")[:_LONGEST_URL_BYTES].decode("utf-8", "ignore")


def _screenshot(row: RowMapping) -> Screenshot:
    at = Location(container=row["container"], offset=row["offset"], length=row["length"])
    return Screenshot(id=row["id"], url=row["url"], mime=row["mime"], location=at)
