"""Bringing an object to another place, and mending it there: the same act, file by file.

1. Which inventory is true: the newest that proves itself by its sidecar; of two that differ the one the
   database knows, else the one that more places have.
2. Content: what the place has and what agrees with its digest stays; everything else is put there from the
   first source whose bytes agree. A source is hashed while it is copied, and a wrong byte leaves nothing
   behind.
3. The frame (declaration, inventories, sidecars) is made from the inventory; the object's own inventory and
   its sidecar come last.

Every step can be repeated, so a fill or a repair that was killed goes on where it stopped. Content that
agrees is never written again.
"""

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO, cast

from webdepot import digest
from webdepot.depot import layout, ocfl
from webdepot.depot.inventory import Inventory
from webdepot.depot.store.wrapped import Expecting
from webdepot.errors import Conflict, CorruptData, NotFound, NotPermitted, RemoteError
from webdepot.ports import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What was written into a place, and what could not be."""

    written: tuple[str, ...]
    lost: tuple[str, ...]
    """Keys of content of which no source has a good copy."""
    size_bytes: int
    sources: Mapping[str, str]
    """Key to the name of the place it came from; the frame comes from no place."""


def agree(stores: Mapping[str, ObjectStore], identifier: str, *, known_sha256: str = "") -> Inventory | None:
    """The inventory that the places are held to; None when none of them has one that proves itself."""
    found: list[Inventory] = []
    for store in stores.values():
        try:
            found += ocfl.iter_candidates(store, identifier)
        except (RemoteError, NotPermitted, OSError):  # a place that is away has no vote
            continue
    if not found:
        return None
    votes = Counter(inventory.sha256 for inventory in found)
    return max(
        found, key=lambda each: (each.head, each.sha256 == known_sha256, votes[each.sha256], each.sha256)
    )


def bring(
    target: ObjectStore,
    sources: Mapping[str, ObjectStore],
    inventory: Inventory,
    *,
    only: frozenset[str] | None = None,
    told: Callable[[str, int], None] = lambda key, size: None,
) -> Brought:
    """Make the object in `target` what the inventory says. `only` names the keys of content that are known to
    be wrong there.

    The object's own inventory is written only when all content is there: until then the place shows what it
    showed before.
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
        told(key, size)
    if not lost:
        written += _put_frame(target, inventory)
    return Brought(written=tuple(written), lost=tuple(lost), size_bytes=size_bytes, sources=origins)


def remove(store: ObjectStore, identifier: str, inventory: Inventory | None = None) -> None:
    """Take an object out of a store: first its inventory, so that it is gone for readers at once, then the
    rest.
    """
    folder = layout.folder_of(identifier)
    known = [*reversed(ocfl.frame(inventory))] if inventory is not None else []
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
    """Put one file from the first good source, and read it back; its name and the size, or nothing."""
    for name, source in sources.items():
        try:
            with closing(Expecting(source.open(key), value, f"{name} {key}")) as stream:
                size = target.put(key, cast(BinaryIO, stream), overwrite=target.size(key) is not None)
        except (
            Conflict
        ):  # a list or a head request of the target was stale; it is overwritten on the next try
            continue
        except (CorruptData, NotFound):
            continue
        except OSError as error:
            if error.errno is not None and _is_targets(target, key, error):
                raise
            continue
        if _agrees(target, key, value):
            return name, size
    return "", 0


def _is_targets(target: ObjectStore, key: str, error: OSError) -> bool:
    """Whether the error came from writing, not from reading a bad block of a source."""
    path = target.local_path(key)
    return (
        path is not None and error.filename is not None and str(error.filename).startswith(str(path.parent))
    )


def _put_frame(target: ObjectStore, inventory: Inventory) -> Sequence[str]:
    written = []
    for key, data in ocfl.frame(inventory).items():
        if not _agrees(target, key, hashlib.sha256(data).hexdigest()):
            target.put(key, io.BytesIO(data), overwrite=True)
            written.append(key)
    return written
