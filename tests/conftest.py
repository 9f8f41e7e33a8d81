"""Fixtures for all tests, and the guard: nothing here may talk to anything but this machine."""

import ipaddress
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from webdepot.archive import Archive
from webdepot.services import founding

pytest_plugins = ["s3_servers", "letters", "postgres"]

# A busy machine is no bug: no test fails because an example took long. The same examples every time, so that a change is judged by what
# it changed; `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile("webdepot", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("webdepot")

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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A new, empty archive."""
    folder = tmp_path / "home"
    founding.found(folder)
    return folder


@pytest.fixture
def archive(home: Path) -> Iterator[Archive]:
    with Archive.open(home, agent="test") as opened:
        yield opened
