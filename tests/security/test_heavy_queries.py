"""Expensive queries end: by the number of rows they read, by their time, or when their client has left."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from limited_server import serving_with
from museum import Served, Warc, ask, make_home
from starlette.exceptions import HTTPException
from starlette.requests import Request

from text_indexes import MAKERS, page
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.errors import InputError, TooExpensive
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.index.text import near_duplicates
from webdepot.ports.search import TextQuery
from webdepot.query_budget import QueryBudget, spending
from webdepot.services.access import search
from webdepot.web import heavy_work, request_turns
from webdepot.web.request_turns import MOST_WAITING_OF_SENDER, PLACES, HeavyWork, Turns

PAGES = 60
FEW_ROWS = """
import webdepot.access.cdx as cdx
import webdepot.services.access.lookup as lookup
cdx.MOST_EXAMINED = lookup.MOST_EXAMINED = 7
"""
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An archive of 60 pages, with a server that reads seven captures for one answer."""
    folder = tmp_path_factory.mktemp("many")
    warc = Warc(folder / "many.warc.gz")
    for number in range(PAGES):
        mime = "text/plain" if number % 10 == 5 else "text/html"
        warc.response(f"http://many.example/{number:02d}", "20200101000000", b"words", mime=mime)
    for number in range(30):
        warc.response(
            "http://moved.example/",
            f"20200101{number // 60:02d}{number % 60:02d}00",
            b"",
            status="301 Moved\r\nLocation: https://www.moved.example/" if number < 29 else "200 OK",
        )
    with serving_with(make_home(folder / "home", warc.write()), FEW_ROWS) as served:
        yield served


def read_all(served: Served, path: str, query: str) -> tuple[list[str], int]:
    """The lines of all answers, continued with the resume key of each; and how many answers there were."""
    lines: list[str] = []
    key, answers = "", 0
    while answers < 100:
        answer = ask(f"{served.portal}{path}?{query}" + (f"&resumeKey={quote(key)}" if key else ""))
        assert answer.status == 200, answer.text
        answers += 1
        body, is_cut, rest = answer.text.rpartition("\n\n")
        if not is_cut and answer.text.startswith("\n"):
            body, is_cut, rest = "", "\n", answer.text.lstrip("\n")
        if not is_cut:
            return [*lines, *answer.text.splitlines()], answers
        assert 'rel="next"' in answer.headers["Link"] and "resumeKey=" in answer.headers["Link"]
        lines += body.splitlines()
        key = rest.strip()
    raise AssertionError("it does not end")


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("url=many.example&matchType=domain", PAGES),
        ("url=many.example/*&filter=~url:.*/3.", 10),
        ("url=many.example/*&filter==mime:text/plain", 6),
        ("url=many.example/*&filter=~url:nothing", 0),
        ("url=many.example/*&collapse=urlkey&limit=1000", PAGES),
    ],
)
def test_an_answer_that_was_cut_goes_on_with_its_key(served: Served, query: str, count: int) -> None:
    lines, answers = read_all(served, "/all/cdx", query)
    assert len(lines) == count == len(set(lines))
    assert answers > 5


def test_the_internet_archives_form_is_cut_likewise(served: Served) -> None:
    lines, _ = read_all(
        served, "/cdx/search/cdx", "url=many.example/*&filter=mimetype:text/plain&fl=original"
    )
    assert lines == [f"http://many.example/{number:02d}" for number in range(5, PAGES, 10)]
    rows = ask(f"{served.portal}/cdx/search/cdx?url=many.example/*&output=json&filter=original:x").text
    assert rows.startswith('[["urlkey"') and "many%29%2F06" in rows


@pytest.mark.parametrize("query", ["page=1000", "page=100&filter=~url:zzz", "page=99999999&pageSize=5"])
def test_a_page_that_is_too_far_is_refused_with_advice(served: Served, query: str) -> None:
    answer = ask(f"{served.portal}/all/cdx?url=many.example/*&{query}")
    assert answer.status == 400 and "resumeKey" in answer.text


def test_the_nearest_and_the_last_cannot_go_on_and_say_so(served: Served) -> None:
    for more in ("closest=2021", "limit=-1000"):
        answer = ask(f"{served.portal}/all/cdx?url=moved.example/&{more}&filter=~url:nothing")
        assert answer.status == 400 and "Narrow it" in answer.text


