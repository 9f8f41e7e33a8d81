"""A small site, a clock that tests move, and an archive with both."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from planned_site import PROFILE, START, Site

from clocks import MovedClock
from webdepot.archive import Archive
from webdepot.services.harvest import profiles


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock(START)


@pytest.fixture
def planned(home: Path, clock: MovedClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    monkeypatch.setenv("WEBDEPOT_HARVEST_ALLOW_PRIVATE", "true")
    with Archive.open(home, clock=clock, agent="Ada") as archive:
        profiles.save(archive, "quick", PROFILE)
        yield archive
