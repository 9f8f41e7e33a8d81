"""How fast is text indexed and searched? Compared with the libraries called directly and with SQLite FTS5.

    python -m bench.search [--quick] [--large] [--json PATH]

The corpus (`search_corpus.py`) has 25,000 page states in Dutch, German and English over twenty years,
generated from a fixed seed, with known answers; `--large` does the same with 250,000 states (shorter texts;
building takes minutes).

* chain: raw WARC to finished index (read, decode, extract, language, similarity, exact and stemmed words,
  stored text), compared with the same libraries called one after another: FastWARC, Resiliparse, py3langid,
  tantivy.
* queries: one word, two words, a phrase, sorted by time, as of a date; grouped by page with ten snippets;
  then with histogram and facets.
* peer: SQLite FTS5 with the same interface, on the same states.
* truth: results as of a date, in a period, by year and with closed parts are compared with those of the
  generator, for each sampled word; capture times of one page in fifty with those of the capture index.

Times are CPU times of the thread that sends the query, which other load on the machine affects least. Wall
time is printed as well.
"""

import argparse
import gzip
import hashlib
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from base64 import b32encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import tantivy
from bench.search_corpus import SEED, Corpus, State, pages
from bench.search_html import html
from fastwarc.warc import ArchiveIterator, WarcRecordType
from py3langid.langid import MODEL_FILE, LanguageIdentifier
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from webdepot.index.content import text as content_text
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.index.text.sqlite_index import SqliteTextIndex
from webdepot.index.text.tantivy_index import TantivyTextIndex
from webdepot.index.word_analysis import analysers
from webdepot.model import Capture, Location, RecordKind
from webdepot.ports.search import ClosedArea, Facet, SearchSort, TextIndex, TextQuery
from webdepot.times import Period, from_timestamp
from webdepot.url import key

