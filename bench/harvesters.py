"""Harvesters on several machines: is every page fetched once, politely, whatever is killed?

A site of many hosts, each at a loopback address of its own or several at one; a PostgreSQL server; a folder as
working place; and processes `webdepot harvester`, each with a home of its own as if it were a machine. Some are
killed (SIGKILL), half of them with their home deleted. Afterwards the containers are read, and the requests that
the site saw are compared with them.

    python -m bench.harvesters [--quick] [--kills 20] [--outage-s 0] [--pages 408] [--delay-s 0.2]
        [--lease-s 6] [--safe-s 2] [--every-s 4] [--embedded] [--json FILE]

`--embedded` runs the same harvest on one machine first, with three processes and without servers, and compares the
processor time for each page. The processor time of the site and of this program is in neither.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from bench import postgres_server
from sqlalchemy import create_engine, make_url

from webdepot.archive import Archive
from webdepot.container.reader import iter_records
from webdepot.errors import WebdepotError
from webdepot.harvest.parts import harvester_rows, rows
from webdepot.harvest.parts.rows import PartRow
from webdepot.model import Harvest, RecordKind
from webdepot.services.admin import setup
from webdepot.services.harvest import harvests, runner
from webdepot.services.harvest.options import HarvestOptions

_PROGRAM = "from webdepot.cli.main import main; main()"
_HARVEST = """
import sys
from pathlib import Path
from webdepot.archive import Archive
from webdepot.services.harvest import runner
from webdepot.services.harvest.options import HarvestOptions
with Archive.open(Path(sys.argv[1])) as archive:
    options = HarvestOptions.from_config(archive.config)
    runner.run(archive, runner.start_or_resume(archive, sys.argv[2:], options))
