"""The quick way and the usual way give the same answers; what may take long, or is wrong, never goes the quick way."""

import asyncio
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from museum import EDITIONS, NOW, SITE, Warc, make_home

from webdepot.archive import Archive
from webdepot.web import cdx, raw
from webdepot.web.app import build_replay
from webdepot.web.quick import Quick

STAMP = EDITIONS[0]
LARGE = random.Random(1).randbytes(300_000)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    folder = tmp_path_factory.mktemp("quick")
    warc = Warc(folder / "quick.warc.gz")
    warc.response(f"{SITE}/", STAMP, b"<title>Clocks</title>", headers=(("X-Odd", "Käse"), ("Set-Cookie", "a=b")))
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


def ask(app: Any, target: str, headers: dict[str, str] | None = None) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
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

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], sorted(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


SMALL = [
    f"/all/{STAMP}id_/{SITE}/",
    f"/museums/{STAMP}id_/{SITE}/",
    f"/all/{STAMP}id_/{SITE}/a?b=c",
    f"/all/{STAMP}id_/{SITE}/moved",
    f"/all/{STAMP}id_/{SITE}/error",
    f"/all/cdx?url={SITE}/&output=json",
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
@pytest.mark.parametrize("headers", [{}, {"Range": "bytes=2-4"}, {"Accept": "text/html"}], ids=["plain", "range", "page"])
def test_both_ways_answer_alike(archive: Archive, monkeypatch: pytest.MonkeyPatch, target: str, headers: dict[str, str]):
    app = build_replay(archive, portal_url="http://portal.test", replay_url="http://replay.test")
    quick = ask(app, target, headers)
    monkeypatch.setattr(Quick, "_answer", lambda *_: None)
    assert quick == ask(app, target, headers)


@pytest.mark.parametrize(("target", "is_quick"), [*((target, True) for target in SMALL), *((target, False) for target in OTHERS)])
def test_small_answers_and_no_others_go_the_quick_way(archive: Archive, target: str, is_quick: bool):
    asked = []

    async def usual(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 599, "headers": []})

    app = build_replay(archive, portal_url="http://portal.test", replay_url="http://replay.test")
    quick = Quick(usual, [(raw.QUICK_PATH, raw.quick), (cdx.QUICK_PATH, cdx.quick)])

    async def within_the_app(scope: Any, receive: Any, send: Any) -> None:
        await quick({**scope, "app": app}, receive, send)

    status, _, _ = ask(within_the_app, target)
    assert (status != 599, asked == []) == (is_quick, is_quick)


def test_a_server_of_archived_pages_loads_no_crawler_and_no_search_engine(tmp_path: Path):
    heavy = "{'tantivy', 'pycurl', 'pygfried', 'resiliparse', 'obstore', 'cryptography', 'lxml', 'dns', 'PIL', 'pikepdf'}"
    command = f"import sys, webdepot.web.serve; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
