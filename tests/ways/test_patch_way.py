"""A harvest and its patches are one version, everywhere and after a rebuild; a patch that is killed is resumed and repeats nothing."""

import json
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from databases import configure, copy_home
from webdepot.access import cdx
from webdepot.access.cdx import Dialect
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.services.access import lookup
from webdepot.services.access.cdx import cdx_server
from webdepot.services.access.replay import replay

COUNT = 12
PNG = b"\x89PNG\r\n\x1a\n of no use but there"


@dataclass(frozen=True)
class Made:
    """An archive that several tests begin with, and its first harvest. They work on copies."""

    home: Path
    harvest: str
    brought: int = 0


@pytest.fixture(scope="module")
def broken(lasting_site, webdepot_at, empty_home, tmp_path_factory) -> Made:
    """A harvest whose pictures all failed; the site has mended them since."""
    site = lasting_site
    pictures = "".join(f"<img src='/p/{number}.png'>" for number in range(COUNT))
    site.page(
        "/",
        "Start",
        f"<p>A page of pictures, with words enough to be one.</p>{pictures}<img src='/never.png'>",
    )
    for number in range(COUNT):
        site.pages[f"/p/{number}.png"] = (503, {"Content-Type": "text/plain"}, b"later, please")
    home = copy_home(empty_home, tmp_path_factory.mktemp("broken") / "home")
    configure(home, "[harvest]\ntries = 1\n")
    done = json.loads(
        webdepot_at(
            home, "archive", f"{site.url}/", "--delay", "0", "--allow-private", "--json", "--quiet"
        ).stdout
    )
    for number in range(COUNT):
        site.pages[f"/p/{number}.png"] = (200, {"Content-Type": "image/png"}, PNG + bytes([number]))
    return Made(home, done["harvest"])


@pytest.fixture(scope="module")
def patched(broken, webdepot_at, tmp_path_factory) -> Made:
    """The same, patched."""
    home = copy_home(broken.home, tmp_path_factory.mktemp("patched") / "home")
    done = json.loads(webdepot_at(home, "quality", "patch", broken.harvest, "--json", "--quiet").stdout)
    return Made(home, broken.harvest, done["brought"])


@pytest.fixture
def site(lasting_site):
    """The site, as it was again afterwards."""
    pages = dict(lasting_site.pages)
    yield lasting_site
    lasting_site.pages = pages


def seen(home, url):
    """What a person, the time bar, replay and a machine see of an address: status codes and number."""
    with Archive.open(home) as archive:
        looked = lookup.look_up(archive, url, reader=ANYONE)
        place = replay.find_place(archive, url, "2000", collection="all", reader=ANYONE)
        lines = list(
            cdx_server.find(archive, cdx.parse([("url", url)], Dialect.PYWB), reader=ANYONE).captures
        )
        replayed = replay.open_capture(archive, url, "2000", collection="all", reader=ANYONE)
        body = replayed.payload.read()
        replayed.close()
    assert lines == list(looked.captures)
    return [capture.status for capture in looked.captures], place.total, place.capture.status, body


def test_patched_pictures_are_one_version(broken, patched, site, webdepot, tmp_path):
    assert seen(broken.home, f"{site.url}/p/3.png") == ([503], 1, 503, b"later, please")
    assert patched.brought >= COUNT
    home = copy_home(patched.home, tmp_path / "home")
    mended = ([200], 1, 200, PNG + b"\3")
    assert seen(home, f"{site.url}/p/3.png") == mended
    assert seen(home, f"{site.url}/never.png")[0] == [404]
    webdepot("index", "rebuild")
    assert seen(home, f"{site.url}/p/3.png") == mended
    webdepot("depot", "verify", home / "depot")


def test_the_next_harvest_is_compared_with_parent_and_patch(patched, site, webdepot, tmp_path):
    copy_home(patched.home, tmp_path / "home")
    site.page("/late.html", "Late", "<p>A page that was not there before, with words enough to be one.</p>")
    site.pages["/p/0.png"] = (200, {"Content-Type": "image/png"}, PNG + b"another picture")
    status, headers, start = site.pages["/"]
    site.pages["/"] = (
        status,
        headers,
        start.replace(b"<img src='/never.png'>", b"<a href='/late.html'>late</a>"),
    )
    again = json.loads(
        webdepot("archive", f"{site.url}/", "--delay", "0", "--allow-private", "--json", "--quiet").stdout
    )
    told = json.loads(
        webdepot("quality", "check", again["harvest"], "--json", "--quiet").stdout.splitlines()[-1]
    )
    # New is late.html alone: pictures that a patch brought are not. Changed are the start page and one
    # picture.
    assert told["counts"] == {"quality.since-before": 1, "quality.file-new": 1, "quality.file-changed": 2}


def test_a_killed_patch_goes_on(broken, site, webdepot, program, tmp_path):
    site.requests.clear()
    asked = [
        program,
        "--home",
        copy_home(broken.home, tmp_path / "home"),
        "quality",
        "patch",
        broken.harvest,
        "--quiet",
    ]
    with subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
        site.wait_for_requests(COUNT // 2)
        killed.kill()
    done = json.loads(webdepot("quality", "patch", broken.harvest, "--json", "--quiet").stdout)
    assert done["brought"] >= 1
    assert max(Counter(site.requests).values()) <= 3, site.requests
    for number in range(COUNT):
        assert seen(tmp_path / "home", f"{site.url}/p/{number}.png") == ([200], 1, 200, PNG + bytes([number]))
    kinds = [json.loads(line)["kind"] for line in webdepot("harvest", "list", "--json").stdout.splitlines()]
    assert kinds.count("patch") == 1
