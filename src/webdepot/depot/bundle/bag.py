"""BagIt 1.0 (RFC 8493): export packages as bags, and check the bags of others before they are taken in.

Export: `data/` contains the package's files under their logical paths, with SHA-256 manifests; the folder
appears complete or not at all. Check: every rule of the RFC that protects bytes, with a message for each
violation: declaration, manifests complete and equal to the payload, tag files, Payload-Oxum. `fetch.txt` is
refused: a submission must contain all its files.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from webdepot import durable
from webdepot.depot.ocfl import objects
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.store.keys import is_key
from webdepot.depot.store.wrappers import expect_sha256
from webdepot.digest import CHUNK_BYTES
from webdepot.errors import Conflict
from webdepot.ports import ObjectStore

DECLARATION = "bagit.txt"
_DECLARED = re.compile(
    r"BagIt-Version: (0\.9[3-7]|1\.0)\r?\n?Tag-File-Character-Encoding: UTF-8\s*", re.IGNORECASE
)
_MANIFEST = re.compile(r"(tag)?manifest-(md5|sha1|sha224|sha256|sha384|sha512)\.txt")
_OXUM = re.compile(r"^Payload-Oxum:\s*([0-9]{1,18})\.([0-9]{1,18})\s*$", re.MULTILINE | re.IGNORECASE)
LONGEST_MANIFEST_BYTES = 256 << 20


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


def check(folder: Path) -> Iterator[str]:
    """One message for each fault of a bag; none if it is valid. Reads every byte."""
    declaration = folder / DECLARATION
    if not declaration.is_file() or not _DECLARED.fullmatch(declaration.read_text("utf-8", errors="replace")):
        yield f"{DECLARATION} does not declare a bag of a known version in UTF-8"
    if (folder / "fetch.txt").exists():
        yield "fetch.txt: bags with files that must be fetched from elsewhere are not accepted"
    if not (folder / "data").is_dir():
        yield "there is no folder data/"
        return
    manifests = {
        path: match for path in sorted(folder.iterdir()) if (match := _MANIFEST.fullmatch(path.name))
    }
    if not any(match[1] is None for match in manifests.values()):
        yield "there is no manifest of the payload"
    payload = {
        path.relative_to(folder).as_posix()
        for path in (folder / "data").rglob("*")
        if path.is_file() or path.is_symlink()
    }
    for path, match in manifests.items():
        yield from _check_manifest(folder, path, match[2], payload if match[1] is None else None)
    yield from _check_oxum(folder, payload)


def _check_manifest(folder: Path, path: Path, algorithm: str, payload: set[str] | None) -> Iterator[str]:
    if path.stat().st_size > LONGEST_MANIFEST_BYTES:
        yield f"{path.name} is larger than a manifest may be"
        return
    listed: set[str] = set()
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), start=1):
        value, _, name = line.strip().partition(" ")
        name = _decoded(name.strip().removeprefix("*").removeprefix("./"))
        if not name or not is_key(name):
            yield f"{path.name}, line {number} does not name a file inside the bag"
            continue
        if name in listed:
            yield f"{path.name} lists {name} twice"
        listed.add(name)
        yield from _check_file(folder / name, name, algorithm, value.lower())
    if payload is not None:
        yield from (f"{name} is not in {path.name}" for name in sorted(payload - listed))


def _check_file(path: Path, name: str, algorithm: str, value: str) -> Iterator[str]:
    if path.is_symlink() or not path.is_file():
        yield f"{name} is missing"
        return
    hasher = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            hasher.update(chunk)
    if hasher.hexdigest() != value:
        yield f"{name} is damaged: expected {algorithm} {value}, found {hasher.hexdigest()}"


def _check_oxum(folder: Path, payload: set[str]) -> Iterator[str]:
    info = folder / "bag-info.txt"
    stated = _OXUM.search(info.read_text("utf-8", errors="replace")) if info.is_file() else None
    if stated:
        size = sum((folder / name).stat().st_size for name in payload if (folder / name).is_file())
        if (stated[1].lstrip("0") or "0", stated[2].lstrip("0") or "0") != (str(size), str(len(payload))):
            yield (
                f"Payload-Oxum says {stated[1]} bytes in {stated[2]} files; "
                f"there are {size} bytes in {len(payload)} files"
            )


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


def _decoded(name: str) -> str:
    return re.sub("%0[Dd]", "\r", re.sub("%0[Aa]", "\n", name)).replace("%25", "%")
