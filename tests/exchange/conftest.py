"""Containers to keep and to exchange."""

from collections.abc import Callable
from pathlib import Path

import pytest
from exchange_samples import Warc
from partner_doubles import desk


@pytest.fixture
def write_warc() -> Callable[..., Path]:
    """A WARC file of a small site, each time another one."""

    def write(
        path: Path,
        *,
        site: str = "http://www.example.org",
        stamp: str = "20260301093000",
        words: str = "clocks",
    ) -> Path:
        warc = Warc(path)
        warc.response(
            f"{site}/",
            stamp,
            f"<!doctype html><title>Museum of {words}</title><h1>Museum of {words}</h1>".encode(),
        )
        warc.response(f"{site}/style.css", stamp, b"h1 { color: red }", mime="text/css")
        return warc.write()

    return write


@pytest.fixture
def partner():
    with desk() as made:
        yield made


@pytest.fixture(autouse=True)
def _partners_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The partners of these tests are on loopback, which the operator must allow."""
    monkeypatch.setenv("WEBDEPOT_HARVEST_PRIVATE_NETWORKS", "127.0.0.1/32")
