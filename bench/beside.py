"""How long do readers wait during an import, compared with a server that has the machine to itself?

    python -m bench.beside [--quick] [--json PATH]

An archive of small harvests is served; clients replay pages and search, one request after another: first
without other load ("alone"), then while `webdepot import` imports WARCs of thousands of pages, one after
another ("beside"). Prints the median and the 99th percentile of each kind of request for both. The limit is
three times the 99th percentile of "alone".
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import access, small_harvests
from bench.portal import ServedPortal, served
from bench.soak import ask

from webdepot.archive import Archive
from webdepot.services.admin import setup

HARVESTS = 60
CLIENTS = 2
MOST_TIMES = 3.0
COMMAND = "from webdepot.cli.main import main; main()"


def requests(number: int) -> Iterator[tuple[str, str, str]]:
    """Kind of request, which server, and path."""
    url, stamp = small_harvests.url_of(number, number % 5), small_harvests.stamp_of(number)
    yield "replay", "replay", f"/all/{stamp}mp_/{url}"
    yield "raw", "replay", f"/all/{stamp}id_/{url}"
    yield "search", "portal", f"/search?q=edition{number}"
    yield "search, two words", "portal", "/search?q=museum+clock"
    yield "versions", "portal", f"/all/*/{url}"


def measure(server: ServedPortal, seconds: float) -> dict[str, list[float]]:
    """Milliseconds of each request, by kind."""
    bases = {"portal": server.portal, "replay": server.replay}
    times: dict[str, list[float]] = {kind: [] for kind, _, _ in requests(0)}
    until_s = time.monotonic() + seconds

    def client(first: int) -> None:
        number = first
        while time.monotonic() < until_s:
            number += 1
            for kind, which, path in requests(number % HARVESTS):
                begun_s = time.perf_counter()
                status = ask(bases[which], path)
                times[kind].append((time.perf_counter() - begun_s) * 1000)
                if status != 200:
                    raise SystemExit(f"{path} answered {status}")

    clients = [threading.Thread(target=client, args=(number * 17,)) for number in range(CLIENTS)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    return times


@contextmanager
def importing(home: Path, folder: Path, pages: int) -> Iterator[None]:
    """`webdepot import` for the length of the block, one new file after another."""
    stop = threading.Event()
    running: list[subprocess.Popen[bytes]] = []

    def run() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            path = folder / f"large-{number}.warc.gz"
            access.write_warc(path, pages + number)
            command = [sys.executable, "-c", COMMAND, "--home", str(home), "--quiet", "import", str(path)]
            running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            running[-1].wait()

    thread = threading.Thread(target=run)
    thread.start()
    while not running:
        time.sleep(0.1)
    try:
        yield
    finally:
        stop.set()
        running[-1].terminate()
        thread.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small data, for a smoke test")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--seconds", type=float, default=60, help="of each measurement")
    given = parser.parse_args()
    pages, seconds = (50, 2.0) if given.quick else (5000, given.seconds)
    figures: dict[str, float | str] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load_before": os.getloadavg()[0],
    }
    with tempfile.TemporaryDirectory(prefix="bench-beside-") as place:
        home = Path(place) / "home"
        setup.create(home)
        with Archive.open(home) as archive:
            for number in range(HARVESTS):
                small_harvests.bring(archive, number)
        with served(home) as server:
            measure(server, 2)  # warm
            alone = measure(server, seconds)
            with importing(home, Path(place), pages):
                beside = measure(server, seconds)
    slow = []
    for kind in alone:
        ours, theirs = sorted(alone[kind]), sorted(beside[kind])
        for label, times in (("alone", ours), ("beside", theirs)):
            figures[f"{kind} {label} median ms"] = times[len(times) // 2]
            figures[f"{kind} {label} p99 ms"] = times[int(len(times) * 0.99)]
        ratio = theirs[int(len(theirs) * 0.99)] / ours[int(len(ours) * 0.99)]
        figures[f"{kind} p99, beside to alone"] = ratio
        slow += [kind] if ratio > MOST_TIMES else []
    for label, value in figures.items():
        print(f"{label:45} {value if isinstance(value, str) else format(value, ',.1f')}")
    print(f"Over {MOST_TIMES} times: {', '.join(slow) or 'none'}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if slow and not given.quick else 0


if __name__ == "__main__":
    sys.exit(main())
