"""Do readers notice when a volume server of the S3 storage is killed, and is every byte still there
afterwards?

    python -m bench.storage_kills [--quick] [--json PATH]

Starts the cluster of `webdepot cluster up`: SeaweedFS with three volume servers and each file on two of them,
PostgreSQL, Dask, two harvesters and one portal. A first site is archived; from then on readers ask the portal for its
pages all the time, which are read from S3 for each request. Then a second site is archived:

* during the harvest the first volume server is killed, and started again before the deposit;
* during check and deposit the second one, and started again afterwards;
* while readers open pages of both sites the third one, which stays dead for an audit that reads every byte.

Every answer to readers must be the page as it was on the site. The audit must find nothing, with one of the volume
servers dead and again when all run.
"""

import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.machines import ManyHosts, many_hosts

from webdepot.archive import Archive
from webdepot.cluster import plan
from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.model import HarvestState
from webdepot.services.cluster import local_cluster
from webdepot.services.harvest import harvests

_PROGRAM = "from webdepot.cli.main import main; main()"
_READERS = 2
_READ_S = 15.0
_MOST_REDIRECTS = 4


class Readers:
    """People who open archived pages, again and again."""

    def __init__(self, replay_port: int) -> None:
        self._port = replay_port
        self._pages: list[tuple[str, bytes]] = []
        self._found: dict[str, tuple[str, str]] = {}
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._read, args=(each,)) for each in range(_READERS)]
        self.asked, self.slowest_s = 0, 0.0
        self.failed: list[str] = []

    def begin(self, pages: dict[str, bytes]) -> None:
        """Open these pages, too, from now on."""
        if why := self._fault(*next(iter(pages.items()))):
            raise AssertionError(why)  # before anything was killed, or while everything runs again
        self._pages = [*self._pages, *pages.items()]
        for thread in self._threads:
            if not thread.is_alive():
                thread.start()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(60)

    def _read(self, at: int) -> None:
        while not self._stop.is_set():
            at += 7
            url, body = self._pages[at % len(self._pages)]
            began_s = time.perf_counter()
            why = self._fault(url, body)
            with self._lock:
                self.asked += 1
                self.slowest_s = max(self.slowest_s, time.perf_counter() - began_s)
                if why:
                    self.failed.append(f"{url}: {why}")

    def _fault(self, url: str, body: bytes) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        host, path = self._found.get(url, (f"127.0.0.1:{self._port}", f"/all/2030id_/{url}"))
        try:
            for _ in range(_MOST_REDIRECTS):
                connection.request("GET", path, headers={"Host": host})
                answer = connection.getresponse()
                content = answer.read()
                if not HTTPStatus.MULTIPLE_CHOICES <= answer.status < HTTPStatus.BAD_REQUEST:
                    break
                # To the host name for replay, and to the time of the capture.
                parts = urlsplit(answer.headers["Location"])
                host, path = parts.netloc or host, parts._replace(scheme="", netloc="").geturl()
        except (OSError, http.client.HTTPException) as error:
            return repr(error)
        finally:
            connection.close()
        self._found[url] = host, path
        return "" if (answer.status, content) == (200, body) else f"{answer.status} {path} {content[:200]!r}"


