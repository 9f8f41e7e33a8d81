"""A harvest and its patches are one version: what a patch brought stands where its parent has an error (see
`patches.py`).

The captures index is told which captures of the parent, or of an earlier patch, have been replaced, each time
that one of their containers is indexed; so look-up, time bar, replay and machine interfaces agree, and a
rebuilt index says the same. Containers are not touched: revisit records may refer to what was replaced.
"""

from collections.abc import Collection, Iterator

from webdepot.access import lookup
from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.harvest import runs
from webdepot.model import Capture, Harvest
from webdepot.url import key as key_of


def mend(archive: Archive, harvests: Collection[str]) -> None:
    """After containers of these harvests have been indexed; repeatable."""
    with archive.database.reading() as connection:
        patches = list(runs.patches(connection))
    touched = {
        str(each.settings.get("patch_of"))
        for each in patches
        if each.id in harvests or each.settings.get("patch_of") in harvests
    }
    for parent in sorted(touched):
        older = _containers(archive, parent)
        for patch in (each for each in patches if each.settings.get("patch_of") == parent):
            brought = _containers(archive, patch.id)
            archive.captures.replace(list(_replaced(archive, patch, brought, older)))
            older |= brought


def _replaced(archive: Archive, patch: Harvest, brought: set[str], older: set[str]) -> Iterator[Capture]:
    """Of what the patch was to bring again, all but the answer that stands; redirects stay, since they lead
    to what was mended.
    """
    asked = {key_of(seed) for seed in patch.seeds}
    for name in sorted(brought):
        for _, capture in archive.captures.of_container(name):
            if capture.key not in asked or not lookup.is_version(capture):
                continue
            earlier = [
                one
                for one in archive.captures.versions(capture.key)
                if one.location.container in older and lookup.is_version(one)
            ]
            if _is_error(capture) and not all(map(_is_error, earlier)):
                yield capture  # an error is no better than what was there, even if that was cut off
            else:
                yield from (one for one in earlier if not 300 <= one.status < 400)


def _is_error(capture: Capture) -> bool:
    return not 200 <= capture.status < 400


def _containers(archive: Archive, harvest: str) -> set[str]:
    with archive.database.reading() as connection:
        return {
            container.name for container in shelf.of_harvest(connection, runs.get(connection, harvest).id)
        }
