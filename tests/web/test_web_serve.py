"""Starting and stopping the server: ports, addresses, signals."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from museum import SERVER, make_home

from webdepot.archive import Archive
from webdepot.errors import ConfigError, Conflict, InputError
from webdepot.web.serve import choose_urls, is_loopback, serve


@pytest.fixture
def archive(tmp_path: Path):
    with Archive.open(make_home(tmp_path / "archive")) as opened:
        yield opened


def never(portal: str, replay: str) -> None:
    raise AssertionError("the server must not start")


@pytest.mark.parametrize("option", ["--port", "--replay-port"])
def test_a_port_in_use_is_a_conflict_that_names_port_and_option(archive: Archive, option):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        ports = {"port": taken, "replay_port": 0} if option == "--port" else {"port": 0, "replay_port": taken}
        with pytest.raises(Conflict, match=rf"Port {taken} .*in use.*webdepot serve {option} 0"):
            serve(archive, host="127.0.0.1", ready=never, **ports)


def test_an_address_that_is_not_this_machines_is_said(archive: Archive):
    with pytest.raises(InputError, match="not an address of this machine"):
        serve(archive, host="203.0.113.1", port=0, replay_port=0, ready=never)


def test_other_addresses_than_loopback_need_two_names(tmp_path: Path, archive: Archive):
    with pytest.raises(ConfigError, match="addresses with different host names"):
        serve(archive, host="0.0.0.0", port=0, replay_port=0, ready=never)


@pytest.mark.parametrize(
    ("portal", "replay", "is_good"),
    [
        ("https://archive.example.org", "https://replay.example.org/", True),
        ("https://archive.example.org", "", False),
        ("https://archive.example.org", "https://archive.example.org:8443", False),
    ],
)
def test_configured_addresses_must_have_different_host_names(tmp_path: Path, portal, replay, is_good):
    settings = f'[web]\nportal_url = "{portal}"\nreplay_url = "{replay}"\n'
    with Archive.open(make_home(tmp_path / "archive", settings=settings)) as archive:
        if not is_good:
            with pytest.raises(ConfigError):
                choose_urls(archive, "0.0.0.0", 1, 2)
            return
        found = choose_urls(archive, "0.0.0.0", 1, 2)
        assert (found.portal_url, found.frame_url, found.replay_url) == (
            portal,
            portal,
            "https://replay.example.org",
        )


@pytest.mark.parametrize(
    ("host", "portal", "replay"),
    [
        ("127.0.0.1", "http://127.0.0.1:1", "http://localhost:2"),
        ("localhost", "http://localhost:1", "http://127.0.0.1:2"),
        ("::1", "http://[::1]:1", "http://localhost:2"),
    ],
)
def test_on_loopback_portal_and_replay_have_different_host_names(archive: Archive, host, portal, replay):
    found = choose_urls(archive, host, 1, 2)
    assert is_loopback(host)
    assert (found.portal_url, found.replay_url) == (portal, replay)
    assert (found.frame_url, found.pages_url) == (
        "http://webdepot.localhost:1",
        "http://webdepot.localhost:2",
    )


def test_archived_sites_share_a_host_name_if_so_configured(tmp_path: Path):
    settings = '[web]\nhost_per_site = "off"\n'
    with Archive.open(make_home(tmp_path / "archive", settings=settings)) as archive:
        found = choose_urls(archive, "127.0.0.1", 1, 2)
    assert (found.frame_url, found.pages_url) == ("http://localhost:1", "")


@pytest.mark.parametrize(
    ("replay", "setting", "expected"),
    [
        ("https://replay.example.org", "auto", ""),
        ("https://replay.example.org", "off", ""),
        ("https://replay.example.org", "on", "https://replay.example.org"),
        ("http://192.0.2.1:8081", "on", None),
    ],
)
def test_behind_a_web_server_sites_have_hosts_if_so_configured(tmp_path: Path, replay, setting, expected):
    settings = (
        f'[web]\nportal_url = "http://a.example.org"\nreplay_url = "{replay}"\nhost_per_site = "{setting}"\n'
    )
    with Archive.open(make_home(tmp_path / "archive", settings=settings)) as archive:
        if expected is None:
            with pytest.raises(ConfigError, match="host_per_site"):
                choose_urls(archive, "0.0.0.0", 1, 2)
        else:
            assert choose_urls(archive, "0.0.0.0", 1, 2).pages_url == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_tidily_while_a_reader_is_connected(archive: Archive, number):
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(archive.home)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    portal, _ = json.loads(process.stdout.readline())
    port = int(portal.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as reader:
        reader.sendall(b"GET /about HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
        assert reader.recv(12) == b"HTTP/1.1 200"
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0 and "Traceback" not in errors
