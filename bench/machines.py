"""A site of many hosts that remembers its requests, and machines that harvest it, for tests and benchmarks.

Each host has a loopback address of its own. A machine is a process `webdepot harvester` with a home of its own. Its
name is its user agent, so that the site knows who asks.
"""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from sqlalchemy import make_url

from webdepot.container.reader import iter_records
from webdepot.model import RecordKind

_PROGRAM = "from webdepot.cli.main import main; main()"
_CAPTURES = (RecordKind.RESPONSE, RecordKind.REVISIT)


@dataclass
class SeenRequest:
    """A request as the site saw it; times are `time.monotonic()`."""

    server: str
    url: str
    began_s: float
    ended_s: float = 0.0
    machine: str = ""
    """Its user agent."""


@dataclass
class ManyHosts:
    """Hosts whose pages form a tree, with links to other hosts. Page 0 is `/`."""

    hosts: tuple[str, ...]
    pages: int
    port: int
    answer_s: float = 0.0
    log: list[SeenRequest] = field(default_factory=list)

    @property
    def seeds(self) -> list[str]:
        return [f"{self._origin(number)}/" for number in range(len(self.hosts))]

    def expected(self) -> set[str]:
        return {
            f"{self._origin(number)}{_path(page)}"
            for number in range(len(self.hosts))
            for page in range(self.pages)
        }

    def body(self, number: int, page: int) -> bytes:
        links = [_path(each) for each in (2 * page + 1, 2 * page + 2) if each < self.pages]
        other = (number + 1 + page % 7) % len(self.hosts)
        links += [f"{self._origin(other)}{_path(page)}", f"{self._origin(other)}/"]
        items = "".join(f'<a href="{link}">x</a>' for link in links)
        return f"<!doctype html><title>{number}-{page}</title>{items}<p>{number} {page}".encode()

    def _origin(self, number: int) -> str:
        return f"http://{self.hosts[number]}:{self.port}"


def _path(page: int) -> str:
    return f"/p/{page}.html" if page else "/"


@contextmanager
def many_hosts(hosts: Sequence[str], pages: int, *, answer_s: float = 0.0) -> Iterator[ManyHosts]:
    """Serve the site in a thread. Hosts are loopback addresses."""
    site = ManyHosts(hosts=tuple(hosts), pages=pages, port=0, answer_s=answer_s)
    ready, loops = threading.Event(), list[asyncio.AbstractEventLoop]()
    stop = asyncio.Event()

    async def serve() -> None:
        server = await asyncio.start_server(lambda r, w: _answer(site, r, w), site.hosts[0], 0)
        site.port = server.sockets[0].getsockname()[1]
        others = [
            await asyncio.start_server(lambda r, w: _answer(site, r, w), host, site.port)
            for host in site.hosts[1:]
        ]
        loops.append(asyncio.get_running_loop())
        ready.set()
        await stop.wait()
        for each in (server, *others):
            each.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield site
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(5)


async def _answer(site: ManyHosts, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.IncompleteReadError, ValueError), closing(writer):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ", 2)[1]
            address = writer.get_extra_info("sockname")[0]
            agent = re.search(r"^user-agent: *(.*?)\r$", head, re.IGNORECASE | re.MULTILINE)
            seen = SeenRequest(
                server=address,
                url=f"http://{address}:{site.port}{path}",
                began_s=time.monotonic(),
                machine=agent[1] if agent else "",
            )
            site.log.append(seen)
            if site.answer_s:
                await asyncio.sleep(site.answer_s)
            name = path.removeprefix("/p/").removesuffix(".html")
            page = 0 if path == "/" else int(name) if name.isdecimal() else -1
            exists = 0 <= page < site.pages
            body = site.body(site.hosts.index(address), page) if exists else b""
            status = "200 OK" if exists else "404 Not Found"
            seen.ended_s = time.monotonic()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            await writer.drain()


def settings_of(database: str, work: Path, *, parts: int, delay_s: float = 0.0, **cluster: float) -> str:
    """A configuration that all machines share."""
    address = make_url(database).set(drivername="postgresql").render_as_string(hide_password=False)
    lease_s, safe_s = cluster.get("lease_s", 5.0), cluster.get("safe_s", 1.0)
    return (
        f"[harvest]\nallow_private = true\ndelay_s = {delay_s}\nprocesses = {parts}\nleast_free_bytes = 0\n"
        f'[database]\nurl = "{address}"\n[work]\nplace = "{work}"\nsafe_s = {safe_s}\n'
        f"[cluster]\nharvesters = true\nlease_s = {lease_s}\n"
    )


class Machine:
    """A machine: a home of its own, and a harvester."""

    def __init__(
        self, folder: Path, number: int, settings: str, *, parts: int = 2, before: Sequence[str] = ()
    ) -> None:
        """`before` is put before its command."""
        self._before = before
        self.name = f"machine-{number}"
        self.home = folder / self.name
        self._settings = settings.replace("[cluster]\n", f'[cluster]\nmachine = "{self.name}"\n').replace(
            "[harvest]\n", f'[harvest]\nuser_agent = "{self.name}"\n'
        )
        self.started_s = 0.0
        """By `time.monotonic()`."""
        self._parts = parts
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.home.mkdir(exist_ok=True)
        (self.home / "webdepot.toml").write_text(self._settings)
        self.started_s = time.monotonic()
        command = [*self._before, sys.executable, "-c", _PROGRAM, "--home", str(self.home), "harvester"]
        with (self.home / "harvester.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--parts", str(self._parts)], stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, *, with_disk: bool) -> None:
        """Kill all processes of the machine at once, as a power failure would."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if with_disk:
            shutil.rmtree(self.home, ignore_errors=True)

    def cpu_s(self) -> float:
        """Processor time of its processes, with those that have ended."""
        return 0.0 if self._process is None else session_cpu_s(self._process.pid)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill(with_disk=False)


def session_cpu_s(session: int) -> float:
    """Processor time of all processes of a session and of their children that have ended."""
    ticks = 0
    for path in Path("/proc").iterdir():
        fields = find_stat(int(path.name)) if path.name.isdigit() else []
        if fields[3:4] == [str(session)]:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def captured(containers: Path) -> Counter[str]:
    """How often each address is in the containers of a folder."""
    counts: Counter[str] = Counter()
    for path in sorted(containers.glob("*.warc.gz")):
        with path.open("rb") as stream:
            records = iter_records(stream, path.name, on_finding=_refuse)
            counts.update(record.url for record in records if record.kind in _CAPTURES)
    return counts


def _refuse(finding: object) -> None:
    raise AssertionError(finding)


def shortest_gap_s(log: Sequence[SeenRequest]) -> float:
    """The shortest time between the end of a request and the beginning of the next one at the same server;
    negative if two were active at once.
    """
    gaps = [float("inf")]
    by_server: dict[str, list[SeenRequest]] = {}
    for seen in log:
        by_server.setdefault(seen.server, []).append(seen)
    for requests in by_server.values():
        requests.sort(key=lambda seen: seen.began_s)
        gaps += [later.began_s - earlier.ended_s for earlier, later in pairwise(requests)]
    return min(gaps)


def find_stat(pid: int) -> list[str]:
    """The fields of a process after its name: state, parent, …; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return []
