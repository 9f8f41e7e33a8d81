"""Quick answers and routes give the same answers; requests that may take long, or are wrong, are never
answered quickly.
"""

import asyncio
import random
import re
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from museum import EDITIONS, NOW, SITE, Served, Warc, make_home, serving
from museum import ask as ask_served

from webdepot.archive import Archive
from webdepot.web.app import build_replay
from webdepot.web.quick_answers import QuickAnswers

STAMP = EDITIONS[0]
LARGE = random.Random(1).randbytes(300_000)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    folder = tmp_path_factory.mktemp("quick")
    warc = Warc(folder / "quick.warc.gz")
    warc.response(
        f"{SITE}/", STAMP, b"<title>Clocks</title>", headers=(("X-Odd", "Käse"), ("Set-Cookie", "a=b"))
    )
    warc.response(f"{SITE}/a?b=c", STAMP, b"with a question")
    warc.response(f"{SITE}/moved", STAMP, b"", status="302 Found", headers=(("Location", "/elsewhere"),))
    warc.response(f"{SITE}/error", STAMP, b"broken", status="500 Oh")
    warc.response(f"{SITE}/large", STAMP, LARGE, mime="application/octet-stream")
    warc.response(f"{SITE}/bomb", STAMP, bytes(3_000_000), mime="application/octet-stream")
    warc.revisit(f"{SITE}/again", STAMP, b"with a question", of_url=f"{SITE}/a?b=c", of_stamp=STAMP)
    for second in range(30):
        warc.response(f"{SITE}/often", f"202001010000{second:02d}", str(second).encode())
    home = make_home(folder / "home", warc.write())
    with Archive.open(home, clock=lambda: NOW) as opened:
        yield opened


def ask(
    app: Any, target: str, headers: dict[str, str] | None = None
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    path, _, query = target.partition("?")
    given = {"host": "replay.test", **(headers or {})}
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 5),
        "server": ("replay.test", 80),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
    }
    sent: list[dict[str, Any]] = []

    incoming = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(incoming, None) or await asyncio.Future()  # the client stays

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return (
        sent[0]["status"],
        sorted(sent[0]["headers"]),
        b"".join(message.get("body", b"") for message in sent[1:]),
    )


SMALL = [
    f"/all/{STAMP}id_/{SITE}/",
    f"/museums/{STAMP}id_/{SITE}/",
    f"/all/{STAMP}id_/{SITE}/a?b=c",
    f"/all/{STAMP}id_/{SITE}/moved",
    f"/all/{STAMP}id_/{SITE}/error",
    f"/all/cdx?url={SITE}/&output=json",
    "/all/cdx?&url=http%3A%2F%2Fwww.example.org%2Fa%3Fb%3Dc&output=json&nothing&=",
    f"/all/cdx?url={SITE}/a?b=c&output=json&nothing&=",
    f"/all/cdx?url={SITE}/often&sort=closest&closest=20200101000010&limit=1",
    f"/cdx/search/cdx?url={SITE}/&output=json&fl=original,statuscode",
]
OTHERS = [
    f"/all/{STAMP}id_/{SITE}/large",
    f"/all/{STAMP}id_/{SITE}/bomb",
    f"/all/{STAMP}id_/{SITE}/again",
    f"/all/{STAMP}id_/{SITE}/never",
    f"/none/{STAMP}id_/{SITE}/",
    "/all/20091332000000id_/http://www.example.org/",
    f"/all/cdx?url={SITE}/often",
    f"/all/cdx?url={SITE}/*&filter=status:200",
    f"/all/cdx?url={SITE}/never",
    "/all/cdx?output=json",
]


@pytest.mark.parametrize("target", [*SMALL, *OTHERS])
@pytest.mark.parametrize(
    "headers", [{}, {"Range": "bytes=2-4"}, {"Accept": "text/html"}], ids=["plain", "range", "page"]
)
def test_quick_answers_and_routes_answer_alike(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, target: str, headers: dict[str, str]
):
    app = build_replay(archive, portal_url="http://portal.test", replay_url="http://replay.test")
    quick = ask(app, target, headers)
    monkeypatch.setattr(QuickAnswers, "find", lambda *_: None)
    assert quick == ask(app, target, headers)


