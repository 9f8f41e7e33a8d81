"""Places: where the copies of the depot are. Each place is complete: any one of them is enough to restore
everything.

An address is a folder, or `s3://BUCKET/PREFIX?endpoint=https://host:port&region=NAME`. Addresses contain no
secrets. The credentials of a place named `vault` come from WEBDEPOT_PLACE_VAULT_ACCESS_KEY and
WEBDEPOT_PLACE_VAULT_SECRET_KEY, so that each place can have its own, and a process without them has no
access; if they are not set, the usual AWS_* variables or the role of the machine are used.

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

from webdepot.depot.ocfl import layout
from webdepot.depot.store.folder import FolderStore
from webdepot.depot.tables import places
from webdepot.errors import Conflict, InputError, NotFound, RemoteError
from webdepot.ports.object_store import ObjectStore

if TYPE_CHECKING:
    from webdepot.depot.store.s3 import BucketAddress

MAIN = "main"
"""The place that packages are written to first and read from; its address is in the configuration."""
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_OPTIONS = {"endpoint", "region"}


class PlaceState(StrEnum):
    FILLING = "filling"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotPlace:
    name: str
    address: str
    state: PlaceState
    write_once: bool
    """Whether our credentials cannot delete there: only the holder of other keys can remove withdrawn
    packages.
    """
    refuses_overwriting: bool
    added_at: datetime
    away_since: datetime | None = None
    note: str = ""


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name == MAIN:
        raise InputError(
            f"{name!r} is not a valid name for a place. Use a to z, digits and hyphens, "
            f"starting with a letter; the name `{MAIN}` is reserved."
        )
    return name


def normal_address(address: str) -> str:
    """The address in the form in which it is stored; InputError if it is not valid or contains a secret."""
    if not address.startswith("s3:"):
        return str(Path(address).expanduser().absolute())
    _bucket(address)
    return address


def open_store(name: str, address: str, environment: Mapping[str, str] = os.environ) -> ObjectStore:
    if not address.startswith("s3:"):
        return FolderStore(Path(address))
    # Imported here because its library (obstore) is large, and archives in folders do not need it.
    from webdepot.depot.store.s3 import S3Store

    prefix = f"WEBDEPOT_PLACE_{name.upper().replace('-', '_')}_"
    return S3Store(
        _bucket(address),
        access_key=environment.get(f"{prefix}ACCESS_KEY", ""),
        secret_key=environment.get(f"{prefix}SECRET_KEY", ""),
    )


def refuses_overwriting(store: ObjectStore) -> bool:
    """Whether a store refuses to overwrite keys; a folder always does, a server is tested."""
    if isinstance(store, FolderStore):
        return True
    from webdepot.depot.store import s3  # its library (obstore) is large

    return not isinstance(store, s3.S3Store) or s3.refuses_overwriting(store)


def require_present(name: str, store: ObjectStore) -> None:
    """RemoteError if the place has no depot: an empty folder whose disk is not mounted must not count as a
    loss.
    """
    if store.size(layout.ROOT_DECLARATION) is None and store.size("ocfl_layout.json") is None:
        raise RemoteError(
            f"The place {name} is not available: its OCFL declaration is missing. "
            "Mount it or check its address.",
            retry=True,
        )


def add(connection: Connection, place: DepotPlace) -> None:
    if find(connection, place.name) is not None:
        raise Conflict(
            f"A place named {place.name} already exists. Choose another name, "
            "or see: webdepot depot copy status"
        )
    taken = connection.execute(select(places.c.name).where(places.c.address == place.address)).scalar()
    if taken:
        raise Conflict(f"{place.address} is already registered as the place {taken}.")
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
    """Record since when a place cannot be reached; None if it can be reached again."""
    connection.execute(update(places).where(places.c.name == name).values(away_since=since, note=note))


def every(connection: Connection) -> list[DepotPlace]:
    """All places except the main one."""
    return [
        _place(row)
        for row in connection.execute(select(places).order_by(places.c.added_at, places.c.name)).mappings()
    ]


def find(connection: Connection, name: str) -> DepotPlace | None:
    row = connection.execute(select(places).where(places.c.name == name)).mappings().one_or_none()
    return _place(row) if row else None


def get(connection: Connection, name: str) -> DepotPlace:
    place = find(connection, name)
    if place is None:
        raise NotFound(f"There is no place {name}. See: webdepot depot copy status")
    return place


def _bucket(address: str) -> "BucketAddress":
    from webdepot.depot.store.s3 import BucketAddress

    parts = urlsplit(address)
    options = parse_qs(parts.query, strict_parsing=bool(parts.query))
    if parts.username or parts.password or not options.keys() <= _OPTIONS or parts.fragment:
        raise InputError(
            f"{address.partition('?')[0]}: the address of a place consists of a bucket, a prefix and "
            "the options endpoint and region. It must not contain keys or passwords: put those into the "
            "environment (WEBDEPOT_PLACE_NAME_ACCESS_KEY, WEBDEPOT_PLACE_NAME_SECRET_KEY)."
        )
    if not parts.netloc:
        raise InputError(f"{address} has no bucket. Write s3://BUCKET/PREFIX?endpoint=https://host")
    first = {name: values[0] for name, values in options.items()}
    return BucketAddress(bucket=parts.netloc, prefix=parts.path.strip("/"), **first)


def _place(row: RowMapping) -> DepotPlace:
    return DepotPlace(**dict(row) | {"state": PlaceState(row["state"])})
