"""Objects with versions on an object store: an own writer and reader of OCFL 1.1 (https://ocfl.io/1.1/spec/).

Order of a write, each step durable before the next:
1. what an interrupted earlier try left behind is cleared away, or finished if only its last step was missing
2. content of the new version, hashed while it is copied, so that a container is read once; behind that a
   second thread reads back what the store has and compares, so that nothing is published that cannot be read
3. the version's own inventory and its sidecar
4. the object's declaration, then its root inventory (from here on the version exists), then the sidecar of
   that

No key of content is ever written over, and no version is changed. An object without a root inventory does not
exist for any function here. Between the root inventory and its sidecar the object is whole: the version's
copy of both proves it. One writer for one object at a time; any number of readers.
"""

import hashlib
import io
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, cast

from webdepot import digest
from webdepot.depot import inventory as inventories
from webdepot.depot import layout
from webdepot.depot.inventory import Inventory, ObjectVersion
from webdepot.errors import Conflict, CorruptData, InputError, NotFound
from webdepot.model import Finding, Severity
from webdepot.ports import ObjectStore

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
    """Keep files under their logical paths: what the object had, with `files` put over it and `removed` taken
    out of sight.

    Repeating a call that was interrupted, or one whose files are all there already, is safe and adds nothing.
    `expected` gives the SHA-256 (hexadecimal) a file must have; CorruptData when its bytes differ, and then
    nothing has become visible.
    """
    layout.prepare(store)
    current = _mended(store, identifier)
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
            value = _keep(store, folder, path, source, manifest, (expected or {}).get(logical, ""))
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
    with _opened(source) as stream:
        value, size = digest.of_stream(stream)
    return size, value.value.hex()


def find_inventory(store: ObjectStore, identifier: str) -> Inventory | None:
    """The object's inventory, checked against its sidecar; None when there is no such object."""
    key = f"{layout.folder_of(identifier)}/{inventories.NAME}"
    if store.size(key) is None:
        return None
    found = inventories.parse(_small(store, key), where=key)
    if not (
        _sidecar_agrees(store, key, found) or _sidecar_agrees(store, _version_key(identifier, found), found)
    ):
        raise CorruptData(
            f"The inventory {key} is not what its sidecar says. Restore it from another copy.", where=key
        )
    if found.id != identifier:
        raise CorruptData(
            f"The inventory {key} is that of {found.id}. Restore it from another copy.", where=key
        )
    return found


def read_inventory(store: ObjectStore, identifier: str) -> Inventory:
    """As `find_inventory`; NotFound when there is no such object."""
    found = find_inventory(store, identifier)
    if found is None:
        raise NotFound(f"The depot has no object {identifier}. Run: webdepot package list")
    return found


def content_key(inventory: Inventory, logical: str, *, version: int | None = None) -> str:
    """The key in the store that holds the bytes of a logical path; NotFound when the version does not show
    it.
    """
    value = inventory.files(version).get(logical)
    if value is None:
        raise NotFound(f"Object {inventory.id} has no file {logical}.")
    return f"{layout.folder_of(inventory.id)}/{inventory.manifest[value][0]}"


def iter_objects(store: ObjectStore) -> Iterator[str]:
    """The identifiers of all objects, from the store alone; half-written ones are not among them."""
    for key in store.keys(""):
        folder, _, name = key.rpartition("/")
        if name == layout.OBJECT_DECLARATION and store.size(f"{folder}/{inventories.NAME}") is not None:
            yield layout.find_identifier(folder) or _identifier_inside(store, folder)


def iter_unfinished(store: ObjectStore) -> Iterator[str]:
    """Folders that an interrupted first write left behind; `discard` clears one away, repeating the write
    does too.
    """
    previous = ""
    for key in store.keys(""):
        folder = "/".join(key.split("/")[:4])
        if folder != previous and key.count("/") > 3 and not key.startswith("extensions/"):
            previous = folder
            if store.size(f"{folder}/{inventories.NAME}") is None:
                yield folder


