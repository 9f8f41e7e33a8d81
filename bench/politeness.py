"""Are harvesters on several machines polite together, even while one is killed and one is cut off?

Three machines are network namespaces at one bridge, with a PostgreSQL server and a web server whose hosts all have
one address. Two harvests run at once. One machine is killed with its disk. Another one is cut off from the
database, but not from the web server, just when it has the turn at the web server: it goes on to send requests,
but must stop before its lease ends. Checkpoints are rare here, because a machine that cannot store one waits.
If the machine happened to give its turn away in that moment and sent nothing, another one is cut off. The log
of the web server decides: never two requests at once, no pause below the delay, nothing from the machine that
was cut off after its lease.

    python -m bench.politeness [--quick] [--pages 12] [--cut-off-s 60] [--lease-s 10] [--json FILE]        (as root)
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from bench.machines import Machine, captured, settings_of
from bench.server_programs import WITHOUT_FSYNC, free_port
from bench.server_programs import running as running_programs
from sqlalchemy import make_url, select

from webdepot.archive import Archive
from webdepot.cluster.postgresql_server import PostgresqlServer
from webdepot.harvest.tables import parts, servers
from webdepot.model import Harvest
from webdepot.services.admin import setup
from webdepot.services.harvest import harvests, runner
from webdepot.services.harvest.options import HarvestOptions

_BRIDGE = "webdepot-br"
_DATABASE, _SITE = "10.177.0.1", "10.177.0.2"
_NAMES = [[f"{letter}{number}.polite.example" for number in range(3)] for letter in "ab"]
"""The hosts of both harvests."""
_FIRST = 10
"""The last number of the address of machine 0."""
_MOST_CUTS = 8


@dataclass
class SeenRequest:
    machine: str
    began_s: float
    ended_s: float


@dataclass
class Cut:
    """A machine that could not reach the database for some time."""

    address: str
    began_s: float
    ended_s: float = float("inf")


@dataclass
class OneAddress:
    """A web server whose hosts have some pages each."""

    pages: int
    port: int
    log: list[SeenRequest] = field(default_factory=list)

    def urls(self, hosts: list[str]) -> set[str]:
        return {self._url(host, page) for host in hosts for page in range(self.pages)}

    def _url(self, host: str, page: int) -> str:
        return f"http://{host}:{self.port}/" + (f"p/{page}.html" if page else "")

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError), closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                began_s, path = time.monotonic(), head.split(" ", 2)[1]
                await asyncio.sleep(0.02)
                links = "".join(f"<a href=/p/{page}.html>x</a>" for page in range(1, self.pages))
                body = f"<!doctype html><title>{path}</title>{links}".encode()
                is_page = not path.startswith("/robots")
                status = "200 OK" if is_page else "404 Not Found"
                self.log.append(SeenRequest(writer.get_extra_info("peername")[0], began_s, time.monotonic()))
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                await writer.drain()


@contextmanager
def _serving(site: OneAddress) -> Iterator[None]:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    start = asyncio.start_server(site.answer, _SITE, site.port)
    server = asyncio.run_coroutine_threadsafe(start, loop).result()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@contextmanager
def _network(machines: int) -> Iterator[list[str]]:
    """Namespaces that reach the database and the site, by name."""
    names = [f"webdepot-m{number}" for number in range(machines)]
    hosts = "127.0.0.1 localhost\n" + "".join(f"{_SITE} {name}\n" for each in _NAMES for name in each)
    try:
        _ip("link", "add", _BRIDGE, "type", "bridge")
        for address in (_DATABASE, _SITE):
            _ip("address", "add", f"{address}/24", "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")
        for number, name in enumerate(names):
            _ip("netns", "add", name)
            folder = Path("/etc/netns") / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "hosts").write_text(hosts)
            _ip("link", "add", f"wd-v{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", f"wd-v{number}", "master", _BRIDGE, "up")
            _ip("-n", name, "address", "add", f"10.177.0.{_FIRST + number}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)
            shutil.rmtree(Path("/etc/netns") / name, ignore_errors=True)
        subprocess.run(["ip", "link", "delete", _BRIDGE], check=False)


@contextmanager
def _database(folder: Path) -> Iterator[str]:
    """A PostgreSQL server at the bridge."""
    folder.mkdir()
    folder.chmod(0o755)
    port = free_port()
    server = PostgresqlServer(
        folder=folder, port=port, options=(*WITHOUT_FSYNC, "-c", f"listen_addresses=127.0.0.1,{_DATABASE}")
    )
    server.prepare()
    with (folder / "data" / "pg_hba.conf").open("a") as rules:
        rules.write("host all all 10.177.0.0/24 trust\n")
    with running_programs(folder, server.program()):
        address = make_url(server.url("postgres")).set(host=_DATABASE)
        yield address.render_as_string(hide_password=False)


def _find_turn(archive: Archive) -> tuple[str, str]:
    """Which part has the turn at the web server, and on which machine; empty if nobody has."""
    has_turn = select(parts.c.holder, parts.c.machine).where(
        parts.c.holder == servers.c.holder, servers.c.holder != ""
    )
    with archive.database.leasing() as connection:
        row = connection.execute(has_turn).first()
    return ("", "") if row is None else (row.holder, row.machine)


def _run(archive: Archive, seeds: list[str], ended: list[Harvest | Exception]) -> None:
    try:
        options = HarvestOptions.from_config(archive.config)
        ended.append(runner.run(archive, runner.start_or_resume(archive, seeds, options)))
    except Exception as error:
        ended.append(error)


@dataclass
class Drill:
    folder: Path
    site: OneAddress
    machines: list[Machine]
    names: list[str]
    cut_off_s: float
    lease_s: float

    def run(self, archives: list[Archive]) -> dict[str, object]:
        ended: list[Harvest | Exception] = []
        seeds = [[f"http://{name}:{self.site.port}/" for name in hosts] for hosts in _NAMES]
        threads = [
            threading.Thread(target=_run, args=(archive, urls, ended), daemon=True)
            for archive, urls in zip(archives, seeds, strict=True)
        ]
        for thread in threads:
            thread.start()
        self._wait_for(10)
        self.machines[0].kill(with_disk=True)
        self.machines[0].start()
        self._wait_for(20)
        cuts = self._cut_off_until_one_asks(archives[0])
        cut_s, healed_s = cuts[-1].began_s, cuts[-1].ended_s
        requests_of_ghost = self._requests_in(cuts[-1])
        for thread in threads:
            thread.join(900)
        log = sorted(self.site.log, key=lambda seen: seen.began_s)
        gaps = [later.began_s - earlier.ended_s for earlier, later in pairwise(log)]
        captures = sum(
            (
                captured(harvests.containers_folder(archive, each))  # only one of them has it
                for archive in archives
                for each in ended
                if isinstance(each, Harvest)
            ),
            captured(self.folder / "nothing"),
        )
        expected = set[str]().union(*(self.site.urls(hosts) for hosts in _NAMES))
        return {
            "outcomes": [each.state.value if isinstance(each, Harvest) else str(each) for each in ended],
            "requests": len(log),
            "at_once": sum(gap < 0 for gap in gaps),
            "shortest_gap_s": round(min(gaps), 3),
            "cuts": len(cuts),
            "requests_of_ghost": len(requests_of_ghost),
            "last_request_of_ghost_s": round(max(requests_of_ghost, default=0.0), 1),
            "requests_of_ghost_after_its_lease": sum(
                self.lease_s <= since_s for since_s in requests_of_ghost
            ),
            "requests_while_cut_off": sum(cut_s <= seen.began_s < healed_s for seen in log),
            "missing": sum(url not in captures for url in expected),
            "twice": sum(count > 1 for url, count in captures.items() if url in expected),
        }

    def _wait_for(self, requests: int) -> None:
        end_s = time.monotonic() + 300
        while len(self.site.log) < requests and time.monotonic() < end_s:
            time.sleep(0.2)

    def _cut_off_until_one_asks(self, archive: Archive) -> list[Cut]:
        """Cut off machines until one of them has sent requests meanwhile."""
        cuts: list[Cut] = []
        while len(cuts) < _MOST_CUTS and not (cuts and self._requests_in(cuts[-1])):
            cuts.append(self._cut_off(self._wait_for_new_turn(archive)))
        return cuts

    def _requests_in(self, cut: Cut) -> list[float]:
        """When the machine sent requests although it was cut off, in seconds since then."""
        return [
            seen.began_s - cut.began_s
            for seen in self.site.log
            if seen.machine == cut.address and cut.began_s < seen.began_s < cut.ended_s
        ]

    def _wait_for_new_turn(self, archive: Archive) -> int:
        """Wait until a machine has just got the turn at the web server; its number. It does not know yet which
        others want it, so it keeps it.
        """
        first, _ = _find_turn(archive)
        end_s = time.monotonic() + 300
        while time.monotonic() < end_s:
            holder, machine = _find_turn(archive)
            if machine and holder != first:
                return int(machine.rpartition("-")[2])
            time.sleep(0.01)
        raise AssertionError("Nobody gets a turn any more.")

    def _cut_off(self, number: int) -> Cut:
        name, address = self.names[number], f"10.177.0.{_FIRST + number}"
        _ip("-n", name, "route", "add", "blackhole", f"{_DATABASE}/32")
        cut = Cut(address=address, began_s=time.monotonic())
        time.sleep(self.lease_s)
        if self._requests_in(cut):
            time.sleep(max(self.cut_off_s - self.lease_s, 0.0))
        _ip("-n", name, "route", "delete", "blackhole", f"{_DATABASE}/32")
        cut.ended_s = time.monotonic()
        return cut


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test; its figures are meaningless")
    parser.add_argument("--pages", type=int, default=12)
    parser.add_argument("--cut-off-s", type=float, default=60.0)
    parser.add_argument("--lease-s", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("Left out: only root can create network namespaces.", file=sys.stderr)
        return 0
    if given.quick:
        given.pages, given.cut_off_s = 4, 15.0
    folder = Path(tempfile.mkdtemp(prefix="webdepot-politeness-", dir="/tmp"))
    folder.chmod(0o755)
    machines: list[Machine] = []
    try:
        with _network(3) as names, _database(folder / "postgresql") as address:
            site = OneAddress(pages=given.pages, port=free_port())
            settings = settings_of(
                address,
                folder / "work",
                parts=3,
                delay_s=1.0,
                lease_s=given.lease_s,
                safe_s=2 * given.lease_s,
            )
            for number in range(2):
                setup.create(folder / f"portal-{number}", settings=settings)
            machines += [
                Machine(folder, number, settings, before=["ip", "netns", "exec", name])
                for number, name in enumerate(names)
            ]
            drill = Drill(folder, site, machines, names, given.cut_off_s, given.lease_s)
            with (
                _serving(site),
                Archive.open(folder / "portal-0") as one,
                Archive.open(folder / "portal-1") as two,
            ):
                for machine in machines:
                    machine.start()
                figures = drill.run([one, two])
            for machine in machines:
                machine.stop()
    finally:
        for machine in machines:
            machine.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(figures, indent=2))
    if given.json:
        given.json.write_text(json.dumps(figures))
    wrong = ("at_once", "requests_of_ghost_after_its_lease", "missing", "twice")
    is_polite = not any(figures[name] for name in wrong) and float(str(figures["shortest_gap_s"])) >= 1.0
    return 0 if is_polite and figures["requests_of_ghost"] else 1


if __name__ == "__main__":
    sys.exit(main())
