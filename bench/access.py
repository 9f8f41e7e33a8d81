"""How fast are captures indexed, found and replayed? Compared with cdxj-indexer and pywb, in the same run on
the same WARC.

    python -m bench.access [--quick] [--pywb FOLDER] [--json PATH]

FOLDER has the programs of pywb (`wayback`), best in a separate environment; default: the one made by `make
install-test` (`.pywb`). Without pywb, only Webdepot is measured. Needs `wrk`.

The data: HTML of about 20 kB, one in eight an image, from a fixed seed; one capture for each address.
Questions:

* indexed: records per second, from a WARC to an index that can be queried (ours: SQLite; theirs: sorted
  CDXJ), by CPU and by wall time, the best of several alternating rounds;
* raw: random unmodified captures (`id_`), 8 clients, each request on a new connection; keep-alive for the
  99th percentile;
* cdx: the captures of an address, 8 clients;
* nearest: the nearest of 50,000 captures of one address, over HTTP;
* rules: raw captures again, with the cost of access rules for each request: a pass (cookie) to check, a rule
  that lends other pages, pages on loan to this reader;
* while others write: raw captures while another process commits to the database ten times a second, as a
  harvest does;
* many: the same cdx queries to an index of 200 containers, relative to one container;
* memory: of our server, before and after all of this.

pywb runs with its default server. The servers take turns, so that other load on the machine affects both
equally.
"""

import argparse
import gzip
import json
import os
import platform
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from bench.portal import served

from webdepot import cdxj
from webdepot.access.policy import RuleAnswer
from webdepot.archive import Archive
from webdepot.digest import sha1
from webdepot.index import capture_from_record
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.model import Capture, Location, RecordKind
from webdepot.services.access import rules
from webdepot.services.admin import setup
from webdepot.services.intake import warc_files
from webdepot.services.progress import unwatched

PYWB = Path(__file__).parent.parent / ".pywb" / "bin"
SEED = 20070115
CLIENTS = 8
LENT = 20
"""Number of pages that one reader has open."""
HOT = "http://hot.example.org/"
WANTED = {"indexed": 2.5, "indexed by clock": 2.5, "raw": 5.0, "cdx": 6.0}
COMMIT = """
import sys, time
from pathlib import Path
from webdepot.archive import Archive
from webdepot.provenance import Event, append
with Archive.open(Path(sys.argv[1])) as archive:
    while True:
        with archive.database.transaction() as connection:
            append(connection, Event(at=archive.clock(), agent="bench", action="noted", subject_kind="bench", subject="bench", message=""))
        print(flush=True)
        time.sleep(0.1)
"""
INDEX = """
import sys
from pathlib import Path
from webdepot.index import capture_from_record
from webdepot.index.captures import SqliteCaptureIndex
index = SqliteCaptureIndex(Path(sys.argv[2]))
path = Path(sys.argv[1])
print(index.add(path.name, capture_from_record.of_container(path, path.name, on_finding=print), collection="bench"))
index.close()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    question: str
    side: str
    per_second: float
    p99_ms: float | None = None
    ratio: float | None = None
    """Our speed divided by this side's."""
    cpu_ms: float | None = None
    """CPU time of the server for one request: least affected by other load on the machine."""


