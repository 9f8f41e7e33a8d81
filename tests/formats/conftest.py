"""An examiner for all tests of formats: its children take a moment to start."""

import pytest

from webdepot.formats.examine import Examiner


@pytest.fixture(scope="session")
def examiner():
    with Examiner() as opened:
        yield opened


@pytest.fixture(scope="session")
def identifier(examiner):
    return examiner
