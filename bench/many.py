"""Does one more small harvest cost the same after 10,000 others, and are the list pages still fast?

    python -m bench.many [--quick] [--json PATH]

Harvests are imports of a WARC with five captures into one collection. The first ones are imported; the
others are copies of the rows of one of them, with captures and the name of a container in each index, because
importing them would take an hour. At each size, five more are really imported, and the processor time of one,
of this process and of its workers, is printed. Then every list page is requested by a person who is signed
in. The limits: the last size costs at most 1.5 times the first, and no list page takes more than 200 ms.
"""

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import small_harvests
from bench.portal import add_person, time_pages
from sqlalchemy import Connection, insert, select, update

from webdepot.archive import Archive
from webdepot.database import metadata
from webdepot.depot.tables import growth
from webdepot.index import page_files
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.model import Capture, Harvest, Location, RecordKind
from webdepot.ports.search import PageFile
from webdepot.services.admin import setup
from webdepot.services.depot import deposit
from webdepot.url import key as key_of

SIZES = (1, 100, 1000, 10_000)
ROUNDS = 5
MOST_TIMES, LIMIT_MS = 1.5, 200.0
PAGES = {
    "home": "/",
    "search form": "/search",
    "search": "/search?q=museum",
    "versions": f"/all/*/{small_harvests.url_of(7)}",
    "catalogue": "/catalogue",
    "collections": "/about",
    "targets": "/targets",
    "target": "/targets/1",
    "harvests": "/harvests",
    "harvests, last page": "/harvests?page=200",
    "harvests of a target": "/harvests?target=1",
    "review": "/review",
    "queue": "/schedule/queue",
    "packages": "/depot/packages",
    "depot": "/depot",
    "status": "/status",
    "formats": "/formats",
    "statistics": "/statistics",
    "events": "/audit",
    "events of a target": "/audit?subject_kind=target&subject=1",
    "dashboard": "/dashboard",
    "records for partners": "/oai?verb=ListRecords&metadataPrefix=oai_dc",
    "records for partners by set": "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc&set=collection:many",
}


class Copies:
    """Copies of one deposited harvest: its rows in every table with other names, and its captures."""

    def __init__(self, archive: Archive, harvest: Harvest) -> None:
        self._archive = archive
        package = deposit.find_package(archive, harvest.id)
        assert package is not None
        with archive.database.reading() as connection:
            self._names = [harvest.id, package.id, "small-000000.warc.gz"]
            self._rows = list(self._found(connection))
        self._size_bytes = package.size_bytes

    def _found(self, connection: Connection) -> Iterator[tuple[Any, dict[str, Any]]]:
        for table in metadata.sorted_tables:
            for row in connection.execute(select(table)).mappings():
                if any(name in str(value) for name in self._names for value in row.values()):
                    yield table, dict(row)

    def make(self, first: int, stop: int) -> None:
        """Add the copies with these numbers. Uses internals of the indexes, for one commit instead of
        thousands.
        """
        with self._archive.database.transaction() as connection:
            for table, row in self._rows:
                connection.execute(
                    insert(table), [self._renamed(table, row, number) for number in range(first, stop)]
                )
            added = {
                "packages": growth.c.packages + stop - first,
                "size_bytes": growth.c.size_bytes + self._size_bytes * (stop - first),
            }
            connection.execute(update(growth).values(**added))
        captures, texts = self._archive.captures, self._archive.texts
        assert isinstance(captures, SqliteCaptureIndex)
        names = [_container(number) for number in range(first, stop)]
        captures.add(names[0], _captures(names[0], first, stop), collection=small_harvests.COLLECTION)
        with captures._file.transaction() as file:
            add = "INSERT INTO containers (name, collection, captures) SELECT ?, id, 0 FROM collections WHERE name = ?"
            file.executemany(add, [(name, small_harvests.COLLECTION) for name in names[1:]])
        with tempfile.TemporaryDirectory() as folder:
            files = [PageFile(container=name, path=Path(folder) / name) for name in names]
            for each in files:
                with page_files.written(each.path):
                    pass  # a container without pages
            texts.add_files(files, self._archive.engine, formats=lambda digests: {})

    def _renamed(self, table: Any, row: Mapping[str, Any], number: int) -> dict[str, Any]:
        new = [f"{self._names[0][:-6]}{number:06d}", f"urn:uuid:{uuid.UUID(int=number)}", _container(number)]

        def renamed(value: Any) -> Any:
            if isinstance(value, (list, dict)):
                return json.loads(renamed(json.dumps(value)))
            if isinstance(value, str):
                for old, other in zip(self._names, new, strict=True):
                    value = value.replace(old, other)
            return value

        numbered = {column.name for column in table.primary_key if column.autoincrement is True}
        values = {name: renamed(value) for name, value in row.items() if name not in numbered}
        if "sha256" in values and "original_sha256" in values:
            values["sha256"] = values["original_sha256"] = f"{number:064x}"
        return values


