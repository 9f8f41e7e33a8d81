"""Do open files, threads, temporary files and memory of a server stay constant while it answers requests and
harvests are imported?

    python -m bench.soak [--minutes 30] [--quick] [--json PATH]

One process imports small harvests one after another; clients search, replay, list versions and query the CDX
and OAI-PMH servers, each request on a new connection. In the last third of every minute the clients are
silent, so that threads of the server end and others begin. Then the server's open files, threads and memory
are noted, and the temporary files in the home and in the system's folder for them. Fails if the last third of
the time needs more than the first: 16 open files, 4 threads, a fifth of the memory that is not a mapped file,
or if a request fails.
"""

import argparse
import http.client
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from bench import small_harvests
from bench.portal import served

from webdepot.archive import Archive
from webdepot.services.admin import setup

CLIENTS = 6
FIRST = 10
MOST_FILES, MOST_THREADS, MOST_TIMES = 16, 4, 1.2


@dataclass
class Asked:
    """The requests of the clients, and how long they took."""

    times_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    minute: float
    harvests: int
    requests: int
    open_files: int
    captures_db: int
    deleted: int
    """Open or mapped files that were removed meanwhile."""
    threads: int
    temporary: int
    rss_mb: float
    own_mb: float
    """Without mapped files."""
    p99_ms: float


def paths(number: int) -> Iterator[tuple[str, str]]:
    """Requests about one harvest: which server, and the path."""
    url, stamp = (
        small_harvests.url_of(number, number % small_harvests.CAPTURES),
        small_harvests.stamp_of(number),
    )
    yield "portal", "/"
    yield "portal", f"/search?q=edition{number}"
    yield "portal", "/search?q=museum+clock"
    yield "portal", f"/all/*/{url}"
    yield "portal", f"/all/cdx?url={url}&collapse=timestamp:8"
    yield "portal", "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc"
    yield "replay", f"/all/{stamp}id_/{url}"
    yield "replay", f"/all/{stamp}mp_/{url}"


def ask(base: str, path: str) -> int:
    """The status of an answer, on a new connection. A page of an archived site is on a host name of its own,
    which is the same server.
    """
    parts, headers = urlsplit(base), dict[str, str]()
    while True:
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=120)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            answer.read()
        finally:
            connection.close()
        if answer.status != 307:
            return answer.status
        there = urlsplit(answer.headers["Location"])
        headers, path = {"Host": there.netloc}, there.path


@contextmanager
def asking(bases: dict[str, str], known: list[int], turn: threading.Event, asked: Asked) -> Iterator[None]:
    """Clients that ask about the harvests in `known` while it is their turn."""
    stop = threading.Event()

    def client(first: int) -> None:
        for step in itertools.count(first):
            for which, path in paths(known[step * 7919 % len(known)]):
                while not turn.wait(1):
                    if stop.is_set():
                        return
                if stop.is_set():
                    return
                begun_s = time.perf_counter()
                try:
                    status = ask(bases[which], path)
                except (OSError, http.client.HTTPException) as error:
                    asked.failures.append(f"{path}: {error!r}")
                else:
                    asked.times_s.append(time.perf_counter() - begun_s)
                    if status >= 400:
                        asked.failures.append(f"{path}: {status}")

    clients = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in clients:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        turn.set()
        for thread in clients:
            thread.join()


