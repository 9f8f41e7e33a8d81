"""Fetching against a real server that behaves well, badly and oddly: exact bytes, limits, failures as values.

A little over 500 lines: one list of what a server may do, around one fetcher and one server.
"""

import asyncio
import datetime
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from harvest_site import Asked, Site

from webdepot import event_loop
from webdepot.errors import ConfigError, NoSpace
from webdepot.harvest.fetch.addresses import Router, is_public, parse_connect_to
from webdepot.harvest.fetch.http import CurlFetcher, FetchLimits
from webdepot.model import Candidate, Failure, Visit
from webdepot.url import Url

Work = Callable[[CurlFetcher], Awaitable[None]]


def fetching(
    work: Work, *, limits: FetchLimits | None = None, router: Router | None = None, **more: object
) -> None:
    async def main() -> None:
        given = limits or FetchLimits(timeout_s=10.0)
        fetcher = CurlFetcher(
            user_agent="Test/1", limits=given, router=router or Router(allow_private=True), **more
        )  # type: ignore[arg-type]
        try:
            await work(fetcher)
        finally:
            await fetcher.close()

    event_loop.run(main())


def fetch(url: str, *, via: str | None = None, **more: object) -> tuple[Visit, bytes]:
    seen: list[tuple[Visit, bytes]] = []

    async def work(fetcher: CurlFetcher) -> None:
        visit = await fetcher.fetch(Candidate(url=Url(url), via=Url(via) if via else None))
        with visit.body:
            seen.append((visit, visit.body.read()))

    fetching(work, **more)  # type: ignore[arg-type]
    return seen[0]


# --- exact bytes ---


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


def test_a_user_agent_may_have_any_letters_but_no_line_of_its_own(site: Site) -> None:
    async def main() -> None:
        fetcher = CurlFetcher(
            user_agent="Webdepot/1 (Bücherei 図書館)\r\nX-Evil: 1", router=Router(allow_private=True)
        )
        visit = await fetcher.fetch(Candidate(url=Url(site.url + "/")))
        visit.body.close()
        assert visit.request == site.log[0].raw
        await fetcher.close()

    asyncio.run(main())
    assert "\r\nUser-Agent: Webdepot/1 (Bücherei ???) X-Evil: 1\r\n".encode("latin-1") in site.log[0].raw


def test_head_and_chunks_are_kept_as_they_came(site: Site) -> None:
    head = b"HTTP/1.1 200 Very  OK\r\nX-a:  padded  \r\nx-A: \xe9\r\nSet-Cookie: a=1\r\nTransfer-Encoding: chunked\r\n\r\n"
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


# --- failures and limits ---

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


def test_a_full_temporary_folder_is_told(site: Site, tmp_path: Path) -> None:
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


# --- addresses ---


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "10.0.0.1",
            "172.16.9.9",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "239.1.1.1",
        ),
        *(
            "240.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fe80::1%eth0",
            "fc00::1",
            "ff02::1",
            "nonsense",
        ),
        *(
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "::7f00:1",
        ),
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8", "64:ff9b::808:808"],
)
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]"]
)
def test_private_addresses_are_refused_before_connecting(site: Site, host: str) -> None:
    from webdepot.url import canonicalise

    visit, _ = fetch(canonicalise(f"http://{host}:{site.port}/"), router=Router())
    assert (visit.failure, visit.permanent) == (Failure.PRIVATE_ADDRESS, True)
    assert site.log == []


def test_a_name_that_turns_private_is_refused(site: Site) -> None:
    """DNS rebinding: the second look-up gives another address."""
    answers = iter([["127.0.0.1"], ["127.0.0.1"]])

    async def look_up(host: str) -> list[str]:
        return next(answers)

    visit, _ = fetch(f"http://rebound.example:{site.port}/", router=Router(look_up=look_up))
    assert visit.failure is Failure.PRIVATE_ADDRESS
    assert site.log == []


def test_only_the_checked_addresses_are_asked(site: Site) -> None:
    """A name with a private and a public address is asked at the public one alone, and libcurl looks nothing
    up.
    """

    async def look_up(host: str) -> list[str]:
        return ["127.0.0.1", "192.0.2.1"]

    router = Router(look_up=look_up)
    route = asyncio.run(router.find("localhost", site.port))
    assert route.failure is Failure.PRIVATE_ADDRESS  # 192.0.2.1 is for documentation

    async def public(host: str) -> list[str]:
        return ["127.0.0.1", "8.8.8.8"]

    route = asyncio.run(Router(look_up=public).find("localhost", site.port))
    assert route.addresses == ("8.8.8.8",)