def unfinished(folder: str) -> Finding:
    return _finding(
        "unfinished-object",
        folder,
        f"{folder} was left by an interrupted write; nothing that was acknowledged is in it.",
        Severity.NOTE,
    )


def discard(store: ObjectStore, folder: str) -> None:
    """Clear away a folder that `iter_unfinished` named; refuses one that holds an object."""
    if store.size(f"{folder}/{inventories.NAME}") is not None:
        raise InputError(f"{folder} holds a whole object and is not cleared away.")
    _clear(store, f"{folder}/")


def verify(store: ObjectStore, identifier: str) -> Iterator[Finding]:
    """Read every byte of an object and compare; yields nothing when all is as it was written."""
    folder = layout.folder_of(identifier)
    try:
        inventory = read_inventory(store, identifier)
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
    """Read every byte that an inventory names. The subject of each finding is the key that is missing or
    wrong. Asks for no list.
    """
    for key, data in frame(inventory).items():
        yield from _verify_content(store, key, hashlib.sha256(data).hexdigest())
    yield from _verify_all_content(store, inventory)


def _verify_all_content(store: ObjectStore, inventory: Inventory) -> Iterator[Finding]:
    folder = layout.folder_of(inventory.id)
    for value, paths in inventory.manifest.items():
        for path in paths:
            yield from _verify_content(store, f"{folder}/{path}", value)


def frame(inventory: Inventory) -> dict[str, bytes]:
    """Everything of an object that is not content, by key, in the order in which it is written; made from the
    inventory alone.
    """
    folder = layout.folder_of(inventory.id)
    made: dict[str, bytes] = {}
    for number in range(1, inventory.head + 1):
        then, data = inventories.as_of(inventory, number)
        made[f"{folder}/v{number}/{inventories.NAME}"] = data
        made[f"{folder}/v{number}/{inventories.SIDECAR}"] = inventories.sidecar(then.sha256)
    made[f"{folder}/{layout.OBJECT_DECLARATION}"] = f"{layout.OBJECT_DECLARATION[2:]}\n".encode()
    made[f"{folder}/{inventories.NAME}"] = data
    made[f"{folder}/{inventories.SIDECAR}"] = inventories.sidecar(then.sha256)
    if then.sha256 != inventory.sha256:
        raise CorruptData(
            f"The inventory of {inventory.id} was not written by Webdepot and cannot be made again.",
            where=inventory.id,
        )
    return made


def iter_candidates(store: ObjectStore, identifier: str) -> Iterator[Inventory]:
    """Every inventory of an object in this store that proves itself by its sidecar: the object's own, and
    that of each version.
    """
    folder = layout.folder_of(identifier)
    found = _find_proven(store, f"{folder}/{inventories.NAME}", identifier)
    if found is not None:
        yield found
        return
    number = missing = 0
    while missing < 2:  # one version's inventory may be gone; then the next one is still worth a look
        number += 1
        key = f"{folder}/v{number}/{inventories.NAME}"
        missing = missing + 1 if store.size(key) is None else 0
        found = _find_proven(store, key, identifier)
        if found is not None:
            yield found


def _find_proven(store: ObjectStore, key: str, identifier: str) -> Inventory | None:
    try:
        found = inventories.parse(_small(store, key), where=key)
        if found.id == identifier and (
            _sidecar_agrees(store, key, found)
            or _sidecar_agrees(store, _version_key(identifier, found), found)
        ):
            return found
    except (CorruptData, NotFound):
        pass
    return None