@pytest.mark.parametrize(
    ("target", "is_quick"), [*((target, True) for target in SMALL), *((target, False) for target in OTHERS)]
)
def test_only_small_answers_are_quick(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, target: str, is_quick: bool
):
    answers: list[object] = []
    find = QuickAnswers.find

    def observed(quick: QuickAnswers, scope: Any) -> Any:
        answers.append(find(quick, scope))
        return answers[-1]

    monkeypatch.setattr(QuickAnswers, "find", observed)
    ask(build_replay(archive, portal_url="http://portal.test", replay_url="http://replay.test"), target)
    assert [answer is not None for answer in answers] == [is_quick]


@pytest.fixture(scope="module")
def running(archive: Archive) -> Iterator[Served]:
    with serving(archive.home) as made:
        yield made


def said_by(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Headers but for those about the connection."""
    return sorted(
        (name.lower(), value)
        for name, value in headers
        if name.lower() not in ("date", "connection", "transfer-encoding")
    )


@pytest.mark.parametrize("target", [*SMALL, *OTHERS])
def test_the_server_answers_as_the_application_does(archive: Archive, running: Served, target: str):
    app = build_replay(archive, portal_url=running.portal, replay_url=running.replay, frame_url=running.frame)
    status, headers, body = ask(app, target, {"host": urlsplit(running.replay).netloc})
    got = ask_served(running.replay + target)
    assert (got.status, got.body) == (status, body)
    assert said_by(got.headers.items()) == said_by(
        (name.decode(), value.decode("latin-1")) for name, value in headers
    )


def spoken_with(running: Served, *requests: str) -> bytes:
    """The data received on one connection until the server closes it; all requests are sent at once."""
    port = urlsplit(running.replay).port
    assert port
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall("".join(requests).encode())
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def request_for(running: Served, path: str, *lines: str, version: str = "1.1", method: str = "GET") -> str:
    host = f"Host: {urlsplit(running.replay).netloc}"
    return "\r\n".join([f"{method} /all/{STAMP}id_/{SITE}{path} HTTP/{version}", host, *lines, "", ""])


def test_one_connection_carries_many_requests_in_their_order(running: Served):
    quick, long = request_for(running, "/a?b=c"), request_for(running, "/large")
    last = request_for(running, "/error", "Connection: close")
    data = spoken_with(running, quick, quick, long, quick, long, last)
    statuses = re.findall(rb"HTTP/1\.1 (\d+)", data)
    assert statuses == [b"200"] * 5 + [b"500"]
    places = [found.start() for found in re.finditer(rb"\r\n\r\nwith a question", data)]
    larges = [found.start() for found in re.finditer(rb"\r\n\r\n[0-9a-f]+\r\n" + re.escape(LARGE[:40]), data)]
    assert (
        places[1] < larges[0] < places[2] < larges[1]
        and len(places) == 3
        and data.endswith(b"\r\n\r\nbroken")
    )
    assert data.count(b"connection: close") == 1 and data.lower().count(b"\r\nx-robots-tag:") == 6


def test_old_clients_other_methods_and_wrong_names(running: Served):
    assert b"connection: close" in spoken_with(running, request_for(running, "/a?b=c", version="1.0"))
    head = spoken_with(running, request_for(running, "/a?b=c", "Connection: close", method="HEAD"))
    assert head.startswith(b"HTTP/1.1 200") and head.endswith(b"\r\n\r\n")
    elsewhere = request_for(running, "/a?b=c", "Connection: close").replace("localhost", "127.0.0.1")
    assert spoken_with(running, elsewhere).startswith(b"HTTP/1.1 307")


def test_a_server_of_archived_pages_loads_no_crawler_and_no_search_engine(tmp_path: Path):
    heavy = (
        "{'tantivy', 'pycurl', 'pygfried', 'resiliparse', 'obstore', "
        "'cryptography', 'lxml', 'dns', 'PIL', 'pikepdf'}"
    )
    command = f"import sys, webdepot.web.serve; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
