"""Where the screenshots of a harvest are: `resource` records in its containers, with the address
`urn:view:URL` (browsertrix), `screenshot:URL` or `urn:screenshot:URL`. They show a page but are not versions
of it, so the index of captures does not have them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from sqlalchemy import Connection, RowMapping, delete, insert, select

from webdepot.container.reader import iter_records
from webdepot.errors import NotFound
from webdepot.model import HarvestId, Location, RecordKind
from webdepot.quality.tables import screenshots

PREFIXES = ("urn:view:", "urn:screenshot:", "screenshot:")
MIMES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Screenshot:
    url: str
    """The page that it shows."""
    mime: str
    location: Location
    id: int = 0


def iter_in(stream: BinaryIO, name: str) -> Iterator[Screenshot]:
    """The screenshots in a container; damaged records are skipped, as the harvest check reports them."""
    for record in iter_records(stream, name, on_finding=lambda _: None):
        if record.kind is not RecordKind.RESOURCE or not record.url.startswith(PREFIXES):
            continue
        prefix = next(each for each in PREFIXES if record.url.startswith(each))
        mime = (record.fields.get("Content-Type") or "").partition(";")[0].strip().lower()
        if mime in MIMES:
            yield Screenshot(url=record.url[len(prefix) :][:2000], mime=mime, location=record.location)


def replace(connection: Connection, harvest: HarvestId, shots: Sequence[Screenshot]) -> None:
    connection.execute(delete(screenshots).where(screenshots.c.harvest == harvest))
    for shot in shots:
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


def find(connection: Connection, harvest: HarvestId, url: str) -> Screenshot | None:
    """The screenshot of a page in a harvest; None if there is none."""
    chosen = (
        select(screenshots)
        .where(screenshots.c.harvest == harvest, screenshots.c.url == url[:2000])
        .order_by(screenshots.c.id)
        .limit(1)
    )
    row = connection.execute(chosen).mappings().one_or_none()
    return _screenshot(row) if row else None


def get(connection: Connection, number: int) -> Screenshot:
    row = connection.execute(select(screenshots).where(screenshots.c.id == number)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no screenshot {number}.")
    return _screenshot(row)


def _screenshot(row: RowMapping) -> Screenshot:
    at = Location(container=row["container"], offset=row["offset"], length=row["length"])
    return Screenshot(id=row["id"], url=row["url"], mime=row["mime"], location=at)
