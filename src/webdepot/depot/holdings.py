"""Holdings: the packages in the database. The depot is authoritative; these rows can be rebuilt from it."""

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import Connection, RowMapping, delete, func, insert, literal, select, update

from webdepot.database import Moment
from webdepot.depot.tables import growth, packages
from webdepot.errors import NotFound
from webdepot.model import HarvestId, Package, PackageId
from webdepot.reasons import said


def record(connection: Connection, package: Package, inventory_sha256: str) -> None:
    """Write the row of a package that is complete in the depot; it replaces an earlier one."""
    before = find(connection, package.id)
    values = {
        "harvest": package.harvest,
        "urn": package.urn,
        "title": package.title,
        "version": package.version,
        "size_bytes": package.size_bytes,
        "stored_at": package.stored_at,
        "inventory_sha256": inventory_sha256,
    }
    if before is None:
        connection.execute(insert(packages).values(id=package.id, **values))
    else:
        connection.execute(update(packages).where(packages.c.id == package.id).values(**values))
        _grow(connection, before, -1)
    _grow(connection, package, +1)


def forget(connection: Connection, package: Package) -> None:
    """Remove the row of a package that is no longer in the depot."""
    if connection.execute(delete(packages).where(packages.c.id == package.id)).rowcount:
        _grow(connection, package, -1)


def get(connection: Connection, package: str) -> Package:
    """The package with this identifier or URN; NotFound if there is none."""
    chosen = select(packages).where((packages.c.id == package) | (packages.c.urn == package)).limit(1)
    row = connection.execute(chosen).mappings().one_or_none()
    if row is None:
        raise NotFound(
            said(
                "missing_package",
                "There is no package {package}. List them: webdepot package list",
                package=package,
            )
        )
    return _package(row)


def find(connection: Connection, package: str) -> Package | None:
    row = connection.execute(select(packages).where(packages.c.id == package)).mappings().one_or_none()
    return _package(row) if row else None


def inventory_sha256(connection: Connection, package: PackageId) -> str:
    """The SHA-256 of the inventory when the package was last written; empty if the package is unknown."""
    return (
        connection.execute(select(packages.c.inventory_sha256).where(packages.c.id == package)).scalar() or ""
    )


def find_of_harvest(connection: Connection, harvest: HarvestId) -> Package | None:
    row = connection.execute(select(packages).where(packages.c.harvest == harvest)).mappings().one_or_none()
    return _package(row) if row else None


def latest(connection: Connection, limit: int, *, past: tuple[datetime, str] | None = None) -> list[Package]:
    """The newest packages; `past` has the time and identifier of the last one of the page before. Every page
    costs the same.
    """
    chosen = select(packages)
    if past is not None:
        moment = literal(past[0], Moment)
        chosen = chosen.where(
            (packages.c.stored_at < moment) | ((packages.c.stored_at == moment) & (packages.c.id < past[1]))
        )
    chosen = chosen.order_by(packages.c.stored_at.desc(), packages.c.id.desc()).limit(limit)
    return [_package(row) for row in connection.execute(chosen).mappings()]


def growth_by_month(connection: Connection) -> list[tuple[str, int, int]]:
    """Month, packages and bytes deposited in it, oldest first."""
    rows = connection.execute(select(growth).where(growth.c.packages > 0).order_by(growth.c.month))
    return [(row.month, row.packages, row.size_bytes) for row in rows]


def iter_ids(connection: Connection) -> Iterator[PackageId]:
    return map(PackageId, connection.execute(select(packages.c.id).order_by(packages.c.id)).scalars())


def totals(connection: Connection) -> tuple[int, int]:
    """The number of packages, and their bytes."""
    row = connection.execute(
        select(func.coalesce(func.sum(growth.c.packages), 0), func.coalesce(func.sum(growth.c.size_bytes), 0))
    ).one()
    return int(row[0]), int(row[1])


def _grow(connection: Connection, package: Package, sign: int) -> None:
    month = f"{package.stored_at:%Y-%m}"
    values = {
        "packages": growth.c.packages + sign,
        "size_bytes": growth.c.size_bytes + sign * package.size_bytes,
    }
    if connection.execute(update(growth).where(growth.c.month == month).values(**values)).rowcount == 0:
        connection.execute(
            insert(growth).values(month=month, packages=sign, size_bytes=sign * package.size_bytes)
        )


def _package(row: RowMapping) -> Package:
    return Package(
        id=PackageId(row["id"]),
        harvest=HarvestId(row["harvest"]),
        urn=row["urn"],
        title=row["title"],
        version=row["version"],
        size_bytes=row["size_bytes"],
        stored_at=row["stored_at"],
    )