LANGUAGES = ("nl", "de", "en")
CONTAINER_STATES = 5000
SIDES = ("tantivy", "sqlite fts5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    question: str
    side: str
    states: int
    cpu_p50_ms: float
    cpu_p99_ms: float
    wall_p50_ms: float
    wall_p99_ms: float


# --- the chain ---


def write_warc(path: Path, states: Sequence[State]) -> tuple[int, int]:
    """Write a container with the first capture of each state; returns the bytes of HTML and of raw WARC."""
    of_html = raw = 0
    with path.open("wb") as stream:
        for state in states:
            body = html(state)
            stamp = from_timestamp(state.stamps[0])
            head = (
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
                % len(body)
            )
            record = (
                (
                    f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {state.url}\r\nWARC-Date: "
                    f"{stamp:%Y-%m-%dT%H:%M:%SZ}\r\n"
                    f"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{of_html:012d}>\r\n"
                    f"WARC-Payload-Digest: sha1:{b32encode(hashlib.sha1(body).digest()).decode()}\r\n"
                    f"Content-Type: application/http; msgtype=response\r\nContent-Length: "
                    f"{len(head) + len(body)}\r\n\r\n"
                ).encode()
                + head
                + body
                + b"\r\n\r\n"
            )
            stream.write(gzip.compress(record, 6))
            of_html += len(body)
            raw += len(record)
    return of_html, raw


def chain(path: Path, folder: Path) -> int:
    read = content_text.read_container(
        path, path.name, "c", LANGUAGES, 8 << 20, on_finding=lambda finding: None
    )
    return TantivyTextIndex(folder).add(path.name, (page for _, page in read if page is not None))


def directly(path: Path, folder: Path) -> int:
    """The libraries alone: no states, no revisits, no digests, no invalid input."""
    builder = tantivy.SchemaBuilder()
    for name in ("url", "lang"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("title", "headings", "text"):
        builder.add_text_field(name, stored=True, tokenizer_name="exact", index_option="position")
    for language in LANGUAGES:
        builder.add_text_field(f"stem_{language}", tokenizer_name=f"stem_{language}", index_option="freq")
    builder.add_unsigned_field("stamp", stored=True, indexed=True, fast=True)
    folder.mkdir(parents=True)
    index = tantivy.Index(builder.build(), path=str(folder))
    for name, analyser in analysers().items():
        index.register_tokenizer(name, analyser)
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(LANGUAGES))
    writer = index.writer(128 << 20, 1)
    count = 0
    for record in ArchiveIterator(str(path), record_types=WarcRecordType.response):
        tree = HTMLTree.parse(record.reader.read().decode("utf-8", "replace"))
        text = extract_plain_text(tree, main_content=True, links=False, list_bullets=False)
        headings = "\n".join(node.text for node in tree.body.query_selector_all("h1, h2, h3"))
        language = identifier.classify(f"{tree.title} {text[:200]}")[0]
        fields = {
            "url": record.headers["WARC-Target-URI"],
            "lang": language,
            "title": tree.title,
            "headings": headings,
            "text": text,
        }
        fields |= {f"stem_{language}": f"{tree.title}\n{headings}\n{text}", "stamp": count}
        writer.add_document(tantivy.Document.from_dict(fields, index.schema))
        count += 1
    writer.commit()
    writer.wait_merging_threads()
    return count


def measure_chain(states: Sequence[State], folder: Path, rounds: int) -> dict[str, float]:
    path = folder / "bench.warc.gz"
    of_html, raw = write_warc(path, states)
    seconds: dict[str, float] = {}
    for number in range(rounds):
        for name, work in (("webdepot", chain), ("libraries", directly)):
            start = time.process_time()
            count = work(path, folder / f"{name}-{number}")
            seconds[name] = min(seconds.get(name, 1e9), time.process_time() - start)
            if count != len(states):
                sys.exit(f"{name} indexed {count} of {len(states)} pages.")
    size = sum(file.stat().st_size for file in (folder / "webdepot-0").rglob("*") if file.is_file())
    return {
        "raw_mb": raw / 1e6,
        "chain_mb_per_cpu_s": raw / 1e6 / seconds["webdepot"],
        "libraries_mb_per_cpu_s": raw / 1e6 / seconds["libraries"],
        "chain_to_libraries": seconds["libraries"] / seconds["webdepot"],
        "index_to_html": size / of_html,
    }


# --- queries ---


def fill(index: TextIndex, states: Iterator[State]) -> None:
    number = 0
    while batch := list(islice(states, CONTAINER_STATES)):
        index.add(f"container {number}", (page for state in batch for page in pages(state)))
        number += 1


def questions(corpus: Corpus, chance: random.Random) -> dict[str, Callable[[], TextQuery]]:
    def word(among: int = 3000) -> str:
        return corpus.vocabulary[chance.choice(LANGUAGES)][int(chance.random() ** 3 * among)]

    def pair() -> tuple[str, str]:
        vocabulary = corpus.vocabulary[chance.choice(LANGUAGES)]
        return vocabulary[int(chance.random() ** 3 * 500)], vocabulary[int(chance.random() ** 3 * 500)]

    def year() -> int:
        return chance.randrange(2006, 2024)

    grouped = {"histogram": False}
    return {
        "one word": lambda: TextQuery(words=(word(),), **grouped),
        "two words": lambda: TextQuery(words=pair(), **grouped),
        "phrase": lambda: TextQuery(
            phrases=(" ".join((word(300), chance.choice(("de", "der", "the")))),), **grouped
        ),
        "newest first": lambda: TextQuery(words=(word(),), sort=SearchSort.NEWEST, **grouped),
        "as of a date": lambda: TextQuery(
            words=(word(),), as_of=datetime(year(), 6, 1, tzinfo=UTC), **grouped
        ),
        "with histogram and three facets": lambda: TextQuery(
            words=(word(),), facets=(Facet.SITE, Facet.LANGUAGE, Facet.COLLECTION), fold=True
        ),
    }


def measure_queries(side: str, index: TextIndex, corpus: Corpus, times: int) -> Iterator[Latency]:
    for question, make in questions(corpus, random.Random(SEED)).items():
        cpu, wall = [], []
        for number in range(times + 10):
            query = make()
            start_wall, start = time.perf_counter(), time.thread_time()
            index.find(query)
            if number >= 10:
                cpu.append((time.thread_time() - start) * 1000)
                wall.append((time.perf_counter() - start_wall) * 1000)
        of = [_share(values, part) for values in (cpu, wall) for part in (0.5, 0.99)]
        yield Latency(
            question=question,
            side=side,
            states=corpus.count,
            cpu_p50_ms=of[0],
            cpu_p99_ms=of[1],
            wall_p50_ms=of[2],
            wall_p99_ms=of[3],
        )


def _share(values: Sequence[float], part: float) -> float:
    return round(sorted(values)[min(int(len(values) * part), len(values) - 1)], 2)


# --- truth ---


def check(index: TextIndex, corpus: Corpus) -> list[str]:
    """Wrong results: as of a date, in a period, by year, and pages shown twice. A phrase of one word is not
    stemmed, and neither are the known answers.
    """
    wrong: list[str] = []
    for word, known in sorted(corpus.truth.words.items()):
        asked = {"phrases": (word,), "limit": 100_000}
        result = index.find(TextQuery(**asked))
        years: dict[int, int] = {}
        for _, stamps, _ in known:
            for stamp in stamps:
                years[int(stamp[:4])] = years.get(int(stamp[:4]), 0) + 1
        if dict(result.years) != dict(sorted(years.items())):
            wrong.append(f"{word}: captures by year")
        moment = "20150601000000"
        right = {url for url, stamps, until in known if stamps[0] <= moment < until}
        if {hit.url for hit in index.find(TextQuery(**asked, as_of=from_timestamp(moment))).hits} != right:
            wrong.append(f"{word}: as of {moment}")
        period = Period(from_timestamp("20100301000000"), from_timestamp("20120815000000"))
        right = {
            url
            for url, stamps, _ in known
            if any("20100301000000" <= stamp <= "20120815000000" for stamp in stamps)
        }
        if {hit.url for hit in index.find(TextQuery(**asked, period=period)).hits} != right:
            wrong.append(f"{word}: in a period")
        closed = (ClosedArea(prefix="nl,"), ClosedArea(prefix="de,", last="20141231235959"))
        stamps = [(key(url), stamp) for url, stamps, _ in known for stamp in stamps]
        visible = [place for place in stamps if not any(place in area for area in closed)]
        result = index.find(TextQuery(**asked, closed=closed))
        if {hit.key for hit in result.hits} != {place[0] for place in visible} or sum(
            result.years.values()
        ) != len(visible):
            wrong.append(f"{word}: with closed areas")
        shown = [
            hit.key
            for offset in range(0, 50, 10)
            for hit in index.find(TextQuery(phrases=(word,), offset=offset)).hits
        ]
        if len(shown) != len(set(shown)):
            wrong.append(f"{word}: a page twice")
    return wrong


def check_versions(index: TextIndex, corpus: Corpus, folder: Path) -> list[str]:
    """Pages whose capture times differ from those of the capture index, among one page in fifty."""
    captures = SqliteCaptureIndex(folder / "captures.db")
    try:
        all_captures = (
            _capture(state.url, stamp, at) for at, state in enumerate(corpus) for stamp in state.stamps
        )
        captures.add("all", all_captures, collection="c")
        keys = sorted({place.key for place in captures.scan("", "~")})[::50]
        stamps_by_key: dict[str, list[str]] = {}
        for at in range(0, len(keys), 500):
            for state in index.scan(TextQuery(keys=tuple(keys[at : at + 500]))):
                stamps_by_key.setdefault(state.key, []).extend(state.timestamps)
        return [
            one
            for one in keys
            if sorted(stamps_by_key.get(one, [])) != [capture.timestamp for capture in captures.versions(one)]
        ]
    finally:
        captures.close()


def _capture(url: str, stamp: str, at: int) -> Capture:
    where = Location(container="all", offset=at * 100 + int(stamp[2:4]), length=1)
    return Capture(
        key=key(url),
        timestamp=stamp,
        url=url,
        kind=RecordKind.RESPONSE,
        status=200,
        mime="text/html",
        digest="",
        location=where,
    )


def build_memory(path: Path, folder: Path) -> float:
    """Peak memory in megabytes of a separate process that indexes a container."""
    done = subprocess.run(
        [sys.executable, __file__, "--build", str(path), str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.split()[-1])


def machine() -> dict[str, object]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )
    packages = {
        name: version(name) for name in ("webdepot", "tantivy", "resiliparse", "fastwarc", "py3langid")
    }
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        **packages,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test; its figures are meaningless")
    parser.add_argument("--large", action="store_true", help="250,000 states too")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--build", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build:
        chain(*options.build)
        # Not ru_maxrss, which starts with the memory of the parent process.
        status = Path("/proc/self/status").read_text().splitlines()
        print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024)
        return
    count, times = (600, 20) if options.quick else (25_000, 300)
    facts, results, wrong = machine(), [], []
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    with tempfile.TemporaryDirectory(prefix="bench-search-") as name:
        folder = Path(name)
        chained = measure_chain(
            list(islice(Corpus(count), 300 if options.quick else 3000)), folder, 1 if options.quick else 3
        )
        for what, value in chained.items():
            print(f"{what:28} {value:10.3f}")
        sides: list[tuple[str, TextIndex, Corpus]] = [
            ("tantivy", TantivyTextIndex(folder / "tantivy"), Corpus(count))
        ]
        if options.large:
            sides.append(("tantivy", TantivyTextIndex(folder / "large"), Corpus(250_000, words=100)))
        sides.append(("sqlite fts5", SqliteTextIndex(folder / "sqlite"), Corpus(count)))
        print(
            f"{'question':32} {'side':12} {'states':>8} {'p50 ms':>8} {'p99 ms':>8} {'wall p50':>9} "
            f"{'wall p99':>9}"
        )
        for side, index, corpus in sides:
            start = time.process_time()
            fill(index, iter(corpus))
            print(
                f"{'filled (with making the corpus)':32} {side:12} {corpus.count:8} "
                f"{time.process_time() - start:8.1f} s of CPU"
            )
            for latency in measure_queries(side, index, corpus, times):
                results.append(latency)
                figures = f"{latency.cpu_p50_ms:8.2f} {latency.cpu_p99_ms:8.2f} {latency.wall_p50_ms:9.2f} {latency.wall_p99_ms:9.2f}"
                print(f"{latency.question:32} {side:12} {corpus.count:8} {figures}")
            if corpus.count <= 25_000:
                wrong += [f"{side} {corpus.count}: {words}" for words in check(index, corpus)]
                wrong += [
                    f"{side}: versions of {page}"
                    for page in check_versions(index, corpus, folder / f"{side} captures")
                ]
            index.close()
        memory = build_memory(folder / "bench.warc.gz", folder / "memory")
    for question in dict.fromkeys(result.question for result in results):
        ours, theirs = (
            [one for one in results if (one.question, one.side, one.states) == (question, side, count)]
            for side in SIDES
        )
        print(
            f"{question:32} sqlite fts5 takes {theirs[0].cpu_p50_ms / max(ours[0].cpu_p50_ms, 0.01):.1f} "
            "times as long at the median"
        )
    print(f"{'memory of a build, MB':28} {memory:10.0f}")
    print("every answer was right" if not wrong else "\n".join(wrong[:20]))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        figures_of_run = {
            "machine": facts,
            "seed": SEED,
            "chain": chained,
            "memory_mb": memory,
            "wrong": wrong,
        }
        options.json.write_text(
            json.dumps({**figures_of_run, "queries": [asdict(result) for result in results]}, indent=2) + "\n"
        )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
