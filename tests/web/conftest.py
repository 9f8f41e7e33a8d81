"""One archive and one server for all tests of the portal."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from museum import (
    EDITIONS,
    NOW,
    PASSWORD,
    PDF,
    PICTURE,
    SCRIPT,
    SITE,
    Served,
    Warc,
    edition,
    make_home,
    serving,
)

from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive


@pytest.fixture(scope="session")
def museum(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WARC file with a site in four editions."""
    warc = Warc(tmp_path_factory.mktemp("warcs") / "museum.warc.gz")
    for number, stamp in enumerate(EDITIONS, start=1):
        warc.response(f"{SITE}/", stamp, edition(number, stamp))
        warc.response(
            f"{SITE}/style.css", stamp, f"h1 {{ color: rgb({number}, 100, 50) }}".encode(), mime="text/css"
        )
        warc.response(f"{SITE}/picture.png", stamp, PICTURE, mime="image/png")
        warc.response(f"{SITE}/app.js", stamp, SCRIPT, mime="text/javascript")
        warc.response(
            f"{SITE}/data.json", stamp, json.dumps({"words": stamp}).encode(), mime="application/json"
        )
        warc.response(
            f"{SITE}/news.html",
            stamp,
            f"<title>News of {stamp[:4]}</title><h1>News</h1><a href='/'>Home</a>".encode(),
        )
    warc.response(f"{SITE}/leaflet.pdf", EDITIONS[3], PDF, mime="application/pdf")
    warc.response(
        "http://mixed.example/",
        EDITIONS[1],
        b"<title>Mixed</title><p>Mixed times</p><img src='/late.png' alt=''>",
    )
    warc.response("http://mixed.example/late.png", EDITIONS[3], PICTURE, mime="image/png")
    return warc.write()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, museum: Path) -> Iterator[Served]:
    """The museum's archive with one person for each role, served. Tests must not change data that others
    read.
    """
    home = make_home(
        tmp_path_factory.mktemp("home") / "archive",
        museum,
        settings='[archive]\nname = "Archive of Clocks"\n',
    )
    with Archive.open(home, clock=lambda: NOW) as archive:
        for role in Role:
            accounts.add(archive.database, role.value.replace(" ", "-"), PASSWORD, [role], NOW)
    with serving(home) as running:
        yield running
