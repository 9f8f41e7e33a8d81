"""What does a whole import cost? CPU, memory and bytes written, by stage, compared with a minimum.

    python -m bench.whole [--quick] [--captures N ...] [--corpus FOLDER] [--json PATH]

For each number of captures (default: 1,000 and 10,000; ask for 100,000 by argument):

* empty: import into a new archive: take in, identify, check, deposit, index. For each stage, CPU milliseconds
  of the main process and of all others for each capture, and wall seconds.
* filled: import of 1,000 other captures into that archive.
* memory: the peak resident memory of each process, by its kind; also in a check of the harvest, an audit of the
  depot, and a rebuild of the archive from its depot.
* disk: bytes written, and bytes that remain, for each byte of the containers.

The minimum ("floors") is the same work by the libraries alone, each in one process, without states, revisits,
damage, isolation or a database: cp and SHA-256 of the files; FastWARC over all records; Resiliparse and
tantivy for the text of each page; the Siegfried binding for each distinct payload. `ratio` is CPU of the
import by the sum of the floors.

The corpus has pages of 15 to 60 kB in three languages, pictures, PDF files, several captures of most
addresses, and revisits, from a fixed seed. Containers have 2,500 captures. `--corpus` keeps it for the next
run.
"""

import argparse
import hashlib
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.whole_corpus import LANGUAGES, corpus_of

FILLED_CAPTURES = 1000
SAMPLE_S = 0.02
CHUNK_BYTES = 1 << 20
HERTZ = os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="300 captures, for a smoke test")
    parser.add_argument("--captures", type=int, nargs="+", help="sizes; default: 1000 10000")
    parser.add_argument("--corpus", type=Path, help="folder that keeps the containers for the next run")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        STEPS[given.step](*given.rest)
        return 0
    sizes = given.captures or ([300] if given.quick else [1000, 10_000])
    figures: dict[str, object] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load_before": os.getloadavg()[0],
    }
    with tempfile.TemporaryDirectory(prefix="bench-whole-") as place:
        folder = Path(place)
        corpus = given.corpus or folder / "corpus"
        further = corpus_of(corpus, 100 if given.quick else FILLED_CAPTURES, seed=1)
        for captures in sizes:
            files = corpus_of(corpus, captures, seed=0)
            figures[str(captures)] = measure(folder / f"home-{captures}", files, further, captures)
            for home in folder.glob("home-*"):
                shutil.rmtree(home)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


# --- one size ---


def measure(home: Path, files: Path, further: Path, captures: int) -> dict[str, object]:
    taken_in = folder_bytes(files)
    print(f"\n{captures:,} captures, {taken_in / 1e6:,.1f} MB in {len(list(files.iterdir()))} containers")
    run("setup", home)
    floors = {name: floor(name, files) for name in FLOORS}
    for name, cpu_s in floors.items():
        print(f"  floor  {name:28} {1000 * cpu_s / captures:8.3f} ms a capture")
    empty = run("import", home, files, "bench")
    show("import into an empty archive", empty, captures)
    total = empty.cpu_s()
    ratio = total / sum(floors.values())
    disk = {
        "written": empty.written_bytes / taken_in,
        "remains": folder_bytes(home) / taken_in,
    }
    print(
        f"  whole: {1000 * total / captures:.2f} ms CPU a capture, {ratio:.2f} of the floors "
        f"({1000 * sum(floors.values()) / captures:.2f} ms), cores busy {total / empty.wall_s:.2f}; "
        f"written {disk['written']:.2f}, remains {disk['remains']:.2f} bytes a byte"
    )
    filled = run("import", home, further, "further")
    show("import of more into it", filled, FILLED_CAPTURES if captures >= FILLED_CAPTURES else captures)
    steps = {name: run(name, home) for name in ("check", "audit", "rebuild")}
    for name, each in steps.items():
        print(f"  {name:10} {each.cpu_s():8.2f} CPU s   peak {peaks(each)}")
    return {
        "captures": captures,
        "size_bytes": taken_in,
        "floors_s": floors,
        "import": empty.figures(),
        "ratio_to_floors": ratio,
        "ms_a_capture": 1000 * total / captures,
        "disk": disk,
        "filled": filled.figures(),
        "steps": {name: each.figures() for name, each in steps.items()},
    }


