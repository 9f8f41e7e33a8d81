"""The list of containers: which exist, which harvest they belong to, and where they are stored."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from webdepot.container.tables import containers, imported_files
from webdepot.model import Container, ContainerState, HarvestId

_MOST_AT_ONCE = 500
"""Maximum number of values in one query; databases limit it."""


def add(connection: Connection, container: Container, *, original_sha256: str = "") -> None:
    """Add a container that is sealed and durable on disk, or update it if its name is known.

    `original_sha256` is the checksum of the file it was imported from, if that was rewritten.
    """
    connection.execute(delete(containers).where(containers.c.name == container.name))
    connection.execute(
        insert(containers).values(
            name=container.name,
            harvest=container.harvest,
            state=container.state.value,
            size_bytes=container.size_bytes,
            sha256=container.sha256,
            original_sha256=original_sha256 or container.sha256,
            records=container.records,
            place=container.place,
        )
    )


def move(connection: Connection, name: str, state: ContainerState, place: str) -> None:
    connection.execute(
        update(containers).where(containers.c.name == name).values(state=state.value, place=place)
    )


def remove_of_harvest(connection: Connection, harvest: HarvestId) -> None:
    """Remove containers whose bytes have left the archive."""
    connection.execute(delete(containers).where(containers.c.harvest == harvest))


def of_harvest(connection: Connection, harvest: HarvestId) -> list[Container]:
    rows = connection.execute(
        select(containers).where(containers.c.harvest == harvest).order_by(containers.c.name)
    )
    return [_container(row) for row in rows.mappings()]


def iter_all(connection: Connection) -> Iterator[Container]:
    return map(_container, connection.execute(select(containers).order_by(containers.c.name)).mappings())


def find(connection: Connection, name: str) -> Container | None:
    row = connection.execute(select(containers).where(containers.c.name == name)).mappings().one_or_none()
    return _container(row) if row else None


def find_bytes(connection: Connection, sha256: str) -> Container | None:
    """The container with exactly these bytes, or made from a file with them, under any name."""
    chosen = (
        select(containers)
        .where((containers.c.sha256 == sha256) | (containers.c.original_sha256 == sha256))
        .limit(1)
    )
    row = connection.execute(chosen).mappings().one_or_none()
    return _container(row) if row else None


def find_imported(connection: Connection, place: str, identity: str) -> Container | None:
    """The container that a file became in an earlier import, if the file has not changed since."""
    sha256 = connection.execute(
        select(imported_files.c.sha256).where(
            imported_files.c.place == place, imported_files.c.identity == identity
        )
    ).scalar_one_or_none()
    return find_bytes(connection, sha256) if sha256 else None


def note_imported(connection: Connection, place: str, identity: str, container: Container) -> None:
    """Note which container a file became, so that a repeated import does not read it again.

    `identity` changes whenever the file is changed or replaced.
    """
    connection.execute(delete(imported_files).where(imported_files.c.place == place))
    connection.execute(insert(imported_files).values(place=place, identity=identity, sha256=container.sha256))


def totals(connection: Connection) -> tuple[int, int]:
    """The number of containers and their bytes."""
    row = connection.execute(
        select(func.count(), func.coalesce(func.sum(containers.c.size_bytes), 0)).select_from(containers)
    ).one()
    return int(row[0]), int(row[1])


def count_of(connection: Connection, harvests: Sequence[HarvestId]) -> int:
    """The number of containers of these harvests."""
    counted = select(func.count()).select_from(containers)
    return sum(
        connection.execute(
            counted.where(containers.c.harvest.in_(harvests[start : start + _MOST_AT_ONCE]))
        ).scalar_one()
        for start in range(0, len(harvests), _MOST_AT_ONCE)
    )


def _container(row: RowMapping) -> Container:
    return Container(
        name=row["name"],
        harvest=HarvestId(row["harvest"]),
        state=ContainerState(row["state"]),
        size_bytes=row["size_bytes"],
        sha256=row["sha256"],
        records=row["records"],
        place=row["place"],
    )
