"""Places: where the copies of the depot stand. Each is complete: any one of them is enough to read everything
again.

An address is a folder, or `s3://BUCKET/PREFIX?endpoint=https://host:port&region=NAME`. Addresses hold no
secrets. Credentials of a place named `vault` come from WEBDEPOT_PLACE_VAULT_ACCESS_KEY and
WEBDEPOT_PLACE_VAULT_SECRET_KEY, so that each can have its own and a process that has not been given them
cannot touch the place; without these, the usual AWS_* variables or the machine's role count.

    filling ──> active        all packages have been copied to it once
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from webdepot.depot import layout
from webdepot.depot.store.folder import FolderStore
from webdepot.depot.tables import places
from webdepot.errors import Conflict, InputError, NotFound, RemoteError
from webdepot.ports import ObjectStore

if TYPE_CHECKING:
    from webdepot.depot.store.s3 import BucketAddress

MAIN = "main"
"""The place that packages are written to first and read from; the configuration names it."""
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_OPTIONS = {"endpoint", "region"}


class PlaceState(StrEnum):
    FILLING = "filling"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    name: str
    address: str
    state: PlaceState
    write_once: bool
    """Its keys cannot delete: withdrawn packages are left to whoever holds other keys."""
    refuses_overwriting: bool
    added_at: datetime
    away_since: datetime | None = None
    note: str = ""


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name == MAIN:
        raise InputError(
            f"{name!r} is no name for a place: use a to z, digits and hyphens, beginning with a letter, and not `{MAIN}`."
        )
    return name


def normal_address(address: str) -> str:
    """The address in the form in which it is kept; InputError when it is none or holds a secret."""
    if not address.startswith("s3:"):
        return str(Path(address).expanduser().absolute())
    _bucket(address)
    return address


def open_store(name: str, address: str, environment: Mapping[str, str] = os.environ) -> ObjectStore:
    if not address.startswith("s3:"):
        return FolderStore(Path(address))
    # Its library is large; archives on disks do without.
    from webdepot.depot.store.s3 import S3Store

    prefix = f"WEBDEPOT_PLACE_{name.upper().replace('-', '_')}_"
    return S3Store(
        _bucket(address),
        access_key=environment.get(f"{prefix}ACCESS_KEY", ""),
        secret_key=environment.get(f"{prefix}SECRET_KEY", ""),
    )


def require_present(name: str, store: ObjectStore) -> None:
    """RemoteError when the place is away: an empty folder where a disk should be mounted must not look like a
    loss of everything.
    """
    if store.size(layout.ROOT_DECLARATION) is None and store.size("ocfl_layout.json") is None:
        raise RemoteError(
            f"The place {name} is away: it does not show its own declaration. Mount it or check its address.",
            retry=True,
        )


def add(connection: Connection, place: Place) -> None:
    if find(connection, place.name) is not None:
        raise Conflict(
            f"There is a place {place.name} already. Choose another name, or see: webdepot depot copy status"
        )
    taken = connection.execute(select(places.c.name).where(places.c.address == place.address)).scalar()
    if taken:
        raise Conflict(f"{place.address} is the place {taken} already.")
    connection.execute(
        insert(places).values(
            name=place.name,
            address=place.address,
            state=place.state.value,
            write_once=place.write_once,
            refuses_overwriting=place.refuses_overwriting,
            added_at=place.added_at,
            away_since=place.away_since,
            note=place.note,
        )
    )


def remove(connection: Connection, name: str) -> None:
    connection.execute(delete(places).where(places.c.name == name))


def activate(connection: Connection, name: str) -> None:
    connection.execute(update(places).where(places.c.name == name).values(state=PlaceState.ACTIVE.value))


def note_away(connection: Connection, name: str, since: datetime | None, note: str = "") -> None:
    """The place could not be reached (since when), or is there again (None)."""
    connection.execute(update(places).where(places.c.name == name).values(away_since=since, note=note))


def every(connection: Connection) -> list[Place]:
    return [
        _place(row)
        for row in connection.execute(select(places).order_by(places.c.added_at, places.c.name)).mappings()
    ]


def find(connection: Connection, name: str) -> Place | None:
    row = connection.execute(select(places).where(places.c.name == name)).mappings().one_or_none()
    return _place(row) if row else None


def get(connection: Connection, name: str) -> Place:
    found = find(connection, name)
    if found is None:
        raise NotFound(f"There is no place {name}. See: webdepot depot copy status")
    return found


def _bucket(address: str) -> "BucketAddress":
    from webdepot.depot.store.s3 import BucketAddress

    parts = urlsplit(address)
    options = parse_qs(parts.query, strict_parsing=bool(parts.query))
    if parts.username or parts.password or not options.keys() <= _OPTIONS or parts.fragment:
        raise InputError(
            f"{address.partition('?')[0]}: an address of a place has a bucket, a prefix, and the options endpoint and region; "
            "no keys or passwords. Put those into the environment (WEBDEPOT_PLACE_NAME_ACCESS_KEY, WEBDEPOT_PLACE_NAME_SECRET_KEY)."
        )
    if not parts.netloc:
        raise InputError(f"{address} names no bucket. Write s3://BUCKET/PREFIX?endpoint=https://host")
    given = {name: values[0] for name, values in options.items()}
    return BucketAddress(bucket=parts.netloc, prefix=parts.path.strip("/"), **given)


def _place(row: RowMapping) -> Place:
    return Place(**dict(row) | {"state": PlaceState(row["state"])})
