"""How long does a reader wait for a page while others overload the portal?

At the same time: 14 expensive anonymous queries of the CDX server on an index of 1,000,000 captures, 1,100
connections that send half a request, and 13 sign-ins with an identity provider that never answers. The server
starts with a soft limit of 1,024 open files. Reports the longest answer of /about, how the queries ended, and
how long the server takes to become idle after its clients have disconnected.

    python -m bench siege
"""

import argparse
import http.client
import json
import os
import resource
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench.portal import served

from webdepot.archive import Archive
from webdepot.model import Capture, Location, RecordKind
from webdepot.services.admin import setup

QUERIES = (
    "url=big.example&matchType=domain&filter=~url:zzzz",
    "url=big.example&matchType=domain&collapse=mime",
    "url=big.example&matchType=domain&page=300",
    "url=big.example&matchType=domain&page=40",
    "url=big.example&matchType=domain&from=1990&to=1991",
    "url=big.example&matchType=domain&showNumPages=true",
    "url=big.example/*&filter=!status:200",
)
CAPTURES = 1_000_000
QUERY_CLIENTS, SIGN_INS, HALF_OPEN = 14, 13, 1100
SOFT_LIMIT = 1024


def fill(home: Path, captures: int, provider: int) -> None:
    """An archive whose index knows this many captures of one domain; 20 of each address."""
    settings = f'[oidc]\nissuer = "http://127.0.0.1:{provider}"\nclient_id = "portal"\n'
    setup.create(home, settings=settings)
    with Archive.open(home) as archive:
        per_container = 100_000
        for number in range(0, captures, per_container):
            name = f"big-{number}.warc.gz"
            archive.captures.add(
                name, _captures(name, number, min(number + per_container, captures)), collection="big"
            )


def _captures(container: str, first: int, stop: int) -> Iterator[Capture]:
    for number in range(first, stop):
        page, version = divmod(number, 20)
        yield Capture(
            key=f"example,big)/page/{page:07d}",
            timestamp=f"20{version + 5:02d}0101{page % 24:02d}0000",
            url=f"http://big.example/page/{page:07d}",
            kind=RecordKind.RESPONSE,
            status=200,
            mime="text/html",
            digest="sha1:" + "A" * 32,
            location=Location(container=container, offset=number * 100, length=100),
        )


@contextmanager
def silent_provider() -> Iterator[int]:
    """The port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield server.getsockname()[1]


def get(
    portal: str, path: str, timeout_s: float, connections: set[http.client.HTTPConnection] | None = None
) -> int:
    """The status of the answer to a request. Its connection is in `connections` until the answer has
    arrived.
    """
    parts = urlsplit(portal)
    assert parts.hostname
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
    opened = set() if connections is None else connections
    opened.add(connection)
    try:
        with closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            return answer.status
    finally:
        opened.discard(connection)


@contextmanager
def siege(portal: str, outcomes: dict[str, list[object]]) -> Iterator[None]:
    """Run the whole load until the block ends; then all clients disconnect without waiting for their
    answers.
    """
    parts, stop = urlsplit(portal), threading.Event()
    connections: set[http.client.HTTPConnection] = set()

    def ask(path: str, kind: str, timeout_s: float) -> None:
        while not stop.is_set():
            try:
                outcome: object = get(portal, path, timeout_s, connections)
            except (OSError, http.client.HTTPException) as error:
                outcome = type(error).__name__
            outcomes[kind].append(outcome)

    asking = [
        threading.Thread(target=ask, args=(f"/all/cdx?{QUERIES[number % len(QUERIES)]}", "queries", 120))
        for number in range(QUERY_CLIENTS)
    ]
    asking += [threading.Thread(target=ask, args=("/sign-in/oidc", "sign-ins", 120)) for _ in range(SIGN_INS)]
    for thread in asking:
        thread.daemon = True
        thread.start()
    half_open = []
    for _ in range(HALF_OPEN):
        half_open.append(socket.create_connection((parts.hostname, parts.port), 10))
        half_open[-1].sendall(b"GET /about HTTP/1.1\r\nHost: ")
    try:
        yield
    finally:
        stop.set()
        for client in list(connections):
            if client.sock is not None:
                client.sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
        for connection in half_open:
            connection.close()


def measure(portal: str, seconds: float) -> list[float]:
    """How long each answer of /about took, one after another; infinity for none."""
    taken, until_s = [], time.monotonic() + seconds
    while time.monotonic() < until_s or len(taken) < 10:
        begun_s = time.perf_counter()
        try:
            is_answered = get(portal, "/about", 60) == 200
        except (OSError, http.client.HTTPException):
            is_answered = False
        taken.append(time.perf_counter() - begun_s if is_answered else float("inf"))
        time.sleep(0.2)
    return taken


def cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(captures: int, seconds: float) -> dict[str, object]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    outcomes: dict[str, list[object]] = {"queries": [], "sign-ins": []}
    with tempfile.TemporaryDirectory() as folder, silent_provider() as provider:
        home = Path(folder) / "home"
        fill(home, captures, provider)
        with served(home, most_files=SOFT_LIMIT) as server:
            portal, process = server.portal, server.process
            calm = measure(portal, 3)
            with siege(portal, outcomes):
                time.sleep(1)
                besieged = measure(portal, seconds)
                files = len(list(Path(f"/proc/{process}/fd").iterdir()))
            before_s = cpu_s(process)
            time.sleep(15)
            after_s = cpu_s(process) - before_s
            calm_again = measure(portal, 3)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return {
        "captures": captures,
        "about, longest in calm": max(calm),
        "about, longest besieged": max(besieged),
        "about, median besieged": sorted(besieged)[len(besieged) // 2],
        "about, asked besieged": len(besieged),
        "open files besieged": files,
        "processor seconds in the 15 s after the clients left": after_s,
        "about, longest afterwards": max(calm_again),
        "queries": {str(each): outcomes["queries"].count(each) for each in set(outcomes["queries"])},
        "sign-ins": {str(each): outcomes["sign-ins"].count(each) for each in set(outcomes["sign-ins"])},
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench siege", description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="a smoke test with little data")
    options = parser.parse_args()
    figures = run(*((20_000, 3.0) if options.quick else (CAPTURES, 40.0)))
    text = json.dumps(figures, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
