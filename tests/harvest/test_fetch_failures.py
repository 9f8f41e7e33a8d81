"""Failures and limits of fetching are values: broken, cut, slow and missing answers."""

import asyncio
import resource
import socket
from pathlib import Path

import pytest
from harvest_fetch import fetch, fetching
from harvest_site import Asked, Site

from webdepot.errors import NoSpace
from webdepot.harvest.fetch.curl_transfer import FetchLimits
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.model import Candidate, Failure
from webdepot.url import Url

BROKEN = {
    "no HTTP": (b"hello\r\n\r\n", Failure.PROTOCOL),
    "bad status": (b"HTTP/1.1 banana\r\n\r\n", Failure.PROTOCOL),
    "nothing": (b"", Failure.DISCONNECT),
    "head cut off": (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", Failure.PROTOCOL),
    "negative length": (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx", Failure.PROTOCOL),
    "flood of headers": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000 + b"\r\n", Failure.PROTOCOL),
    "endless header": (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n", Failure.PROTOCOL),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_answers_are_failures(site: Site, case: str) -> None:
    raw, failure = BROKEN[case]
    site.raw("/", raw)
    visit, body = fetch(site.url + "/")
    assert (visit.failure, visit.status, visit.head, body) == (failure, 0, b"", b"")
    assert visit.failure_detail


CUT = {
    "length lies": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart",
    "chunk is none": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\npart",
    "chunk is cut": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\npart"[:-4] + b"ff\r\npart",
}


@pytest.mark.parametrize("case", CUT)
def test_what_came_before_the_break_is_kept_and_marked(site: Site, case: str) -> None:
    site.raw("/", CUT[case])
    visit, body = fetch(site.url + "/")
    assert (visit.status, visit.failure, visit.truncated) == (200, None, "disconnect")
    assert body.endswith(b"part")


def test_a_long_body_is_cut_at_the_limit(site: Site, tmp_path: Path) -> None:
    site.page("/", b"x" * 3_000_000)
    visit, body = fetch(
        site.url + "/", limits=FetchLimits(body_bytes=2_000_001, spool_bytes=1000), spool_folder=tmp_path
    )
    assert (visit.truncated, visit.body_bytes, len(body)) == ("length", 2_000_001, 2_000_001)


def test_a_full_temporary_folder_is_reported(site: Site, tmp_path: Path) -> None:
    site.page("/", b"x" * 500_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(NoSpace, match="temporary folder"):
            fetch(site.url + "/", limits=FetchLimits(spool_bytes=1000), spool_folder=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_body_of_exactly_the_limit_is_whole(site: Site) -> None:
    site.page("/", b"x" * 5000)
    visit, body = fetch(site.url + "/", limits=FetchLimits(body_bytes=5000))
    assert (visit.truncated, len(body)) == ("", 5000)


def test_slow_bytes_are_cut_by_time(site: Site) -> None:
    async def drip(writer: asyncio.StreamWriter, asked: Asked) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(200):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    site.answers["/"] = drip
    visit, body = fetch(site.url + "/", limits=FetchLimits(timeout_s=0.5))
    assert (visit.status, visit.truncated) == (200, "time")
    assert 0 < len(body) < 200


def test_no_answer_in_time_is_a_failure(site: Site) -> None:
    async def silence(writer: asyncio.StreamWriter, asked: Asked) -> None:
        await asyncio.sleep(30)

    site.answers["/"] = silence
    visit, _ = fetch(site.url + "/", limits=FetchLimits(timeout_s=0.3))
    assert (visit.failure, visit.permanent) == (Failure.TIMEOUT, False)


def test_headers_that_never_end_are_a_failure_that_says_so(site: Site) -> None:
    async def drip(writer: asyncio.StreamWriter, asked: Asked) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX-Name: ")
        for _ in range(200):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    site.answers["/"] = drip
    visit, _ = fetch(site.url + "/", limits=FetchLimits(timeout_s=0.5))
    assert visit.failure is Failure.TIMEOUT
    assert visit.failure_detail == "its headers did not end within 0.5 s"


def test_a_closed_port_is_a_failure() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        visit, _ = fetch(f"http://127.0.0.1:{taken.getsockname()[1]}/")
    assert (visit.failure, visit.permanent, visit.request) == (Failure.CONNECT, False, b"")


def test_other_schemes_are_not_spoken() -> None:
    visit, _ = fetch("ftp://127.0.0.1/")
    assert (visit.failure, visit.permanent) == (Failure.PROTOCOL, True)


def test_the_environment_names_no_proxy(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    site.page("/", "direct")
    assert fetch(site.url + "/")[1] == b"direct"


def test_many_at_once(site: Site) -> None:
    site.page("/", b"x" * 20_000)

    async def work(fetcher: CurlFetcher) -> None:
        visits = await asyncio.gather(
            *(fetcher.fetch(Candidate(url=Url(f"{site.url}/?{number}"))) for number in range(100))
        )
        for visit in visits:
            with visit.body:
                assert visit.status == 200
                assert len(visit.body.read()) == 20_000

    fetching(work)
    assert len(site.log) == 100


def test_closing_gives_up_what_is_out(site: Site) -> None:
    async def silence(writer: asyncio.StreamWriter, asked: Asked) -> None:
        await asyncio.sleep(30)

    site.answers["/"] = silence

    async def work(fetcher: CurlFetcher) -> None:
        task = asyncio.ensure_future(fetcher.fetch(Candidate(url=Url(site.url + "/"))))
        while not site.log:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    fetching(work)
