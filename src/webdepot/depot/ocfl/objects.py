"""Versioned objects in an object store: a writer and reader of OCFL 1.1 (https://ocfl.io/1.1/spec/).

Order of a write, each step durable before the next:
1. remove the remains of an interrupted write, or finish it if only its last step is missing
2. the content of the new version, hashed while it is copied, so that a container is read once; a second
   thread reads each file back and compares it, so that nothing is published that cannot be read
3. the version's own inventory and its sidecar
4. the object's declaration, then its root inventory (from here on the version exists), then the sidecar of
   the root inventory

Published content is never overwritten, and no version is changed. An object without a root inventory does not
exist for any function here. After a crash between the root inventory and its sidecar the object is still
valid: the version's copies of both prove it. One writer for each object at a time; any number of readers.
`verification` checks what is stored.
"""

import hashlib
import io
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, cast

from webdepot import digest
from webdepot.depot.ocfl import inventory as inventories
from webdepot.depot.ocfl import layout
from webdepot.depot.ocfl.inventory import Inventory, ObjectVersion
from webdepot.depot.store.keys import is_key
from webdepot.depot.store.wrappers import observe
from webdepot.errors import Conflict, CorruptData, InputError, NotFound
from webdepot.ports.object_store import ObjectStore

Source = bytes | Path | tuple[Path, ...]
"""Where the bytes of a file come from; several paths are joined."""


def put_version(
    store: ObjectStore,
    identifier: str,
    files: Mapping[str, Source],
    *,
    message: str,
    user: str,
    created: datetime,
    address: str = "",
    removed: frozenset[str] = frozenset(),
    expected: Mapping[str, str] | None = None,
) -> Inventory:
    """Write a new version of an object: its current files, plus `files` by logical path, minus `removed`.

    A call that was interrupted can be repeated; a call that changes nothing adds no version. `expected` gives
    the SHA-256 (hexadecimal) that a file must have; if it differs, CorruptData is raised and no new version
    becomes visible.
    """
    layout.prepare(store)
    current = finish_write(store, identifier)
    number = current.head + 1 if current else 1
    folder = layout.folder_of(identifier)
    _clear(store, f"{folder}/v{number}/")
    manifest = dict(current.manifest) if current else {}
    state = current.files() if current else {}
    with ThreadPoolExecutor(1) as second:
        proofs = []
        for logical, source in files.items():
            _check_logical(logical)
            path = f"v{number}/content/{logical}"
            value = _put_content(store, folder, path, source, manifest, (expected or {}).get(logical, ""))
            state[logical] = value
            if path in manifest[value]:
                proofs.append(second.submit(_read_back, store, f"{folder}/{path}", value))
        for proof in proofs:
            proof.result()
    state = {logical: value for logical, value in state.items() if logical not in removed}
    if current and state == current.files():
        return current
    version = ObjectVersion(
        created=created, message=message, user=user, address=address, state=_by_digest(state)
    )
    return _publish(store, folder, identifier, manifest, (*(current.versions if current else ()), version))


def measure(source: Source) -> tuple[int, str]:
    """Size and SHA-256 of a source."""
    with _open(source) as stream:
        value, size = digest.of_stream(stream)
    return size, value.value.hex()


def find_inventory(store: ObjectStore, identifier: str) -> Inventory | None:
    """The object's inventory, verified by its sidecar; None if there is no such object."""
    key = f"{layout.folder_of(identifier)}/{inventories.NAME}"
    if store.size(key) is None:
        return None
    inventory = inventories.parse(read_small(store, key), where=key)
    if not _is_proven(store, key, identifier, inventory):
        raise CorruptData(
            f"The inventory {key} does not match its sidecar. Restore it from another copy.", where=key
        )
    if inventory.id != identifier:
        raise CorruptData(
            f"The inventory {key} belongs to {inventory.id}. Restore it from another copy.", where=key
        )
    return inventory


def read_inventory(store: ObjectStore, identifier: str) -> Inventory:
    """Like `find_inventory`, but NotFound if there is no such object."""
    inventory = find_inventory(store, identifier)
    if inventory is None:
        raise NotFound(f"The depot has no object {identifier}. Run: webdepot package list")
    return inventory


def content_key(inventory: Inventory, logical: str, *, version: int | None = None) -> str:
    """The key of the file with the content of a logical path; NotFound if the version does not have it."""
    value = inventory.files(version).get(logical)
    if value is None:
        raise NotFound(f"Object {inventory.id} has no file {logical}.")
    return f"{layout.folder_of(inventory.id)}/{inventory.manifest[value][0]}"


