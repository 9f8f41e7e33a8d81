"""Fixtures for all tests, and the guard: nothing here may talk to anything but this machine."""

import ipaddress
import multiprocessing.forkserver
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from hypothesis import settings

import databases
from webdepot.accounts import accounts
from webdepot.archive import Archive
from webdepot.engine.process_pool import ProcessEngine
from webdepot.services.admin import setup

pytest_plugins = ["s3_servers", "letters", "postgres", "dask_cluster", "opensearch"]

# A busy machine is no bug: no test fails because an example took long. The same examples every time, so that
# a change is judged by what it changed; `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile("webdepot", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("webdepot")

MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 4 << 30


def pytest_configure() -> None:
    """Tests have their files in memory where there is room: thousands of archives wait for the disk at each
    commit otherwise.

    What must survive a crash of the machine cannot be seen by a test anyway; a killed process leaves the same
    files either way.
    """
    if "PYTEST_DEBUG_TEMPROOT" not in os.environ and os.access(MEMORY, os.W_OK):
        free_bytes = shutil.disk_usage(MEMORY).free
        available_bytes = (
            int(Path("/proc/meminfo").read_text().partition("MemAvailable:")[2].split()[0]) << 10
        )
        if min(free_bytes, available_bytes) >= ENOUGH_BYTES:
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)


# A shell starts background commands, so perhaps us, with SIGINT ignored, and ours would ignore Ctrl-C like it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Commands that give way would wait for all the other tests.
os.environ["WEBDEPOT_INDEX_NICENESS"] = "0"

_real_connect = socket.socket.connect


def _guarded_connect(self: socket.socket, address: Any) -> None:
    host = address[0] if isinstance(address, tuple) else None
    if host is not None and host != "localhost":
        try:
            is_local = ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
        except ValueError:
            is_local = False
        if not is_local:
            raise AssertionError(f"A test tried to reach {address}: only loopback is allowed")
    _real_connect(self, address)


@pytest.fixture(autouse=True, scope="session")
def _only_loopback() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", _guarded_connect)
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_engine() -> Iterator[None]:
    """The archives of all tests hand their work to the same processes: to start these takes longer than what
    most tests ask of them.
    """
    engine = ProcessEngine(workers=2)
    multiprocessing.forkserver.ensure_running()  # now, so that it has the environment of no test
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Archive, "engine", property(lambda _: engine))
        yield
    engine.close()


@pytest.fixture(autouse=True, scope="session")
def _cheap_passwords() -> Iterator[None]:
    """Passwords of test persons are hashed in a moment. What a hash costs stands in it, so that servers
    verify these as quickly.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            accounts, "PasswordHasher", partial(PasswordHasher, time_cost=1, memory_cost=8, parallelism=1)
        )
        yield


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once: every migration runs for it. Tests get copies."""
    folder = tmp_path_factory.mktemp("empty") / "home"
    setup.create(folder)
    return folder


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path, database_kind: str) -> Path:
    """A new, empty archive."""
    empty: Path = request.getfixturevalue(
        "empty_postgresql_home" if database_kind == "postgresql" else "empty_home"
    )
    return databases.copy_home(empty, tmp_path / "home")


@pytest.fixture
def database_kind() -> str:
    """Where `home` has its database. Tests marked `both_databases` run with each kind."""
    return "postgresql" if databases.IS_CHOSEN else "sqlite"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_marked = metafunc.definition.get_closest_marker("both_databases") is not None
    if is_marked and "database_kind" in metafunc.fixturenames and not databases.IS_CHOSEN:
        metafunc.parametrize("database_kind", ["sqlite", "postgresql"])


@pytest.fixture
def archive(home: Path) -> Iterator[Archive]:
    with Archive.open(home, agent="test") as opened:
        yield opened
