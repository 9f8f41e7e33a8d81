"""Pages lent to one reader at a time: which terminal has which page open.

A terminal is identified by a checksum of its address; the row is deleted when it closes the page. A page is
held until `until`, and the reader's browser extends that while the page is open. An expired row counts as
absent.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, delete, insert, select

from webdepot.access.tables import reading_seats


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPage:
    """A page that one reader has open."""

    url: str
    seat: str
    taken_at: datetime
    until: datetime

    def is_of(self, seat: str) -> bool:
        """Whether this terminal has the page."""
        return self.seat == _digest(seat)


def find(connection: Connection, key: str) -> HeldPage | None:
    """The reader who has a page, or had it last and did not close it: see `until`."""
    row = (
        connection.execute(select(reading_seats).where(reading_seats.c.key_digest == _digest(key)))
        .mappings()
        .one_or_none()
    )
    return _held(row) if row is not None else None


def take(
    connection: Connection, key: str, url: str, seat: str, *, now: datetime, until: datetime
) -> HeldPage | None:
    """Hold a page, or extend the hold. Returns the other hold if another terminal has the page, else None."""
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
    """End the hold of this terminal."""
    connection.execute(
        delete(reading_seats).where(
            reading_seats.c.key_digest == _digest(key), reading_seats.c.seat == _digest(seat)
        )
    )


def free(connection: Connection, key: str) -> HeldPage | None:
    """End the hold of any terminal; returns it, or None if nobody had the page."""
    place = reading_seats.c.key_digest == _digest(key)
    row = connection.execute(select(reading_seats).where(place)).mappings().one_or_none()
    connection.execute(delete(reading_seats).where(place))
    return _held(row) if row else None


def every(connection: Connection, now: datetime) -> list[HeldPage]:
    """Pages that are held now, in the order in which they were opened."""
    rows = connection.execute(
        select(reading_seats).where(reading_seats.c.until > now).order_by(reading_seats.c.taken_at)
    ).mappings()
    return [_held(row) for row in rows]


def _held(row: RowMapping) -> HeldPage:
    return HeldPage(url=row["url"], seat=row["seat"], taken_at=row["taken_at"], until=row["until"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
