"""Does the text index on three OpenSearch nodes give correct results while one of them dies, how fast is it,
and can two machines write to it?

    python -m bench.opensearch_nodes [--quick] [--json PATH] [--states N] [--heap-mb N] [--quick-start]

Starts three nodes with Java; an index has three shards and one replica. The corpus is that of `bench.search`, with
known answers. Each container has the captures of some years, so that all of them have the same pages.

* one writer adds all containers to one index; two writers share them for another one: all states must be equal;
* answers of the index that two wrote are compared with those of the generator, for 60 words;
* queries grouped by page with histogram and five facets, and the same with near-duplicates folded as the search
  page does: time by the clock, and CPU of the nodes and of the client;
* a node is killed with SIGKILL during queries of four threads: none may fail or be answered in part; then all answers
  are compared again, and a further container is added.
"""

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import opensearch_server
from bench.opensearch_server import OpenSearchNode
from bench.search import LANGUAGES, check
from bench.search_corpus import SEED, YEARS, Corpus, pages

from webdepot.index.opensearch.client import ServerAddress
from webdepot.index.opensearch.index import OpenSearchPlace, OpenSearchTextIndex
from webdepot.ports.search import Facet, PageText, TextQuery

LIMIT_P50_MS = 60.0
_READERS = 4
_BEFORE_KILL_S, _AFTER_KILL_S = 2.0, 20.0
_YEARS_AT_ONCE = 5


def containers(corpus: Corpus) -> dict[str, list[PageText]]:
    """Containers with the captures of some years each, in the order in which harvests would add them."""
    by_container: dict[str, list[PageText]] = {}
    for state in corpus:
        for page in pages(state):
            first = YEARS[0] + (int(page.timestamp[:4]) - YEARS[0]) // _YEARS_AT_ONCE * _YEARS_AT_ONCE
            by_container.setdefault(f"from {first}", []).append(page)
    return dict(sorted(by_container.items()))


def digest(index: OpenSearchTextIndex) -> tuple[int, str]:
    """How many states there are, and a checksum of all of them in their order."""
    total, whole = 0, hashlib.sha256()
    for state in index.scan(TextQuery()):
        total += 1
        fields = (state.key, state.url, state.collection, state.valid_from, state.valid_to, *state.timestamps)
        whole.update("\0".join((*fields, state.title, state.text)).encode("utf-8", "replace") + b"\n")
    return total, whole.hexdigest()


