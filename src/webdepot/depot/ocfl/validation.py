"""Validate OCFL objects and storage roots from others, 1.0 and 1.1: every code of the specification that can
be seen from the files (https://ocfl.io/1.1/spec/validation-codes.html).

1. The object's folder: declaration, inventory with its sidecar, version folders, nothing else.
2. The inventory by itself (`inventory_rules`), then against the version folders.
3. The inventory of every version: the same rules, and whether it describes the same object.
4. Every content file, read once, against the digests of all inventories and fixity blocks.

`verification` checks the objects that Webdepot wrote, in any kind of store.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdepot.depot.ocfl import inventory_rules as rules
from webdepot.depot.ocfl.inventory_rules import Document, error, warning
from webdepot.digest import CHUNK_BYTES
from webdepot.model import Finding

INVENTORY = "inventory.json"
LONGEST_INVENTORY_BYTES = 256 << 20
LONGEST_SMALL_BYTES = 65_536
MOST_VALUES = 10_000_000
"""Values in an inventory: JSON of a few megabytes can become gigabytes of objects."""
_OBJECT = re.compile(r"0=ocfl_object_(1\.[01])")
_ROOT = re.compile(r"0=ocfl_(1\.[01])")
_SIDECAR = re.compile(r"([0-9A-Fa-f]+)[ \t]+inventory\.json[ \t]*(?:\r\n|\n)?")
_EXTENSIONS = re.compile(
    r"initial|0001-digest-algorithms|0002-flat-direct-storage-layout|0003-hash-and-id-n-tuple-storage-layout"
    r"|0004-hashed-n-tuple-storage-layout|0005-mutable-head|0006-flat-omit-prefix-storage-layout"
    r"|0007-n-tuple-omit-prefix-storage-layout|0008-schema-registry|0009-digest-algorithms"
    r"|0010-differential-n-tuple-omit-prefix-storage-layout|0011-direct-clean-path-layout|0012-[a-z0-9-]+"
)
_FIXITY = {
    "md5": "md5",
    "sha1": "sha1",
    "sha256": "sha256",
    "sha512": "sha512",
    "sha512/256": "sha512_256",
    "blake2b-512": "blake2b",
}


@dataclass(slots=True, kw_only=True)
class _Object:
    """What was read of an object so far."""

    folder: Path
    spec: str
    root: Document
    content: str
    """The name of the content folder in each version."""
    expected: dict[str, dict[tuple[str, str], str]] = field(default_factory=lambda: defaultdict(dict))
    """Content path to the digest that each algorithm must give, by (algorithm, code of the rule)."""


def find_objects(folder: Path) -> list[Path]:
    """The folders of all objects in a folder, which may be an object itself; not those inside objects."""
    if is_object(folder):
        return [folder]
    return [
        folder_of_object
        for entry in sorted(folder.iterdir())
        if entry.is_dir() and not entry.is_symlink() and entry.name != "extensions"
        for folder_of_object in find_objects(entry)
    ]


def is_object(folder: Path) -> bool:
    """Whether a folder is meant to be an object, perhaps an invalid one."""
    names = [path.name for path in folder.iterdir()]
    is_declared = any(name.startswith("0=ocfl_object_") for name in names)
    return is_declared or (
        any(name.startswith(f"{INVENTORY}.sha") for name in names)
        and any(rules.number_of(name) for name in names)
    )


def is_root(folder: Path) -> bool:
    return any(_ROOT.fullmatch(path.name) for path in folder.iterdir())


def check_root(folder: Path) -> Iterator[Finding]:
    """One finding for each fault of a storage root, without its objects."""
    declared = sorted(path.name for path in folder.iterdir() if path.name.startswith("0=ocfl_"))
    if len(declared) != 1 or not _ROOT.fullmatch(declared[0]):
        code = "E069" if not declared else "E076" if len(declared) > 1 else "E079"
        yield error(
            code, folder.name, "a storage root must have exactly one declaration, 0=ocfl_1.1 or 0=ocfl_1.0"
        )
        return
    if _small(folder / declared[0]) != f"{declared[0][2:]}\n".encode():
        yield error("E080", declared[0], f"{declared[0]} does not contain {declared[0][2:]} and a line end")
    layout = folder / "ocfl_layout.json"
    if layout.is_file():
        facts = _json(_small(layout))
        if not isinstance(facts, dict) or {"extension", "description"} - facts.keys():
            yield error("E070", layout.name, "ocfl_layout.json does not have extension and description")
    yield from _check_extensions(folder / "extensions", "E112", "W016")
    yield from _check_hierarchy(folder, folder, declared[0][len("0=ocfl_") :])


def _check_hierarchy(root: Path, folder: Path, spec: str) -> Iterator[Finding]:
    entries = sorted(folder.iterdir())
    name = folder.relative_to(root).as_posix()
    if folder != root and not entries:
        yield error("E073", name, f"{name} is an empty folder")
    for entry in entries:
        inside = entry.relative_to(root).as_posix()
        if entry.is_symlink():
            yield error("E090", inside, f"{inside[:200]} is a symbolic link")
        elif not entry.is_dir():
            if folder != root:
                yield error("E072", inside, f"{inside[:200]} is not part of an object")
        elif entry.name == "extensions" and folder == root:
            continue
        elif is_object(entry):
            if any((match := _OBJECT.fullmatch(path.name)) and match[1] > spec for path in entry.iterdir()):
                yield error(
                    "E081", inside, f"{inside[:200]} is of a later version of OCFL than the storage root"
                )
        else:
            yield from _check_hierarchy(root, entry, spec)


def check(folder: Path) -> Iterator[Finding]:
    """One finding for each fault of an object; it is valid if none is an error. Reads every byte."""
    links = [path for path in folder.rglob("*") if path.is_symlink()]
    if links:
        yield error(
            "E090", links[0].name, f"{links[0].relative_to(folder).as_posix()[:200]} is a symbolic link"
        )
        return
    spec = yield from _check_declaration(folder)
    document = yield from _read_inventory(folder, "")
    if document is None:
        return
    kind = str(document.get("type", ""))
    if spec and rules.TYPE.fullmatch(kind) and f"/{spec}/" not in kind:
        yield error(
            "E038", INVENTORY, f"the type of {INVENTORY} is {kind}, but the object declares OCFL {spec}"
        )
    opened = _Object(
        folder=folder, spec=spec or "1.1", root=document, content=rules.content_directory(document)
    )
    yield from _check_folder(opened)
    yield from _check_versions(opened)
    _expect(opened, document)
    for path, expected in sorted(opened.expected.items()):
        yield from _check_content(folder, path, expected)
    yield from _check_extensions(folder / "extensions", "E067", "W013")


def head_files(folder: Path) -> dict[str, Path]:
    """Logical path to file in the newest version of an object that is valid."""
    document = _json((folder / INVENTORY).read_bytes())
    content = {value: path for path, value in rules.content_digests(document).items()}
    return {
        logical: folder / content[value]
        for logical, value in sorted(rules.logical_files(document, document["head"]).items())
    }


def identifier_of(folder: Path) -> str:
    """The identifier of an object; empty if its inventory cannot be read."""
    path = folder / INVENTORY
    document = (
        _json(path.read_bytes())
        if path.is_file() and path.stat().st_size <= LONGEST_INVENTORY_BYTES
        else None
    )
    value = document.get("id") if isinstance(document, dict) else ""
    return value if isinstance(value, str) else ""


def _check_declaration(folder: Path) -> Generator[Finding, None, str]:
    """Yield findings; return the declared version of OCFL, or nothing."""
    declared = sorted(path.name for path in folder.iterdir() if path.name.startswith("0=ocfl_object_"))
    if len(declared) != 1:
        count = len(declared) or "no"
        yield error(
            "E003", folder.name, f"the object has {count} declarations instead of one (0=ocfl_object_1.1)"
        )
        return ""
    match = _OBJECT.fullmatch(declared[0])
    if match is None:
        yield error("E004", declared[0], f"{declared[0][:100]} does not declare OCFL 1.0 or 1.1")
    elif _small(folder / declared[0]) != f"{declared[0][2:]}\n".encode():
        yield error("E007", declared[0], f"{declared[0]} does not contain {declared[0][2:]} and a line end")
    return match[1] if match else ""


def _read_inventory(folder: Path, version: str) -> Generator[Finding, None, dict[str, Any] | None]:
    """Yield what is wrong with an inventory and its sidecar; return it unless it cannot be read."""
    where = f"{version}/{INVENTORY}" if version else INVENTORY
    path = folder / where
    if not path.is_file():
        yield error("E063", where, f"there is no {where}")
        return None
    if path.stat().st_size > LONGEST_INVENTORY_BYTES:
        yield error("E033", where, f"{where} is larger than {LONGEST_INVENTORY_BYTES >> 20} MB")
        return None
    data = path.read_bytes()
    document = _json(data)
    if document is None:
        yield error("E033", where, f"{where} is not JSON, has too many values, or has a duplicate key")
        return None
    yield from rules.check(document, where)
    if not isinstance(document, dict):
        return None
    yield from _check_sidecar(path, where, data, str(document.get("digestAlgorithm", "sha512")))
    return document


def _check_sidecar(path: Path, where: str, data: bytes, algorithm: str) -> Iterator[Finding]:
    if algorithm not in rules.ALGORITHMS:
        return
    sidecar = path.with_name(f"{INVENTORY}.{algorithm}")
    if not sidecar.is_file():
        yield error("E058", where, f"{where} has no sidecar {sidecar.name}")
        return
    match = _SIDECAR.fullmatch(_small(sidecar).decode(errors="replace"))
    if match is None:
        yield error("E061", where, f"{sidecar.name} of {where} does not have the form DIGEST inventory.json")
    elif match[1].lower() != hashlib.new(algorithm, data).hexdigest():
        yield error("E060", where, f"{where} does not have the digest in its sidecar")


def _check_folder(opened: _Object) -> Iterator[Finding]:
    """What is in the folder of the object, and whether each version has a folder."""
    versions = set(rules.block(opened.root, "versions"))
    stated = str(opened.root.get("digestAlgorithm", ""))  # reported as E025 if it is not allowed
    algorithms = {f"{INVENTORY}.{name}" for name in (*rules.ALGORITHMS, stated)}
    for entry in sorted(opened.folder.iterdir()):
        name = entry.name
        if entry.is_dir():
            if rules.number_of(name):
                if name not in versions:
                    yield error(
                        "E046", name, f"the folder {name[:100]} is not among the versions of {INVENTORY}"
                    )
            elif name not in ("logs", "extensions"):
                yield error("E001", name, f"the folder {name[:100]} does not belong in an object")
        elif name not in algorithms and name != INVENTORY and not name.startswith("0=ocfl_object_"):
            yield error("E001", name, f"the file {name[:100]} does not belong in an object")
    for name in sorted(versions):
        if rules.number_of(name) and not _is_dir(opened.folder / name):
            yield error("E010", name, f"version {name} has no folder")


def _check_versions(opened: _Object) -> Iterator[Finding]:
    versions = sorted(
        (name for name in rules.block(opened.root, "versions") if rules.number_of(name)), key=rules.number_of
    )
    before = ""
    for name in versions:
        folder = opened.folder / name
        if not _is_dir(folder):
            continue
        yield from _check_version_folder(opened, folder)
        if not (folder / INVENTORY).is_file():
            yield warning("W010", name, f"version {name} has no inventory of its own")
            continue
        if name == opened.root.get("head"):
            yield from _check_newest(opened, name)
            continue
        document = yield from _read_inventory(opened.folder, name)
        if document is None:
            continue
        kind = str(document.get("type", ""))
        if before and rules.TYPE.fullmatch(kind) and kind < before:
            yield error("E103", name, f"version {name} uses an earlier OCFL than the version before it")
        before = kind
        yield from _check_older(opened, name, document)
        _expect(opened, document)
    if before and (newest := str(opened.root.get("type", ""))) < before and rules.TYPE.fullmatch(newest):
        yield error("E103", INVENTORY, "the newest version uses an earlier OCFL than a version before it")


def _check_version_folder(opened: _Object, folder: Path) -> Iterator[Finding]:
    """Files outside the content folder, and content that no inventory lists."""
    name = folder.name
    known = rules.content_digests(opened.root)
    allowed = {INVENTORY, *(f"{INVENTORY}.{algorithm}" for algorithm in rules.ALGORITHMS)}
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and entry.name != opened.content:
            yield warning(
                "W002", name, f"version {name} has the folder {entry.name[:100]} next to its content"
            )
        elif not entry.is_dir() and entry.name not in allowed:
            yield error("E015", name, f"{entry.name[:100]} in version {name} is not in its content folder")
    content = folder / opened.content
    if not _is_dir(content):
        return
    paths = sorted(content.rglob("*"))
    if not any(path.is_file() for path in paths):
        yield warning("W003", name, f"version {name} has an empty content folder")
    for path in paths:
        inside = path.relative_to(opened.folder).as_posix()
        if path.is_dir() and not any(path.iterdir()):
            yield error("E024", inside, f"{inside[:200]} is an empty folder")
        elif path.is_file() and inside not in known:
            yield error("E023", inside, f"{inside[:200]} is not in the manifest")


def _check_newest(opened: _Object, name: str) -> Iterator[Finding]:
    """The inventory of the newest version must be the same as that of the object."""
    path, root = opened.folder / name / INVENTORY, opened.folder / INVENTORY
    if path.stat().st_size != root.stat().st_size or path.read_bytes() != root.read_bytes():
        yield error("E064", name, f"{name}/{INVENTORY} is not the same as {INVENTORY}")
        yield from _read_inventory(opened.folder, name)
    else:
        where = f"{name}/{INVENTORY}"
        algorithm = str(opened.root.get("digestAlgorithm", "sha512"))
        yield from _check_sidecar(path, where, path.read_bytes(), algorithm)


def _check_older(opened: _Object, name: str, document: Document) -> Iterator[Finding]:
    """The inventory of an earlier version must describe the same object, as it was then."""
    where = f"{name}/{INVENTORY}"
    if document.get("id") != opened.root.get("id"):
        yield error("E037", where, f"{where} and the object have different ids")
        yield error("E110", where, f"the id of the object changes between {where} and {INVENTORY}")
    if document.get("head", name) != name:
        yield error("E040", where, f"the head of {where} is not {name}")
    if rules.content_directory(document) != opened.content:
        yield error("E019", where, f"{where} and the object have different contentDirectories")
        yield error("E020", where, f"the contentDirectory changes between {where} and {INVENTORY}")
    number = rules.number_of(name)
    known = rules.content_digests(document)
    for path in sorted(rules.content_digests(opened.root).keys() - known.keys()):
        if 0 < rules.number_of(path.partition("/")[0]) <= number and _is_file(opened.folder / path):
            yield error("E023", where, f"{path[:200]} is not in the manifest of {where}")
    newer = rules.block(opened.root, "versions")
    for each, version in rules.block(document, "versions").items():
        if each not in newer:
            yield error("E066", where, f"version {each[:20]} of {where} is not in {INVENTORY}")
            continue
        if not _is_same_state(document, opened.root, each):
            yield error("E066", where, f"version {each[:20]} has other files in {where} than in {INVENTORY}")
        if isinstance(version, dict) and isinstance(newer[each], dict):
            for key in ("created", "message", "user"):
                if version.get(key) != newer[each].get(key):
                    yield warning(
                        "W011", where, f"{key} of version {each[:20]} differs between {where} and {INVENTORY}"
                    )


def _is_same_state(older: Document, newer: Document, version: str) -> bool:
    if older.get("digestAlgorithm") == newer.get("digestAlgorithm"):
        return rules.logical_files(older, version) == rules.logical_files(newer, version)
    return _state(older, version) == _state(newer, version)


def _state(document: Document, version: str) -> dict[str, frozenset[str]]:
    """Logical path to the content paths that may have its content: independent of the digest algorithm.

    Only content of this version and earlier ones counts: a later version may store the same bytes again.
    """
    number = rules.number_of(version)
    content: dict[str, set[str]] = defaultdict(set)
    for path, value in rules.content_digests(document).items():
        if rules.number_of(path.partition("/")[0]) <= number:
            content[value].add(path)
    return {
        logical: frozenset(content.get(value, ()))
        for logical, value in rules.logical_files(document, version).items()
    }


def _expect(opened: _Object, document: Document) -> None:
    """Remember the digests that an inventory states for content."""
    algorithm = str(document.get("digestAlgorithm"))
    if algorithm in rules.ALGORITHMS:
        for path, value in rules.content_digests(document).items():
            opened.expected[path].setdefault((algorithm, "E092"), value)
            if opened.expected[path][(algorithm, "E092")] != value:
                opened.expected[path][(algorithm, "E092 earlier")] = value
    for name, digests in rules.block(document, "fixity").items():
        if _FIXITY.get(name) in hashlib.algorithms_available and isinstance(digests, dict):
            for value, paths in digests.items():
                for path in rules.paths_of(paths):
                    opened.expected[path][(_FIXITY[name], "E093")] = value.lower()


def _check_content(folder: Path, name: str, expected: Mapping[tuple[str, str], str]) -> Iterator[Finding]:
    """Compare one content file with all its digests, reading it once."""
    codes = sorted({code[:4] for _, code in expected})
    if {"", ".", ".."} & set(name.split("/")) or "\\" in name or "\0" in name:
        return  # reported as E099 or E100; such a path is not opened
    path = folder / name
    if not _is_file(path):
        for code in codes:
            yield error(code, name, f"{name[:200]} is missing")
        return
    hashers = {
        algorithm: hashlib.new(algorithm, usedforsecurity=False)
        for algorithm in {each for each, _ in expected}
    }
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            for hasher in hashers.values():
                hasher.update(chunk)
    for (algorithm, code), value in expected.items():
        actual = hashers[algorithm].hexdigest()
        if actual != value:
            yield error(
                code[:4], name, f"{name[:200]} is damaged: expected {algorithm} {value[:128]}, found {actual}"
            )


def _is_file(path: Path) -> bool:
    """Whether a file exists; False for a path that the system does not allow."""
    try:
        return path.is_file()
    except OSError:
        return False


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _check_extensions(folder: Path, misplaced: str, unregistered: str) -> Iterator[Finding]:
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        if not entry.is_dir():
            yield error(misplaced, entry.name, f"{entry.name[:100]} in extensions/ is not a folder")
        elif not _EXTENSIONS.fullmatch(entry.name):
            yield warning(unregistered, entry.name, f"the extension {entry.name[:100]} is not registered")


def _json(data: bytes) -> Any:
    """The JSON value; None if it is not JSON, has too many values, or an object has a duplicate key."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MOST_VALUES:
        return None
    try:
        return json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key occurs twice")
    return value


def _small(path: Path) -> bytes:
    """The start of a file; empty if there is no file of that name, or it is a folder."""
    if not _is_file(path):
        return b""
    with path.open("rb") as stream:
        return stream.read(LONGEST_SMALL_BYTES)
