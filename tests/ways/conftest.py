"""The program as users run it, a site to archive, and a real browser."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("webdepot")


class Site:
    """A small web site on loopback; pages can be changed while it runs, and every request is counted."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.requests: Counter[str] = Counter()
        self.asked = threading.Condition()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # one write for head and body: two would wait for each other (Nagle)

            def do_GET(self) -> None:
                self._answer(self.path)

            def do_POST(self) -> None:
                """Pages of POST requests are named with their body."""
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._answer(f"POST {self.path} {body}")

            def _answer(self, name: str) -> None:
                with site.asked:
                    site.requests[name] += 1
                    site.asked.notify_all()
                status, headers, body = site.pages.get(
                    name, (404, {"Content-Type": "text/html"}, b"<h1>Not here</h1>")
                )
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A client that was killed resets its connection; that is what these tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def page(self, path: str, title: str, body: str, *, status: int = 200) -> None:
        html = f"<!doctype html><html lang=en><head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>"
        self.pages[path] = (status, {"Content-Type": "text/html; charset=utf-8"}, html.encode())

    def wait_for_requests(self, count: int, timeout_s: float = 60) -> None:
        with self.asked:
            assert self.asked.wait_for(lambda: sum(self.requests.values()) >= count, timeout_s)

    def close(self) -> None:
        """Gone from the web; a second time changes nothing."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def program() -> Path:
    return PROGRAM


@pytest.fixture
def site() -> Iterator[Site]:
    served = Site()
    yield served
    served.close()


@pytest.fixture(scope="module")
def lasting_site() -> Iterator[Site]:
    """A site for all tests of a module; each puts back what it changes."""
    served = Site()
    yield served
    served.close()


def _run(home: Path, *arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [PROGRAM, "--home", str(home), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == status, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="session")
def webdepot_at() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the program on the home that is named first."""
    return _run


@pytest.fixture
def webdepot(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the program on a home of this test."""

    def run(
        *arguments: object, status: int = 0, home: Path = tmp_path / "home"
    ) -> subprocess.CompletedProcess[str]:
        return _run(home, *arguments, status=status)

    return run


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[[], dict[str, str]]]:
    """Start `webdepot serve` on free ports and say where."""
    started: list[subprocess.Popen[str]] = []

    def serve() -> dict[str, str]:
        command = [
            PROGRAM,
            "--home",
            str(tmp_path / "home"),
            "serve",
            "--port",
            "0",
            "--replay-port",
            "0",
            "--json",
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        return json.loads(process.stdout.readline())

    yield serve
    for process in started:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    """Of one module only: while it lives, its event loop runs in this thread and no other can."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()
