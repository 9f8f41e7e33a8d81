"""Copy an object to another place, or repair it there: both are done the same way, file by file.

1. Choose the inventory: the newest that its sidecar proves; if two differ, the one that the database knows,
   otherwise the one that more places have.
2. Content: files in the place whose checksum is right stay; all others are copied from the first source that
   has the right bytes. A source is hashed while it is copied, and a wrong byte leaves nothing in the place.
3. The frame (declaration, inventories, sidecars) is made from the inventory; the object's own inventory and
   its sidecar come last.

Every step can be repeated, so an interrupted fill or repair continues where it stopped. Content that is right
is never written again.
"""

import hashlib
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from webdepot import digest
from webdepot.depot.ocfl import layout, objects
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.store.wrappers import expect_sha256
from webdepot.errors import Conflict, CorruptData, NotFound, NotPermitted, RemoteError
from webdepot.ports.object_store import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyResult:
    """What was written to a place, and what could not be."""

    written: tuple[str, ...]
    lost: tuple[str, ...]
    """Keys of content of which no source has a good copy."""
    size_bytes: int
    sources: Mapping[str, str]
    """Key to the name of the place it came from; the frame does not come from a place."""


def choose_inventory(
    stores: Mapping[str, ObjectStore], identifier: str, *, known_sha256: str = ""
) -> Inventory | None:
    """The inventory that all places must match; None if no place has one that its sidecar proves."""
    candidates: list[Inventory] = []
    for store in stores.values():
        try:
            candidates += objects.iter_candidates(store, identifier)
        except (RemoteError, NotPermitted, OSError):  # a place that cannot be reached has no vote
            continue
    if not candidates:
        return None
    votes = Counter(inventory.sha256 for inventory in candidates)
    return max(
        candidates, key=lambda each: (each.head, each.sha256 == known_sha256, votes[each.sha256], each.sha256)
    )


def replicate(
    target: ObjectStore,
    sources: Mapping[str, ObjectStore],
    inventory: Inventory,
    *,
    only: frozenset[str] | None = None,
) -> CopyResult:
    """Make the object in `target` match the inventory; `only` names the keys of content known to be wrong.

    The object's own inventory is written only when all content is there: until then the place keeps showing
    the object as it was.
    """
    layout.prepare(target)
    written: list[str] = []
    lost: list[str] = []
    origins: dict[str, str] = {}
    size_bytes = 0
    for key, value in _content(inventory):
        if only is not None and key not in only:
            continue
        if only is None and _agrees(target, key, value):
            continue
        origin, size = _put_from(target, sources, key, value)
        if not origin:
            lost.append(key)
            continue
        size_bytes += size
        origins[key] = origin
        written.append(key)
    if not lost:
        written += _put_frame(target, inventory)
    return CopyResult(written=tuple(written), lost=tuple(lost), size_bytes=size_bytes, sources=origins)


def remove(store: ObjectStore, identifier: str, inventory: Inventory | None = None) -> None:
    """Delete an object from a store: first its inventory, so that readers no longer see it, then the rest."""
    folder = layout.folder_of(identifier)
    known = [*reversed(objects.frame(inventory))] if inventory is not None else []
    content = [key for key, _ in _content(inventory)] if inventory is not None else []
    for key in [*known, *content]:
        store.delete(key)
    for key in list(store.keys(f"{folder}/")):
        store.delete(key)


def _content(inventory: Inventory) -> Iterator[tuple[str, str]]:
    folder = layout.folder_of(inventory.id)
    for value, paths in inventory.manifest.items():
        for path in paths:
            yield f"{folder}/{path}", value


def _agrees(store: ObjectStore, key: str, value: str) -> bool:
    if store.size(key) is None:
        return False
    try:
        with store.open(key) as stream:
            return digest.of_stream(stream)[0].value.hex() == value
    except (NotFound, OSError):
        return False


def _put_from(
    target: ObjectStore, sources: Mapping[str, ObjectStore], key: str, value: str
) -> tuple[str, int]:
    """Copy one file from the first good source and read it back; source and size, or ("", 0)."""
    for name, source in sources.items():
        try:
            with expect_sha256(source.open(key), value, f"{name} {key}") as stream:
                size = target.put(key, stream, overwrite=target.size(key) is not None)
        except Conflict:  # `size` returned a stale answer; the next attempt overwrites the file
            continue
        except (CorruptData, NotFound):
            continue
        except OSError as error:
            if error.errno is not None and _is_write_error(target, key, error):
                raise
            continue
        if _agrees(target, key, value):
            return name, size
    return "", 0


def _is_write_error(target: ObjectStore, key: str, error: OSError) -> bool:
    """Whether the error came from writing to the target, not from reading a bad block of a source."""
    path = target.local_path(key)
    return (
        path is not None and error.filename is not None and str(error.filename).startswith(str(path.parent))
    )


def _put_frame(target: ObjectStore, inventory: Inventory) -> Sequence[str]:
    written = []
    for key, data in objects.frame(inventory).items():
        if not _agrees(target, key, hashlib.sha256(data).hexdigest()):
            target.put(key, io.BytesIO(data), overwrite=True)
            written.append(key)
    return written