def _container(number: int) -> str:
    return f"copy-{number:06d}.warc.gz"


def _captures(container: str, first: int, stop: int) -> Iterator[Capture]:
    for number in range(first, stop):
        for page in range(small_harvests.CAPTURES):
            url = small_harvests.url_of(number, page)
            yield Capture(
                key=key_of(url),
                timestamp=small_harvests.stamp_of(number),
                url=url,
                kind=RecordKind.RESPONSE,
                status=200,
                mime="text/html",
                digest="sha1:" + "A" * 32,
                location=Location(container=container, offset=(number * 5 + page) * 500, length=500),
            )


def cpu_s() -> float:
    """Processor seconds of this process and of its workers, including those that are alive."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    for task in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = task.read_text().rpartition(") ")[2].split()
            if os.getpgid(int(task.parent.name)) == os.getpgid(0) and int(task.parent.name) != os.getpid():
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError):
            continue
    return total


def measure(home: Path, sizes: tuple[int, ...], rounds: int) -> dict[str, float | str]:
    figures: dict[str, float | str] = {}
    with Archive.open(home) as archive:
        add_person(archive, datetime.now(UTC))
        report = small_harvests.bring(archive, 0)
        copies, count, real = Copies(archive, report.harvest), 1, 1
        for size in sizes:
            if count < size:
                copies.make(count, size)
                count = size
            own_s, all_s = time.process_time(), cpu_s()
            for _ in range(rounds):
                small_harvests.bring(archive, real)
                real += 1
            count += rounds
            figures[f"{size} harvests: next, main process s"] = (time.process_time() - own_s) / rounds
            figures[f"{size} harvests: next, all processes s"] = (cpu_s() - all_s) / rounds
            print(f"{size} harvests measured", file=sys.stderr, flush=True)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small data, for a smoke test")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--pages-only", type=Path, metavar="HOME", help="request the pages of this archive")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="make the archive here and keep it")
    given = parser.parse_args()
    sizes, rounds = ((1, 3, 20), 1) if given.quick else (SIZES, ROUNDS)
    figures: dict[str, float | str] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load_before": os.getloadavg()[0],
    }
    with tempfile.TemporaryDirectory(prefix="bench-many-") as place:
        home = given.pages_only or (given.keep or Path(place)) / "home"
        if not given.pages_only:
            os.setpgid(0, 0)  # so that the workers can be distinguished from other processes
            setup.create(home)
            figures |= measure(home, sizes, rounds)
        figures |= time_pages(home, PAGES, 2 if given.quick else 5)
    for label, value in figures.items():
        print(f"{label:45} {value if isinstance(value, str) else format(value, ',.3f')}")
    slow = [
        label for label, value in figures.items() if label.endswith("median ms") and float(value) > LIMIT_MS
    ]
    print(f"Pages over {LIMIT_MS:.0f} ms: {', '.join(slow) or 'none'}")
    grows = False
    if not given.pages_only:
        first, last = (
            float(figures[f"{size} harvests: next, main process s"]) for size in (sizes[0], sizes[-1])
        )
        figures["last size to first"] = last / first
        print(f"The next harvest costs {last / first:.2f} times as much at the last size as at the first.")
        grows = last / first > MOST_TIMES
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if (slow or grows) and not given.quick else 0


if __name__ == "__main__":
    sys.exit(main())