def _verify_frame(store: ObjectStore, folder: str, inventory: Inventory) -> Iterator[Finding]:
    declaration = f"{folder}/{layout.OBJECT_DECLARATION}"
    if (
        store.size(declaration) is None
        or _small(store, declaration) != f"{layout.OBJECT_DECLARATION[2:]}\n".encode()
    ):
        yield _finding(
            "declaration-damaged", declaration, f"{declaration} does not say that this is an OCFL object."
        )
    if not _sidecar_agrees(store, f"{folder}/{inventories.NAME}", inventory):
        yield _finding(
            "sidecar-stale",
            f"{folder}/{inventories.SIDECAR}",
            f"The sidecar of {folder}/{inventories.NAME} does not agree with it.",
        )
    for number in range(1, inventory.head + 1):
        key = f"{folder}/v{number}/{inventories.NAME}"
        try:
            found = inventories.parse(_small(store, key), where=key)
        except (CorruptData, NotFound) as error:
            yield _finding("inventory-damaged", key, str(error))
            continue
        if not _sidecar_agrees(store, key, found):
            yield _finding(
                "sidecar-stale",
                f"{folder}/v{number}/{inventories.SIDECAR}",
                f"The sidecar of {key} does not agree with it.",
            )
        if found.id != inventory.id or found.versions != inventory.versions[:number]:
            yield _finding(
                "inventory-damaged",
                key,
                f"The inventory {key} does not agree with its sidecar or with the object.",
            )


def _verify_content(store: ObjectStore, key: str, value: str) -> Iterator[Finding]:
    try:
        with store.open(key) as stream:
            found, _ = digest.of_stream(stream)
    except NotFound:
        yield _finding("content-missing", key, f"{key} is gone.")
    except OSError as error:
        yield _finding("content-unreadable", key, f"{key} cannot be read: {error.strerror}.")
    else:
        if found.value.hex() != value:
            yield _finding(
                "content-damaged",
                key,
                f"{key} is damaged: expected sha256 {value}, found {found.value.hex()}.",
            )


def _verify_nothing_else(store: ObjectStore, folder: str, inventory: Inventory) -> Iterator[Finding]:
    frame = {layout.OBJECT_DECLARATION, inventories.NAME, inventories.SIDECAR}
    known = {f"{folder}/{path}" for paths in inventory.manifest.values() for path in paths} | {
        f"{folder}/{name}" for name in frame
    }
    for number in range(1, inventory.head + 1):
        known |= {f"{folder}/v{number}/{inventories.NAME}", f"{folder}/v{number}/{inventories.SIDECAR}"}
    unfinished = f"{folder}/v{inventory.head + 1}/"
    for key in store.keys(f"{folder}/"):
        if key.startswith(unfinished):
            yield _finding(
                "unfinished-version",
                key,
                f"{key} was left by an interrupted write; the next write clears it away.",
                Severity.NOTE,
            )
        elif key not in known:
            yield _finding("unexpected-file", key, f"{key} is not in the inventory.", Severity.WARNING)


def _keep(
    store: ObjectStore,
    folder: str,
    path: str,
    source: Source,
    manifest: dict[str, tuple[str, ...]],
    expected: str,
) -> str:
    """Copy one file in and give its digest. Later versions hash first, so that bytes the object has are not
    kept twice.
    """
    if manifest and not path.startswith("v1/"):
        with _opened(source) as stream:
            value = digest.of_stream(stream)[0].value.hex()
        if value in manifest:
            _compare(path, value, expected)
            return value
    try:
        value = _put_hashing(store, f"{folder}/{path}", source, overwrite=False)
    except Conflict:
        # Left by an interrupted try that a stale list did not show. The version is not published: nobody has
        # seen it.
        value = _put_hashing(store, f"{folder}/{path}", source, overwrite=True)
    _compare(path, value, expected)
    manifest[value] = (*manifest.get(value, ()), path)
    return value


def _put_hashing(store: ObjectStore, key: str, source: Source, *, overwrite: bool) -> str:
    with _opened(source) as stream, closing(_Hashing(stream)) as hashing:
        store.put(key, cast(BinaryIO, hashing), overwrite=overwrite)
        return hashing.value()


