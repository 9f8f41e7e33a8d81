"""Tombstones: what remains of a package that was withdrawn: who, why, when, and the checksums of its files,
but none of its content.

A tombstone is a separate object, `info:webdepot/tombstone/PACKAGE`, with `tombstone.json` and
`catalogue.json` (what remains of its records). It is copied to every place, so that in no place a withdrawn
package looks lost, and a rebuild knows what was withdrawn.
"""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from webdepot.depot.ocfl import objects
from webdepot.depot.ocfl.objects import Source
from webdepot.depot.package import OWN_OBJECTS
from webdepot.depot.tables import tombstones
from webdepot.errors import CorruptData
from webdepot.model import HarvestId, PackageId
from webdepot.ports.object_store import ObjectStore
from webdepot.times import from_iso, to_iso

_PREFIX = f"{OWN_OBJECTS}tombstone/"
FILE = "tombstone.json"
CATALOGUE = "catalogue.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    package: PackageId
    harvest: HarvestId
    urn: str
    title: str
    withdrawn_at: datetime
    agent: str
    approved_by: str
    reason: str
    files: Mapping[str, str]
    """Path in the package to SHA-256, of every file that it had."""


def id_of(package: PackageId) -> str:
    return f"{_PREFIX}{package}"


def put(store: ObjectStore, stone: Tombstone, *, catalogued: bytes = b"") -> None:
    """Write a tombstone, with what remains in the catalogue; writing the same one again changes nothing."""
    document = asdict(stone) | {"withdrawn_at": to_iso(stone.withdrawn_at)}
    data = (json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
    files: dict[str, Source] = {FILE: data}
    if catalogued:
        files[CATALOGUE] = catalogued
    objects.put_version(
        store,
        id_of(stone.package),
        files,
        message=f"Withdrawn: {stone.reason}",
        user=stone.agent,
        created=stone.withdrawn_at,
    )


def read_catalogued(store: ObjectStore, package: PackageId) -> bytes:
    """What remains in the catalogue of a withdrawn package; empty if its tombstone is older than the
    catalogue.
    """
    inventory = objects.read_inventory(store, id_of(package))
    if CATALOGUE not in inventory.files():
        return b""
    with store.open(objects.content_key(inventory, CATALOGUE)) as stream:
        return stream.read()


def iter_all(store: ObjectStore) -> Iterator[Tombstone]:
    for identifier in objects.iter_objects(store):
        if identifier.startswith(_PREFIX):
            yield read(store, PackageId(identifier.removeprefix(_PREFIX)))


def read(store: ObjectStore, package: PackageId) -> Tombstone:
    inventory = objects.read_inventory(store, id_of(package))
    with store.open(objects.content_key(inventory, FILE)) as stream:
        return from_json(stream.read(), where=inventory.id)


def from_json(data: bytes, *, where: str) -> Tombstone:
    try:
        facts: dict[str, Any] = json.load(io.BytesIO(data))
        if not isinstance(facts, dict) or not isinstance(facts.get("files"), dict):
            raise TypeError("it is not a list of facts and files")
        texts = [*facts["files"].values(), *(facts[name] for name in facts if name != "files")]
        if not all(isinstance(each, str) for each in texts):
            raise TypeError("one of its facts is not text")
        return Tombstone(**facts | {"withdrawn_at": from_iso(facts["withdrawn_at"])})
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise CorruptData(
            f"The tombstone {where} cannot be used: {error}. Restore it from another copy.", where=where
        ) from error


def record(connection: Connection, stone: Tombstone, *, waiting: tuple[str, ...] = ()) -> bool:
    """Write the row of a tombstone; whether it is new. `waiting` are the places that still have the bytes."""
    if find(connection, stone.package) is not None:
        connection.execute(
            update(tombstones).where(tombstones.c.package == stone.package).values(waiting=list(waiting))
        )
        return False
    connection.execute(
        insert(tombstones).values(**asdict(stone) | {"files": dict(stone.files), "waiting": list(waiting)})
    )
    return True


def find(connection: Connection, package: str) -> Tombstone | None:
    """The tombstone of a package, by its identifier or URN."""
    chosen = (
        select(tombstones).where((tombstones.c.package == package) | (tombstones.c.urn == package)).limit(1)
    )
    row = connection.execute(chosen).mappings().one_or_none()
    return _stone(row) if row else None


def latest(connection: Connection, limit: int) -> list[Tombstone]:
    rows = connection.execute(
        select(tombstones).order_by(tombstones.c.withdrawn_at.desc(), tombstones.c.package).limit(limit)
    ).mappings()
    return [_stone(row) for row in rows]


def still_waiting(connection: Connection) -> list[tuple[Tombstone, tuple[str, ...]]]:
    """Tombstones of packages whose bytes are still in some place, with those places."""
    rows = connection.execute(select(tombstones).order_by(tombstones.c.package)).mappings()
    return [(_stone(row), tuple(row["waiting"])) for row in rows if row["waiting"]]


def _stone(row: RowMapping) -> Tombstone:
    return Tombstone(**{name: value for name, value in row.items() if name != "waiting"})