def test_a_timemap_of_captures_that_are_no_versions_goes_on(served: Served) -> None:
    path, pages, mementos = "/all/timemap/json/http://moved.example/", 0, 0
    while path and pages < 20:
        document = json.loads(ask(served.replay + path).text)
        pages += 1
        mementos += len(document["mementos"]["list"])
        following = document.get("timemap_index")
        path = following[0]["uri"].removeprefix(served.replay) if following else ""
    assert mementos == 1 and 3 < pages < 20


# --- time ---


def test_a_query_ends_when_its_time_is_over(tmp_path: Path) -> None:
    index = SqliteCaptureIndex(tmp_path / "captures.db")
    budget = QueryBudget(0.05)
    with spending(budget), pytest.raises(TooExpensive):
        index._file.rows(ENDLESS, {})
    with spending(budget), pytest.raises(TooExpensive):
        index.last("org,example)/")
    assert index.last("org,example)/") is None  # commands have no budget
    budget.renew()
    with spending(budget):
        assert index.last("org,example)/") is None
    index.close()


def test_a_query_ends_when_nobody_waits_for_it(tmp_path: Path) -> None:
    index = SqliteCaptureIndex(tmp_path / "captures.db")
    budget, outcome = QueryBudget(3600), []

    def ask_for_ever() -> None:
        with spending(budget):
            try:
                index._file.rows(ENDLESS, {})
            except TooExpensive as error:
                outcome.append(error)

    thread = threading.Thread(target=ask_for_ever)
    thread.start()
    time.sleep(0.05)
    budget.cancel()
    thread.join(timeout=120)
    assert not thread.is_alive() and outcome
    index.close()


def request_of(sender: str, heavy: HeavyWork, leaves: asyncio.Event | None = None) -> Request:
    async def receive() -> dict[str, Any]:
        await (leaves or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    app = SimpleNamespace(state=SimpleNamespace(site=SimpleNamespace(heavy=heavy)))
    scope = {"type": "http", "headers": [], "app": app, "client": (sender, 1), "path": "/", "method": "GET"}
    return Request(scope, receive)


def test_a_client_that_leaves_ends_its_query(tmp_path: Path) -> None:
    index = SqliteCaptureIndex(tmp_path / "captures.db")

    async def leave() -> None:
        leaves = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, leaves.set)
        with pytest.raises(TooExpensive):
            await heavy_work.run(
                request_of("192.0.2.1", HeavyWork(), leaves), lambda: index._file.rows(ENDLESS, {})
            )

    patched = heavy_work.CPU_S
    heavy_work.CPU_S = 3600.0
    try:
        asyncio.run(leave())
    finally:
        heavy_work.CPU_S = patched
    index.close()


def test_a_query_of_the_register_ends_when_its_time_is_over(served: Served) -> None:
    with Archive.open(served.home) as archive:
        with (
            spending(QueryBudget(0.05)),
            pytest.raises(TooExpensive),
            archive.database.reading() as connection,
        ):
            connection.exec_driver_sql(ENDLESS).all()
        with archive.database.reading() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar() == 1


# --- full text ---

HOSTILE = "\u00df " + "a " * 100_000
"""A page on which it takes long to look for phrases of short words."""
SLOW = TextQuery(
    alternatives=(("windmill", *(" ".join(["a"] * 20 + [f"x{number}"]) for number in range(4))),), limit=100
)


@pytest.mark.parametrize("engine", sorted(MAKERS))
def test_a_search_ends_when_its_time_is_over(engine: str, tmp_path: Path) -> None:
    index = MAKERS[engine](tmp_path / "text")
    index.add(
        "a",
        [
            page(f"http://a.example/{number}", "20200101000000", f"windmill {number} {HOSTILE}")
            for number in range(40)
        ],
    )
    begun_s = time.thread_time()
    with spending(QueryBudget(0.2)), pytest.raises(TooExpensive):
        index.find(SLOW)
    assert time.thread_time() - begun_s < 8  # all pages take more than 20 seconds
    spent = QueryBudget(0.0)
    with spending(spent):
        for ask_index in (
            lambda: index.find(TextQuery(words=("windmill",))),
            lambda: list(index.scan(TextQuery(words=("windmill",)))),
            lambda: index.words("wind", limit=3),
        ):
            with pytest.raises(TooExpensive):
                ask_index()
    assert index.find(TextQuery(words=("windmill",))).pages == 40  # commands have no budget
    index.close()