class StorageDrill:
    """A cluster in `home`, and commands for it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        known = plan.load(home)
        assert known is not None
        self.environment = {**os.environ, **known.environment}
        self.replay_port = known.ports["portal-1-replay_port"]
        self.moments: list[str] = []

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _PROGRAM, "--home", str(self.home), "--json", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self.environment, stdout=pipe, stderr=pipe, text=True)

    def run(self, *arguments: str) -> list[dict[str, Any]]:
        return self.finish(self.start(*arguments))

    def finish(self, process: subprocess.Popen[str]) -> list[dict[str, Any]]:
        answer, remarks = process.communicate(timeout=1200)
        if process.returncode:
            raise AssertionError(f"exit {process.returncode}: {answer[-1000:]} {remarks[-3000:]}")
        return [json.loads(line) for line in answer.splitlines()]

    def kill(self, volume: int, moment: str) -> None:
        local_cluster.kill(self.home, f"seaweedfs-volume-{volume}")
        self.moments.append(f"volume {volume} killed {moment}")

    def start_again(self) -> None:
        local_cluster.up(self.home, {}, say=lambda text: None)

    def state(self) -> HarvestState:
        """The state of the newest harvest."""
        with Archive.open(self.home) as archive:
            return harvests.list_page(archive, HarvestFilter(limit=1)).rows[0].state


def pages_of(site: ManyHosts) -> dict[str, bytes]:
    numbers = {host: number for number, host in enumerate(site.hosts)}
    pages = {}
    for url in site.expected():
        parts = urlsplit(url)
        name = parts.path.removeprefix("/p/").removesuffix(".html")
        page = int(name) if name.isdecimal() else 0
        pages[url] = site.body(numbers[parts.hostname or ""], page)
    return pages


def drill(cluster: StorageDrill, first: ManyHosts, second: ManyHosts, reader: Readers) -> dict[str, Any]:
    cluster.run("archive", "--browser", "never", *first.seeds)
    reader.begin(pages_of(first))
    archiving = cluster.start("archive", "--browser", "never", *second.seeds)
    _wait(lambda: len(second.log) > len(second.expected()) // 4, archiving)
    cluster.kill(1, f"after {len(second.log)} requests of the harvest")
    _wait(lambda: len(second.log) > len(second.expected()) // 2, archiving)
    cluster.start_again()
    _wait(lambda: cluster.state() is not HarvestState.RUNNING, archiving)
    cluster.kill(2, f"in state {cluster.state().value}, before the deposit was complete")
    (report, *_) = cluster.finish(archiving)
    cluster.start_again()
    reader.begin(pages_of(second))
    time.sleep(_READ_S / 3)
    cluster.kill(3, "while pages of both sites are read")
    time.sleep(_READ_S)
    one_dead = cluster.run("depot", "audit", "--older-than", "0")[-1]
    reader.end()
    cluster.start_again()
    all_alive = cluster.run("depot", "audit", "--older-than", "0")[-1]
    return {
        "kills": cluster.moments,
        "pages": len(first.expected()) + len(second.expected()),
        "archived": report,
        "requests of readers": reader.asked,
        "failed": len(reader.failed),
        "failures": reader.failed[:3],
        "slowest s": round(reader.slowest_s, 2),
        "audit with one dead": one_dead,
        "audit": all_alive,
        "containers in the cache": len(list((cluster.home / "cache").glob("containers/*"))),
    }


def _wait(is_so: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until_s = time.monotonic() + 900
    while not is_so():
        if process.poll() is not None or time.monotonic() > until_s:
            raise AssertionError(f"it ended too early: {process.communicate()}")
        time.sleep(0.3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test; its figures are meaningless")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    pages, delay_s = (30, 0.5) if given.quick else (150, 0.3)
    with (
        tempfile.TemporaryDirectory(prefix="bench-storage-") as name,
        many_hosts([f"127.0.3.{number}" for number in (2, 3)], 20) as first,
        many_hosts([f"127.0.3.{number}" for number in (4, 5, 6, 7)], pages) as second,
    ):
        home = Path(name) / "home"
        # Read by every process of the cluster; such addresses are not harvested otherwise.
        os.environ |= {"WEBDEPOT_HARVEST_ALLOW_PRIVATE": "true", "WEBDEPOT_HARVEST_DELAY_S": str(delay_s)}
        try:
            local_cluster.up(home, {"harvester": 2, "portal": 1}, say=print)
            cluster = StorageDrill(home)
            reader = Readers(cluster.replay_port)
            try:
                results = drill(cluster, first, second, reader)
            finally:
                reader.end()
        finally:
            local_cluster.down(home, say=print)
            known = plan.load(home)
            if known is not None:  # outside the home if root runs this
                shutil.rmtree(known.postgresql.folder, ignore_errors=True)
    results["load"] = os.getloadavg()[0]
    print(json.dumps(results, indent=2))
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
