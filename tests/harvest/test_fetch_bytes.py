"""Requests and answers of ordinary and odd servers are kept exactly as they were sent."""

import asyncio

import pytest
from harvest_fetch import fetch, fetching
from harvest_site import Asked, Site

from webdepot import event_loop
from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.model import Candidate
from webdepot.url import Url


@pytest.mark.parametrize(
    "target", ["/", "/a%2fb/%7Ex?q=a%20b|c&%C3%A9=1", "/x;y=1?", "/a//b/../c?d=[]{}", "/" + "l" * 3000]
)
def test_the_request_is_kept_as_it_was_sent(site: Site, target: str) -> None:
    visit, _ = fetch(site.url + target, via="http://b.example/from")
    assert visit.request == site.log[0].raw
    assert visit.request.startswith(
        f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nUser-Agent: Test/1\r\n".encode()
    )
    assert b"\r\nReferer: http://b.example/from\r\n" in visit.request
    assert b"gzip, deflate, br" in visit.request


def test_no_referrer_from_https_to_http_and_no_password(site: Site) -> None:
    assert b"Referer" not in fetch(site.url + "/", via="https://b.example/")[0].request
    assert b"Referer" not in fetch(site.url + "/", via="http://user:secret@b.example/")[0].request
    visit, _ = fetch(f"http://user:secret@127.0.0.1:{site.port}/")
    assert b"secret" not in visit.request + site.log[-1].raw
    assert b"Authorization" not in site.log[-1].raw


def test_a_user_agent_may_have_any_letters_but_no_line_break(site: Site) -> None:
    async def main() -> None:
        fetcher = CurlFetcher(
            user_agent="Webdepot/1 (Bücherei 図書館)\r\nX-Evil: 1", router=Router(allow_private=True)
        )
        visit = await fetcher.fetch(Candidate(url=Url(site.url + "/")))
        visit.body.close()
        assert visit.request == site.log[0].raw
        await fetcher.close()

    event_loop.run(main())
    assert "\r\nUser-Agent: Webdepot/1 (Bücherei ???) X-Evil: 1\r\n".encode("latin-1") in site.log[0].raw


def test_head_and_chunks_are_kept_as_they_came(site: Site) -> None:
    head = (
        b"HTTP/1.1 200 Very  OK\r\nX-a:  padded  \r\nx-A: \xe9\r\nSet-Cookie: a=1\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    body = b"5;ext=1\r\nhello\r\n0\r\nTrailer: x\r\n\r\n"
    site.raw("/", head + body, close=False)
    visit, got = fetch(site.url + "/")
    assert (visit.head, got, visit.body_bytes) == (head, body, len(body))
    assert (visit.status, visit.truncated, visit.failure, visit.protocol) == (200, "", None, "http/1.1")
    assert visit.server_address == "127.0.0.1"
    assert visit.duration_s > 0


def test_content_coding_is_left_on(site: Site) -> None:
    site.page("/", b"\x1f\x8b\x08 not even gzip", Content_Encoding="gzip")
    assert fetch(site.url + "/")[1] == b"\x1f\x8b\x08 not even gzip"


@pytest.mark.parametrize(
    ("raw", "head", "body"),
    [
        (b"HTTP/1.0 200 OK\r\nA: b\r\n\r\nuntil close", b"HTTP/1.0 200 OK\r\nA: b\r\n\r\n", b"until close"),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", b"HTTP/1.1 200 OK\nContent-Length: 2\n\n", b"ok"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b""),
        (
            b"HTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
            b"ok",
        ),
        (b"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n", b"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n", b""),
        (
            b"HTTP/1.1 999 Denied\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 999 Denied\r\nContent-Length: 0\r\n\r\n",
            b"",
        ),
    ],
)
def test_odd_but_whole_answers(site: Site, raw: bytes, head: bytes, body: bytes) -> None:
    site.raw("/", raw)
    visit, got = fetch(site.url + "/")
    assert (visit.failure, visit.truncated, visit.head, got) == (None, "", head, body)


def test_redirects_are_not_followed(site: Site) -> None:
    site.page("/", status="302 Found", Location="/elsewhere")
    visit, _ = fetch(site.url + "/")
    assert visit.status == 302
    assert site.paths() == ["/"]


def test_no_cookies_are_sent_back(site: Site) -> None:
    site.page("/", Set_Cookie="a=1")

    async def work(fetcher: CurlFetcher) -> None:
        for _ in range(2):
            (await fetcher.fetch(Candidate(url=Url(site.url + "/")))).body.close()

    fetching(work)
    assert b"Cookie" not in site.log[1].raw


def test_connections_are_used_again(site: Site) -> None:
    site.page("/", "x")
    ports: list[bytes] = []

    async def answer(writer: asyncio.StreamWriter, asked: Asked) -> None:
        ports.append(str(writer.get_extra_info("peername")).encode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")

    site.answers["/"] = answer

    async def work(fetcher: CurlFetcher) -> None:
        for _ in range(5):
            (await fetcher.fetch(Candidate(url=Url(site.url + "/")))).body.close()

    fetching(work)
    assert len(set(ports)) == 1
