"""Fixtures of the harvest room."""

from collections.abc import Iterator

import pytest
from harvest_site import Site, running_site


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running