def fill(place: OpenSearchPlace, folder: Path, shares: Sequence[dict[str, list[PageText]]]) -> None:
    """Add each share with a separate writer, all at the same time."""
    failures: list[BaseException] = []

    def write(number: int, share: dict[str, list[PageText]]) -> None:
        index = OpenSearchTextIndex(place, folder / f"writer-{number}")
        try:
            for name, some in share.items():
                index.add(name, some)
        except BaseException as error:
            failures.append(error)
        finally:
            index.close()

    writers = [threading.Thread(target=write, args=each) for each in enumerate(shares)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    if failures:
        raise failures[0]


def questions(corpus: Corpus, chance: random.Random, *, fold: bool) -> Iterator[TextQuery]:
    while True:
        word = corpus.vocabulary[chance.choice(LANGUAGES)][int(chance.random() ** 3 * 3000)]
        yield TextQuery(words=(word,), facets=tuple(Facet), fold=fold)


def measure_queries(
    index: OpenSearchTextIndex, nodes: Sequence[OpenSearchNode], asked: Iterator[TextQuery], times: int
) -> dict[str, float]:
    for _ in range(times // 2):
        index.find(next(asked))
    walls, client_s, server_s = list[float](), time.thread_time(), cpu_s(nodes)
    for _ in range(times):
        began_s = time.perf_counter()
        index.find(next(asked))
        walls.append((time.perf_counter() - began_s) * 1000)
    client_s, server_s = time.thread_time() - client_s, cpu_s(nodes) - server_s
    walls.sort()
    return {
        "p50 ms": round(walls[times // 2], 1),
        "p99 ms": round(walls[int(times * 0.99)], 1),
        "nodes CPU ms": round(server_s / times * 1000, 1),
        "client CPU ms": round(client_s / times * 1000, 1),
    }


def cpu_s(nodes: Sequence[OpenSearchNode]) -> float:
    ticks = 0
    for node in nodes:
        stat = Path(f"/proc/{node.process.pid}/stat")
        if stat.exists():
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def ask_during_a_kill(
    make: Callable[[int], OpenSearchTextIndex], corpus: Corpus, node: OpenSearchNode
) -> dict[str, Any]:
    """Search for words whose pages are known while a node dies. A result with too few pages counts as
    partial.
    """
    expected = {word: len({url for url, _, _ in known}) for word, known in corpus.truth.words.items()}
    stop, failures = threading.Event(), list[str]()
    counts = {"asked": 0, "partial": 0}
    slowest_s, lock = 0.0, threading.Lock()

    def read(number: int) -> None:
        nonlocal slowest_s
        index, chance = make(number), random.Random(number)
        while not stop.is_set():
            word, began_s = chance.choice(sorted(expected)), time.perf_counter()
            try:
                result = index.find(TextQuery(phrases=(word,), limit=10_000))
            except Exception as error:
                failures.append(str(error))
                continue
            with lock:
                counts["asked"] += 1
                counts["partial"] += len(result.hits) != expected[word]
                slowest_s = max(slowest_s, time.perf_counter() - began_s)
        index.close()

    readers = [threading.Thread(target=read, args=(number,)) for number in range(_READERS)]
    for reader in readers:
        reader.start()
    time.sleep(_BEFORE_KILL_S)
    node.kill()
    time.sleep(_AFTER_KILL_S)
    stop.set()
    for reader in readers:
        reader.join()
    return {**counts, "failed": len(failures), "failures": failures[:3], "slowest s": round(slowest_s, 2)}


class Results(dict[str, Any]):
    """Figures that are printed as soon as they are known: a run takes minutes."""

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        print(f"{name:36} {value}", flush=True)


def measure(nodes: Sequence[OpenSearchNode], states: int, times: int, folder: Path) -> Results:
    corpus, results = Corpus(states), Results()
    known = containers(corpus)
    urls = tuple(node.url for node in nodes)

    def place(name: str) -> OpenSearchPlace:
        return OpenSearchPlace(address=ServerAddress(urls=urls), name=name, shards=3, replicas=1)

    def opened(name: str, at: object = "") -> OpenSearchTextIndex:
        return OpenSearchTextIndex(place(name), folder / f"{name}{at}")

    one, two = opened("one"), opened("two")
    one.total(), two.total()  # creates the indexes
    results["states"], results["captures"] = states, sum(map(len, known.values()))
    results["words with known answers"] = len(corpus.truth.words)
    server_s, names = cpu_s(nodes), list(known)
    fill(place("two"), folder, [{name: known[name] for name in some} for some in (names[::2], names[::-2])])
    results["nodes CPU ms a state and copy"] = round((cpu_s(nodes) - server_s) / states / 2 * 1000, 2)
    results["two writers"] = digest(two)
    results["wrong answers"] = check(two, corpus)
    for name, fold in (("grouped, histogram, facets", False), ("the same, folded", True)):
        asked = questions(corpus, random.Random(SEED), fold=fold)
        results[name] = measure_queries(two, nodes, asked, times)
    fill(place("one"), folder, [known])
    results["one writer"] = digest(one)
    results["two writers equal one"] = results["one writer"] == results["two writers"]
    results["kill"] = ask_during_a_kill(lambda number: opened("two", number), corpus, nodes[0])
    results["wrong answers after the kill"] = check(two, corpus)
    results["added after the kill"] = two.add(
        "later", [page for state in Corpus(20) for page in pages(state)]
    )
    one.close()
    two.close()
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test; its figures are meaningless")
    parser.add_argument("--states", type=int, default=20_000)
    parser.add_argument("--heap-mb", type=int, default=1024)
    parser.add_argument(
        "--quick-start",
        action="store_const",
        const=opensearch_server.QUICK_START,
        default=(),
        dest="java",
        help="the simple compiler of Java: less CPU at the start, slower answers",
    )
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    states, times = (600, 20) if given.quick else (given.states, 200)
    with (
        tempfile.TemporaryDirectory(prefix="bench-opensearch-") as name,
        opensearch_server.running(*given.java, nodes=3, heap_mb=given.heap_mb) as nodes,
    ):
        results = measure(nodes, states, times, Path(name))
    results["load"] = os.getloadavg()[0]
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")
    kill = results["kill"]
    is_right = (
        results["two writers equal one"]
        and not results["wrong answers"]
        and not results["wrong answers after the kill"]
        and not kill["failed"]
        and not kill["partial"]
    )
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
