"""The objects of a whole harvest in the working place: collected at its end, and removed when it is in the
depot. Their keys are in `objects`.
"""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from webdepot import durable
from webdepot.harvest.report.log import JSON_NAME, LOG_NAME
from webdepot.ports.object_store import ObjectStore

CONTAINERS = "warc"
LOGS = (LOG_NAME, JSON_NAME)
Spans = Sequence[tuple[int, int]]
"""(generation, its last checkpoint) for all checkpoints of a part, in their order."""


def root_of(harvest: str) -> str:
    """The prefix of the keys of all objects of a harvest."""
    return f"harvests/{harvest}/"


def whole_logs(number: int, generation: int) -> str:
    """The prefix of the keys of the whole logs of a part at a checkpoint, after the prefix of the part."""
    return f"whole/{number:06d}-{generation}/"


def fetch_logs(store: ObjectStore, harvest: str, parts: Mapping[int, Spans], folder: Path) -> None:
    """Write the logs of all parts, one part after the other, into the folder of a harvest."""
    for name in LOGS:
        with durable.whole_file(folder / name) as sink:
            for part, spans in sorted(parts.items()):
                if not spans:  # it has never reached a checkpoint
                    continue
                generation, number = spans[-1]
                key = f"{root_of(harvest)}parts/{part}/{whole_logs(number, generation)}{name}"
                with closing(store.open(key)) as source:
                    shutil.copyfileobj(source, sink)


def fetch_containers(store: ObjectStore, harvest: str, folder: Path) -> None:
    """Copy all sealed containers of a harvest into a folder, except those that are already there."""
    durable.make_folders(folder)
    for key in sorted(store.keys(f"{root_of(harvest)}{CONTAINERS}/")):
        path = folder / key.rpartition("/")[2]
        if not path.exists() or path.stat().st_size != store.size(key):
            with closing(store.open(key)) as source, durable.whole_file(path) as sink:
                shutil.copyfileobj(source, sink)


def delete_all(store: ObjectStore, harvest: str) -> None:
    """Remove all objects of a harvest that is in the depot."""
    for key in list(store.keys(root_of(harvest))):
        store.delete(key)
