"""A site with planted faults of every kind: each is found, hardly anything else is, and a patch brings what
the server still has.
"""

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

HOST = "www.museum.example"
WORDS = "<p>" + "The museum shows paintings, maps and letters of the town. " * 30 + "</p>"


def page(title: str, body: str = WORDS) -> tuple[int, str, bytes]:
    html = f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>"
    return 200, "text/html; charset=utf-8", html.encode()


class Planted:
    """What the server has, and what is planted: (code, address)."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, str, bytes]] = {
            "/robots.txt": (200, "text/plain", b"User-agent: *\nDisallow: /private/\n")
        }
        self.redirects: dict[str, str] = {}
        self.cut: set[str] = set()
        self.closed: set[str] = set()
        self.plants: set[tuple[str, str]] = set()
        self.healing: list[str] = []
        """Paths that answer 500 at first."""
        self.requests: Counter[str] = Counter()
        self._links: list[str] = []
        self._plant()

    def add(self, code: str, path: str) -> None:
        self.plants.add((f"quality.{code}", f"http://{HOST}{path}"))

    def _plant(self) -> None:
        for number in range(20):
            self._page(f"/room/{number}", f"<img src='/gone/{number}.png'><img src='/pictures/{number}.png'>")
            self.answers[f"/pictures/{number}.png"] = (200, "image/png", b"\x89PNG fake but present")
            self.add("part-error", f"/gone/{number}.png")
        for number in range(15):
            self._page(
                f"/hall/{number}",
                f"<img src='/broken/{number}.png'><script src='/private/{number}.js'></script>",
            )
            self._fails(f"/broken/{number}.png", (200, "image/png", b"\x89PNG healed %d" % number))
            self.add("part-error", f"/broken/{number}.png")
            self.add("part-robots", f"/private/{number}.js")
        for number in range(10):
            self._page(
                f"/banner/{number}", f"<img src='/banned/{number}.gif'><a href='/closed/{number}'>x</a>"
            )
            self.add("part-out-of-scope", f"/banned/{number}.gif")
            self.closed.add(f"/closed/{number}")
            self.add("link-unreachable", f"/closed/{number}")
        for number in range(40):
            self._links.append(f"/lost/{number}")
            self.add("link-broken", f"/lost/{number}")
        for number in range(15):
            self._links.append(f"/fault/{number}")
            self._fails(f"/fault/{number}", page(f"Healed {number}"))
            self.add("link-server-error", f"/fault/{number}")
        for number in range(10):
            self.redirects |= {
                f"/loop/{number}/a": f"/loop/{number}/b",
                f"/loop/{number}/b": f"/loop/{number}/a",
            }
            self._links.append(f"/loop/{number}/a")
            self.add("redirect-loop", f"/loop/{number}/a")
        wordings = (
            "Page not found",
            "404 error",
            "Seite nicht gefunden",
            "Pagina niet gevonden",
            "Sorry, this page does not exist",
        )
        for number in range(20):
            wording = wordings[number % 5]
            self.answers[f"/soft/{number}"] = (
                page("Museum", f"<p>{wording}.</p>") if number % 2 else page(wording, "<p>Go home.</p>")
            )
            self._links.append(f"/soft/{number}")
            self.add("soft-missing", f"/soft/{number}")
        for number in range(10):
            self.answers[f"/story/{number}"] = page(
                "Members", "<form>Please log in: <input type=password name=p></form>"
            )
            self.answers[f"/essay/{number}"] = page(
                "One moment", "<div class='g-recaptcha'></div><p>Verify you are human.</p>"
            )
            self._links += [f"/story/{number}", f"/essay/{number}"]
            self.add("page-login", f"/story/{number}")
            self.add("page-riddle", f"/essay/{number}")
        for number in range(10):
            self.answers[f"/long/{number}.txt"] = (200, "text/plain", b"words " * 500)
            self.cut.add(f"/long/{number}.txt")
            self._links.append(f"/long/{number}.txt")
            self.add("body-truncated", f"/long/{number}.txt")
        for number in range(5):
            path = f"/trap{number}/x/x/x"
            self.answers[path] = page(f"Trap {number}")
            deep = "/" + "/".join(f"d{number}-{depth}" for depth in range(14))
            self.answers[deep] = page(f"Deep {number}")
            self._links += [path, deep, f"http://shop{number}.museum.example/"]
            self.add("path-repeats", path)
            self.add("path-long", deep)
            self.plants.add(("quality.sub-domain", f"shop{number}.museum.example"))
        for number in range(40):  # pages like any other, some of which look odd at first sight
            self._page(
                f"/news/{number}",
                "<p>Our lost and found office found 404 umbrellas.</p>"
                if number % 4
                else "<form><input name=q></form>",
            )
        links = "".join(f"<a href='{link}'>{link}</a> " for link in self._links)
        self.answers["/"] = page("Museum", WORDS + links)

    def _page(self, path: str, body: str) -> None:
        self.answers[path] = page(f"Page {path}", WORDS + body)
        self._links.append(path)

    def _fails(self, path: str, later: tuple[int, str, bytes]) -> None:
        self.answers[path] = later
        self.healing.append(path)


@pytest.fixture
def planted():
    site = Planted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16

        def do_GET(self) -> None:
            path = self.path
            site.requests[path] += 1
            if path in site.closed:
                self.close_connection = True
                return
            if path in site.redirects:
                self._answer(302, "text/html", b"", {"Location": site.redirects[path]})
            elif path in site.healing:
                self._answer(500, "text/html", b"<h1>Error</h1>")
            else:
                self._answer(*site.answers.get(path, (404, "text/html", b"<h1>No</h1>")))

        def _answer(self, status: int, kind: str, body: bytes, more: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Type": kind,
                "Content-Length": str(len(body)),
                **(more or {}),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if self.path in site.cut else body)
            self.close_connection = self.path in site.cut

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield site
    server.shutdown()
    server.server_close()


def checked(webdepot, harvest: str, *more: str) -> tuple[set[tuple[str, str]], dict]:
    """Findings of the kinds that are planted, as (code, subject), and the verdict."""
    lines = [
        json.loads(line)
        for line in webdepot("quality", "check", harvest, "--json", *more, status=1).stdout.splitlines()
    ]
    return {(line["code"], line["subject"]) for line in lines[:-1]}, lines[-1]


@pytest.mark.slow
def test_planted_faults_are_found_and_patched(planted, webdepot, tmp_path):
    home = tmp_path / "home"
    webdepot("init", home)
    config = home / "webdepot.toml"
    config.write_text(f'[harvest]\ntries = 1\n[harvest.connect_to]\n"{HOST}" = "127.0.0.1:{planted.port}"\n')
    address = f"http://{HOST}/"
    options = ["--delay", "0", "--allow-private", "--reject", "/banned/", "--json", "--quiet"]
    done = json.loads(webdepot("archive", address, *options).stdout)
    found, verdict = checked(webdepot, done["harvest"])
    kinds = {code for code, _ in planted.plants}
    told = {each for each in found if each[0] in kinds}
    assert len(planted.plants) >= 200
    right = told & planted.plants
    assert len(right) / len(planted.plants) >= 0.95, sorted(planted.plants - told)[:10]
    assert len(right) / len(told) >= 0.9, sorted(told - planted.plants)[:10]
    assert (verdict["verdict"]["answer"], verdict["verdict"]["rule"]) == ("pass", "missing-parts")

    healed = [f"http://{HOST}{path}" for path in planted.healing] + [
        f"http://{HOST}{path}" for path in planted.cut
    ]
    planted.healing.clear()
    planted.cut.clear()
    patched = json.loads(webdepot("quality", "patch", done["harvest"], "--json", "--quiet").stdout)
    assert patched["brought"] >= len(healed)
    after, _ = checked(webdepot, done["harvest"])
    assert not {subject for _, subject in after} & set(healed)
    assert {subject for code, subject in after if code == "quality.part-error"} == {
        f"http://{HOST}/gone/{n}.png" for n in range(20)
    }
    listed = [json.loads(line) for line in webdepot("harvest", "list", "--json").stdout.splitlines()]
    assert {line["kind"] for line in listed} == {"harvest", "patch"}
