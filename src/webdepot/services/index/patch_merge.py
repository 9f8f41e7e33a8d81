"""A harvest and its patches are one version: captures of a patch replace the failed ones of its parent
(`services/review/patches.py`).

Each time one of their containers is indexed, the captures of the parent, or of an earlier patch, that have
been replaced are marked in the capture index. So lookup, time bar, replay and APIs agree, and a rebuilt
index gives the same answers. Containers are not changed: revisit records may refer to replaced captures.
"""

from collections.abc import Collection, Iterator

from webdepot.access import lookup
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.harvest import harvest_rows
from webdepot.model import Capture, Harvest
from webdepot.url import key as key_of


def merge(archive: Archive, harvests: Collection[str]) -> None:
    """Mark replaced captures after containers of these harvests have been indexed. Can be repeated."""
    with archive.database.reading() as connection:
        patches = list(harvest_rows.patches(connection))
    touched = {
        str(patch.settings.get("patch_of"))
        for patch in patches
        if patch.id in harvests or patch.settings.get("patch_of") in harvests
    }
    for name in sorted(touched):
        parent = _find(archive, name)
        if parent is None:
            continue
        older = _containers(archive, parent)
        for patch in patches:
            if harvest_rows.is_patch_of(patch, parent):
                own = _containers(archive, patch)
                archive.captures.replace(list(_iter_replaced(archive, patch, own, older)))
                older |= own


def _iter_replaced(archive: Archive, patch: Harvest, own: set[str], older: set[str]) -> Iterator[Capture]:
    """Captures of the addresses that the patch fetched again, except those that remain valid. Redirects
    remain, since they lead to the repaired page.
    """
    patched = {key_of(seed) for seed in patch.seeds}
    for name in sorted(own):
        for _, capture in archive.captures.of_container(name):
            if capture.key not in patched or not lookup.is_version(capture):
                continue
            earlier = [
                version
                for version in archive.captures.versions(capture.key)
                if version.location.container in older and lookup.is_version(version)
            ]
            if _is_error(capture) and not all(map(_is_error, earlier)):
                yield capture  # an error is not better than the earlier capture, even if that was cut off
            else:
                yield from (version for version in earlier if not 300 <= version.status < 400)


def _is_error(capture: Capture) -> bool:
    return not 200 <= capture.status < 400


def _find(archive: Archive, harvest: str) -> Harvest | None:
    """The harvest with this id; None if a patch was received without its parent."""
    with archive.database.reading() as connection:
        return harvest_rows.get(connection, harvest) if harvest_rows.exists(connection, harvest) else None


def _containers(archive: Archive, harvest: Harvest) -> set[str]:
    with archive.database.reading() as connection:
        return {container.name for container in locations.of_harvest(connection, harvest.id)}
