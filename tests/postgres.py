"""A real PostgreSQL for tests (`bench.postgres_server`).

With WEBDEPOT_TEST_DATABASE=postgresql all archives that tests create have their databases on it
(`make test-postgresql`).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import postgres_server

from databases import IS_CHOSEN, Databases
from webdepot.config.config import FILE_NAME
from webdepot.services.admin import setup


@pytest.fixture(scope="session")
def databases(postgres: str) -> Databases:
    return Databases(postgres)


@pytest.fixture(autouse=True, scope="session")
def _archives_on_postgresql(request: pytest.FixtureRequest) -> Iterator[None]:
    """Archives of tests have their databases on the server, if that is chosen."""
    if not IS_CHOSEN:
        yield
        return
    databases: Databases = request.getfixturevalue("databases")
    found = setup.found

    def found_there(home: Path, *, settings: str = "", **given: object) -> bool:
        file = home / FILE_NAME
        if not home.exists() or not setup.is_complete(home):
            section = f'[database]\nurl = "{databases.create()}"\n'
            if file.exists() and not settings:
                file.write_text(f"{file.read_text()}\n{section}")
            else:
                settings = f"{settings}\n{section}"
        return found(home, settings=settings, **given)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setup, "found", found_there)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of an empty database, for SQLAlchemy."""
    with postgres_server.running() as address:
        yield address
