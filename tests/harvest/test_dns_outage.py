"""An hour without DNS, by the clock of the crawl: the harvest waits, loses nothing and fetches nothing twice.

The clock of the crawl runs a thousand times as fast as ours, so that the hour takes three and a half seconds.
"""

import socket
import time
from pathlib import Path

import pytest
from harvest_crawl import kept, run
from harvest_site import Site, fill

from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.politeness.pauses import Manners

HOUR_S = 3600.0
FASTER = 1000.0
HOSTS = ("a.example", "b.example", "c.example")


class _Names:
    """Names resolve to this machine, except for an hour that starts with the lookup after the tenth page."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.down_from_s = 0.0
        self.refused = 0

    async def look_up(self, host: str) -> list[str]:
        now_s = time.monotonic()
        if len(self._site.log) >= 10 and not self.down_from_s:
            self.down_from_s = now_s
        if self.down_from_s and now_s < self.down_from_s + HOUR_S:
            self.refused += 1
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return ["127.0.0.1"]


@pytest.mark.parametrize("patience_s", [2 * HOUR_S, 0.0])
def test_an_hour_without_names_loses_nothing(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> None:
    paths = fill(site, 60)
    real, begun_s = time.monotonic, time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: begun_s + (real() - begun_s) * FASTER)
    names = _Names(site)
    seeds = [f"http://{host}:{site.port}/0" for host in HOSTS]
    manners = Manners(
        delay_s=0.0, delay_factor=0.0, retry_delay_s=0.02, longest_retry_s=0.05, dns_patience_s=patience_s
    )

    def harvest() -> int:
        # Lookups are cached for ten seconds by that clock, so names must be looked up repeatedly.
        router = Router(allow_private=True, look_up=names.look_up, keep_s=10.0)
        return run(tmp_path, seeds, router=router, manners=manners, checkpoint_s=200.0).waiting

    left = harvest()
    if not patience_s:
        assert left, "it gave up, and what waits is kept for the next run"
        time.sleep(max((names.down_from_s + HOUR_S - time.monotonic()) / FASTER, 0.0))
        left = harvest()

    assert names.refused >= 12, "more tries than a harvest without patience has"
    assert left == 0
    wanted = [f"http://{host}:{site.port}{path}" for host in HOSTS for path in [*paths, "/robots.txt"]]
    held = [url for url in kept(tmp_path) if not url.endswith("/robots.txt")]
    assert len(held) == len(set(held))
    assert set(kept(tmp_path)) == set(wanted)
