"""A harvest and its patches are one version: what a patch brought is shown where its parent has an error (see `patching.py`).

Apart from `patching`, because every request for an archived page asks this, and a server of such pages needs no crawler.
"""

from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.harvest import runs
from webdepot.model import Capture, HarvestKind

_FARTHEST_STEPS = 200


def find_replacement(archive: Archive, capture: Capture) -> Capture | None:
    """What a patch brought for an address that its parent has only as an error; None where there is no such patch."""
    if 200 <= capture.status < 400:
        return None
    with archive.database.reading() as connection:
        container = shelf.find(connection, capture.location.container)
        if container is None:
            return None
        parent = runs.get(connection, container.harvest)
        patches = {
            each.id for each in runs.of_target(connection, parent.target, HarvestKind.PATCH) if each.settings.get("patch_of") == parent.id
        }
        later: Capture | None = capture
        for _ in range(_FARTHEST_STEPS if patches else 0):
            later = archive.captures.after(later.key, later.timestamp) if later else None
            if later is None:
                return None
            held = shelf.find(connection, later.location.container)
            if held is not None and held.harvest in patches and 200 <= later.status < 400:
                return later
    return None
