"""Harvesters on several machines: is every page fetched once, politely, whatever is killed?

A site of many hosts, each at a loopback address of its own or several at one; a PostgreSQL server; a folder as
working place; and processes `webdepot harvester`, each with a home of its own as if it were a machine. Some are
killed (SIGKILL), half of them with their home deleted. Afterwards the containers are read, and the requests that
the site saw are compared with them. For each kill, the output says how fast the machine was, how much of its
work was requested again and how old that was, and when its parts were taken over.

    python -m bench.harvesters [--quick] [--kills 20] [--outage-s 0] [--pages 408] [--delay-s 0.2]
        [--lease-s 6] [--safe-s 2] [--every-s 4] [--embedded] [--json FILE]

`--embedded` runs the same harvest on one machine first, with three processes and without servers, and compares the
processor time for each page. The processor time of the site and of this program is in neither.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import postgres_server
from bench.machines import (
    Machine,
    ManyHosts,
    captured,
    find_stat,
    many_hosts,
    session_cpu_s,
    settings_of,
    shortest_gap_s,
)
from bench.server_programs import WITHOUT_FSYNC
from sqlalchemy import create_engine, make_url

from webdepot.archive import Archive
from webdepot.cluster.postgresql_server import PostgresqlServer
from webdepot.cluster.processes import ProcessFolder
from webdepot.errors import WebdepotError
from webdepot.harvest.parts import harvester_rows, part_rows
from webdepot.harvest.parts.part_rows import PartRow
from webdepot.model import Harvest
from webdepot.services.admin import setup
from webdepot.services.harvest import harvests, runner
from webdepot.services.harvest.options import HarvestOptions

_RATE_OVER_S = 10.0
_START_S = 60.0
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


def embedded_cpu_us(folder: Path, site: ManyHosts, *, delay_s: float) -> int:
    """Processor time for each page of the same harvest on one machine, with three processes."""
    home = folder / "embedded"
    setup.create(
        home,
        settings=f"[harvest]\nallow_private = true\ndelay_s = {delay_s}\nprocesses = 3\nleast_free_bytes = 0\n",
    )
    command = [sys.executable, "-c", _HARVEST, str(home), *site.seeds]
    process = subprocess.Popen(command, start_new_session=True)
    cpu_s = 0.0
    while process.poll() is None:
        cpu_s = max(cpu_s, session_cpu_s(process.pid))
        time.sleep(0.2)
    captures = sum((captured(path) for path in home.glob("harvests/*/warc")), Counter[str]())
    missing = site.expected() - captures.keys()
    if missing:
        raise AssertionError(f"{len(missing)} pages are missing")
    return round(cpu_s / len(site.expected()) * 1e6)


@dataclass
class Kill:
    """A machine that was killed while it worked, and what happened to its parts."""

    machine: str
    with_disk: bool
    began_s: float
    at_s: float
    """When it was dead, and its disk was deleted."""
    rate: float
    """Requests per second of this machine, in the last ten seconds of its work."""
    others_at_work: int
    """Machines that had made requests since they were started, and could take over."""
    parts: dict[int, int]
    """Part -> its generation."""
    taken_after_s: dict[int, float] = field(default_factory=dict)
    asked_again: int = 0
    oldest_s: float = 0.0
    """How long before the kill the oldest of the pages was requested that were requested again."""
    last_requests: int = 0
    """Requests of this machine in the last `safe_s` seconds."""


@dataclass
class Drill:
    """A harvest by several machines, of which some are killed; the database is stopped once if `--outage-s`
    is given.
    """

    folder: Path
    site: ManyHosts
    machines: list[Machine]
    kills: int
    every_s: float
    outage_s: float
    safe_s: float
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
        last_s, outage = began_s, dict[str, object]()
        while thread.is_alive():
            thread.join(0.2)
            self._note_taken(archive, harvest)
            if self.killed < self.kills and time.monotonic() - last_s > self.every_s:
                self._kill(archive, harvest)
                last_s = time.monotonic()
            if self.outage_s and not outage and len(self.site.log) > len(self.site.expected()) // 3:
                outage = self._stop_database(address)
        after, cpu_s = _server_costs(address), [machine.cpu_s() for machine in self.machines]
        captures = captured(harvests.containers_folder(archive, harvest))
        expected, seconds = self.site.expected(), time.monotonic() - began_s
        return {
            "outcome": str(outcome[0]),
            "seconds": round(seconds, 1),
            "pages_per_s": round(len(expected) / seconds, 1),
            "pages": len(expected),
            "missing": sum(url not in captures for url in expected),
            "twice": sum(count > 1 for url, count in captures.items() if url in expected),
            **self._costs_of_kills(),
            **outage,
            "harvesters_cpu_us_per_page": round((sum(cpu_s) - idle_cpu_s) / len(expected) * 1e6),
            "shortest_gap_s": round(shortest_gap_s(self.site.log), 4),
            # A server that was started again counts its processor time from the beginning.
            "postgresql_cpu_us_per_page": None
            if outage
            else round((after[0] - before[0]) / len(expected) * 1e6),
            "wal_bytes_per_page": round((after[1] - before[1]) / len(expected)),
        }

    def _wait_for_machines(self, archive: Archive) -> None:
        """Wait until all harvesters wait for parts: they are started once, not for each harvest."""
        live = 0
        while live < len(self.machines):
            time.sleep(0.5)
            with archive.database.leasing() as connection:
                live = sum(row.is_live for row in harvester_rows.every(connection))
        time.sleep(2.0)

    def _stop_database(self, address: str) -> dict[str, object]:
        """Stop the server, and start it again on the same files."""
        folder = Path(str(make_url(address).query["host"]))
        server = PostgresqlServer(folder=folder, options=WITHOUT_FSYNC).program()
        processes = ProcessFolder(folder)
        processes.stop({server.name: server.stop})
        stopped_s, seen = time.monotonic(), len(self.site.log)
        time.sleep(self.outage_s)
        asked = len(self.site.log) - seen
        processes.start(server)
        processes.wait(server, at_most_s=_START_S)
        return {"outage_s": round(time.monotonic() - stopped_s, 1), "asked_in_outage": asked}

    def _kill(self, archive: Archive, harvest: Harvest) -> None:
        """Kill a machine that works on parts, chosen at random."""
        live: list[PartRow] = []
        with suppress(WebdepotError), archive.database.leasing() as connection:
            live = [part for part in part_rows.of_harvest(connection, harvest.id) if part.is_live]
        # The lease of a killed machine remains valid, under the same name.
        unclaimed = {
            part for kill in self.kills_seen for part in kill.parts.keys() - kill.taken_after_s.keys()
        }
        rates = {machine.name: self._rate(machine) for machine in self.machines}
        held = [part for part in live if part.part not in unclaimed and rates.get(part.machine)]
        names = sorted({part.machine for part in held})
        if not names:
            return  # later
        name = self.chance.choice(names)
        machine = next(each for each in self.machines if each.name == name)
        with_disk, began_s = self.killed % 2 == 0, time.monotonic()
        machine.kill(with_disk=with_disk)
        kill = Kill(
            machine=name,
            with_disk=with_disk,
            began_s=began_s,
            at_s=time.monotonic(),
            rate=rates[name],
            others_at_work=sum(rate > 0 for rate in rates.values()) - 1,
            parts={part.part: part.generation for part in held if part.machine == name},
        )
        self.kills_seen.append(kill)
        machine.start()

    def _rate(self, machine: Machine) -> float:
        """Requests of a machine per second, since it was started or in the last seconds; 0 before its first
        request.
        """
        now_s = time.monotonic()
        since_s = max(machine.started_s, now_s - _RATE_OVER_S)
        began = [
            seen.began_s for seen in self.site.log if seen.machine == machine.name and seen.began_s >= since_s
        ]
        return len(began) / max(now_s - began[0], 0.1) if began else 0.0

    def _note_taken(self, archive: Archive, harvest: Harvest) -> None:
        """Note which parts of killed machines have been taken since the last time."""
        waiting = [kill for kill in self.kills_seen if kill.parts.keys() - kill.taken_after_s.keys()]
        if not waiting:
            return
        with suppress(WebdepotError), archive.database.leasing() as connection:
            generations = {
                part.part: part.generation for part in part_rows.of_harvest(connection, harvest.id)
            }
            for kill in waiting:
                for part, generation in kill.parts.items():
                    if generations[part] > generation:
                        kill.taken_after_s.setdefault(part, time.monotonic() - kill.at_s)

    def _costs_of_kills(self) -> dict[str, object]:
        without_kill = self._count_asked_again()
        takeovers = [
            (round(max(kill.taken_after_s.values()), 1), kill.others_at_work)
            for kill in self.kills_seen
            if kill.taken_after_s
        ]
        return {
            "kills": self.killed,
            "longest_takeover_s": max(takeovers, default=(None,))[0],
            "longest_takeover_with_others_at_work_s": max(
                (seconds for seconds, others in takeovers if others), default=None
            ),
            "asked_again": without_kill + sum(kill.asked_again for kill in self.kills_seen),
            "asked_again_without_kill": without_kill,
            "asked_again_to_bound": max(
                (round(kill.asked_again / max(kill.last_requests, 1), 2) for kill in self.kills_seen),
                default=0,
            ),
            "asked_again_oldest_s": round(max((kill.oldest_s for kill in self.kills_seen), default=0.0), 2),
            "each_kill": [asdict(kill) for kill in self.kills_seen],
        }

    def _count_asked_again(self) -> int:
        """Count, for each kill, the pages that the machine had requested and that were requested again;
        return how many were requested again without a kill.
        """
        for kill in self.kills_seen:
            kill.last_requests = sum(
                seen.machine == kill.machine and kill.began_s - self.safe_s <= seen.began_s <= kill.at_s
                for seen in self.site.log
            )
        before: dict[str, tuple[str, float]] = {}
        others, expected = 0, self.site.expected()
        for seen in sorted(self.site.log, key=lambda seen: seen.began_s):
            if seen.url in before:
                machine, at_s = before[seen.url]
                for kill in self.kills_seen:
                    if kill.machine == machine and at_s <= kill.at_s <= seen.began_s:
                        kill.asked_again += 1
                        kill.oldest_s = max(kill.oldest_s, kill.began_s - at_s)
                        break
                else:
                    others += 1
            if seen.url in expected:
                before[seen.url] = (seen.machine, seen.began_s)
        return others


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
        fields = find_stat(pid)
        # The first is the server itself, which also counts processes of its own that have ended.
        ticks += sum(map(int, fields[11:15] if number == 0 else fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK"), int(wal_bytes)


def _server_pids(address: str) -> list[int]:
    """The processes of the database server, its first one first."""
    folder = Path(str(make_url(address).query["host"]))
    first = int(next(folder.rglob("postmaster.pid")).read_text().split("\n")[0])
    others = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [first, *(pid for pid in others if find_stat(pid)[1:2] == [str(first)])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--outage-s", type=float, default=0.0, help="how long the database is stopped, once")
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
            setup.create(folder / "portal", settings=settings)
            # With room for the parts of one that is killed.
            machines += [Machine(folder, number, settings, parts=4) for number in range(3)]
            for machine in machines:
                machine.start()
            drill = Drill(
                folder,
                site,
                machines,
                kills,
                every_s=given.every_s,
                outage_s=given.outage_s,
                safe_s=given.safe_s,
            )
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
    return 0 if is_right(figures, given) else 1


def is_right(figures: Mapping[str, Any], given: argparse.Namespace) -> bool:
    """Whether nothing is missing, stored twice or requested again without a reason, a kill costs no more than
    the requests of `safe_s` seconds, and parts are taken over in time if another machine could do so.
    """
    takeover_s = figures["longest_takeover_with_others_at_work_s"] or 0.0
    return (
        figures["outcome"] == "finished"
        and not figures["missing"]
        and not figures["twice"]
        # Leases that end while the database is stopped cost what a kill costs.
        and (given.outage_s > 0 or not figures["asked_again_without_kill"])
        and figures["asked_again_to_bound"] <= 1
        and (given.quick or takeover_s <= given.lease_s + 5.0)
    )


if __name__ == "__main__":
    sys.exit(main())