def show(title: str, observed: "Observed", captures: int) -> None:
    print(f"  {title}: {observed.wall_s:.1f} s, {observed.cpu_s():.1f} CPU s")
    print(f"    {'stage':12} {'main':>8} {'others':>8}   ms CPU a capture {'wall s':>8}")
    for stage, (main_s, others_s, wall_s) in observed.stages.items():
        print(
            f"    {stage:12} {1000 * main_s / captures:8.3f} {1000 * others_s / captures:8.3f} {wall_s:27.2f}"
        )
    for part, cpu_s in observed.parts.items():
        print(f"      {part:20} {1000 * cpu_s / captures:8.3f} ms of the main process")
    print(f"    peak {peaks(observed)}")


def peaks(observed: "Observed") -> str:
    return ", ".join(f"{kind} {size / 1e6:.0f} MB" for kind, size in sorted(observed.peaks.items()))


# --- observing a process and all below it ---


class Observed:
    """CPU, peak memory and bytes written of a process and its descendants, while it runs."""

    def __init__(self) -> None:
        self.stages: dict[str, tuple[float, float, float]] = {}
        """CPU of the main process, CPU of all others, wall seconds."""
        self.parts: dict[str, float] = {}
        self.wall_s = 0.0
        self._cpu: dict[int, float] = {}
        self._kinds: dict[int, str] = {}
        self._peaks: dict[int, int] = {}
        self._written: dict[int, int] = {}
        self._main = 0

    @property
    def peaks(self) -> dict[str, int]:
        peaks: dict[str, int] = {}
        for pid, size in self._peaks.items():
            peaks[self._kinds[pid]] = max(peaks.get(self._kinds[pid], 0), size)
        return peaks

    @property
    def written(self) -> dict[str, int]:
        written: dict[str, int] = {}
        for pid, size in self._written.items():
            written[self._kinds.get(pid, "other")] = written.get(self._kinds.get(pid, "other"), 0) + size
        return written

    @property
    def written_bytes(self) -> int:
        return sum(self._written.values())

    def cpu_s(self) -> float:
        return sum(self._cpu.values())

    def figures(self) -> dict[str, object]:
        return {
            "wall_s": self.wall_s,
            "cpu_s": self.cpu_s(),
            "stages": {
                name: {"main_s": main_s, "others_s": others_s, "wall_s": wall_s}
                for name, (main_s, others_s, wall_s) in self.stages.items()
            },
            "parts_of_main_s": self.parts,
            "peak_bytes": self.peaks,
            "written_bytes": self.written,
        }

    def watch(self, process: "subprocess.Popen[str]") -> None:
        """Read what the process prints, one line for each stage, until it ends."""
        self._main = process.pid
        started = since = time.monotonic()
        stage, before = "start", (0.0, 0.0)
        ended = threading.Event()
        sampler = threading.Thread(target=self._sample_until, args=(ended,))
        sampler.start()
        assert process.stdout is not None
        for line in process.stdout:
            name, _, value = line.strip().partition(" ")
            if name == "part":
                part, _, cpu_s = value.rpartition(" ")
                self.parts[part] = float(cpu_s)
            elif name == "stage" and value != stage:
                self._sample()
                now, after = time.monotonic(), self._shares()
                self._add(stage, before, after, now - since)
                stage, before, since = value, after, now
        process.wait()
        ended.set()
        sampler.join()
        self._add(stage, before, self._shares(), time.monotonic() - since)
        self.wall_s = time.monotonic() - started

    def _add(
        self, stage: str, before: tuple[float, float], after: tuple[float, float], wall_s: float
    ) -> None:
        main_s, others_s, old_wall_s = self.stages.get(stage, (0.0, 0.0, 0.0))
        self.stages[stage] = (
            main_s + after[0] - before[0],
            others_s + after[1] - before[1],
            old_wall_s + wall_s,
        )

    def _shares(self) -> tuple[float, float]:
        main_s = self._cpu.get(self._main, 0.0)
        return main_s, self.cpu_s() - main_s

    def _sample_until(self, ended: threading.Event) -> None:
        while not ended.wait(SAMPLE_S):
            self._sample()

    def _sample(self) -> None:
        for pid in list(_descendants(self._main)):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                status = Path(f"/proc/{pid}/status").read_text()
                kind = "main" if pid == self._main else _kind(Path(f"/proc/{pid}/cmdline").read_bytes())
                written = Path(f"/proc/{pid}/io").read_text().partition("\nwrite_bytes: ")[2].split()[0]
            except (OSError, IndexError):
                continue
            self._cpu[pid] = (int(stat[11]) + int(stat[12])) / HERTZ
            self._written[pid] = int(written)
            if kind and "VmHWM:" in status:
                self._kinds[pid] = kind
                self._peaks[pid] = int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _descendants(root: int) -> Iterator[int]:
    yield root
    try:
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _descendants(int(child))
    except OSError:
        return


