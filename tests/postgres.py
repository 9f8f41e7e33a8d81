"""A real PostgreSQL for tests (`bench.postgres_server`).

With WEBDEPOT_TEST_DATABASE=postgresql all archives that tests create have their databases on it
(`make test-postgresql`).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import postgres_server

from databases import IS_CHOSEN, Databases, address_of, with_address
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
    create = setup.create

    def create_there(home: Path, *, settings: str = "", **given: object) -> bool:
        if "[database]" not in settings and (not home.is_dir() or not setup.is_complete(home)):
            address, file = address_of(home) or databases.create(), home / FILE_NAME
            if settings or not file.exists():
                settings = with_address(settings, address)
            elif not address_of(home):
                file.write_text(with_address(file.read_text(), address))
        return create(home, settings=settings, **given)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setup, create.__name__, create_there)
        yield


@pytest.fixture(scope="session")
def empty_postgresql_home(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Path:
    """As `empty_home`, with its database on the server."""
    folder = tmp_path_factory.mktemp("empty") / "home"
    setup.create(folder, settings=with_address("", databases.create()))
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of an empty database, for SQLAlchemy."""
    with postgres_server.running() as address:
        yield address
