"""What does the capture index cost on PostgreSQL, compared with the SQLite file?

    python -m bench.captures [--quick] [--json PATH] [--rows N]

Captures of 5,000 hosts (Zipf) in containers of 5,000 are added to both indexes in turns. Printed for each:
CPU of adding a row (of our process and of the server), bytes a row with all indexes, write-ahead log a row,
and wall time and CPU of queries from a fixed seed: the nearest capture of an address, 500 captures of a host,
16 payloads at once. Both run on this machine; a real server adds the time of the network to each query.

The limits, for PostgreSQL: 35 us of the server and 420 bytes a row; the nearest capture in 5 ms and the 500
captures in 10 ms, at the 99th percentile on a quiet machine.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg
from bench import postgres_server
from sqlalchemy import make_url

from webdepot.index.postgresql_captures import PostgresqlCaptureIndex
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.model import Capture, Location, RecordKind
from webdepot.ports.captures import CaptureIndex
from webdepot.url import key as key_of

SEED = 20261118
PER_CONTAINER = 5000
LIMITS = {"server us a row": 35.0, "bytes a row": 420.0, "closest p99 ms": 5.0, "500 of a host p99 ms": 10.0}
OPTIONS = ("-c", "shared_buffers=256MB", "-c", "max_wal_size=2GB", "-c", "checkpoint_timeout=30min")


def urls_of(chance: random.Random, count: int, hosts: int) -> list[str]:
    weights = [1 / (rank + 1) for rank in range(hosts)]
    numbers = chance.choices(range(hosts), weights, k=count)
    return [
        f"http://www.host{number}.example.org/{chance.choice('abcdefgh')}/{chance.randrange(count // 3)}/page.html"
        for number in numbers
    ]


def containers(rows: int, hosts: int) -> Iterator[tuple[str, list[Capture]]]:
    chance = random.Random(SEED)
    for first in range(0, rows, PER_CONTAINER):
        name = f"captures-{first:010d}.warc.gz"
        year = 2005 + first * 20 // rows
        yield (
            name,
            [
                Capture(
                    key=key_of(url),
                    timestamp=f"{year}{chance.randrange(1, 13):02d}{chance.randrange(1, 29):02d}{at % 240000:06d}",
                    url=url,
                    kind=RecordKind.REVISIT if chance.random() < 0.3 else RecordKind.RESPONSE,
                    status=200,
                    mime=chance.choice(("text/html", "image/png", "text/css")),
                    digest=f"sha1:{hashlib.sha1(str(chance.randrange(rows)).encode()).hexdigest()}",
                    location=Location(container=name, offset=at * 20_000, length=19_000),
                )
                for at, url in enumerate(urls_of(chance, min(PER_CONTAINER, rows - first), hosts))
            ],
        )


def server_s(address: str) -> float:
    """CPU seconds of the server with all its processes."""
    folder = Path(str(make_url(address).query["host"]))
    main = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == main:
            total += sum(map(int, fields[11:15]))  # with those that have ended
        elif int(fields[1]) == main:
            total += sum(map(int, fields[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def log_bytes(url: str) -> float:
    """Bytes that the server has written to its write-ahead log."""
    with psycopg.connect(url) as connection:
        return float(connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()[0])


def times_of(asked: list[Callable[[], object]], server: Callable[[], float]) -> dict[str, float]:
    took, client_s, there_s = [], time.process_time(), server()
    for question in asked:
        start = time.perf_counter()
        question()
        took.append((time.perf_counter() - start) * 1000)
    took.sort()
    return {
        "p50 ms": took[len(took) // 2],
        "p99 ms": took[len(took) * 99 // 100],
        "client CPU ms": (time.process_time() - client_s) * 1000 / len(took),
        "server CPU ms": (server() - there_s) * 1000 / len(took),
    }


def questions(
    index: CaptureIndex, known: list[Capture], count: int, server: Callable[[], float]
) -> dict[str, float]:
    chance = random.Random(SEED)
    figures: dict[str, float] = {}

    def measure(label: str, asked: list[Callable[[], object]]) -> None:
        for name, value in times_of(asked, server).items():
            figures[f"{label} {name}"] = value

    def some() -> Capture:
        return chance.choice(known)

    keys = [some().key for _ in range(count)]
    measure("closest", [lambda key=key: index.closest(key, "20150601") for key in keys])
    hosts = [f"org,example,host{number}" for number in range(min(200, count))]
    measure(
        "500 of a host",
        [lambda host=host: list(index.scan(f"{host})", f"{host}*", limit=500)) for host in hosts],
    )
    payloads = [
        [(one.digest, one.url) for one in (some() for _ in range(16))] for _ in range(count // 10 + 1)
    ]
    measure("16 payloads", [lambda asked=asked: index.find_digests(asked) for asked in payloads])
    return figures


def measured(rows: int, hosts: int, asked: int) -> dict[str, dict[str, float]]:
    with (
        tempfile.TemporaryDirectory(prefix="bench-captures-") as folder,
        postgres_server.running(OPTIONS) as address,
    ):
        url = make_url(address).set(drivername="postgresql").render_as_string()
        file = Path(folder) / "captures.db"
        indexes: dict[str, CaptureIndex] = {
            "sqlite": SqliteCaptureIndex(file),
            "postgresql": PostgresqlCaptureIndex(url),
        }
        spent = dict.fromkeys(indexes, 0.0)
        known: list[Capture] = []
        before_s, before_log = server_s(address), log_bytes(url)
        for name, captures in containers(rows, hosts):
            known += captures[:: max(1, rows // 50_000)]
            for engine, index in indexes.items():
                start_s = time.process_time()
                index.add(name, captures, collection=f"c{len(known) % 3}")
                spent[engine] += time.process_time() - start_s
        figures = {engine: {"client us a row": spent_s / rows * 1e6} for engine, spent_s in spent.items()}
        figures["postgresql"]["server us a row"] = (server_s(address) - before_s) / rows * 1e6
        figures["postgresql"]["log bytes a row"] = (log_bytes(url) - before_log) / rows
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE webdepot_captures.captures")  # as autovacuum does in time
            tree = "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('webdepot_captures.captures')"
            (size,) = connection.execute(tree).fetchone()
        figures["postgresql"]["bytes a row"] = float(size) / rows
        figures["sqlite"]["bytes a row"] = sum(path.stat().st_size for path in Path(folder).iterdir()) / rows
        for engine, index in indexes.items():
            server = partial(server_s, address) if engine == "postgresql" else float
            figures[engine] |= questions(index, known, asked, server)
            index.close()
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="little data, for a smoke test")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--rows", type=int, default=500_000)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    rows, hosts, asked = (4000, 50, 20) if given.quick else (given.rows, 5000, 3000)
    figures = measured(rows, hosts, asked)
    for label in figures["postgresql"]:
        values = (f"{figures[engine].get(label, float('nan')):12.2f}" for engine in figures)
        print(f"{label:28} {' '.join(values)}")
    print(f"{'':28} {' '.join(f'{engine:>12}' for engine in figures)}")
    if given.json:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        facts = {"machine": machine, "load_before": load, "rows": rows, **figures}
        given.json.write_text(json.dumps(facts, indent=1) + "\n")
    over = [label for label, limit in LIMITS.items() if figures["postgresql"][label] > limit]
    print(f"Over the limit: {', '.join(over) or 'nothing'}")
    return 1 if over and not given.quick else 0


if __name__ == "__main__":
    sys.exit(main())