def _read_back(store: ObjectStore, key: str, value: str) -> None:
    with store.open(key) as stream:
        found = digest.of_stream(stream)[0].value.hex()
    if found != value:
        raise CorruptData(
            f"{key} was written as sha256 {value} and read back as {found}. Nothing was kept. Check the disk.",
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
                    f"Another process has written version {inventory.head} of {identifier} meanwhile. Run it again."
                ) from None
            store.put(f"{folder}/v{inventory.head}/{name}", io.BytesIO(part), overwrite=True)
    if store.size(f"{folder}/{layout.OBJECT_DECLARATION}") is None:
        store.put(
            f"{folder}/{layout.OBJECT_DECLARATION}", io.BytesIO(f"{layout.OBJECT_DECLARATION[2:]}\n".encode())
        )
    store.put(f"{folder}/{inventories.NAME}", io.BytesIO(data), overwrite=inventory.head > 1)
    store.put(f"{folder}/{inventories.SIDECAR}", io.BytesIO(beside), overwrite=True)
    return inventory


def _mended(store: ObjectStore, identifier: str) -> Inventory | None:
    """The object as it is, with the last step of an interrupted write done."""
    found = find_inventory(store, identifier)
    if found is not None:
        key = f"{layout.folder_of(identifier)}/{inventories.NAME}"
        if not _sidecar_agrees(store, key, found):
            store.put(
                f"{layout.folder_of(identifier)}/{inventories.SIDECAR}",
                io.BytesIO(inventories.sidecar(found.sha256)),
                overwrite=True,
            )
    return found


def _clear(store: ObjectStore, prefix: str) -> None:
    for key in list(store.keys(prefix)):
        store.delete(key)


def _sidecar_agrees(store: ObjectStore, key: str, inventory: Inventory) -> bool:
    beside = f"{key}.{inventories.ALGORITHM}"
    return store.size(beside) is not None and _small(store, beside).split() == [
        inventory.sha256.encode(),
        inventories.NAME.encode(),
    ]


def _version_key(identifier: str, inventory: Inventory) -> str:
    return f"{layout.folder_of(identifier)}/v{inventory.head}/{inventories.NAME}"


def _small(store: ObjectStore, key: str) -> bytes:
    with store.open(key) as stream:
        data = stream.read(inventories.LONGEST_BYTES + 1)
    if len(data) > inventories.LONGEST_BYTES:
        raise CorruptData(
            f"{key} is larger than an inventory may be. Restore it from another copy.", where=key
        )
    return data


def _identifier_inside(store: ObjectStore, folder: str) -> str:
    key = f"{folder}/{inventories.NAME}"
    return inventories.parse(_small(store, key), where=key).id


def _by_digest(state: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    collected: dict[str, tuple[str, ...]] = {}
    for logical, value in sorted(state.items()):
        collected[value] = (*collected.get(value, ()), logical)
    return collected


def _check_logical(logical: str) -> None:
    if not logical or any(step in ("", ".", "..") for step in logical.split("/")):
        raise InputError(
            f"{logical!r} is no path inside an object: it must be relative and without '.', '..' or empty steps."
        )


def _compare(path: str, value: str, expected: str) -> None:
    if expected and value != expected:
        words = f"{path.partition('/content/')[2]} is damaged: expected sha256 {expected}, found {value}. Nothing was kept."
        raise CorruptData(words, where=path)


def _opened(source: Source) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    return source.open("rb") if isinstance(source, Path) else cast(BinaryIO, _Joined(source))


def _finding(code: str, subject: str, message: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(code=f"depot.{code}", severity=severity, subject=subject, message=message)


class _Hashing(io.RawIOBase):
    """Hands a stream through and hashes what went by."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._hasher = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._hasher.update(data)
        return data

    def value(self) -> str:
        return self._hasher.hexdigest()


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
