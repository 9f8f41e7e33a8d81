"""An examiner for all tests of formats: its children take a moment to start."""

import pytest

from webdepot.formats.examine import FileExaminer


@pytest.fixture(scope="session")
def examiner():
    with FileExaminer() as opened:
        yield opened


@pytest.fixture(scope="session")
def identifier(examiner):
    return examiner