def _kind(command: bytes) -> str:
    """The kind of a process, by its command line; empty if it has ended."""
    arguments = command.decode("utf-8", "replace").split("\0")[:-1]
    if any("forkserver" in each for each in arguments):
        return "worker"
    modules = [each.removeprefix("webdepot.") for each in arguments if each.startswith("webdepot.")]
    if modules and {"identify", "check"} & set(arguments):
        return "identify" if "identify" in arguments else "validate"
    return modules[0] if modules else "other" if arguments else ""


def run(step: str, *arguments: object) -> Observed:
    """Run one step of this file in a process of its own, observed."""
    observed = Observed()
    command = [sys.executable, "-m", "bench.whole", "--step", step, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        observed.watch(process)
    if process.returncode:
        raise SystemExit(f"the step {step} failed")
    return observed


# --- the steps, each in its own process ---


def _stage(name: str) -> None:
    print(f"stage {name}", flush=True)


def step_setup(home: str) -> None:
    from webdepot.services.admin import setup

    setup.create(Path(home))


def step_import(home: str, files: str, collection: str) -> None:
    from webdepot.archive import Archive
    from webdepot.services import pipeline

    with Archive.open(Path(home)) as archive, _timed_parts(archive):
        pipeline.import_files(
            archive, [files], collection=collection, watch=lambda progress: _stage(progress.phase.value)
        )
        _stage("end")


def step_check(home: str) -> None:
    from webdepot.archive import Archive
    from webdepot.harvest import harvest_rows
    from webdepot.model import HarvestState
    from webdepot.services.depot import examination

    with Archive.open(Path(home)) as archive:
        with archive.database.reading() as connection:
            harvests = list(harvest_rows.in_states(connection, [HarvestState.KEPT]))
        largest = max(harvests, key=lambda harvest: harvest.counts.get("fetched", 0))
        examination.check_again(archive, largest)


def step_audit(home: str) -> None:
    from webdepot.archive import Archive
    from webdepot.services.depot import audit

    with Archive.open(Path(home)) as archive:
        audit.audit(archive, older_than_days=0)


def step_rebuild(home: str) -> None:
    from webdepot.services.admin import rebuild

    rebuild.rebuild(Path(f"{home}-rebuilt"), f"{home}/depot")


@contextmanager
def _timed_parts(archive: object) -> Iterator[None]:
    """Measure the steps of indexing, which are one stage, in the main process."""
    from webdepot.services.access import link_texts

    spent: dict[str, float] = {}

    def timed(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            started = time.process_time()
            try:
                return function(*arguments, **named)
            finally:
                spent[name] = spent.get(name, 0.0) + time.process_time() - started

        return call

    captures, texts = archive.captures, archive.texts  # type: ignore[attr-defined]
    captures.add = timed("capture index", captures.add)
    texts.add = timed("words", texts.add)
    texts.compact = timed("compaction", texts.compact)
    link_texts.settle = timed("link texts", link_texts.settle)
    yield
    for name, cpu_s in spent.items():
        print(f"part {name} {cpu_s}", flush=True)


# --- floors ---


def floor(name: str, files: Path) -> float:
    """CPU seconds of a floor, in a process of its own, without its start."""
    command = [sys.executable, "-m", "bench.whole", "--step", "floor", name, str(files)]
    # One thread of Go, as in our own process: passing parts of a file between threads costs a third more.
    environment = os.environ | {"GOMAXPROCS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout)


def step_floor(name: str, files: str) -> None:
    work = FLOORS[name](sorted(Path(files).iterdir()))
    started = _cpu_s()
    work()
    print(_cpu_s() - started)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def floor_copy(files: list[Path]) -> Callable[[], None]:
    def work() -> None:
        with tempfile.TemporaryDirectory(prefix="bench-floor-") as folder:
            for path in files:
                hasher = hashlib.sha256()
                with path.open("rb") as source, (Path(folder) / path.name).open("wb") as target:
                    while piece := source.read(CHUNK_BYTES):
                        hasher.update(piece)
                        target.write(piece)

    return work


def floor_read(files: list[Path]) -> Callable[[], None]:
    from fastwarc.warc import ArchiveIterator

    def work() -> None:
        for path in files:
            for record in ArchiveIterator(str(path)):
                record.reader.read()

    return work


def _payloads(files: list[Path]) -> Iterator[tuple[str, str, bytes]]:
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    for path in files:
        for record in ArchiveIterator(str(path), record_types=WarcRecordType.response):
            yield (
                record.headers["WARC-Target-URI"],
                record.http_content_type or "",
                record.reader.read(),
            )


def floor_words(files: list[Path]) -> Callable[[], None]:
    """Text of pages by Resiliparse, into a tantivy index with our fields; reading is another floor."""
    import tantivy
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    from webdepot.index.word_analysis import analysers

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("url", stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("title", "text"):
        builder.add_text_field(name, stored=True, tokenizer_name="exact", index_option="position")
    for language in LANGUAGES:
        builder.add_text_field(f"stem_{language}", tokenizer_name=f"stem_{language}", index_option="freq")
    schema = builder.build()

    def work() -> None:
        with tempfile.TemporaryDirectory(prefix="bench-floor-") as folder:
            index = tantivy.Index(schema, path=folder)
            for name, analyser in analysers().items():
                index.register_tokenizer(name, analyser)
            writer = index.writer(128 << 20, 1)
            reading_s, started = 0.0, _cpu_s()
            for url, mime, body in _payloads(files):
                reading_s += _cpu_s() - started
                if mime == "text/html":
                    tree = HTMLTree.parse(body.decode())
                    text = extract_plain_text(tree, main_content=True, links=False, list_bullets=False)
                    language = "nl" if ".nl/" in url else "de" if ".de/" in url else "en"
                    fields = {"url": url, "title": tree.title, "text": text, f"stem_{language}": text}
                    writer.add_document(tantivy.Document.from_dict(fields, schema))
                started = _cpu_s()
            writer.commit()
            writer.wait_merging_threads()

    return work


def floor_identify(files: list[Path]) -> Callable[[], None]:
    """Each distinct payload by the binding, in the order of the containers."""
    import pygfried

    folder = tempfile.TemporaryDirectory(prefix="bench-floor-")
    seen: set[bytes] = set()
    paths = []
    for url, _, body in _payloads(files):
        digest = hashlib.sha1(body, usedforsecurity=False).digest()
        if digest not in seen:
            seen.add(digest)
            path = Path(folder.name) / f"{len(paths)}-{url.rpartition('/')[2][-40:]}"
            path.write_bytes(body)
            paths.append(str(path))

    def work() -> None:
        with folder:
            for at in range(0, len(paths), 64):
                pygfried.identify_many(paths[at : at + 64])

    return work


FLOORS: dict[str, Callable[[list[Path]], Callable[[], None]]] = {
    "cp + sha256": floor_copy,
    "FastWARC": floor_read,
    "Resiliparse + tantivy": floor_words,
    "Siegfried binding": floor_identify,
}
STEPS: dict[str, Callable[..., None]] = {
    "setup": step_setup,
    "import": step_import,
    "check": step_check,
    "audit": step_audit,
    "rebuild": step_rebuild,
    "floor": step_floor,
}


# --- the corpus ---


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main())
