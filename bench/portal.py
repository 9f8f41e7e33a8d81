"""A portal in a separate process, and requests like those of a browser. Used by the benchmarks of pages."""

import http.client
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive

PASSWORD = "bench bench bench"
TYPING_S = 4.0
SERVER = """
import json, resource, sys
from pathlib import Path
from webdepot.archive import Archive
from webdepot.web.serve import serve
for most_files in sys.argv[2:]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(most_files), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
with Archive.open(Path(sys.argv[1])) as archive:
    serve(archive, host="127.0.0.1", port=0, replay_port=0, ready=lambda portal, replay: print(json.dumps([portal, replay]), flush=True))
"""


def add_person(archive: Archive, now: datetime) -> None:
    """Add the person who sends the requests; they may see every page."""
    accounts.add(archive.database, "bench", PASSWORD, [Role.ADMINISTRATOR, Role.CURATOR, Role.REVIEWER], now)


def time_pages(home: Path, pages: Mapping[str, str], rounds: int) -> dict[str, float | str]:
    """Milliseconds of each page by name: of the first request, and the median and maximum of the others; and
    the processor time of the server for one of the others, which is more reliable on a busy machine.
    """
    figures: dict[str, float | str] = {}
    with served(home) as server:
        portal = urlsplit(server.portal)
        client = http.client.HTTPConnection(str(portal.hostname), portal.port, timeout=120)
        cookie = _sign_in(client)
        for name, path in pages.items():
            figures[f"{name} first ms"] = _ask(client, path, cookie)
            before_ms = _cpu_ms(server.process)
            times = [_ask(client, path, cookie) for _ in range(rounds)]
            figures[f"{name} median ms"] = statistics.median(times)
            figures[f"{name} slowest ms"] = max(times)
            figures[f"{name} processor ms"] = (_cpu_ms(server.process) - before_ms) / rounds
    return figures


def _cpu_ms(process: int) -> float:
    """Processor time of all threads that are alive, in milliseconds."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPortal:
    portal: str
    replay: str
    process: int


@contextmanager
def served(home: Path, *, most_files: int = 0) -> Iterator[ServedPortal]:
    """The archive served by a separate process, for the length of the block; it may open `most_files` files, if
    given.
    """
    command = [sys.executable, "-c", SERVER, str(home), *([str(most_files)] if most_files else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        portal, replay = json.loads(process.stdout.readline())
        yield ServedPortal(portal=portal, replay=replay, process=process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _sign_in(client: http.client.HTTPConnection) -> str:
    """Sign in like a person: open the form, take a few seconds to type."""
    client.request("GET", "/sign-in")
    client.getresponse().read()
    time.sleep(TYPING_S)
    body = urlencode({"name": "bench", "password": PASSWORD, "to": "/"})
    client.request("POST", "/sign-in", body, {"Content-Type": "application/x-www-form-urlencoded"})
    answer = client.getresponse()
    answer.read()
    return str(answer.headers["Set-Cookie"]).partition(";")[0]


def _ask(client: http.client.HTTPConnection, path: str, cookie: str) -> float:
    """Milliseconds until the whole page is received."""
    began = time.perf_counter()
    client.request("GET", path, headers={"Cookie": cookie})
    answer = client.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path} answered {answer.status}: {text[-2000:]!r}")
    return (time.perf_counter() - began) * 1000
