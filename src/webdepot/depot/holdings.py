"""Holdings: the packages as the database knows them. The depot itself is the truth; these rows can be made again from it."""

from collections.abc import Iterator

from sqlalchemy import Connection, RowMapping, delete, func, insert, select

from webdepot.depot.tables import packages
from webdepot.errors import NotFound
from webdepot.model import HarvestId, Package, PackageId


def record(connection: Connection, package: Package, inventory_sha256: str) -> None:
    """A package that is whole in the depot; the same one again replaces its facts."""
    connection.execute(delete(packages).where(packages.c.id == package.id))
    connection.execute(
        insert(packages).values(
            id=package.id,
            harvest=package.harvest,
            urn=package.urn,
            title=package.title,
            version=package.version,
            size_bytes=package.size_bytes,
            stored_at=package.stored_at,
            inventory_sha256=inventory_sha256,
        )
    )


def get(connection: Connection, package: str) -> Package:
    """By package identifier or URN; NotFound when there is none."""
    chosen = select(packages).where((packages.c.id == package) | (packages.c.urn == package)).limit(1)
    row = connection.execute(chosen).mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no package {package}. List them: webdepot package list")
    return _package(row)


def find_of_harvest(connection: Connection, harvest: HarvestId) -> Package | None:
    row = connection.execute(select(packages).where(packages.c.harvest == harvest)).mappings().one_or_none()
    return _package(row) if row else None


def latest(connection: Connection, limit: int, offset: int = 0) -> list[Package]:
    chosen = select(packages).order_by(packages.c.stored_at.desc(), packages.c.id).limit(limit).offset(offset)
    return [_package(row) for row in connection.execute(chosen).mappings()]


def iter_ids(connection: Connection) -> Iterator[PackageId]:
    return map(PackageId, connection.execute(select(packages.c.id).order_by(packages.c.id)).scalars())


def totals(connection: Connection) -> tuple[int, int]:
    """How many packages, and their bytes."""
    row = connection.execute(select(func.count(), func.coalesce(func.sum(packages.c.size_bytes), 0)).select_from(packages)).one()
    return int(row[0]), int(row[1])


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
