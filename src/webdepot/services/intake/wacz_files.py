"""What a WACZ has besides its containers: lists of pages, description, logs, signature.

1. `keep_others` copies these files to the sender's other files of the import, from where they are added to
   the package; its index of captures is left out, since ours is built from the containers.
2. `note_seeds` takes over the start pages that the lists name. Indexing uses their titles and texts
   (`services.index.harvest_texts`).
"""

import hashlib
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath

from webdepot.archive import Archive, ScratchPurpose
from webdepot.depot.bundle import page_lists, zipped
from webdepot.depot.package_content import SUBMISSION
from webdepot.depot.store.in_place import PACKED_SUFFIX, Elsewhere, is_package
from webdepot.depot.store.keys import is_key
from webdepot.harvest import harvest_rows
from webdepot.model import Harvest, HarvestKind, HarvestState
from webdepot.services.depot import deposit
from webdepot.services.harvest import harvests
from webdepot.services.intake.sources import ImportSource
from webdepot.url import Url, find_canonical

MOST_SEEDS = 100
LARGEST_BYTES = 1 << 30
"""Most bytes of all other files of a WACZ, unpacked."""
_NOT_KEPT = ("archive/", "indexes/")


def keep_others(archive: Archive, harvest: Harvest, source: ImportSource) -> str:
    """Keep the other files of the WACZ that a container is in, once for each import; return the reason if
    they cannot be kept. Call it before the container is taken in, so that an import that was interrupted has
    them.
    """
    elsewhere = Elsewhere(source.place)
    if not elsewhere.is_member:
        return ""
    name = PurePosixPath(elsewhere.address).name[: -len(PACKED_SUFFIX)]
    own = f"{name}-{hashlib.sha256(elsewhere.address.encode()).hexdigest()[:8]}"
    if (harvests.folder_of(archive, harvest) / SUBMISSION / own / zipped.DATAPACKAGE).exists():
        return ""
    with archive.scratch_folder(ScratchPurpose.UNPACK) as folder:
        kept: list[str] = []
        try:
            for packed in Elsewhere(elsewhere.address).packages():
                reasons = list(islice(zipped.check_members(packed.zip, 1 << 62), 1))
                others = list(_others(packed.zip))
                if reasons or sum(each.file_size for each in others) > LARGEST_BYTES:
                    why = reasons[0] if reasons else f"they have more than {LARGEST_BYTES} bytes"
                    return f"its other files were not kept: {why}"
                for entry in others:
                    kept.append(f"{packed.prefix}{entry.filename}")
                    if not is_key(kept[-1]):
                        raise ValueError(f"{kept[-1][:200]!r} is too long")
                    with packed.zip.open(entry) as member:
                        zipped.copy_member(member, folder / kept[-1], LARGEST_BYTES)
        except (*zipped.BROKEN, FileExistsError, NotADirectoryError) as error:  # a file named like a folder
            return f"its other files were not kept: {error}"
        # The description is written last: it shows that all are there.
        names = sorted(kept, key=lambda each: each == zipped.DATAPACKAGE)
        deposit.keep_submitted(archive, harvest, {f"{own}/{each}": folder / each for each in names})
    return ""


def note_seeds(archive: Archive, harvest: Harvest) -> Harvest:
    """An import with the start pages that its lists of pages name, else with the main page of its WACZ file;
    unchanged if it has seeds, or is in the depot already. Can be repeated.
    """
    if harvest.kind is not HarvestKind.IMPORT or harvest.seeds or harvest.state is HarvestState.KEPT:
        return harvest
    seeds = tuple(islice(dict.fromkeys(_iter_seeds(archive, harvest)), MOST_SEEDS))
    if not seeds:
        return harvest
    with archive.database.transaction() as connection:
        harvest_rows.set_seeds(connection, harvest.id, seeds)
    return replace(harvest, seeds=seeds)


def _others(packed: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    for entry in packed.infolist():
        if not (entry.is_dir() or entry.filename.startswith(_NOT_KEPT) or is_package(entry.filename)):
            yield entry


def _iter_seeds(archive: Archive, harvest: Harvest) -> Iterator[Url]:
    folder = harvests.folder_of(archive, harvest) / SUBMISSION
    listed = [path for path in sorted(folder.rglob("*.jsonl")) if page_lists.is_page_list(str(path))]
    is_named = False
    for path in listed:
        with path.open("rb") as stream:
            for page in page_lists.iter_pages(stream):
                url = find_canonical(page.url) if page.is_seed else None
                if url is not None:
                    is_named = True
                    yield url
    if not is_named:
        yield from _iter_main_pages(folder)


def _iter_main_pages(folder: Path) -> Iterator[Url]:
    """The pages that the descriptions of WACZ files call the main ones."""
    for path in sorted(folder.rglob(zipped.DATAPACKAGE)):
        try:
            described = zipped.read_datapackage(path)
        except (ValueError, RecursionError):
            continue
        main = (
            described.get("mainPageUrl") or described.get("mainPageURL")
            if isinstance(described, dict)
            else None
        )
        url = find_canonical(main) if isinstance(main, str) else None
        if url is not None and url.startswith(("http://", "https://")):
            yield url
