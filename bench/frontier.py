"""How fast does the frontier add addresses and hand them out with millions in the queue, and how much memory
does it need?

    python -m bench.frontier [--quick] [--json PATH] [--urls N] [--hosts N]

5 million addresses over 10,000 hosts (Zipf) are added in pages of 30 links and committed like in a crawl:
every second, or after 50,000 new ones, with a flush to the disk. Then they are handed out and finished,
committed every second. Private memory is what the process has allocated (the kernel can reclaim pages of the
mapped file). `--false` counts how many of 10 million different addresses wrongly count as seen (there should
be none).
"""

import argparse
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from webdepot.harvest.frontier import LmdbFrontier
from webdepot.model import Candidate
from webdepot.url import Url

SEED = 20261115
COMMIT_S = 1.0
PER_COMMIT = 50_000
PER_BATCH = 3_000
PER_PAGE = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 addresses over 1,000 hosts")
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--urls", type=int, default=5_000_000)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--false", action="store_true", help="also count false `seen` among 10 million")
    given = parser.parse_args()
    urls, hosts = (100_000, 1_000) if given.quick else (given.urls, given.hosts)
    figures: dict[str, object] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": os.getloadavg()[0],
        "urls": urls,
        "hosts": hosts,
    }
    with tempfile.TemporaryDirectory(prefix="webdepot-frontier-") as folder:
        figures |= measured(Path(folder), urls, hosts)
    if given.false:
        with tempfile.TemporaryDirectory(prefix="webdepot-frontier-") as folder:
            figures["false_seen_of_10_million"] = false_seen(
                Path(folder), 10_000_000 if not given.quick else 200_000
            )
    for name, value in figures.items():
        print(f"{name:28} {value:,.1f}" if isinstance(value, float) else f"{name:28} {value}")
    if given.json:
        Path(given.json).write_text(json.dumps(figures, indent=1))


def measured(folder: Path, urls: int, hosts: int) -> dict[str, object]:
    frontier = LmdbFrontier(folder / "frontier")
    before_mb = _private_mb()
    adding = _added(frontier, urls, hosts)
    memory_mb = _private_mb() - before_mb
    seen_again = _added(frontier, min(urls, 300_000), hosts)
    handing = _handed_out(frontier, min(urls, 1_000_000))
    after_mb = _private_mb() - before_mb
    disk_mb = sum(file.stat().st_size for file in (folder / "frontier").iterdir()) / 1e6
    frontier.close()
    return {
        "enqueued_per_s": adding[0],
        "enqueued_per_cpu_s": adding[1],
        "seen_again_per_s": seen_again[0],
        "handed_out_per_s": handing[0],
        "handed_out_per_cpu_s": handing[1],
        "private_mb_waiting": memory_mb,
        "private_mb_after": after_mb,
        "disk_mb": disk_mb,
    }


def _candidates(urls: int, hosts: int) -> Iterator[list[Candidate]]:
    chance = random.Random(SEED)
    weights = [1 / (rank + 1) for rank in range(hosts)]
    for start in range(0, urls, PER_BATCH):
        picked = chance.choices(range(hosts), weights, k=min(PER_BATCH, urls - start))
        yield [
            Candidate(
                url=Url(f"http://host-{host}.example.org/section/{number % 97}/page-{number}.html"),
                via=Url("http://a.example/"),
                path="LL",
            )
            for number, host in enumerate(picked, start)
        ]


def _added(frontier: LmdbFrontier, urls: int, hosts: int) -> tuple[float, float]:
    """Addresses per second, by wall and CPU time, without generating them."""
    took_s = cpu_s = committed_s = 0.0
    waiting = 0
    for batch in _candidates(urls, hosts):
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        for page in range(0, len(batch), PER_PAGE):
            frontier.add(batch[page : page + PER_PAGE])
        waiting += len(batch)
        if waiting >= PER_COMMIT or took_s - committed_s >= COMMIT_S:
            frontier.commit({})
            waiting, committed_s = 0, took_s
        took_s += time.perf_counter() - began_s
        cpu_s += time.process_time() - began_cpu_s
    began_s = time.perf_counter()
    frontier.commit({})
    return urls / (took_s + time.perf_counter() - began_s), urls / cpu_s


def _handed_out(frontier: LmdbFrontier, urls: int) -> tuple[float, float]:
    began_s, began_cpu_s, taken = time.perf_counter(), time.process_time(), 0
    committed_s = began_s
    while taken < urls and (candidate := frontier.take(0.0)) is not None:
        frontier.finish(candidate, host_free_at_s=0.0)
        taken += 1
        if taken % PER_BATCH == 0 and time.perf_counter() - committed_s >= COMMIT_S:
            frontier.commit({})
            committed_s = time.perf_counter()
    frontier.commit({})
    return taken / (time.perf_counter() - began_s), taken / (time.process_time() - began_cpu_s)


def false_seen(folder: Path, urls: int) -> int:
    frontier = LmdbFrontier(folder / "frontier")
    added = 0
    for start in range(0, urls, 50_000):
        added += frontier.add(
            Candidate(url=Url(f"http://one-host.example.org/{number}"))
            for number in range(start, start + 50_000)
        )
        frontier.commit({})
    frontier.close()
    return urls - added


def _private_mb() -> float:
    """Anonymous memory of this process."""
    with Path("/proc/self/smaps_rollup").open() as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Anonymous:")) / 1000


if __name__ == "__main__":
    main()
