"""An identifier and a guard for all tests of formats: both take a moment to start."""

import pytest

from webdepot.formats.guard import Guard
from webdepot.formats.identify import SiegfriedIdentifier


@pytest.fixture(scope="session")
def identifier():
    with SiegfriedIdentifier() as opened:
        yield opened


@pytest.fixture(scope="session")
def guard():
    with Guard() as opened:
        yield opened
