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
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from webdepot.accounts import accounts
from webdepot.accounts.accounts import Role
from webdepot.archive import Archive

PASSWORD = "bench bench bench"
TYPING_S = 4.0
SERVER = """
import json, sys
from pathlib import Path
from webdepot.archive import Archive
from webdepot.web.serve import serve
with Archive.open(Path(sys.argv[1])) as archive:
    serve(archive, host="127.0.0.1", port=0, replay_port=0, ready=lambda portal, replay: print(json.dumps([portal, replay]), flush=True))
"""


def add_person(archive: Archive, now: datetime) -> None:
    """Add the person who sends the requests; they may see every page."""
    accounts.add(archive.database, "bench", PASSWORD, [Role.ADMINISTRATOR, Role.CURATOR, Role.REVIEWER], now)


def time_pages(home: Path, pages: Mapping[str, str], rounds: int) -> dict[str, float | str]:
    """Milliseconds of each page by name: of the first request, and the median and maximum of the others."""
    figures: dict[str, float | str] = {}
    with _served(home) as client:
        cookie = _sign_in(client)
        for name, path in pages.items():
            times = [_ask(client, path, cookie) for _ in range(rounds + 1)]
            figures[f"{name} first ms"] = times[0]
            figures[f"{name} median ms"] = statistics.median(times[1:])
            figures[f"{name} slowest ms"] = max(times[1:])
    return figures


@contextmanager
def _served(home: Path) -> Iterator[http.client.HTTPConnection]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(home)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        portal = urlsplit(json.loads(process.stdout.readline())[0])
        yield http.client.HTTPConnection(str(portal.hostname), portal.port, timeout=120)
    finally:
        process.send_signal(signal.SIGTERM)
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
