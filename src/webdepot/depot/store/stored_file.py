"""A file that any machine can read: named by its place, its key there and its checksum.

Work for another machine names its files in this way. A place that is a folder must have the same path on all
machines (a shared disk); one in a bucket is read by any machine that has the credentials.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from webdepot import digest, durable
from webdepot.depot import places
from webdepot.depot.store.wrappers import expect_sha256
from webdepot.digest import CHUNK_BYTES
from webdepot.errors import NotFound
from webdepot.ports.object_store import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    place: str
    """The name of the place, for its credentials; see `places.open_store`."""
    address: str
    """Folder or s3:// address of the place."""
    key: str
    sha256: str

    def open_place(self) -> ObjectStore:
        return places.open_store(self.place, self.address)


def put(place: str, address: str, key: str, path: Path) -> StoredFile:
    """Store a local file in a place."""
    sha256 = digest.of_file(path).value.hex()
    with path.open("rb") as source:
        places.open_store(place, address).put(key, expect_sha256(source, sha256, str(path)), overwrite=True)
    return StoredFile(place=place, address=address, key=key, sha256=sha256)


def fetch(file: StoredFile, path: Path) -> None:
    """Copy a file from its place; CorruptData if its checksum differs, NotFound if it is not there."""
    store = file.open_place()
    with (
        expect_sha256(store.open(file.key), file.sha256, file.key) as source,
        durable.whole_file(path) as sink,
    ):
        shutil.copyfileobj(source, sink, CHUNK_BYTES)


def local_path(file: StoredFile, folder: Path) -> Path:
    """The file itself if its place is a folder, or else a copy in `folder`. NotFound if this machine does not
    have it.
    """
    here = file.open_place().local_path(file.key)
    if here is None:
        here = folder / Path(file.key).name
        fetch(file, here)
    elif not here.exists():
        raise NotFound(
            f"{here} does not exist on this machine. Set [work] place and [depot] place to s3:// addresses, "
            "or to folders that all machines have at the same path."
        )
    return here