def test_the_socket_itself_is_checked(site: Site) -> None:
    """Should an address slip through the look-up, no connection is made."""

    class Careless(Router):
        def _checked(self, host: str, addresses: tuple[str, ...]):  # type: ignore[no-untyped-def]
            from webdepot.harvest.fetch.addresses import Route

            return Route(addresses=addresses)

    visit, _ = fetch(site.url + "/", router=Careless())
    assert visit.failure is Failure.PRIVATE_ADDRESS
    assert site.log == []


def test_a_mapped_host_is_asked_where_the_operator_said(site: Site) -> None:
    site.page("/", "mapped")
    for host, mapping in (
        ("www.example.org", "www.example.org"),
        ("www.example.org:8080", "www.example.org:8080"),
    ):
        visit, body = fetch(f"http://{host}/", router=Router(connect_to={mapping: f"127.0.0.1:{site.port}"}))
        assert (body, visit.server_address) == (b"mapped", "127.0.0.1")
        assert f"Host: {host}\r\n".encode() in site.log[-1].raw


@pytest.mark.parametrize("place", ["127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:99999", "127.0.0.1:http"])
def test_a_wrong_mapping_is_told(place: str) -> None:
    with pytest.raises(ConfigError, match="connect_to"):
        parse_connect_to({"a.example": place})


def test_names_that_do_not_exist_are_told_from_a_failing_look_up() -> None:
    async def gone(host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def failing(host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    async def slow(host: str) -> list[str]:
        await asyncio.sleep(30)
        return []

    visit, _ = fetch("http://gone.example/", router=Router(look_up=gone))
    assert (visit.failure, visit.permanent, visit.failure_detail) == (
        Failure.DNS,
        True,
        "there is no host gone.example",
    )
    visit, _ = fetch("http://failing.example/", router=Router(look_up=failing))
    assert (visit.failure, visit.permanent) == (Failure.DNS, False)
    visit, _ = fetch("http://slow.example/", router=Router(look_up=slow, timeout_s=0.05))
    assert (visit.failure, visit.permanent) == (Failure.DNS, False)


def test_a_name_is_looked_up_once_for_a_while(site: Site) -> None:
    asked: list[str] = []

    async def look_up(host: str) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    site.page("/", "x")

    async def work(fetcher: CurlFetcher) -> None:
        for _ in range(3):
            visit = await fetcher.fetch(Candidate(url=Url(f"http://a.example:{site.port}/")))
            visit.body.close()
            assert visit.status == 200

    fetching(work, router=Router(look_up=look_up, allow_private=True))
    assert asked == ["a.example"]


# --- TLS ---


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    built = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    built = (
        built.serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
    built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = built.sign(key, hashes.SHA256())
    (folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    return folder / "cert.pem", folder / "key.pem"


def test_tls_is_checked_and_its_failures_named(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "secure.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        mapping = {"secure.example": f"127.0.0.1:{port}", "other.example": f"127.0.0.1:{port}"}
        for ca_file, host, failure in (
            (cert, "secure.example", None),
            (None, "secure.example", Failure.TLS),
            (cert, "other.example", Failure.TLS),
        ):
            fetcher = CurlFetcher(user_agent="Test/1", router=Router(connect_to=mapping), ca_file=ca_file)
            visit = await fetcher.fetch(Candidate(url=Url(f"https://{host}/")))
            visit.body.close()
            assert visit.failure is failure
            assert bool(visit.failure_detail) == (failure is not None)
            await fetcher.close()
        server.close()
        await server.wait_closed()

    asyncio.run(main())


def test_http2_is_written_in_the_form_of_http1(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "two.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["h2"])
    asked: list[dict[bytes, bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        connection.initiate_connection()
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    asked.append(dict(event.headers))
                    connection.send_headers(
                        event.stream_id, [(":status", "404"), ("content-type", "text/html"), ("x-a", "b")]
                    )
                    connection.send_data(event.stream_id, b"not here", end_stream=True)
            writer.write(connection.data_to_send())
            await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        router = Router(connect_to={"two.example": f"127.0.0.1:{server.sockets[0].getsockname()[1]}"})
        fetcher = CurlFetcher(user_agent="Test/1", router=router, ca_file=cert)
        visit = await fetcher.fetch(Candidate(url=Url("https://two.example/x?y")))
        with visit.body:
            assert visit.body.read() == b"not here"
        assert visit.head == b"HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\nx-a: b\r\n\r\n"
        assert (visit.status, visit.protocol, visit.failure, visit.truncated) == (404, "h2", None, "")
        assert visit.request.startswith(b"GET /x?y HTTP/1.1\r\nHost: two.example\r\nUser-Agent: Test/1\r\n")
        await fetcher.close()
        server.close()
        await server.wait_closed()

    asyncio.run(main())
    assert asked[0][b":path"] == b"/x?y"
    assert asked[0][b"user-agent"] == b"Test/1"