def iter_objects(store: ObjectStore) -> Iterator[str]:
    """The identifiers of all objects, from the store alone; without unfinished ones."""
    for key in store.keys(""):
        folder, _, name = key.rpartition("/")
        if name == layout.OBJECT_DECLARATION and store.size(f"{folder}/{inventories.NAME}") is not None:
            yield layout.find_identifier(folder) or _identifier_inside(store, folder)


def iter_unfinished(store: ObjectStore) -> Iterator[str]:
    """Folders left by an interrupted first write; repeating the write removes the remains."""
    previous = ""
    for key in store.keys(""):
        folder = "/".join(key.split("/")[:4])
        if folder != previous and key.count("/") > 3 and not key.startswith("extensions/"):
            previous = folder
            if store.size(f"{folder}/{inventories.NAME}") is None:
                yield folder


def frame(inventory: Inventory) -> dict[str, bytes]:
    """All files of an object except its content, by key, in the order of writing; made from the inventory."""
    folder = layout.folder_of(inventory.id)
    files: dict[str, bytes] = {}
    for number in range(1, inventory.head + 1):
        then, data = inventories.as_of(inventory, number)
        files[f"{folder}/v{number}/{inventories.NAME}"] = data
        files[f"{folder}/v{number}/{inventories.SIDECAR}"] = inventories.sidecar(then.sha256)
    files[f"{folder}/{layout.OBJECT_DECLARATION}"] = f"{layout.OBJECT_DECLARATION[2:]}\n".encode()
    files[f"{folder}/{inventories.NAME}"] = data
    files[f"{folder}/{inventories.SIDECAR}"] = inventories.sidecar(then.sha256)
    if then.sha256 != inventory.sha256:
        raise CorruptData(
            f"The inventory of {inventory.id} was not written by Webdepot and cannot be rebuilt.",
            where=inventory.id,
        )
    return files


def iter_candidates(store: ObjectStore, identifier: str) -> Iterator[Inventory]:
    """The object's own inventory if its sidecar proves it; otherwise every proven inventory of a version."""
    folder = layout.folder_of(identifier)
    inventory = _find_proven(store, f"{folder}/{inventories.NAME}", identifier)
    if inventory is not None:
        yield inventory
        return
    number = missing = 0
    while missing < 2:  # the inventory of one version may be missing, so the next one is tried too
        number += 1
        key = f"{folder}/v{number}/{inventories.NAME}"
        missing = missing + 1 if store.size(key) is None else 0
        inventory = _find_proven(store, key, identifier)
        if inventory is not None:
            yield inventory


def _find_proven(store: ObjectStore, key: str, identifier: str) -> Inventory | None:
    try:
        inventory = inventories.parse(read_small(store, key), where=key)
        is_proven = inventory.id == identifier and _is_proven(store, key, identifier, inventory)
    except (CorruptData, NotFound):
        return None
    return inventory if is_proven else None


def _is_proven(store: ObjectStore, key: str, identifier: str, inventory: Inventory) -> bool:
    """Whether its own sidecar, or that of the same version, has its checksum."""
    version_key = f"{layout.folder_of(identifier)}/v{inventory.head}/{inventories.NAME}"
    return sidecar_agrees(store, key, inventory) or sidecar_agrees(store, version_key, inventory)


def _put_content(
    store: ObjectStore,
    folder: str,
    path: str,
    source: Source,
    manifest: dict[str, tuple[str, ...]],
    expected: str,
) -> str:
    """Copy one file into the store; return its digest. Content that the object already has is not stored
    again.
    """
    if manifest and not path.startswith("v1/"):
        with _open(source) as stream:
            value = digest.of_stream(stream)[0].value.hex()
        if value in manifest:
            _compare(path, value, expected)
            return value
    try:
        value = _put_hashing(store, f"{folder}/{path}", source, overwrite=False)
    except Conflict:
        # Left by an interrupted write that a stale list did not show. The version is not published, so it may
        # be overwritten.
        value = _put_hashing(store, f"{folder}/{path}", source, overwrite=True)
    _compare(path, value, expected)
    manifest[value] = (*manifest.get(value, ()), path)
    return value


def _put_hashing(store: ObjectStore, key: str, source: Source, *, overwrite: bool) -> str:
    hasher = hashlib.sha256()
    with observe(_open(source), hasher.update) as stream:
        store.put(key, stream, overwrite=overwrite)
    return hasher.hexdigest()


