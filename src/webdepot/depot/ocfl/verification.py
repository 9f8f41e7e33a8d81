"""Verify an OCFL object byte by byte: content against the manifest, inventories against their sidecars."""

import hashlib
from collections.abc import Iterator

from webdepot import digest
from webdepot.depot.ocfl import inventory as inventories
from webdepot.depot.ocfl import layout, objects
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.errors import CorruptData, NotFound
from webdepot.model import Finding, Severity
from webdepot.ports.object_store import ObjectStore


def verify(store: ObjectStore, identifier: str) -> Iterator[Finding]:
    """Read every byte of an object; one finding for each fault, none if it is as it was written."""
    folder = layout.folder_of(identifier)
    try:
        inventory = objects.read_inventory(store, identifier)
    except CorruptData as error:
        yield _finding("inventory-damaged", error.where, str(error))
        return
    except NotFound as error:
        yield _finding("object-missing", identifier, str(error))
        return
    yield from _verify_frame(store, folder, inventory)
    yield from _verify_all_content(store, inventory)
    yield from _verify_nothing_else(store, folder, inventory)


def verify_against(store: ObjectStore, inventory: Inventory) -> Iterator[Finding]:
    """Read every byte that an inventory names; the subject of a finding is the key that is missing or wrong.

    Does not list keys, because lists may be stale.
    """
    for key, data in objects.frame(inventory).items():
        yield from _verify_content(store, key, hashlib.sha256(data).hexdigest())
    yield from _verify_all_content(store, inventory)


def unfinished(folder: str) -> Finding:
    """The finding about a folder that `objects.iter_unfinished` named."""
    return _finding(
        "unfinished-object",
        folder,
        f"{folder} was left by an interrupted write; nothing in it was reported as stored.",
        Severity.NOTE,
    )


def _verify_all_content(store: ObjectStore, inventory: Inventory) -> Iterator[Finding]:
    folder = layout.folder_of(inventory.id)
    for value, paths in inventory.manifest.items():
        for path in paths:
            yield from _verify_content(store, f"{folder}/{path}", value)


def _verify_frame(store: ObjectStore, folder: str, inventory: Inventory) -> Iterator[Finding]:
    declaration = f"{folder}/{layout.OBJECT_DECLARATION}"
    if (
        store.size(declaration) is None
        or objects.read_small(store, declaration) != f"{layout.OBJECT_DECLARATION[2:]}\n".encode()
    ):
        yield _finding("declaration-damaged", declaration, f"{declaration} does not declare an OCFL object.")
    if not objects.sidecar_agrees(store, f"{folder}/{inventories.NAME}", inventory):
        yield _finding(
            "sidecar-stale",
            f"{folder}/{inventories.SIDECAR}",
            f"The sidecar of {folder}/{inventories.NAME} does not match it.",
        )
    for number in range(1, inventory.head + 1):
        yield from _verify_version(store, folder, inventory, number)


def _verify_version(store: ObjectStore, folder: str, inventory: Inventory, number: int) -> Iterator[Finding]:
    """Check the inventory of one version against its sidecar and against the object's inventory."""
    key = f"{folder}/v{number}/{inventories.NAME}"
    try:
        version = inventories.parse(objects.read_small(store, key), where=key)
    except (CorruptData, NotFound) as error:
        yield _finding("inventory-damaged", key, str(error))
        return
    if not objects.sidecar_agrees(store, key, version):
        yield _finding(
            "sidecar-stale",
            f"{folder}/v{number}/{inventories.SIDECAR}",
            f"The sidecar of {key} does not match it.",
        )
    if version.id != inventory.id or version.versions != inventory.versions[:number]:
        yield _finding(
            "inventory-damaged",
            key,
            f"The inventory {key} does not match its sidecar or the object.",
        )


def _verify_content(store: ObjectStore, key: str, value: str) -> Iterator[Finding]:
    try:
        with store.open(key) as stream:
            computed, _ = digest.of_stream(stream)
    except NotFound:
        yield _finding("content-missing", key, f"{key} is missing.")
    except OSError as error:
        yield _finding("content-unreadable", key, f"{key} cannot be read: {error.strerror}.")
    else:
        if computed.value.hex() != value:
            yield _finding(
                "content-damaged",
                key,
                f"{key} is damaged: expected sha256 {value}, found {computed.value.hex()}.",
            )


def _verify_nothing_else(store: ObjectStore, folder: str, inventory: Inventory) -> Iterator[Finding]:
    frame = {layout.OBJECT_DECLARATION, inventories.NAME, inventories.SIDECAR}
    known = {f"{folder}/{path}" for paths in inventory.manifest.values() for path in paths} | {
        f"{folder}/{name}" for name in frame
    }
    for number in range(1, inventory.head + 1):
        known |= {f"{folder}/v{number}/{inventories.NAME}", f"{folder}/v{number}/{inventories.SIDECAR}"}
    next_version = f"{folder}/v{inventory.head + 1}/"
    for key in store.keys(f"{folder}/"):
        if key.startswith(next_version):
            yield _finding(
                "unfinished-version",
                key,
                f"{key} was left by an interrupted write; the next write removes it.",
                Severity.NOTE,
            )
        elif key not in known:
            yield _finding("unexpected-file", key, f"{key} is not in the inventory.", Severity.WARNING)


def _finding(code: str, subject: str, message: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(code=f"depot.{code}", severity=severity, subject=subject, message=message)
