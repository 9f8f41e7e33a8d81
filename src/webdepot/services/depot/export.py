"""Getting packages back out (dissemination, DIP): as a bag, WACZ, ZIP, UOF or the OCFL object itself. Every
byte is checked.

A package whose main copy is damaged or away is taken from the first place that has it whole.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from webdepot.archive import Archive
from webdepot.depot import copying, holdings, ocfl, package
from webdepot.depot.bundle import bag, zipped
from webdepot.depot.inventory import Inventory
from webdepot.depot.store.folder import FolderStore
from webdepot.errors import Conflict, CorruptData, NotFound, NotPermitted, RemoteError
from webdepot.exchange import catalogue, transfer, uof
from webdepot.exchange.addresses import Addresses
from webdepot.model import Package
from webdepot.ports import ObjectStore
from webdepot.provenance import Event, append
from webdepot.version import VERSION


class Form(StrEnum):
    BAGIT = "bagit"
    WACZ = "wacz"
    ZIP = "zip"
    OCFL = "ocfl"
    UOF = "uof"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    package: Package
    form: Form
    path: Path
    size_bytes: int
    place: str
    """The place it was read from."""


def export(archive: Archive, identifier: str, form: Form, target: Path) -> Delivered:
    """Write a package to a new file or folder, whole or not at all. By package identifier or URN."""
    if target.exists():
        raise Conflict(f"{target} exists already. Name a new one.")
    with archive.database.reading() as connection:
        held = holdings.get(connection, identifier)
    target.parent.mkdir(parents=True, exist_ok=True)
    troubles = []
    for name, store in archive.stores().items():
        try:
            inventory = ocfl.read_inventory(store, held.id)
            size_bytes = _WRITERS[form](archive, store, inventory, held, target)
        except (CorruptData, NotFound, RemoteError, NotPermitted) as error:
            troubles.append(f"{name}: {error}")
            continue
        _note(archive, held, form, name)
        return Delivered(package=held, form=form, path=target, size_bytes=size_bytes, place=name)
    raise CorruptData(
        f"No place can give the package {held.id} whole. "
        + " ".join(troubles)
        + " Run: webdepot depot audit",
        where=held.id,
    )


def _bag(archive: Archive, store: ObjectStore, inventory: Inventory, held: Package, target: Path) -> int:
    info = {
        "Source-Organization": archive.config.archive.name,
        "External-Identifier": held.urn,
        "Internal-Sender-Identifier": held.id,
        "External-Description": held.title,
        "Bag-Software-Agent": f"webdepot {VERSION}",
    }
    return bag.write(store, inventory, target, info=info, created=archive.clock())


def _zip(archive: Archive, store: ObjectStore, inventory: Inventory, held: Package, target: Path) -> int:
    return zipped.write_zip(store, inventory, target)


def _wacz(archive: Archive, store: ObjectStore, inventory: Inventory, held: Package, target: Path) -> int:
    facts = package.read(store, held.id)
    captures = package.iter_captures(store, facts)
    return zipped.write_wacz(
        store,
        inventory,
        captures,
        target,
        title=held.title,
        created=archive.clock(),
        software=f"webdepot {VERSION}",
    )


def _ocfl(archive: Archive, store: ObjectStore, inventory: Inventory, held: Package, target: Path) -> int:
    """A storage root with this one object, all its versions; readable by every OCFL tool."""
    brought = copying.bring(FolderStore(target), {"source": store}, inventory)
    if brought.lost:
        raise CorruptData(f"{brought.lost[0]} is damaged.", where=brought.lost[0])
    return brought.size_bytes


def _uof(archive: Archive, store: ObjectStore, inventory: Inventory, held: Package, target: Path) -> int:
    """`mets.xml` with the catalogue's records, and the object's files below `content/`."""
    with archive.database.reading() as connection:
        own = catalogue.find_of_harvest(connection, held.harvest)
        levels = catalogue.levels(connection, own) if own is not None else ()
        made = transfer.find(connection, own.key) if own is not None else None
    if made is None:
        raise NotFound(f"{held.id} has no files that could be handed over.")
    addresses = Addresses(portal_url=archive.config.web.portal_url, institution=archive.config.archive.name)
    described = uof.to_xml(levels, made, identifier=held.id, addresses=addresses, created=archive.clock())
    members: list[tuple[str, Iterator[bytes]]] = [(uof.NAME, iter([described]))]
    members += [
        (f"{uof.CONTENT}/{file.member}", transfer.verified(file, archive.open_container))
        for file in made.files
    ]
    return zipped.write_members(target, members)


_WRITERS: Mapping[Form, Callable[[Archive, ObjectStore, Inventory, Package, Path], int]] = {
    Form.BAGIT: _bag,
    Form.WACZ: _wacz,
    Form.ZIP: _zip,
    Form.OCFL: _ocfl,
    Form.UOF: _uof,
}


def _note(archive: Archive, held: Package, form: Form, place: str) -> None:
    event = Event(
        at=archive.clock(),
        agent=archive.agent,
        action="exported",
        subject_kind="package",
        subject=held.id,
        message=f"as {form.value}",
        detail={"place": place},
    )
    with archive.database.transaction() as connection:
        append(connection, event)
