"""Where an object is in the store: OCFL storage root 1.1 with layout extension 0003.

https://ocfl.io/1.1/spec/#storage-root and
https://ocfl.github.io/extensions/0003-hash-and-id-n-tuple-storage-layout.html. The path of an object's folder
is three times three hexadecimal digits of the SHA-256 of its identifier, then the identifier itself,
percent-encoded, so that a person can find it with a file browser:

    0=ocfl_1.1
    ocfl_layout.json
    extensions/0003-hash-and-id-n-tuple-storage-layout/config.json
    ab1/c04/9f3/urn%3auuid%3a6fa1…/        the object
"""

import hashlib
import io
import json
import re
from collections.abc import Mapping
from urllib.parse import unquote

from webdepot.errors import Conflict
from webdepot.ports.object_store import ObjectStore

EXTENSION = "0003-hash-and-id-n-tuple-storage-layout"
ROOT_DECLARATION = "0=ocfl_1.1"
OBJECT_DECLARATION = "0=ocfl_object_1.1"
_CONFIG = {"extensionName": EXTENSION, "digestAlgorithm": "sha256", "tupleSize": 3, "numberOfTuples": 3}
_LAYOUT = {
    "extension": EXTENSION,
    "description": "Three times three hexadecimal digits of the SHA-256 of the object identifier, "
    "then the identifier, percent-encoded",
}
_LONGEST_NAME = 100
_ENCODED = re.compile(r"[^A-Za-z0-9_-]")


def folder_of(identifier: str) -> str:
    """The key of the object's folder, without a slash at the end."""
    digest = hashlib.sha256(identifier.encode()).hexdigest()
    name = _ENCODED.sub(_percent, identifier)
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{digest}"
    return f"{digest[0:3]}/{digest[3:6]}/{digest[6:9]}/{name}"


def find_identifier(folder: str) -> str | None:
    """The identifier in the name of a folder; None if it was too long for the name, or the folder is not
    ours.
    """
    identifier = unquote(folder.rpartition("/")[2], errors="replace")
    return identifier if folder_of(identifier) == folder else None


def prepare(store: ObjectStore) -> None:
    """Declare the storage root if that has not been done; Conflict if it has another layout."""
    _declare(store, f"extensions/{EXTENSION}/config.json", _CONFIG)
    _declare(store, "ocfl_layout.json", _LAYOUT)
    if store.size(ROOT_DECLARATION) is None:
        _create(store, ROOT_DECLARATION, f"{ROOT_DECLARATION[2:]}\n".encode())


def _declare(store: ObjectStore, key: str, wanted: Mapping[str, object]) -> None:
    if store.size(key) is None:
        _create(store, key, (json.dumps(wanted, indent=2) + "\n").encode())
        return
    with store.open(key) as stream:
        try:
            actual = json.loads(stream.read(65_536))
        except (ValueError, RecursionError):
            actual = None
    rules = {name: value for name, value in wanted.items() if name != "description"}
    if not isinstance(actual, dict) or any(actual.get(name) != value for name, value in rules.items()):
        raise Conflict(
            f"The layout of the depot differs from the one that this version of Webdepot writes ({key}). "
            "Nothing was changed. Choose an empty place."
        )


def _create(store: ObjectStore, key: str, data: bytes) -> None:
    try:
        store.put(key, io.BytesIO(data))
    except Conflict:  # another process wrote the same bytes first
        return


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02x}" for byte in match.group().encode())
