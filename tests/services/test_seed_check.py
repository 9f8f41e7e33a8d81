"""The check of seeds: what each kind of answer means, and that each is requested once."""

import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from webdepot.archive import Archive
from webdepot.services.admin import setup
from webdepot.services.harvest import seed_check
from webdepot.services.harvest.seed_check import SeedProblem
from webdepot.url import Url

ASKED: Counter[str] = Counter()


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        ASKED[f"{self.headers['Host']}{self.path}"] += 1
        status, body, target = 200, b"<title>The museum &amp; more</title>", ""
        match self.path:
            case "/robots.txt":
                body = b"User-agent: *\nDisallow: /private/\n"
            case "/gone":
                status = 404
            case "/moved":
                status, target = 301, "http://elsewhere.example/"
            case "/old":
                status, target = 301, "/"
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        if target:
            self.send_header("Location", target)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ASKED.clear()
    yield server.server_port
    server.shutdown()
    server.server_close()


def found(home: Path, settings: str) -> Archive:
    setup.create(home, settings=f"[harvest]\ndelay_s = 0.0\n{settings}")
    return Archive.open(home)


def test_each_start_url_is_requested_once_and_its_answer_is_explained(tmp_path: Path, port: int):
    base = f"http://localhost:{port}"
    paths = ("/", "/gone", "/moved", "/old", "/private/x")
    with found(tmp_path / "home", "allow_private = true\n") as archive:
        good, gone, moved, old, private = seed_check.check(archive, [Url(f"{base}{path}") for path in paths])
        (nobody,) = seed_check.check(archive, [Url("http://127.0.0.1:9/")])
        assert not list(archive.home.glob(".testing-*"))
    assert (good.status, good.title, good.problem) == (200, "The museum & more", None)
    assert good.robots
    assert (gone.status, gone.problem) == (404, SeedProblem.ERROR)
    assert (moved.redirect, moved.problem) == ("http://elsewhere.example/", SeedProblem.MOVED)
    assert (old.redirect, old.problem) == (f"{base}/", None)
    assert private.problem is SeedProblem.ROBOTS and "Disallow: /private/" in str(private.robots)
    assert (nobody.failure, nobody.problem) == ("connect", SeedProblem.NO_ANSWER)
    assert {ASKED[f"localhost:{port}{path}"] for path in (*paths[:4], "/robots.txt")} == {1}
    assert not ASKED[f"localhost:{port}/private/x"]


def test_the_https_variant_is_tried_and_private_addresses_are_refused(tmp_path: Path, port: int):
    with found(tmp_path / "home", f'[harvest.connect_to]\n"a.example" = "127.0.0.1:{port}"\n') as archive:
        named, private = seed_check.check(
            archive, [Url("http://a.example/"), Url(f"http://127.0.0.1:{port}/")]
        )
    assert (named.status, named.https, named.problem) == (200, "", None)
    assert (private.failure, private.problem) == ("private-address", SeedProblem.NO_ANSWER)
    assert ASKED["a.example/"] == 1 and not ASKED[f"127.0.0.1:{port}/"]
