"""One reader at a time: who has which page open. A seat is a terminal, known by a checksum of its address;
nothing is kept when it is left.

A page is held until `until`; whoever has it puts that off while the page is open. What has run out is as if
it were not there.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, delete, insert, select

from webdepot.access.tables import reading_seats


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    url: str
    seat: str
    taken_at: datetime
    until: datetime

    def is_of(self, seat: str) -> bool:
        """Whether this terminal has the page."""
        return self.seat == _digest(seat)


def find(connection: Connection, key: str) -> Held | None:
    """Who has a page, or had it last and did not leave: `until` says."""
    row = (
        connection.execute(select(reading_seats).where(reading_seats.c.key_digest == _digest(key)))
        .mappings()
        .one_or_none()
    )
    return _held(row) if row is not None else None


def take(
    connection: Connection, key: str, url: str, seat: str, *, now: datetime, until: datetime
) -> Held | None:
    """Hold a page, or go on holding it; who has it instead, where somebody has."""
    connection.execute(delete(reading_seats).where(reading_seats.c.until <= now))
    place = reading_seats.c.key_digest == _digest(key)
    row = connection.execute(select(reading_seats).where(place)).mappings().one_or_none()
    if row is not None and row["seat"] != _digest(seat):
        return _held(row)
    taken_at = row["taken_at"] if row else now
    connection.execute(delete(reading_seats).where(place))
    values = {
        "key_digest": _digest(key),
        "url": url[:4000],
        "seat": _digest(seat),
        "taken_at": taken_at,
        "until": until,
    }
    connection.execute(insert(reading_seats).values(**values))
    return None


def leave(connection: Connection, key: str, seat: str) -> None:
    connection.execute(
        delete(reading_seats).where(
            reading_seats.c.key_digest == _digest(key), reading_seats.c.seat == _digest(seat)
        )
    )


def free(connection: Connection, key: str) -> Held | None:
    """Take a page from whoever has it; who had it."""
    place = reading_seats.c.key_digest == _digest(key)
    row = connection.execute(select(reading_seats).where(place)).mappings().one_or_none()
    connection.execute(delete(reading_seats).where(place))
    return _held(row) if row else None


def every(connection: Connection, now: datetime) -> list[Held]:
    rows = connection.execute(
        select(reading_seats).where(reading_seats.c.until > now).order_by(reading_seats.c.taken_at)
    ).mappings()
    return [_held(row) for row in rows]


def _held(row: RowMapping) -> Held:
    return Held(url=row["url"], seat=row["seat"], taken_at=row["taken_at"], until=row["until"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
