"""BagIt 1.0 (RFC 8493): export packages as bags. `bag_check` checks bags from others.

`data/` contains the package's files under their logical paths, with SHA-256 manifests; the folder appears
complete or not at all.
"""

import hashlib
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from webdepot import durable
from webdepot.depot.ocfl import objects
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.store.wrappers import expect_sha256
from webdepot.digest import CHUNK_BYTES
from webdepot.errors import Conflict
from webdepot.ports.object_store import ObjectStore

DECLARATION = "bagit.txt"


def write(
    store: ObjectStore, inventory: Inventory, target: Path, *, info: Mapping[str, str], created: datetime
) -> int:
    """Write the newest version of an object as a bag; return its payload bytes.

    Conflict if the folder exists, CorruptData if the object is damaged.
    """
    if target.exists():
        raise Conflict(f"{target} already exists. Give a new folder for the bag.")
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    size_bytes, lines = 0, []
    for logical, value in inventory.files().items():
        size_bytes += _copy(store, objects.content_key(inventory, logical), partial / "data" / logical, value)
        lines.append(f"{value}  data/{_encoded(logical)}\n")
    facts = {**info, "Bagging-Date": f"{created:%Y-%m-%d}", "Payload-Oxum": f"{size_bytes}.{len(lines)}"}
    tags = {
        DECLARATION: "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
        "bag-info.txt": "".join(f"{name}: {' '.join(value.split())}\n" for name, value in facts.items()),
        "manifest-sha256.txt": "".join(lines),
    }
    tags["tagmanifest-sha256.txt"] = "".join(
        f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n" for name, text in tags.items()
    )
    for name, text in tags.items():
        _write(partial / name, text.encode())
    partial.rename(target)
    durable.sync_folder(target.parent)
    return size_bytes


def _copy(store: ObjectStore, key: str, path: Path, value: str) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with expect_sha256(store.open(key), value, key) as source, path.open("wb") as sink:
        while chunk := source.read(CHUNK_BYTES):
            size += sink.write(chunk)
        durable.sync_file(sink)
    return size


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as sink:
        sink.write(data)
        durable.sync_file(sink)


def _encoded(name: str) -> str:
    """A path as manifests write it: line ends and the percent sign are percent-encoded (RFC 8493, 2.1.3)."""
    return name.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