@contextmanager
def importing(home: Path, known: list[int], pause_s: float) -> Iterator[subprocess.Popen[str]]:
    """A process that imports one harvest after another; their numbers are added to `known`."""
    command = [sys.executable, "-m", "bench.small_harvests", str(home), str(FIRST), "1000000", str(pause_s)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None

    def read() -> None:
        assert process.stdout is not None
        known.extend(map(int, process.stdout))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        reader.join()


def note(home: Path, process: int, minute: float, known: list[int], asked: Asked) -> Minute:
    links = []
    for entry in Path(f"/proc/{process}/fd").iterdir():
        try:
            links.append(str(entry.readlink()))
        except FileNotFoundError:
            continue  # closed meanwhile
    maps = Path(f"/proc/{process}/maps").read_text().splitlines()
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines() if ":" in line
    )

    def megabytes(name: str) -> float:
        return int(status[name].split()[0]) / 1024

    system = Path(os.environ["TMPDIR"])
    temporary = [*home.glob(".*-*"), *(home / "index").rglob("sorting-*"), *system.iterdir()]
    times = sorted(asked.times_s)
    taken = Minute(
        minute=round(minute, 1),
        harvests=len(known),
        requests=len(times),
        open_files=len(links),
        captures_db=sum("captures.db" in link for link in links),
        deleted=sum("(deleted)" in link for link in links)
        + len({line.split(None, 5)[-1] for line in maps if line.endswith("(deleted)") and "/index/" in line}),
        threads=int(status["Threads"]),
        temporary=len(temporary),
        rss_mb=round(megabytes("VmRSS"), 1),
        own_mb=round(megabytes("RssAnon"), 1),
        p99_ms=round(times[int(len(times) * 0.99)] * 1000, 1) if times else 0.0,
    )
    asked.times_s.clear()
    return taken


def run(minutes: float, minute_s: float, pause_s: float, place: Path) -> tuple[list[Minute], list[str]]:
    home = place / "home"
    os.environ["TMPDIR"] = str(place / "tmp")  # only our own are counted
    (place / "tmp").mkdir()
    setup.create(home)
    known = list(range(FIRST))
    with Archive.open(home) as archive:
        for number in known:
            small_harvests.bring(archive, number)
    turn, asked, rows = threading.Event(), Asked(), list[Minute]()
    with (
        served(home) as server,
        importing(home, known, pause_s) as importer,
        asking({"portal": server.portal, "replay": server.replay}, known, turn, asked),
    ):
        begun_s = time.monotonic()
        while time.monotonic() - begun_s < minutes * minute_s:
            turn.set()
            time.sleep(minute_s * 2 / 3)
            turn.clear()
            time.sleep(minute_s / 3)
            rows.append(note(home, server.process, (time.monotonic() - begun_s) / minute_s, known, asked))
            print("  ".join(f"{name} {value}" for name, value in asdict(rows[-1]).items()), flush=True)
            if importer.poll() is not None:
                asked.failures.append(f"the import ended with {importer.returncode}")
                break
    return rows, asked.failures


def growth(rows: list[Minute]) -> list[str]:
    """The resources of which the last third of the time needs more than the first, which includes the
    start.
    """
    third = max(len(rows) // 3, 1)
    before, after = rows[:third], rows[-third:]

    def most(name: str, among: list[Minute]) -> float:
        return max(float(getattr(row, name)) for row in among)

    grown = []
    for name, limit in (("open_files", MOST_FILES), ("threads", MOST_THREADS), ("temporary", 2)):
        if most(name, after) > most(name, before) + limit:
            grown.append(f"{name}: {most(name, before):.0f}, later {most(name, after):.0f}")
    if most("own_mb", after) > most("own_mb", before) * MOST_TIMES:
        grown.append(f"memory: {most('own_mb', before):.0f} MB, later {most('own_mb', after):.0f} MB")
    return grown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--pause", type=float, default=0.5, metavar="SECONDS", help="between two harvests")
    parser.add_argument("--quick", action="store_true", help="a smoke test of a few seconds")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-soak-") as place:
        rows, failures = run(
            *((2, 3.0) if given.quick else (given.minutes, 60.0)), pause_s=given.pause, place=Path(place)
        )
    grown = growth(rows)
    print(f"Grew: {'; '.join(grown) or 'nothing'}. Failed requests: {len(failures)}")
    for failure in failures[:20]:
        print(failure)
    if given.json:
        given.json.write_text(
            json.dumps(
                {"minutes": [asdict(row) for row in rows], "grew": grown, "failures": failures}, indent=1
            )
            + "\n"
        )
    return 1 if (grown or failures) and not given.quick else 0


if __name__ == "__main__":
    sys.exit(main())
