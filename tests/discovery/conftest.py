"""The closed network of Musterstadt, started once."""

from collections.abc import Iterator
from pathlib import Path

import musterstadt
import pytest
from closed_network import ClosedNetwork

from webdepot.archive import Archive


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClosedNetwork]:
    made = musterstadt.build(tmp_path_factory.mktemp("network"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def closed(network: ClosedNetwork, monkeypatch: pytest.MonkeyPatch) -> ClosedNetwork:
    """Webdepot directed into the closed network, by environment alone."""
    for name, value in network.environment.items():
        monkeypatch.setenv(name, value)
    return network


@pytest.fixture
def archive(closed: ClosedNetwork, home: Path) -> Iterator[Archive]:
    """Opened after the closed network is named in the environment."""
    with Archive.open(home, agent="test") as opened:
        yield opened
