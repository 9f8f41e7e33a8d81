"""A package as WACZ that can be replayed without the rest of the archive.

archive/           the containers of the package, byte for byte
archive/originals.warc.gz   records of other packages that revisits refer to, if there are any
indexes/ pages/    see `services.access.export.wacz_index`
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from webdepot.archive import Archive, ScratchPurpose
from webdepot.cdxj import REVISIT_MIME
from webdepot.depot import package
from webdepot.depot.bundle import zipped
from webdepot.depot.bundle.zipped import NewZipMember
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.package_content import PackageFacts
from webdepot.model import Capture, Package, RecordKind
from webdepot.ports.object_store import ObjectStore
from webdepot.services.access.export import warc_and_wacz
from webdepot.services.access.export.wacz_index import ExportedRecord, WaczIndex
from webdepot.services.access.replay import replay
from webdepot.services.depot import references
from webdepot.version import VERSION

_PAGES = frozenset({"text/html", "application/xhtml+xml", REVISIT_MIME})


def write(archive: Archive, store: ObjectStore, inventory: Inventory, held: Package, target: Path) -> int:
    """Write the file, complete or not at all; return the payload bytes."""
    facts = package.read(store, held.id)
    with archive.scratch_folder(ScratchPurpose.EXPORT) as folder, closing(WaczIndex(folder)) as index:
        return zipped.write_wacz(
            target,
            _members(archive, store, inventory, facts, index),
            title=held.title,
            created=archive.clock(),
            software=f"webdepot {VERSION}",
        )


def _members(
    archive: Archive, store: ObjectStore, inventory: Inventory, facts: PackageFacts, index: WaczIndex
) -> Iterator[NewZipMember]:
    yield from zipped.containers_of(store, inventory)
    yield from index.containers("originals", _originals(archive, store, facts))
    for capture in package.iter_captures(store, facts):
        index.add(capture, _title(archive, capture))
    yield from index.members()


def _originals(archive: Archive, store: ObjectStore, facts: PackageFacts) -> Iterator[ExportedRecord]:
    """The records of other packages, each once."""
    own = frozenset(container.name for container in facts.containers)
    written: set[int] = set()
    for original in references.iter_originals(archive, package.iter_captures(store, facts), own):
        if original is None:
            continue
        place = hash((original.location.container, original.location.offset))
        if place not in written:
            if len(written) < warc_and_wacz.MOST_REMEMBERED:
                written.add(place)
            yield from warc_and_wacz.iter_record(archive, original)


def _title(archive: Archive, capture: Capture) -> str:
    """What a list of pages calls a page; empty if it is not one."""
    is_page = capture.kind in (RecordKind.RESPONSE, RecordKind.REVISIT) and capture.mime in _PAGES
    if not is_page or capture.status != 200:
        return ""
    return replay.find_page_title(archive, capture) or capture.url
