"""Versions of a package: a new one is written to the depot first, then to the database, then to the other
places.

    with newest(archive, identifier) as facts:      others who want to write a version wait
        add(archive, facts, files, event=event)     may be left out

If a process is killed between these steps, the version in the depot is complete, and the next `newest` of the
package writes what is missing in the database: its rows, its events, and the results of the check or of the
identification that the version brought. So the caller does not write these itself.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection

from webdepot import durable
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot import copies, holdings, migration_tools, package, rows
from webdepot.depot.migration_tools import Conversion
from webdepot.depot.ocfl import objects
from webdepot.depot.ocfl.objects import Source
from webdepot.depot.package_content import ContainerSource, PackageFacts
from webdepot.errors import CorruptData
from webdepot.formats import results
from webdepot.model import ContainerState, PackageId
from webdepot.ports.object_store import ObjectStore
from webdepot.provenance import Event, append, iter_of
from webdepot.quality import finding_rows
from webdepot.services.depot import storage_places

CHECKED = "checked"
"""The action of an event with which a version brings the findings and the verdict of a new check."""
IDENTIFIED = "identified"
"""The action of an event with which a version brings the results of a new identification."""
_LOCK_NAME = "versions.lock"


@contextmanager
def newest(archive: Archive, identifier: PackageId) -> Iterator[PackageFacts]:
    """The facts of a package, with its rows brought up to date. Only one process at a time may write
    versions. At the end of the block, the package is copied to the places that wait for it.
    """
    with durable.locked(archive.home / _LOCK_NAME):
        yield _catch_up(archive, identifier)
    storage_places.copy_out(archive, identifier)


def catch_up(archive: Archive, identifier: PackageId) -> PackageFacts:
    """As `newest`, for a caller that writes no version: finish what a killed process left."""
    with newest(archive, identifier) as facts:
        return facts


def add(
    archive: Archive,
    facts: PackageFacts,
    files: Mapping[str, Source],
    *,
    event: Event,
    message: str,
    containers: tuple[ContainerSource, ...] = (),
    changes: Mapping[str, object] | None = None,
) -> PackageFacts:
    """Write a version after the one of `facts`, which comes from `newest`; the arguments as in
    `package.extend`.
    """
    package.extend(
        archive.store,
        facts.package.id,
        files,
        containers=containers,
        events=(event,),
        message=message,
        agent=archive.agent,
        created=archive.clock(),
        address=archive.config.archive.contact,
        changes=changes,
    )
    return _catch_up(archive, facts.package.id)


def is_behind(archive: Archive, identifier: PackageId) -> bool:
    """Whether the depot has a newer version of a package than the database."""
    with archive.database.reading() as connection:
        held = holdings.find(connection, identifier)
    return held is not None and objects.read_inventory(archive.store, identifier).head > held.version


def write_rows(archive: Archive, connection: Connection, store: ObjectStore, facts: PackageFacts) -> None:
    """Write the rows that every version of a package has: the places of its containers, its conversions, its
    holding, and the copies that the other places need.
    """
    _place_containers(connection, facts)
    migration_tools.record(connection, _conversions(store, facts))
    held = facts.package
    holdings.record(connection, held, facts.inventory.sha256)
    copies.expect(connection, held.id, version=held.version, size_bytes=held.size_bytes, now=archive.clock())


def _catch_up(archive: Archive, identifier: PackageId) -> PackageFacts:
    objects.finish_write(archive.store, identifier)
    facts = package.read(archive.store, identifier)
    with archive.database.transaction() as connection:
        held = holdings.get(connection, identifier)
        if held.version >= facts.package.version:
            return facts
        write_rows(archive, connection, archive.store, facts)
        for event in package.iter_events_since(archive.store, facts, held.version):
            if (event.action, event.subject_kind) == (CHECKED, "harvest"):
                finding_rows.replace(connection, held.harvest, package.iter_findings(archive.store, facts))
                finding_rows.judge(connection, held.harvest, facts.verdict, at=event.at)
            elif (event.action, event.subject_kind) == (IDENTIFIED, "harvest"):
                formats = package.iter_formats(archive.store, facts)
                results.restore(connection, held.harvest, formats, facts.surveys, at=event.at)
            known = iter_of(connection, event.subject_kind, event.subject)
            if not any((each.at, each.action) == (event.at, event.action) for each in known):
                append(connection, event)
    return facts


def _place_containers(connection: Connection, facts: PackageFacts) -> None:
    for container in facts.containers:
        known = locations.find(connection, container.name)
        if known is None:
            locations.add(connection, container)
        elif known.sha256 != container.sha256:
            raise CorruptData(
                f"Package {facts.package.id} has a container {container.name}, but harvest "
                f"{known.harvest} has one with that name and other content.",
                where=facts.package.id,
            )
        if known is None or known.harvest == container.harvest:
            locations.move(connection, container.name, ContainerState.KEPT, container.place)


def _conversions(store: ObjectStore, facts: PackageFacts) -> Iterator[Conversion]:
    if migration_tools.CONVERSIONS in facts.inventory.files():
        with package.open_file(store, facts, migration_tools.CONVERSIONS) as stream:
            yield from migration_tools.from_rows(
                rows.read_rows(stream, where=f"{facts.package.id} {migration_tools.CONVERSIONS}")
            )