def test_similar_pages_are_compared_only_as_long_as_there_is_time() -> None:
    ranked = [(1.0, number, number % 999 << 20 | 0xFFFF) for number in range(200_000)]
    begun_s = time.thread_time()
    with spending(QueryBudget(0.05)), pytest.raises(TooExpensive):
        near_duplicates.fold_groups(ranked)
    assert time.thread_time() - begun_s < 5


def test_words_in_phrases_count(served: Served) -> None:
    words = " ".join(f"w{number}" for number in range(search.MOST_WORDS + 1))
    with Archive.open(served.home) as archive:
        for text in (f'"{words}"', f'mill -"{words}"', f'title:"{words}"', "\u4e2d" * 101):
            with pytest.raises(InputError, match="more than 100 words"):
                search.search(archive, text, reader=ANYONE)
        assert search.search(archive, f'"{words[:-5]}"', reader=ANYONE).pages == 0


def test_who_asks_for_too_much_is_told_so(served: Served) -> None:
    with serving_with(served.home, "import webdepot.web.heavy_work as h\nh.CPU_S = 0.0") as strict:
        listed = ask(f"{strict.portal}/oai?verb=ListIdentifiers&metadataPrefix=oai_dc")
        assert listed.status == 400 and listed.text.startswith("This query takes too long to answer.")
        found = ask(f"{strict.portal}/api/search?q=words")
        assert found.status == 400 and "too long" in json.loads(found.text)["detail"]
        assert ask(f"{strict.portal}/search?q=words").status == 400


# --- turns ---


def test_networks_take_turns() -> None:
    async def work_together() -> list[str]:
        turns, order, gate = Turns(places=1), list[str](), threading.Event()

        def work(name: str) -> None:
            gate.wait(60)
            order.append(name)

        greedy = [asyncio.create_task(turns.run("greedy", lambda: work("greedy"))) for _ in range(14)]
        await asyncio.sleep(0)
        modest = asyncio.create_task(turns.run("modest", lambda: work("modest")))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*greedy, modest)
        return order

    order = asyncio.run(work_together())
    assert order.index("modest") == 2 and order.count("greedy") == 14


def test_few_work_at_once() -> None:
    async def work_together() -> int:
        turns, at_work, most = Turns(PLACES), list[None](), list[int]()

        def work() -> None:
            at_work.append(None)
            most.append(len(at_work))
            time.sleep(0.001)
            at_work.pop()

        await asyncio.gather(*(turns.run("greedy", work) for _ in range(14)))
        return max(most)

    assert asyncio.run(work_together()) <= PLACES


def test_those_who_cannot_be_served_soon_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fill() -> None:
        turns, gate = Turns(PLACES), threading.Event()
        tasks = [
            asyncio.create_task(turns.run("greedy", lambda: gate.wait(60)))
            for _ in range(PLACES + MOST_WAITING_OF_SENDER)
        ]
        await asyncio.sleep(0.1)
        with pytest.raises(HTTPException) as refused:
            await turns.run("greedy", lambda: None)
        assert refused.value.status_code == 503 and refused.value.headers["Retry-After"]
        monkeypatch.setattr(request_turns, "PATIENCE_S", 0.05)
        with pytest.raises(HTTPException):
            await turns.run("modest", lambda: None)
        leaving = asyncio.create_task(turns.run("leaving", lambda: None))
        await asyncio.sleep(0)
        leaving.cancel()
        gate.set()
        await asyncio.gather(*tasks)
        # Whoever gave up or left has not taken a place along.
        assert await asyncio.gather(*(turns.run("later", lambda: 1) for _ in range(5))) == [1] * 5
        assert turns.free == PLACES

    asyncio.run(fill())


def test_long_answers_of_one_network_are_limited() -> None:
    heavy = HeavyWork()
    for _ in range(request_turns.MOST_STREAMS_OF_SENDER):
        heavy.check_streams("greedy")
        heavy.begin_stream("greedy")
    with pytest.raises(HTTPException):
        heavy.check_streams("greedy")
    heavy.check_streams("modest")
    heavy.end_stream("greedy")
    heavy.check_streams("greedy")
