"""The text index of each implementation, empty. Contracts of other ports have an `index` of their own."""

import pytest

from text_indexes import ENGINES, MAKERS
from webdepot.engine.process_pool import ProcessEngine
from webdepot.index.postgresql_captures import PostgresqlCaptureIndex


@pytest.fixture(params=ENGINES)
def index(request, tmp_path):
    made = MAKERS[request.param](tmp_path / "text")
    yield made
    made.close()


@pytest.fixture(scope="module")
def engine():
    processes = ProcessEngine(workers=2)
    yield processes
    processes.close()


@pytest.fixture(scope="session")
def captures_on_server(databases):
    """A capture index on PostgreSQL: to create its tables takes longer than most tests."""
    made = PostgresqlCaptureIndex(databases.create(), partitions=4)
    yield made
    made.close()