"""
_CAPTURES = (RecordKind.RESPONSE, RecordKind.REVISIT)


@dataclass
class SeenRequest:
    """A request as the site saw it; times are `time.monotonic()`."""

    server: str
    url: str
    began_s: float
    ended_s: float = 0.0


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
    """The site, in a thread. Hosts are loopback addresses."""
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
            seen = SeenRequest(
                server=address, url=f"http://{address}:{site.port}{path}", began_s=time.monotonic()
            )
            site.log.append(seen)
            if site.answer_s:
                await asyncio.sleep(site.answer_s)
            name = path.removeprefix("/p/").removesuffix(".html")
            page = 0 if path == "/" else int(name) if name.isdecimal() else -1
            found = 0 <= page < site.pages
            body = site.body(site.hosts.index(address), page) if found else b""
            status = "200 OK" if found else "404 Not Found"
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
        """`before` is what its command begins with."""
        self._before = before
        self.home = folder / f"machine-{number}"
        self._settings = settings.replace("[cluster]\n", f'[cluster]\nmachine = "machine-{number}"\n')
        self._parts = parts
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.home.mkdir(exist_ok=True)
        (self.home / "webdepot.toml").write_text(self._settings)
        command = [*self._before, sys.executable, "-c", _PROGRAM, "--home", str(self.home), "harvester"]
        with (self.home / "harvester.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--parts", str(self._parts)], stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, *, with_disk: bool) -> None:
        """As if the machine lost its power: all its processes at once."""
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
        fields = _stat(int(path.name)) if path.name.isdigit() else []
        if fields[3:4] == [str(session)]:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def embedded_cpu_us(folder: Path, site: ManyHosts, *, delay_s: float) -> int:
    """Processor time for each page of the same harvest on one machine, with three processes."""
    home = folder / "embedded"
    setup.found(
        home,
        settings=f"[harvest]\nallow_private = true\ndelay_s = {delay_s}\nprocesses = 3\nleast_free_bytes = 0\n",
    )
    command = [sys.executable, "-c", _HARVEST, str(home), *site.seeds]
    process = subprocess.Popen(command, start_new_session=True)
    cpu_s = 0.0
    while process.poll() is None:
        cpu_s = max(cpu_s, session_cpu_s(process.pid))
        time.sleep(0.2)
    found = sum((captured(path) for path in home.glob("harvests/*/warc")), Counter[str]())
    missing = site.expected() - found.keys()
    if missing:
        raise AssertionError(f"{len(missing)} pages are missing")
    return round(cpu_s / len(site.expected()) * 1e6)


def captured(containers: Path) -> Counter[str]:
    """How often each address is in the containers of a folder."""
    found: Counter[str] = Counter()
    for path in sorted(containers.glob("*.warc.gz")):
        with path.open("rb") as stream:
            records = iter_records(stream, path.name, on_finding=_refuse)
            found.update(record.url for record in records if record.kind in _CAPTURES)
    return found


def _refuse(finding: object) -> None:
    raise AssertionError(finding)


def shortest_gap_s(log: Sequence[SeenRequest]) -> float:
    """The shortest time between the end of a request and the beginning of the next one at the same server;
    negative if two were there at once.
    """
    gaps = [float("inf")]
    by_server: dict[str, list[SeenRequest]] = {}
    for seen in log:
        by_server.setdefault(seen.server, []).append(seen)
    for requests in by_server.values():
        requests.sort(key=lambda seen: seen.began_s)
        gaps += [later.began_s - earlier.ended_s for earlier, later in pairwise(requests)]
    return min(gaps)


@dataclass
class Kill:
    """A machine that was killed, and what happened to its parts."""

    at_s: float
    parts: dict[int, int]
    """Part -> its generation."""
    taken_after_s: dict[int, float] = field(default_factory=dict)


@dataclass
class Drill:
    """A harvest by several machines, of which some are killed."""

    folder: Path
    site: ManyHosts
    machines: list[Machine]
    kills: int
    every_s: float
    outage_s: float
    kills_seen: list[Kill] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(21))

    @property
    def killed(self) -> int:
        return len(self.kills_seen)

    def run(self, archive: Archive, address: str) -> dict[str, object]:
        options = HarvestOptions.from_config(archive.config)
        harvest = runner.start_or_resume(archive, self.site.seeds, options)
        outcome: list[object] = []
        thread = threading.Thread(target=lambda: outcome.append(_outcome_of(archive, harvest)), daemon=True)
        self._wait_for_machines(archive)
        idle_cpu_s = sum(machine.cpu_s() for machine in self.machines)
        began_s, before = time.monotonic(), _server_costs(address)
        thread.start()
        last_s = began_s
        while thread.is_alive():
            thread.join(0.2)
            self._note_taken(archive, harvest)
            if self.killed < self.kills and time.monotonic() - last_s > self.every_s:
                self._kill(archive, harvest)
                last_s = time.monotonic()
                if self.outage_s and self.killed == max(self.kills // 2, 1):
                    _suspend_server(address, self.outage_s)
        after, cpu_s = _server_costs(address), [machine.cpu_s() for machine in self.machines]
        found = captured(harvests.containers_folder(archive, harvest))
        expected = self.site.expected()
        asked = Counter(seen.url for seen in self.site.log)
        seconds = time.monotonic() - began_s
        return {
            "outcome": str(outcome[0]),
            "seconds": round(seconds, 1),
            "pages_per_s": round(len(expected) / seconds, 1),
            "pages": len(expected),
            "missing": sum(url not in found for url in expected),
            "twice": sum(count > 1 for url, count in found.items() if url in expected),
            "asked_again": sum(asked[url] - 1 for url in expected),
            "kills": self.killed,
            "most_asked_again_after_a_kill": self._most_asked_again(),
            "longest_takeover_s": self._longest_takeover_s(),
            "harvesters_cpu_us_per_page": round((sum(cpu_s) - idle_cpu_s) / len(expected) * 1e6),
            "shortest_gap_s": round(shortest_gap_s(self.site.log), 4),
            "postgresql_cpu_us_per_page": round((after[0] - before[0]) / len(expected) * 1e6),
            "wal_bytes_per_page": round((after[1] - before[1]) / len(expected)),
        }

    def _wait_for_machines(self, archive: Archive) -> None:
        """Until all harvesters wait for parts: they are started once, not for each harvest."""
        live = 0
        while live < len(self.machines):
            time.sleep(0.5)
            with archive.database.leasing() as connection:
                live = sum(row.is_live for row in harvester_rows.every(connection))
        time.sleep(2.0)

    def _kill(self, archive: Archive, harvest: Harvest) -> None:
        """Kill a machine that holds parts, chosen at random."""
        live: list[PartRow] = []
        with suppress(WebdepotError), archive.database.leasing() as connection:
            live = [part for part in rows.of_harvest(connection, harvest.id) if part.is_live]
        names = sorted({part.machine for part in live})
        if not names:
            return  # later
        name = self.chance.choice(names)
        machine = next(each for each in self.machines if each.home.name == name)
        held = [part for part in live if part.machine == machine.home.name]
        machine.kill(with_disk=self.killed % 2 == 0)
        kill = Kill(time.monotonic(), {part.part: part.generation for part in held})
        self.kills_seen.append(kill)
        machine.start()

    def _note_taken(self, archive: Archive, harvest: Harvest) -> None:
        """Note which parts of killed machines have been taken since the last time."""
        waiting = [kill for kill in self.kills_seen if kill.parts.keys() - kill.taken_after_s.keys()]
        if not waiting:
            return
        with suppress(WebdepotError), archive.database.leasing() as connection:
            generations = {part.part: part.generation for part in rows.of_harvest(connection, harvest.id)}
            for kill in waiting:
                for part, generation in kill.parts.items():
                    if generations[part] > generation:
                        kill.taken_after_s.setdefault(part, time.monotonic() - kill.at_s)

    def _longest_takeover_s(self) -> float | None:
        return max(
            (round(each, 1) for kill in self.kills_seen for each in kill.taken_after_s.values()), default=None
        )

    def _most_asked_again(self) -> int:
        """How many pages were asked before a kill and again after it, at most."""
        before: dict[str, float] = {}
        again: Counter[int] = Counter()
        for seen in sorted(self.site.log, key=lambda seen: seen.began_s):
            if seen.url in before:
                between = [
                    number
                    for number, kill in enumerate(self.kills_seen)
                    if before[seen.url] <= kill.at_s <= seen.began_s
                ]
                again.update(between[-1:])
            before[seen.url] = seen.began_s
        return max(again.values(), default=0)


def _outcome_of(archive: Archive, harvest: Harvest) -> object:
    try:
        return runner.run(archive, harvest).state.value
    except Exception as error:
        return error


def _server_costs(address: str) -> tuple[float, int]:
    """Processor time of the database server, and bytes written to its log."""
    with create_engine(address).connect() as connection:
        wal_bytes = connection.exec_driver_sql("SELECT pg_current_wal_lsn() - '0/0'").scalar_one()
    ticks = 0
    for number, pid in enumerate(_server_pids(address)):
        fields = _stat(pid)
        # The first is the server itself, which also counts processes of its own that have ended.
        ticks += sum(map(int, fields[11:15] if number == 0 else fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK"), int(wal_bytes)


def _suspend_server(address: str, for_s: float) -> None:
    """Let the database answer nobody for some time."""
    pids = _server_pids(address)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(for_s)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def _server_pids(address: str) -> list[int]:
    """The processes of the database server, its first one first."""
    folder = Path(str(make_url(address).query["host"]))
    first = int(next(folder.rglob("postmaster.pid")).read_text().split("\n")[0])
    others = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [first, *(pid for pid in others if _stat(pid)[1:2] == [str(first)])]


def _stat(pid: int) -> list[str]:
    """The fields of a process after its name: state, parent, …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--outage-s", type=float, default=0.0, help="how long the database stops")
    parser.add_argument("--pages", type=int, default=408, help="of each of the 50 hosts")
    parser.add_argument("--delay-s", type=float, default=0.2)
    parser.add_argument("--lease-s", type=float, default=6.0)
    parser.add_argument("--safe-s", type=float, default=2.0)
    parser.add_argument("--every-s", type=float, default=4.0, help="time between kills")
    parser.add_argument("--embedded", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    hosts, pages, kills = (4, 30, 1) if given.quick else (50, given.pages, given.kills)
    folder = Path(tempfile.mkdtemp(prefix="webdepot-harvesters-"))
    machines: list[Machine] = []
    try:
        with (
            postgres_server.running() as address,
            many_hosts([f"127.0.2.{number + 2}" for number in range(hosts)], pages, answer_s=0.002) as site,
        ):
            embedded = {}
            if given.embedded:
                embedded["embedded_cpu_us_per_page"] = embedded_cpu_us(folder, site, delay_s=given.delay_s)
                site.log.clear()
            settings = settings_of(
                address,
                folder / "work",
                parts=6,
                delay_s=given.delay_s,
                lease_s=given.lease_s,
                safe_s=given.safe_s,
            )
            setup.found(folder / "portal", settings=settings)
            # With room for the parts of one that is killed.
            machines += [Machine(folder, number, settings, parts=4) for number in range(3)]
            for machine in machines:
                machine.start()
            drill = Drill(folder, site, machines, kills, every_s=given.every_s, outage_s=given.outage_s)
            with Archive.open(folder / "portal") as archive:
                figures = drill.run(archive, address) | embedded
            for machine in machines:
                machine.stop()
    finally:
        for machine in machines:
            machine.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(figures, indent=2))
    if given.json:
        given.json.write_text(json.dumps(figures))
    is_right = figures["outcome"] == "finished" and not figures["missing"] and not figures["twice"]
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
