"""Does the depot keep up with the disk? Deposit, audit, a very large package, and a million packages in the
database.

    python -m bench.depot [--quick] [--part keep|audit|memory|rows ...] [--json PATH]

* keep: deposit containers of 100 MB, compared with a plain loop that hashes, copies and fsyncs the same
  files. Ours also reads them back.
* audit: two threads over all copies, compared with plain SHA-256 of the same files on two threads.
* memory: deposit, read back and audit a package of 50 GB (of sparse files); growth of the peak resident
  memory.
* a million packages: the figures of the status page, and choosing the next copies to audit.

Both take turns in the same run, and the best of several rounds counts, in wall seconds; ratios are relative
to the plain loop.
"""

import argparse
import gc
import hashlib
import json
import os
import platform
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.portal import add_person, time_pages

from webdepot.archive import Archive
from webdepot.depot import copies, fixity, holdings
from webdepot.depot.ocfl import objects, verification
from webdepot.depot.ocfl.objects import Source
from webdepot.depot.store.folder import FolderStore
from webdepot.model import PackageId
from webdepot.services.admin import setup
from webdepot.services.depot import status

SEED = 20070115
WHEN = datetime(2026, 1, 1, tzinfo=UTC)
CHUNK_BYTES = 1 << 20
ROOM_LEFT_BYTES = 10_000_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small data, for a smoke test")
    parser.add_argument(
        "--part", action="append", choices=["keep", "audit", "memory", "rows"], help="only this; default: all"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    files, size_bytes, rows, sparse_bytes = (
        (3, 5_000_000, 20_000, 1 << 30) if given.quick else (6, 100_000_000, 1_000_000, 50 << 30)
    )
    with tempfile.TemporaryDirectory(prefix="bench-depot-") as place:
        folder = Path(place)
        needed = not given.part or bool({"keep", "audit"} & set(given.part))
        sources = list(make_files(folder / "source", files, size_bytes)) if needed else []
        rounds = 2 if given.quick else 3
        parts: dict[str, Callable[[], dict[str, float]]] = {
            "keep": lambda: bench_keep(folder, sources, rounds=rounds),
            "audit": lambda: bench_audit(folder, sources, rounds=rounds),
            "memory": lambda: bench_memory(folder, sparse_bytes),
            "rows": lambda: bench_rows(folder / "home", rows),
        }
        figures: dict[str, float | str] = {
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
            "load_before": os.getloadavg()[0],
        }
        for name in given.part or parts:
            figures |= parts[name]()
    for label, value in figures.items():
        print(f"{label:32} {value if isinstance(value, str) else format(value, ',.3f')}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def make_files(folder: Path, count: int, size_bytes: int) -> Iterator[Path]:
    folder.mkdir()
    chance = random.Random(SEED)
    for number in range(count):
        path = folder / f"{number}.warc.gz"
        with path.open("wb") as sink:
            for _ in range(size_bytes // CHUNK_BYTES):
                sink.write(chance.randbytes(CHUNK_BYTES))
        yield path


def bench_keep(folder: Path, sources: list[Path], *, rounds: int) -> dict[str, float]:
    total = sum(path.stat().st_size for path in sources)

    def ours() -> None:
        store = FolderStore(folder / "ours")
        content = {f"warc/{path.name}": path for path in sources}
        objects.put_version(store, "urn:x", content, message="", user="", created=WHEN)

    def bare() -> None:
        (folder / "bare").mkdir()
        for path in sources:
            hasher = hashlib.sha256()
            with path.open("rb") as source, (folder / "bare" / path.name).open("wb", buffering=0) as sink:
                while chunk := source.read(CHUNK_BYTES):
                    hasher.update(chunk)
                    sink.write(chunk)
                os.fsync(sink.fileno())

    def clean() -> None:
        shutil.rmtree(folder / "ours", ignore_errors=True)
        shutil.rmtree(folder / "bare", ignore_errors=True)

    mine, theirs = best(ours, bare, before=clean, rounds=rounds)
    clean()
    return {
        "keep_mb_s": total / mine / 1e6,
        "keep_bare_mb_s": total / theirs / 1e6,
        "keep_ratio": theirs / mine,
    }


def bench_audit(folder: Path, sources: list[Path], *, rounds: int) -> dict[str, float]:
    store = FolderStore(folder / "audited")
    for path in sources:
        objects.put_version(
            store,
            f"info:webdepot/bench/{path.stem}",
            {f"warc/{path.name}": path},
            message="",
            user="",
            created=WHEN,
        )
    total = sum(path.stat().st_size for path in sources)

    def ours() -> None:
        with ThreadPoolExecutor(2) as pool:
            states = pool.map(lambda path: audited(store, f"info:webdepot/bench/{path.stem}"), sources)
            assert set(states) == {"whole"}

    def bare() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(hashed, [next((folder / "audited").rglob(path.name)) for path in sources]))

    mine, theirs = best(ours, bare, before=lambda: None, rounds=rounds)
    return {
        "audit_mb_s": total / mine / 1e6,
        "audit_bare_mb_s": total / theirs / 1e6,
        "audit_ratio": theirs / mine,
    }


def audited(store: FolderStore, identifier: str) -> str:
    return fixity.audit_package({"main": store}, PackageId(identifier), ["main"])[0].outcome.value


def hashed(path: Path) -> str:
    hasher = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            hasher.update(chunk)
    return hasher.hexdigest()


def bench_memory(folder: Path, size_bytes: int) -> dict[str, float]:
    """Deposit and audit one package of sparse files. The copy in the depot is not sparse: it needs the disk
    space.
    """
    room = shutil.disk_usage(folder).free
    if room < size_bytes + ROOM_LEFT_BYTES:
        print(
            f"memory: a package of {size_bytes / 1e9:.0f} GB needs more than the {room / 1e9:.0f} GB that "
            "are free; half of that is used"
        )
        size_bytes = room // 2
    count = 5
    sources = folder / "sparse"
    sources.mkdir()
    content: dict[str, Source] = {}
    for number in range(count):
        path = sources / f"{number}.warc"
        with path.open("wb") as sink:
            sink.truncate(
                size_bytes // count + number
            )  # different sizes, because equal content is stored only once
        content[f"warc/{path.name}"] = path
    store = FolderStore(folder / "large")
    gc.collect()
    before = _peak_kb()
    began = time.perf_counter()
    objects.put_version(store, "info:webdepot/bench/sparse", content, message="", user="", created=WHEN)
    kept, after_keeping = time.perf_counter(), _peak_kb()
    findings = list(verification.verify(store, "info:webdepot/bench/sparse"))
    audited, after_audit = time.perf_counter(), _peak_kb()
    if findings:
        raise RuntimeError(f"the package just deposited is damaged: {findings}")
    shutil.rmtree(store.root)
    return {
        "large_gb": size_bytes / 1e9,
        "large_keep_gb_s": size_bytes / (kept - began) / 1e9,
        "large_keep_more_memory_mb": (after_keeping - before) / 1000,
        "large_audit_gb_s": size_bytes / (audited - kept) / 1e9,
        "large_audit_more_memory_mb": (after_audit - after_keeping) / 1000,
    }


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def bench_rows(home: Path, count: int) -> dict[str, float]:
    setup.create(home)
    with Archive.open(home) as archive:
        fill(archive, count)
        add_person(archive, WHEN)
        status_s = timed(lambda: status.status(archive))
        list_s = timed(lambda: status.list_packages(archive, limit=50))
        deep = f"urn:uuid:{count // 2:012d}"
        deep_s = timed(lambda: status.list_packages(archive, limit=50, before=deep))

        def batch() -> None:
            with archive.database.reading() as connection:
                assert len(copies.due(connection, before=WHEN + timedelta(days=1), limit=64)) == 64

        def batch_of_place() -> None:
            with archive.database.reading() as connection:
                assert (
                    len(copies.due(connection, before=WHEN + timedelta(days=1), place="second", limit=64))
                    == 64
                )

        def one() -> None:
            with archive.database.transaction() as connection:
                copy = copies.due(connection, before=WHEN + timedelta(days=1), limit=1)[0]
                copies.record(connection, copy)
                assert holdings.totals(connection)[0] == count

        pages = time_pages(home, {"status page": "/depot", "list page": "/depot/packages"}, rounds=9)
        return {
            "packages": float(count),
            **{name.replace(" ", "_"): float(value) for name, value in pages.items()},
            "status_ms": status_s * 1000,
            "list_ms": list_s * 1000,
            "list_deep_ms": deep_s * 1000,
            "audit_batch_ms": timed(batch) * 1000,
            "audit_batch_of_place_ms": timed(batch_of_place) * 1000,
            "record_one_ms": timed(one) * 1000,
        }


def fill(archive: Archive, count: int) -> None:
    """Packages in two places, inserted with SQL, together with the tables of sums."""
    moment = "strftime('%Y-%m-%dT%H:%M:%S.000000Z', 1767225600 - {}, 'unixepoch')"
    stored, checked = moment.format("n"), moment.format("(n * 7919 + {salt}) % 7776000")
    numbers = f"(WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < {count - 1}) SELECT n FROM c)"
    copy = (
        "INSERT INTO copies (place, package, version, state, size_bytes, checked_at, note) "
        "SELECT '{place}', printf('urn:uuid:%012d', n), 1, 'whole', 1000, {checked}, '' FROM {numbers}"
    )
    tally = f"INSERT INTO copy_tallies (place, state, copies, size_bytes) VALUES ('{{}}', 'whole', {count}, {count * 1000})"
    statements = [
        "INSERT INTO targets (id, key, name, seeds, collection, purpose, created_at) "
        f"VALUES (1, '[]', 'x', '[]', 'x', 'heritage', {moment.format(0)})",
        "INSERT INTO harvests (id, target, kind, state, seeds, collection, settings, started_at, reason, "
        "counts) "
        f"SELECT 'h' || n, 1, 'harvest', 'kept', '[]', 'x', '{{}}', {stored}, '', '{{}}' FROM {numbers}",
        "INSERT INTO packages (id, harvest, urn, title, version, size_bytes, stored_at, inventory_sha256) "
        f"SELECT printf('urn:uuid:%012d', n), 'h' || n, 'urn:nbn:' || n, 'Package ' || n, 1, 1000, {stored}, "
        "printf('%064d', n) "
        f"FROM {numbers}",
        *(
            copy.format(place=place, checked=checked.format(salt=salt), numbers=numbers)
            for place, salt in (("main", 0), ("second", 31))
        ),
        f"INSERT INTO depot_growth (month, packages, size_bytes) VALUES ('2026-01', {count}, {count * 1000})",
        *(tally.format(place) for place in ("main", "second")),
    ]
    with archive.database.transaction() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def best(
    ours: Callable[[], None], bare: Callable[[], None], *, before: Callable[[], None], rounds: int
) -> tuple[float, float]:
    times: dict[Callable[[], None], list[float]] = {ours: [], bare: []}
    for _ in range(rounds):
        for side in (bare, ours):
            before()
            began = time.perf_counter()
            side()
            times[side].append(time.perf_counter() - began)
    return min(times[ours]), min(times[bare])


def timed(act: Callable[[], object], rounds: int = 5) -> float:
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


if __name__ == "__main__":
    sys.exit(main())