def _read_back(store: ObjectStore, key: str, value: str) -> None:
    with store.open(key) as stream:
        actual = digest.of_stream(stream)[0].value.hex()
    if actual != value:
        raise CorruptData(
            f"{key} was written with sha256 {value} but read back with {actual}. Nothing was kept. "
            "Check the disk.",
            where=key,
        )


def _publish(
    store: ObjectStore,
    folder: str,
    identifier: str,
    manifest: Mapping[str, tuple[str, ...]],
    versions: tuple[ObjectVersion, ...],
) -> Inventory:
    inventory, data = inventories.serialise(identifier, manifest, versions)
    beside = inventories.sidecar(inventory.sha256)
    for name, part in ((inventories.NAME, data), (inventories.SIDECAR, beside)):
        try:
            store.put(f"{folder}/v{inventory.head}/{name}", io.BytesIO(part))
        except Conflict:
            now = find_inventory(store, identifier)
            if now is not None and now.head >= inventory.head:
                raise Conflict(
                    f"Another process has written version {inventory.head} of {identifier} in the meantime. "
                    "Run the command again."
                ) from None
            store.put(f"{folder}/v{inventory.head}/{name}", io.BytesIO(part), overwrite=True)
    if store.size(f"{folder}/{layout.OBJECT_DECLARATION}") is None:
        store.put(
            f"{folder}/{layout.OBJECT_DECLARATION}", io.BytesIO(f"{layout.OBJECT_DECLARATION[2:]}\n".encode())
        )
    store.put(f"{folder}/{inventories.NAME}", io.BytesIO(data), overwrite=inventory.head > 1)
    store.put(f"{folder}/{inventories.SIDECAR}", io.BytesIO(beside), overwrite=True)
    return inventory


def finish_write(store: ObjectStore, identifier: str) -> Inventory | None:
    """The object's inventory, after completing the last step of an interrupted write: a version that exists,
    but whose sidecar is missing. None if there is no such object.
    """
    inventory = find_inventory(store, identifier)
    if inventory is not None:
        key = f"{layout.folder_of(identifier)}/{inventories.NAME}"
        if not sidecar_agrees(store, key, inventory):
            store.put(
                f"{layout.folder_of(identifier)}/{inventories.SIDECAR}",
                io.BytesIO(inventories.sidecar(inventory.sha256)),
                overwrite=True,
            )
    return inventory


def _clear(store: ObjectStore, prefix: str) -> None:
    for key in list(store.keys(prefix)):
        store.delete(key)


def sidecar_agrees(store: ObjectStore, key: str, inventory: Inventory) -> bool:
    """Whether the sidecar of the inventory at `key` has its checksum."""
    beside = f"{key}.{inventories.ALGORITHM}"
    return store.size(beside) is not None and read_small(store, beside).split() == [
        inventory.sha256.encode(),
        inventories.NAME.encode(),
    ]


def read_small(store: ObjectStore, key: str) -> bytes:
    """The bytes of an inventory, sidecar or declaration; CorruptData if it is too large to be one."""
    with store.open(key) as stream:
        data = stream.read(inventories.LONGEST_BYTES + 1)
    if len(data) > inventories.LONGEST_BYTES:
        raise CorruptData(f"{key} is too large to be an inventory. Restore it from another copy.", where=key)
    return data


def _identifier_inside(store: ObjectStore, folder: str) -> str:
    key = f"{folder}/{inventories.NAME}"
    return inventories.parse(read_small(store, key), where=key).id


def _by_digest(state: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    collected: dict[str, tuple[str, ...]] = {}
    for logical, value in sorted(state.items()):
        collected[value] = (*collected.get(value, ()), logical)
    return collected


def _check_logical(logical: str) -> None:
    if not is_key(logical):
        raise InputError(
            f"{logical!r} is not a path inside an object: "
            "it must be relative, without '.', '..' or empty steps."
        )


def _compare(path: str, value: str, expected: str) -> None:
    if expected and value != expected:
        name = path.partition("/content/")[2]
        raise CorruptData(
            f"{name} is damaged: expected sha256 {expected}, found {value}. Nothing was kept.", where=path
        )


def _open(source: Source) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    return source.open("rb") if isinstance(source, Path) else cast(BinaryIO, _Joined(source))


class _Joined(io.RawIOBase):
    """Several files as one stream, one open at a time."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self._waiting = iter(paths)
        self._open: BinaryIO | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while True:
            if self._open is None:
                path = next(self._waiting, None)
                if path is None:
                    return b""
                self._open = path.open("rb")
            if data := self._open.read(size):
                return data
            self._open.close()
            self._open = None

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        super().close()
