"""Export of packages (dissemination, DIP): as a bag, WACZ, ZIP, UOF or the OCFL object itself. Every byte is
verified.

If the main copy of a package is damaged or cannot be reached, the first place that has it complete is used.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from webdepot.archive import Archive
from webdepot.depot import holdings, package, replication
from webdepot.depot.bundle import bag, zipped
from webdepot.depot.bundle.zipped import NewZipMember
from webdepot.depot.ocfl import objects
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.store.folder import FolderStore
from webdepot.errors import Conflict, CorruptData, NoSpace, NotFound, NotPermitted, RemoteError
from webdepot.exchange import catalogue, transfer_zip, uof
from webdepot.exchange.object_addresses import ObjectAddresses
from webdepot.model import Package
from webdepot.ports.object_store import ObjectStore
from webdepot.provenance import append
from webdepot.services.depot import package_wacz, references
from webdepot.services.depot.references import References
from webdepot.version import VERSION


class PackageForm(StrEnum):
    BAGIT = "bagit"
    WACZ = "wacz"
    ZIP = "zip"
    OCFL = "ocfl"
    UOF = "uof"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPackage:
    package: Package
    form: PackageForm
    path: Path
    size_bytes: int
    place: str
    """The place it was read from."""
    references: References
    """Records of other packages that it needs. A WACZ contains them."""


def check_room(archive: Archive, identifier: str) -> Package:
    """The package, if the home has room for an export of it; NoSpace if not."""
    with archive.database.reading() as connection:
        held = holdings.get(connection, identifier)
    free_bytes = shutil.disk_usage(archive.home).free
    if held.size_bytes * 2 > free_bytes:
        raise NoSpace(f"There is no room to export {held.id}: {free_bytes:,} bytes are free.")
    return held


def export(
    archive: Archive, identifier: str, form: PackageForm, target: Path, *, by: str = ""
) -> ExportedPackage:
    """Write a package (by identifier or URN) to a new file or folder, complete or not at all."""
    if target.exists():
        raise Conflict(f"{target} already exists. Give a new name.")
    with archive.database.reading() as connection:
        held = holdings.get(connection, identifier)
    target.parent.mkdir(parents=True, exist_ok=True)
    errors = []
    for name, store in archive.stores().items():
        try:
            inventory = objects.read_inventory(store, held.id)
            needed = _references(archive, store, held)
            size_bytes = _WRITERS[form](archive, store, inventory, held, target)
        except (CorruptData, NotFound, RemoteError, NotPermitted) as error:
            errors.append(f"{name}: {error}")
            continue
        event = archive.event(
            "exported", "package", held.id, by=by, message=f"as {form.value}", detail={"place": name}
        )
        with archive.database.transaction() as connection:
            append(connection, event)
        return ExportedPackage(
            package=held, form=form, path=target, size_bytes=size_bytes, place=name, references=needed
        )
    raise CorruptData(
        f"No place has a complete copy of the package {held.id}. "
        + " ".join(errors)
        + " Run: webdepot depot audit",
        where=held.id,
    )


def _references(archive: Archive, store: ObjectStore, held: Package) -> References:
    facts = package.read(store, held.id)
    own = frozenset(container.name for container in facts.containers)
    return references.find(archive, package.iter_captures(store, facts), own)


def _bag(archive: Archive, store: ObjectStore, inventory: Inventory, held: Package, target: Path) -> int:
    info = {
        "Source-Organization": archive.config.archive.name,
        "External-Identifier": held.urn,
        "Internal-Sender-Identifier": held.id,
        "External-Description": held.title,
        "Bag-Software-Agent": f"webdepot {VERSION}",
    }
    needed = _references(archive, store, held).packages
    if needed:
        info["Requires-Package"] = ", ".join(needed)
    return bag.write(store, inventory, target, info=info, created=archive.clock())


def _zip(archive: Archive, store: ObjectStore, inventory: Inventory, held: Package, target: Path) -> int:
    return zipped.write_zip(store, inventory, target)


def _ocfl(archive: Archive, store: ObjectStore, inventory: Inventory, held: Package, target: Path) -> int:
    """An OCFL storage root with this one object and all its versions."""
    result = replication.replicate(FolderStore(target), {"source": store}, inventory)
    if result.lost:
        raise CorruptData(f"{result.lost[0]} is damaged.", where=result.lost[0])
    return result.size_bytes


def _uof(archive: Archive, store: ObjectStore, inventory: Inventory, held: Package, target: Path) -> int:
    """`mets.xml` with the catalogue records, and the object's files below `content/`."""
    with archive.database.reading() as connection:
        own = catalogue.find_of_harvest(connection, held.harvest)
        levels = catalogue.levels(connection, own) if own is not None else ()
        transfer_object = transfer_zip.find(connection, own.key) if own is not None else None
    if transfer_object is None:
        raise NotFound(f"{held.id} has no files for a UOF package. Export it in another form.")
    addresses = ObjectAddresses(
        portal_url=archive.config.web.portal_url, institution=archive.config.archive.name
    )
    described = uof.to_xml(
        levels, transfer_object, identifier=held.id, addresses=addresses, created=archive.clock()
    )
    members = [NewZipMember(name=uof.NAME, size_bytes=len(described), chunks=iter([described]))]
    members += [
        NewZipMember(
            name=f"{uof.CONTENT}/{file.member}",
            size_bytes=file.size_bytes,
            chunks=transfer_zip.verified(file, archive.containers.open),
        )
        for file in transfer_object.files
    ]
    return zipped.write_members(target, members)


_WRITERS: Mapping[PackageForm, Callable[[Archive, ObjectStore, Inventory, Package, Path], int]] = {
    PackageForm.BAGIT: _bag,
    PackageForm.WACZ: package_wacz.write,
    PackageForm.ZIP: _zip,
    PackageForm.OCFL: _ocfl,
    PackageForm.UOF: _uof,
}
