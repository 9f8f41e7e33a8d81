"""Does indexing words scale with cores, and is it as fast in a full archive as in an empty one?

    python -m bench.words [--pages 10000] [--filled 200000] [--json PATH]

Pages of `search_corpus.py` are added to a text index as the indexer does it, from files of pages:

* with one worker on one core, and with one worker for each core: seconds by the clock;
* into an empty index, and into one that has `--filled` other pages (shorter, so that filling takes less
  time): CPU seconds of all processes; then the same addresses again with other words, and with the same words;
* compaction: its CPU seconds while the index was filled, and the peak memory of each process.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

from bench.search_corpus import Corpus, pages

from webdepot.engine.process_pool import ProcessEngine
from webdepot.index import page_files
from webdepot.index.text.tantivy_index import TantivyTextIndex
from webdepot.ports.search import PageFile, PageText

AT_ONCE = 10_000


class Source:
    """Generates any number of pages with distinct addresses from two thousand texts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts = [next(iter(pages(state))) for state in islice(Corpus(2000), 2000)]
        self._files = 0

    def file(
        self, first: int, count: int, year: int, *, word: str = "", chars: int | None = None
    ) -> PageFile:
        self._files += 1
        file = PageFile(container=f"container {self._files}", path=self._folder / str(self._files))
        with page_files.written(file.path) as write:
            for page in self._pages(first, count, year, word, chars):
                write(page)
        return file

    def _pages(self, first: int, count: int, year: int, word: str, chars: int | None) -> Iterator[PageText]:
        for number, page in zip(range(first, first + count), cycle(self._texts), strict=False):
            site = number // 40
            yield replace(
                page,
                url=f"http://www.site{site}.nl/{number}",
                key=f"nl,site{site})/{number}",
                timestamp=f"{year}0101000000",
                text=f"{word} {page.text[:chars]}",
                digest=f"{word}{number}",
            )


def processes() -> list[Path]:
    """This process and the workers it started."""
    group = os.getpgid(0)
    return [
        path
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and _is_in_group(int(path.name), group)
    ]


def _is_in_group(process: int, group: int) -> bool:
    try:
        return os.getpgid(process) == group
    except ProcessLookupError:
        return False


def cpu_s() -> float:
    ticks = 0
    for path in processes():
        fields = (path / "stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_mb() -> list[int]:
    lines = (line for path in processes() for line in (path / "status").read_text().splitlines())
    return sorted(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def add(index: TantivyTextIndex, engine: ProcessEngine, file: PageFile) -> tuple[float, float]:
    """CPU seconds, and seconds by the clock."""
    cpu, clock = cpu_s(), time.perf_counter()
    index.add_files([file], engine, formats=lambda digests: {})
    page_files.remove(file.path)
    return cpu_s() - cpu, time.perf_counter() - clock


def measure(count: int, filled: int, folder: Path) -> dict[str, float | list[int]]:
    source = Source(folder)
    results: dict[str, float | list[int]] = {}
    cores = os.sched_getaffinity(0)
    for name, allowed in (("one core", {min(cores)}), ("all cores", cores)):
        engine = ProcessEngine(workers=len(allowed))
        index = TantivyTextIndex(folder / name)
        add(index, engine, source.file(0, count // 4, 2020))  # workers are started and loaded
        for path in processes():
            os.sched_setaffinity(int(path.name), allowed)
        results[f"{name}, s"] = add(index, engine, source.file(count, count, 2020))[1]
        engine.close()
    engine = ProcessEngine(workers=len(cores))
    index = TantivyTextIndex(folder / "growing")
    add(index, engine, source.file(10**8, count // 4, 2020))
    results["empty, CPU s"] = add(index, engine, source.file(0, count, 2020))[0]
    before = cpu_s()
    adding = sum(
        add(index, engine, source.file(10**6 + first, AT_ONCE, 2020, chars=600))[0]
        for first in range(0, filled, AT_ONCE)
    )
    index.compact(engine)
    results["filling with compaction, CPU s"] = cpu_s() - before
    results["filling, CPU s"] = adding
    for name, first, year, word in (
        ("filled, CPU s", 2 * 10**8, 2020, ""),
        ("filled, other words, CPU s", 0, 2021, "anders"),
        ("filled, same words, CPU s", 0, 2022, "anders"),
    ):
        results[name] = add(index, engine, source.file(first, count, year, word=word))[0]
    index.compact(engine)
    results["peak memory of processes, MB"] = peak_mb()
    engine.close()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--filled", type=int, default=200_000)
    parser.add_argument("--quick", action="store_true", help="little data, for a smoke test")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.quick:
        options.pages, options.filled = 300, 1_000
    os.setpgid(0, 0)
    with tempfile.TemporaryDirectory() as folder:
        results = measure(options.pages, options.filled, Path(folder))
    for name, value in results.items():
        print(f"{name:40} {value if isinstance(value, list) else round(value, 2)}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
