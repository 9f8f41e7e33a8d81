"""Does a rebuild of the indexes on a Dask cluster give the same rows as on one machine, although workers are killed?

    python -m bench.rebuild_kills [--quick] [--json PATH] [--containers 200] [--kills 3]

An archive of many small containers (pages of `bench.search`) is indexed by the processes of one machine. Then
`webdepot index rebuild` is repeated on a Dask cluster with two workers; some are killed with SIGKILL while they read
containers, and their nannies start them again. Compared are checksums of all captures and of all page states.
"""

import argparse
import hashlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from bench.search import write_warc
from bench.search_corpus import Corpus
from bench.server_programs import dask_worker, free_port
from bench.server_programs import running as running_programs

from webdepot.archive import Archive
from webdepot.cluster import dask_programs
from webdepot.cluster.processes import ProcessFolder
from webdepot.ports.search import TextQuery
from webdepot.services import pipeline
from webdepot.services.admin import setup
from webdepot.services.index import indexer
from webdepot.services.progress import Progress, Watch, unwatched

_PAGES = 10
"""Pages of a container."""


def fill(home: Path, folder: Path, containers: int) -> None:
    states = iter(Corpus(containers * _PAGES * 2, words=100))
    files = []
    for number in range(containers):
        files.append(folder / f"{number:04d}.warc.gz")
        write_warc(files[-1], list(islice(states, _PAGES)))
    with Archive.open(home, agent="bench") as archive:
        pipeline.import_files(archive, files, collection="c")


def rows_of(archive: Archive) -> dict[str, Any]:
    """Numbers and checksums of everything in both indexes, whatever the order of the containers."""
    names = sorted(name for name, _ in archive.captures.containers())
    captures = [repr(row) for name in names for row in archive.captures.of_container(name)]
    states = sorted(repr(state) for state in archive.texts.scan(TextQuery()))
    return {
        "containers": len(names),
        "captures": len(captures),
        "sha256 of captures": _sha256(captures),
        "states": len(states),
        "sha256 of states": _sha256(states),
    }


def _sha256(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()


def rebuild(home: Path, watch: Watch = unwatched) -> dict[str, Any]:
    began_s = time.monotonic()
    with Archive.open(home, agent="bench") as archive:
        done = indexer.rebuild(archive, watch=watch)
        return {
            **rows_of(archive),
            "failed": dict(list(done.failed.items())[:3]),
            "seconds": round(time.monotonic() - began_s, 1),
        }


class Killer:
    """Kills a worker each time another share of the containers has been read."""

    def __init__(self, running: ProcessFolder, names: list[str], kills: int) -> None:
        self._running, self._names, self._kills = running, names, kills
        self.killed: list[str] = []

    def watch(self, progress: Progress) -> None:
        share = (progress.total or 0) * (len(self.killed) + 1) // (self._kills + 1)
        if len(self.killed) < self._kills and progress.done >= share > 0:
            name = self._names[len(self.killed) % len(self._names)]
            if pids := list(_workers_of(self._running, name)):
                os.kill(pids[0], signal.SIGKILL)
                self.killed.append(f"{name} after {progress.done} containers")


def _workers_of(running: ProcessFolder, name: str) -> list[int]:
    """The processes that a nanny started to work."""
    nanny = running.find(name)
    pids = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            command = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if nanny is not None and parent == nanny.pid and b"spawn_main" in command:
            pids.append(int(stat.parent.name))
    return pids


def on_cluster(home: Path, kills: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-dask-") as name:
        folder, port = Path(name), free_port()
        scheduler = dask_programs.scheduler(port)
        workers = [dask_worker(number, port, folder / str(number)) for number in (1, 2)]
        os.environ["WEBDEPOT_ENGINE_KIND"] = "dask"
        os.environ["WEBDEPOT_ENGINE_SCHEDULER"] = dask_programs.address_of(port)
        with running_programs(folder, scheduler, *workers, at_most_s=300) as running:
            _until(lambda: all(_workers_of(running, worker.name) for worker in workers))
            killer = Killer(running, [worker.name for worker in workers], kills)
            result = rebuild(home, killer.watch)
            return {**result, "killed": killer.killed}


def _until(is_so: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 120
    while not is_so() and time.monotonic() < until_s:
        time.sleep(0.2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test; its figures are meaningless")
    parser.add_argument("--containers", type=int, default=200)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    containers, kills = (12, 1) if given.quick else (given.containers, given.kills)
    with tempfile.TemporaryDirectory(prefix="bench-rebuild-") as name:
        folder = Path(name)
        setup.create(folder / "home")
        fill(folder / "home", folder, containers)
        alone = rebuild(folder / "home")
        shared = on_cluster(folder / "home", kills)
    same = all(alone[name] == shared[name] for name in alone if name not in ("failed", "seconds"))
    results = {
        "containers": containers,
        "embedded": alone,
        "on dask": shared,
        "equal": same,
        "load": os.getloadavg()[0],
    }
    print(json.dumps(results, indent=2))
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0 if same and len(shared["killed"]) == kills and not shared["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
