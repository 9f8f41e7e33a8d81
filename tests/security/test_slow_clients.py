"""Clients that send or take nothing for long do not keep others out."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from limited_server import serving_with
from museum import Served, Warc, ask, make_home

from webdepot.services.admin import setup

QUICK = """
import webdepot.web.protocol as protocol
protocol.HEAD_S = protocol.BODY_S = protocol.STALL_S = 1.0
protocol._SWEEP_S = 0.1
"""
FEW_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (192, 192))
"""
SOFT_LIMIT = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
"""


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("hasty")
    warc = Warc(folder / "large.warc.gz")
    warc.response("http://large.example/", "20200101000000", bytes(64 << 20), mime="application/x-zeros")
    with serving_with(make_home(folder / "home", warc.write()), QUICK) as served:
        yield served


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), 60)


def ends(connection: socket.socket) -> bool:
    """Whether the server ends the connection; a timeout is an error."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /about HTTP/1.1\r\nHost: x\r\nX-A: "])
def test_half_a_head_is_not_waited_for(hasty: Served, sent: bytes) -> None:
    with connect(hasty.portal) as client:
        client.sendall(sent)
        assert ends(client)


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(hasty: Served) -> None:
    with connect(hasty.portal) as client, pytest.raises(ConnectionError):
        for _ in range(600):
            client.sendall(b"x")
            time.sleep(0.1)


def test_the_second_head_of_a_connection_is_not_waited_for_either(hasty: Served) -> None:
    host = urlsplit(hasty.portal).netloc.encode()
    with connect(hasty.portal) as client:
        client.sendall(b"GET /about HTTP/1.1\r\nHost: " + host + b"\r\n\r\nGET /ab")
        assert ends(client)


def test_a_body_that_does_not_come_is_not_waited_for(hasty: Served) -> None:
    host = urlsplit(hasty.portal).netloc.encode()
    with connect(hasty.portal) as client:
        client.sendall(
            b"POST /sign-in HTTP/1.1\r\nHost: " + host + b"\r\nContent-Length: 100\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n\r\nname="
        )
        assert ends(client)


def test_a_client_that_takes_nothing_of_its_answer_is_left(hasty: Served) -> None:
    host = urlsplit(hasty.replay).netloc.encode()
    with connect(hasty.replay) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(
            b"GET /all/20200101000000id_/http://large.example/ HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"
        )
        fds = Path(f"/proc/{hasty.process.pid}/fd")
        ours = client.getsockname()[1]
        for _ in range(600):
            if not _is_connected(ours):
                break
            time.sleep(0.1)
        else:
            raise AssertionError(f"the server still sends: {len(list(fds.iterdir()))} files")


def _is_connected(client_port: int) -> bool:
    """Whether the server's end of a connection from this port exists and is not closing."""
    established = "01"
    tables = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    remote = f":{client_port:04X}"
    return any(
        line.split()[2].endswith(remote) and line.split()[3] == established
        for line in tables.splitlines()[1:]
        if len(line.split()) > 3
    )


def test_a_reader_who_takes_the_answer_gets_all_of_it(hasty: Served) -> None:
    answer = ask(f"{hasty.replay}/all/20200101000000id_/http://large.example/")
    assert answer.status == 200 and len(answer.body) == 64 << 20


def test_half_open_connections_do_not_keep_readers_out(tmp_path: Path) -> None:
    setup.create(tmp_path / "home")
    with serving_with(tmp_path / "home", FEW_FILES) as served, ExitStack() as opened:
        for number in range(400):
            client = opened.enter_context(connect(served.portal))
            with suppress(ConnectionError):  # it may have had to go already
                client.sendall(b"GET /about HTTP/1.1\r\nHost: ")
            if number % 50 == 0:
                assert ask(f"{served.portal}/about").status == 200
        assert ask(f"{served.portal}/about").status == 200
        assert len(list(Path(f"/proc/{served.process.pid}/fd").iterdir())) < 192


def test_the_server_uses_as_many_files_as_it_is_allowed(tmp_path: Path) -> None:
    setup.create(tmp_path / "home")
    with serving_with(tmp_path / "home", SOFT_LIMIT) as served:
        limits = Path(f"/proc/{served.process.pid}/limits").read_text()
        soft = next(line for line in limits.splitlines() if line.startswith("Max open files")).split()[3]
    assert int(soft) > 256
