"""An archive with a fixed clock, and packages in it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from depot_samples import content_of

from clocks import MovedClock
from webdepot.archive import Archive
from webdepot.depot import package
from webdepot.model import Package
from webdepot.services.depot import deposit, storage_places


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def archive(home: Path, clock: MovedClock):
    with Archive.open(home, agent="test", clock=clock) as opened:
        yield opened


@pytest.fixture
def keep_site(archive: Archive, tmp_path: Path) -> Callable[..., Package]:
    """A new package in the depot and in the database."""

    def keep(number: int, **more) -> Package:
        facts = package.build(archive.store, content_of(tmp_path, number, **more))
        adopted = deposit.adopt(archive)
        assert [each.id for each in adopted] == [facts.package.id]
        storage_places.copy_out(archive, facts.package.id)
        return facts.package

    return keep
