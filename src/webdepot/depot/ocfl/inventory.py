"""The inventory of an OCFL object: its content, and which version has which files.

https://ocfl.io/1.1/spec/#inventory. `manifest` maps a digest to the paths of the content with that digest;
`state` of a version maps a digest to the logical paths of that content. A later version refers to earlier
digests instead of copying content. Reading is strict: an inventory that contradicts itself is `CorruptData`,
because everything else depends on it.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from webdepot.depot.store.keys import is_key
from webdepot.errors import CorruptData
from webdepot.times import from_iso, to_iso

TYPE = "https://ocfl.io/1.1/spec/#inventory"
ALGORITHM = "sha256"
NAME = "inventory.json"
SIDECAR = f"{NAME}.{ALGORITHM}"
LONGEST_BYTES = 256 << 20
_CONTENT = re.compile(r"v[1-9][0-9]*/content/.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectVersion:
    created: datetime
    message: str
    user: str
    address: str
    state: Mapping[str, tuple[str, ...]]
    """Digest to logical paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    id: str
    head: int
    manifest: Mapping[str, tuple[str, ...]]
    """Digest to content paths below the object's folder."""
    versions: tuple[ObjectVersion, ...]
    sha256: str
    """The checksum of the inventory file itself, as in its sidecar."""

    def files(self, version: int | None = None) -> dict[str, str]:
        """Logical path to digest in a version (the newest by default), sorted by path."""
        state = self.versions[(version or self.head) - 1].state
        return dict(sorted((path, digest) for digest, paths in state.items() for path in paths))


def serialise(
    identifier: str, manifest: Mapping[str, tuple[str, ...]], versions: tuple[ObjectVersion, ...]
) -> tuple[Inventory, bytes]:
    """The inventory, and the bytes of its file; equal values give equal bytes."""
    document = {
        "id": identifier,
        "type": TYPE,
        "digestAlgorithm": ALGORITHM,
        "head": f"v{len(versions)}",
        "manifest": _sorted(manifest),
        "versions": {f"v{number}": _version_out(version) for number, version in enumerate(versions, 1)},
    }
    data = (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()
    digest = hashlib.sha256(data).hexdigest()
    return Inventory(
        id=identifier, head=len(versions), manifest=manifest, versions=versions, sha256=digest
    ), data


def parse(data: bytes, *, where: str) -> Inventory:
    """Read an inventory; CorruptData says what is wrong with it."""
    try:
        document = json.loads(data)
        _require(isinstance(document, dict), "it is not a JSON object")
        _require(isinstance(document["id"], str), "its id is not a string")
        _require(
            str(document["type"]).startswith("https://ocfl.io/1."), f"type {document['type']!r} is unknown"
        )
        _require(
            document["digestAlgorithm"] == ALGORITHM,
            f"digest algorithm {document['digestAlgorithm']!r} is not {ALGORITHM}",
        )
        _require(
            document.get("contentDirectory", "content") == "content", "the content folder has another name"
        )
        manifest = _paths_in(document["manifest"])
        numbers = range(1, len(document["versions"]) + 1)
        versions = tuple(_version_in(document["versions"][f"v{number}"]) for number in numbers)
        _require(bool(versions), "it has no version")
        _require(
            document["head"] == f"v{len(versions)}", f"head {document['head']!r} is not the last version"
        )
        for paths in manifest.values():
            _require(
                all(_CONTENT.match(path) and is_key(path) for path in paths),
                "the manifest has a path that is not a content path",
            )
        for version in versions:
            _require(
                all(is_key(path) for paths in version.state.values() for path in paths),
                "a version has a path that leads out of the object",
            )
            _require(
                version.state.keys() <= manifest.keys(),
                "a version refers to a digest that the manifest does not have",
            )
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, OverflowError) as error:
        raise CorruptData(
            f"The inventory {where} cannot be used: {error}. Restore it from another copy.", where=where
        ) from error
    return Inventory(
        id=document["id"],
        head=len(versions),
        manifest=manifest,
        versions=versions,
        sha256=hashlib.sha256(data).hexdigest(),
    )


def as_of(inventory: Inventory, number: int) -> tuple[Inventory, bytes]:
    """The inventory as an earlier version wrote it, and its bytes."""
    known = {}
    for digest, paths in inventory.manifest.items():
        held = tuple(path for path in paths if int(path.partition("/")[0][1:]) <= number)
        if held:
            known[digest] = held
    return serialise(inventory.id, known, inventory.versions[:number])


def sidecar(digest: str) -> bytes:
    return f"{digest} {NAME}\n".encode()


def _version_out(version: ObjectVersion) -> dict[str, object]:
    user = {"name": version.user} | ({"address": version.address} if version.address else {})
    return {
        "created": to_iso(version.created),
        "message": version.message,
        "user": user,
        "state": _sorted(version.state),
    }


def _version_in(document: dict[str, Any]) -> ObjectVersion:
    user = document.get("user", {})
    return ObjectVersion(
        created=from_iso(document["created"]),
        message=str(document.get("message", "")),
        user=str(user.get("name", "")),
        address=str(user.get("address", "")),
        state=_paths_in(document["state"]),
    )


def _paths_in(document: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Digest to paths, as a manifest and a state have them."""
    for paths in document.values():
        _require(
            isinstance(paths, list) and all(isinstance(path, str) for path in paths),
            "a digest does not have a list of paths",
        )
    return {digest.lower(): tuple(paths) for digest, paths in document.items()}


def _sorted(paths: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    return {digest: sorted(paths[digest]) for digest in sorted(paths)}


def _require(is_true: bool, message: str) -> None:
    if not is_true:
        raise ValueError(message)