def write_warc(path: Path, count: int) -> list[str]:
    """Write one response for each page; returns the addresses."""
    chance = random.Random(SEED)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(3000)]
    urls = []
    with path.open("wb") as file:
        for number in range(count):
            is_picture = number % 8 == 0
            text = " ".join(chance.choices(words, k=3000))
            body = (
                chance.randbytes(6000)
                if is_picture
                else f"<html><title>{number}</title><body><p>{text}</p></body></html>".encode()
            )
            url = f"http://www{number % 40}.example.org/{words[number % 3000]}/{number}.{'png' if is_picture else 'html'}"
            urls.append(url)
            mime = "image/png" if is_picture else "text/html; charset=utf-8"
            block = (
                f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            head = (
                f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: "
                f"<urn:uuid:00000000-0000-0000-0000-{number:012d}>\r\n"
                f"WARC-Date: 2020-01-{number % 28 + 1:02d}T00:00:00Z\r\nWARC-Target-URI: "
                f"{url}\r\nWARC-Payload-Digest: {sha1(body)}\r\n"
                f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
            )
            file.write(gzip.compress(head.encode() + block + b"\r\n\r\n", compresslevel=3))
    return urls


def hot_captures(count: int, container: str) -> Iterator[Capture]:
    """Very many versions of one address, all at the start of the container."""
    for at in range(count):
        yield Capture(
            key="org,example,hot)/",
            timestamp=f"20{at // 8640 % 100:02d}01{at % 28 + 1:02d}{at // 360 % 24:02d}{at // 6 % 60:02d}{at % 6 * 10:02d}",
            url=HOT,
            kind=RecordKind.RESPONSE,
            status=200,
            mime="text/html",
            digest=str(sha1(str(at).encode())),
            location=Location(container=container, offset=at, length=1),
        )


def took_s(command: list[str]) -> tuple[float, float]:
    """CPU seconds and wall seconds of a program; raises an error if it fails."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended - begun


def indexed(warc: Path, count: int, folder: Path, rounds: int) -> list[Result]:
    theirs_program = Path(sys.executable).with_name("cdxj-indexer")
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    for number in range(rounds):
        ours.append(took_s([sys.executable, "-c", INDEX, str(warc), str(folder / f"{number}.db")]))
        theirs.append(took_s([str(theirs_program), "-s", str(warc), "-o", str(folder / "theirs.cdxj")]))
    results = []
    for question, our_s, their_s in zip(
        ("indexed", "indexed by clock"), map(min, zip(*ours)), map(min, zip(*theirs)), strict=True
    ):
        results.append(Result(question=question, side="webdepot", per_second=count / our_s))
        results.append(
            Result(question=question, side="cdxj-indexer", per_second=count / their_s, ratio=their_s / our_s)
        )
    return results


def wrk(
    base: str, paths: list[str], seconds: int, *, keep_alive: bool, cookie: str = ""
) -> tuple[float, float]:
    """Requests per second, and the 99th percentile of the time in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        listing, script = Path(folder, "paths"), Path(folder, "ask.lua")
        listing.write_text("\n".join(paths))
        close = "" if keep_alive else 'headers["Connection"] = "close"'
        close += f'\nheaders["Cookie"] = "{cookie}"' if cookie else ""
        script.write_text(
            f'local paths = {{}}\nfor line in io.lines("{listing}") do paths[#paths + 1] = line '
            f"end\nmath.randomseed({SEED})\n"
            f'local headers = {{["Accept-Encoding"] = "identity"}}\n{close}\n'
            'request = function() return wrk.format("GET", paths[math.random(#paths)], headers) end\n'
            "done = function(summary, latency, requests)\n"
            'io.write(string.format("RESULT %d %d %d %d\\n", summary.requests, summary.duration, '
            "latency:percentile(99.0), "
            "summary.errors.status + summary.errors.connect + summary.errors.timeout))\nend\n"
        )
        output = subprocess.run(
            ["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}s", "-s", str(script), base],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    result = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+)", output)
    if not result or int(result[4]) > int(result[1]) // 100:
        sys.exit(f"wrk failed on {base}:\n{output}")
    return int(result[1]) / (int(result[2]) / 1e6), int(result[3]) / 1000


@contextmanager
def pywb_served(programs: Path, folder: Path) -> Iterator[tuple[str, int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(programs / "wayback"), "-p", str(port), "-b", "127.0.0.1", "-d", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            with suppress(OSError):
                urllib.request.urlopen(base + "/", timeout=5).close()
                break
            time.sleep(0.1)
        yield base, process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


def make_home(home: Path, warc: Path, hot: int) -> str:
    setup.create(home)
    with Archive.open(home) as archive:
        taken = warc_files.take_files(archive, [warc], collection="bench", watch=unwatched)
        assert taken.harvest is not None
        path = next((home / "harvests" / taken.harvest.id).rglob("*.warc.gz"))
        archive.captures.add(
            path.name, capture_from_record.of_container(path, path.name, on_finding=print), collection="bench"
        )
        archive.captures.add("hot.warc.gz", hot_captures(hot, "hot.warc.gz"), collection="bench")
    return path.name


def make_pywb(folder: Path, warc: Path, hot: int) -> None:
    place = folder / "collections" / "all"
    for name in ("archive", "indexes"):
        (place / name).mkdir(parents=True)
    shutil.copy(warc, place / "archive" / warc.name)
    with closing(SqliteCaptureIndex(folder / "sorted.db")) as index:
        index.add(
            warc.name, capture_from_record.of_container(warc, warc.name, on_finding=print), collection="bench"
        )
        index.add("hot.warc.gz", hot_captures(hot, "hot.warc.gz"), collection="bench")
        with (place / "indexes" / "index.cdxj").open("w") as file:
            file.writelines(cdxj.line(capture) + "\n" for capture in index.scan("", "\x7f"))


def process_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(match[1]) / 1000 if match else 0.0


def many_containers(folder: Path, urls: list[str], rounds: int) -> Result:
    """Compare lookups in this process: captures of one container with the same captures in 200."""
    keys = [cdxj.parse(line) for line in _lines(urls)]
    rates = []
    for parts in (1, 200):
        index = SqliteCaptureIndex(folder / f"parts{parts}.db")
        for part in range(parts):
            index.add(f"part{part}.warc.gz", keys[part::parts], collection="bench")
        chance = random.Random(SEED)
        asked = [chance.choice(keys).key for _ in range(20_000 if len(keys) > 5000 else 2000)]
        best = float("inf")
        for _ in range(rounds):
            start = time.process_time()
            for key in asked:
                next(index.versions(key))
            best = min(best, time.process_time() - start)
        rates.append(len(asked) / best)
        index.close()
    return Result(
        question="many", side="200 containers / one", per_second=rates[1], ratio=rates[0] / rates[1]
    )


def _lines(urls: list[str]) -> Iterator[str]:
    from webdepot.url import key

    for at, url in enumerate(urls):
        fields = {
            "url": url,
            "mime": "text/html",
            "status": "200",
            "digest": "",
            "length": "1",
            "offset": str(at),
            "filename": "x",
        }
        yield f"{key(url)} 20200101000000 {json.dumps(fields)}"


def iter_served(
    folder: Path, warc: Path, urls: list[str], programs: Path | None, *, seconds: int, hot: int, requests: int
) -> Iterator[Result]:
    home = folder / "home"
    make_home(home, warc, hot)
    chance = random.Random(SEED)
    some = chance.sample(urls, min(len(urls), 5000))
    raw = [f"/all/20200115000000id_/{url}" for url in some]
    cdx = [f"/all/cdx?url={url}&output=json" for url in some]
    nearest = [
        f"/all/cdx?url={HOT}&output=json&limit=1&sort=closest&closest=20{chance.randrange(6):02d}0115{chance.randrange(24):02d}0000"
        for _ in range(200)
    ]
    with served(home) as server:
        base, pid = server.replay, server.process
        wrk(base, raw, 1, keep_alive=True)
        begun_mb = memory_mb(pid)
        ours: dict[str, tuple[float, float]] = {}
        sides, pids = {"webdepot": base}, {"webdepot": pid}
        if programs:
            make_pywb(folder / "pywb", warc, hot)
        with pywb_served(programs, folder / "pywb") if programs else _nothing() as theirs:
            if theirs:
                sides["pywb"], pids["pywb"] = theirs
            for question, paths in (("raw", raw), ("cdx", cdx)):
                for side, where in sides.items():
                    before = process_s(pids[side])
                    rate, _ = wrk(where, paths, seconds, keep_alive=False)
                    cpu_ms = (process_s(pids[side]) - before) * 1000 / (rate * seconds)
                    ours.setdefault(question, (rate, cpu_ms))
                    ratio = ours[question][0] / rate if side != "webdepot" else None
                    yield Result(question=question, side=side, per_second=rate, ratio=ratio, cpu_ms=cpu_ms)
            for side, where in sides.items():
                rate, p99 = wrk(where, raw, seconds, keep_alive=True)
                yield Result(question="raw keep-alive", side=side, per_second=rate, p99_ms=p99)
            for side, where in sides.items():
                rate, p99 = (
                    wrk(where, nearest, seconds, keep_alive=True)
                    if side == "webdepot"
                    else _one_by_one(where, nearest[:3])
                )
                yield Result(question="nearest", side=side, per_second=rate, p99_ms=p99)
        done = 0.0
        while done < requests:
            done += wrk(base, raw, seconds, keep_alive=True)[0] * seconds
        yield Result(question="memory MB", side="webdepot, begin", per_second=begun_mb)
        yield Result(
            question="memory MB", side=f"webdepot, after {done:,.0f} more", per_second=memory_mb(pid)
        )
        yield from rules_cost(home, base, pid, raw, seconds)


def rules_cost(home: Path, base: str, pid: int, raw: list[str], seconds: int) -> Iterator[Result]:
    """The cost of access rules for each request; the rules are added while the server is running. An invalid
    pass costs as much as a valid one.
    """
    a_pass = f"pass={int(time.time()) + 3600}.{'0' * 64}"
    plain = 0.0
    with Archive.open(home) as archive, ExitStack() as stack:
        for side, question, lends in (
            ("none", "rules", ""),
            ("a pass", "rules", ""),
            ("commits", "while others write", ""),
            ("other pages are lent", "rules", "hot.example.org"),
            ("lent to this reader", "rules", "example.org"),
        ):
            if lends:
                rules.add(archive, lends, answer=RuleAnswer.LEND)
            if side == "commits":
                stack.enter_context(_committing(home))
            before = process_s(pid)
            # A reader has a few pages open, and requests them and their parts repeatedly; each is borrowed
            # once.
            asked = raw[:LENT] if side == "lent to this reader" else raw
            rate, p99 = wrk(base, asked, seconds, keep_alive=True, cookie=a_pass if side == "a pass" else "")
            stack.close()
            cpu_ms = (process_s(pid) - before) * 1000 / (rate * seconds)
            plain = plain or rate
            yield Result(
                question=question, side=side, per_second=rate, p99_ms=p99, ratio=plain / rate, cpu_ms=cpu_ms
            )


@contextmanager
def _committing(home: Path) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", COMMIT, str(home)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()


@contextmanager
def _nothing() -> Iterator[tuple[str, int] | None]:
    yield None


def _one_by_one(base: str, paths: list[str]) -> tuple[float, float]:
    """Requests per second and the slowest of a few requests, for a program that needs seconds for each."""
    took = []
    for path in paths:
        start = time.perf_counter()
        urllib.request.urlopen(base + path, timeout=120).read()
        took.append(time.perf_counter() - start)
    return len(took) / sum(took), max(took) * 1000


def machine() -> dict[str, object]:
    packages = {name: version(name) for name in ("webdepot", "cdxj-indexer")}
    return {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        **packages,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test; its figures are meaningless")
    parser.add_argument(
        "--pywb",
        type=Path,
        default=PYWB if PYWB.exists() else None,
        help="folder with pywb's program `wayback`",
    )
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    if options.pywb is None:
        print("pywb is not installed (make install-test): only Webdepot is measured.", file=sys.stderr)
    count, hot = (1000, 5000) if options.quick else (30_000, 50_000)
    facts = machine()
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warc = folder / "bench.warc.gz"
        urls = write_warc(warc, count)
        results += indexed(warc, count, folder, 1 if options.quick else 4)
        results.append(many_containers(folder, urls, 2))
        if shutil.which("wrk"):
            seconds, requests = (1, 1000) if options.quick else (5, 50_000)
            results += iter_served(
                folder, warc, urls, options.pywb, seconds=seconds, hot=hot, requests=requests
            )
        else:
            print("wrk is not installed: nothing over HTTP is measured.", file=sys.stderr)
    for result in results:
        slow = f"p99 {result.p99_ms:9.1f} ms" if result.p99_ms is not None else ""
        slow += f"CPU {result.cpu_ms:6.2f} ms each" if result.cpu_ms is not None else ""
        ratio = f"{result.ratio:6.2f}x" if result.ratio is not None else ""
        print(f"{result.question:18} {result.side:32} {result.per_second:10.1f} {ratio:>8} {slow}")
    if options.json:
        options.json.write_text(
            json.dumps(
                {"machine": facts, "seed": SEED, "results": [asdict(one) for one in results]}, indent=2
            )
            + "\n"
        )
    short = [
        f"{one.question} {one.ratio:.1f}x"
        for one in results
        if one.ratio and one.ratio < WANTED.get(one.question, 0)
    ]
    if short and not options.quick:
        sys.exit(f"Below the required minimum: {', '.join(short)}")


if __name__ == "__main__":
    main()
