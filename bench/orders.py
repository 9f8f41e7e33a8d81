"""How soon do harvesters on other machines obey an order given at a portal, and how old are the numbers it shows?

A site of several hosts, two processes `webdepot harvester` with homes of their own, and two portals: one watches
the harvest, the other one has neither its folder nor a harvester and gives all orders. It rejects the pages of one
host. In each round it adds an address of that host, pauses the harvest and resumes it. At the end it stops the
harvest. The site notes all requests, so that it is known when an order took effect:

- reject, pause, stop: the last request that the order forbids;
- add: the request for this address; nothing else is left at its host;
- resume: the first request, at the host that is asked last.

The age of numbers is the time since the first page was answered that they do not contain, measured ten times a
second.

    python -m bench.orders [--quick] [--rounds 10] [--limit-s 3] [--json FILE]

It fails if an order takes effect later than the limit, or if numbers are older.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench import postgres_server
from bench.machines import Machine, ManyHosts, SeenRequest, many_hosts, settings_of

from webdepot.archive import Archive
from webdepot.harvest.order_file import OrderVerb
from webdepot.services.admin import setup
from webdepot.services.harvest import control, runner
from webdepot.services.harvest.options import HarvestOptions

_PAGES = 100_000
_DELAY_S = 0.2
_QUIET_S = 4.0
"""How long to look for requests that an order forbids."""
_SLOWEST_S = 60.0
_EVERY_S = 0.1


@dataclass
class Portal:
    """A portal without the folder of the harvest, and what came of its orders."""

    archive: Archive
    harvest: str
    site: ManyHosts
    took_s: dict[str, list[float]] = field(default_factory=dict)

    def forbid(self, name: str, give: Callable[[], object], host: str = "") -> None:
        """Give an order, and note when the last request came that it forbids."""
        began_s = time.monotonic()
        give()
        time.sleep(_QUIET_S)
        while (last_s := self._last_s(host)) > time.monotonic() - _QUIET_S:
            if time.monotonic() > began_s + _SLOWEST_S:
                break
            time.sleep(_EVERY_S)
        self._note(name, max(last_s - began_s, 0.0))

    def allow(self, name: str, give: Callable[[], object], hosts: tuple[str, ...]) -> None:
        """Give an order, and note when the last of these hosts had a request."""
        began_s, before = time.monotonic(), len(self.site.log)
        give()
        missing, took_s = set(hosts), _SLOWEST_S
        while missing and time.monotonic() < began_s + _SLOWEST_S:
            for seen in self.site.log[before:]:
                if seen.server in missing and seen.began_s >= began_s:
                    missing.remove(seen.server)
                    took_s = seen.began_s - began_s
            time.sleep(_EVERY_S)
        self._note(name, _SLOWEST_S if missing else took_s)

    def _last_s(self, host: str) -> float:
        return max((seen.began_s for seen in self.site.log if host in ("", seen.server)), default=0.0)

    def _note(self, name: str, took_s: float) -> None:
        self.took_s.setdefault(name, []).append(took_s)
        print(f"{name:8} {took_s:5.2f} s", flush=True)


class Watcher:
    """Notes how old the numbers of a harvest are. Nothing is noted while they contain every page."""

    def __init__(self, archive: Archive, harvest: str, site: ManyHosts) -> None:
        self._archive, self._harvest, self._site = archive, harvest, site
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.ages_s: list[float] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(_EVERY_S):
            numbers = control.watch(self._archive, self._harvest).live
            now_s = time.monotonic()
            if numbers is not None:
                ended_s = sorted(seen.ended_s for seen in self._site.log if _is_answered_page(seen))
                if len(ended_s) > numbers.pages:
                    self.ages_s.append(now_s - ended_s[numbers.pages])


def _is_answered_page(seen: SeenRequest) -> bool:
    name = seen.url.rpartition("/p/")[2].removesuffix(".html")
    # Not the addresses that a harvester makes up to see how the site answers.
    return seen.ended_s > 0 and (seen.url.endswith("/") or (name.isdecimal() and int(name) < _PAGES))


def measure(folder: Path, rounds: int, hosts: tuple[str, ...]) -> dict[str, float]:
    with postgres_server.running() as address, many_hosts(hosts, _PAGES, answer_s=0.002) as site:
        settings = settings_of(address, folder / "work", parts=4, delay_s=_DELAY_S, lease_s=30.0, safe_s=10.0)
        for name in ("watching", "portal"):
            setup.create(folder / name, settings=settings)
        machines = [Machine(folder, number, settings, parts=4) for number in (1, 2)]
        try:
            for machine in machines:
                machine.start()
            with Archive.open(folder / "watching") as watching, Archive.open(folder / "portal") as elsewhere:
                return _drill(watching, elsewhere, site, rounds)
        finally:
            for machine in machines:
                machine.stop()


def _drill(watching: Archive, elsewhere: Archive, site: ManyHosts, rounds: int) -> dict[str, float]:
    harvest = runner.start_or_resume(watching, site.seeds, HarvestOptions.from_config(watching.config))
    thread = threading.Thread(target=lambda: runner.run(watching, harvest), daemon=True)
    thread.start()
    while len(site.log) < 20 * len(site.hosts):
        time.sleep(_EVERY_S)
    portal = Portal(elsewhere, harvest.id, site)
    watcher = Watcher(elsewhere, harvest.id, site)
    watcher.start()
    rejected, others = site.hosts[0], site.hosts[1:]
    origin = f"http://{rejected}:{site.port}"

    def give(verb: OrderVerb) -> Callable[[], object]:
        return lambda: control.give(elsewhere, harvest.id, verb, by="bench", reason="bench")

    portal.forbid(
        "reject", lambda: control.reject(elsewhere, harvest.id, [f"^{origin}/p/"], by="bench"), rejected
    )
    for number in range(rounds):
        new = [f"{origin}/added-{number}.html"]
        portal.allow("add", lambda new=new: control.add(elsewhere, harvest.id, new, by="bench"), (rejected,))
        portal.forbid("pause", give(OrderVerb.PAUSE))
        portal.allow("resume", give(OrderVerb.RESUME), others)
        time.sleep(_QUIET_S)
    watcher.stop()
    portal.forbid("stop", give(OrderVerb.STOP))
    thread.join(_SLOWEST_S)
    ages_s = sorted(watcher.ages_s)
    return {
        "orders": sum(map(len, portal.took_s.values())),
        **{f"{name}_longest_s": round(max(took_s), 2) for name, took_s in portal.took_s.items()},
        "numbers_looked_at": len(ages_s),
        "numbers_median_age_s": round(ages_s[len(ages_s) // 2], 2),
        "numbers_oldest_s": round(ages_s[-1], 2),
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test; its figures are meaningless")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--limit-s", type=float, default=3.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rounds, count = (1, 4) if given.quick else (given.rounds, 12)
    folder = Path(tempfile.mkdtemp(prefix="webdepot-orders-"))
    try:
        figures = measure(folder, rounds, tuple(f"127.0.3.{number + 2}" for number in range(count)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(figures, indent=2))
    if given.json:
        given.json.write_text(json.dumps(figures))
    longest_s = [value for name, value in figures.items() if name.endswith(("longest_s", "oldest_s"))]
    return 0 if given.quick or all(value <= given.limit_s for value in longest_s) else 1


if __name__ == "__main__":
    sys.exit(main())
