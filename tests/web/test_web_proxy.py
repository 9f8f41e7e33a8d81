"""Proxy mode: terminals see the web as it was, over HTTP and HTTPS, at the time they chose, and nothing of
the live web.
"""

import http.client
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from museum import EDITIONS, SITE, Warc, make_home
from proxied import Proxied, serving_proxy

SHOP = "https://shop.example.org"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory, museum: Path) -> Iterator[Proxied]:
    folder = tmp_path_factory.mktemp("proxy")
    warc = Warc(folder / "shop.warc.gz")
    cookies = (
        ("Set-Cookie", "basket=3; Path=/"),
        ("Alt-Svc", 'h3=":443"'),
        ("Strict-Transport-Security", "max-age=9"),
        ("ETag", '"x"'),
    )
    warc.response(
        f"{SHOP}/",
        EDITIONS[1],
        b"<title>Shop</title>clocks",
        headers=(*cookies, ("Content-Security-Policy", "img-src 'self'")),
    )
    warc.response(
        f"{SHOP}/old", EDITIONS[1], b"", status="301 Moved", headers=(("Location", f"{SHOP}/new?a=1"),)
    )
    warc.response(f"{SHOP}/film", EDITIONS[1], bytes(range(256)) * 10, mime="video/mp4")
    warc.response(f"{SHOP}/gone", EDITIONS[1], b"once gone, kept so", status="410 Gone")
    home = make_home(folder / "home", museum, warc.write(), settings='[web]\nproxy_date = "2009"\n')
    with serving_proxy(home) as running:
        yield running


def test_pages_come_under_their_own_address(proxied: Proxied):
    answer = proxied.ask(f"{SITE}/")
    assert answer.status == 200
    assert "edition 1" in answer.text, "the configured date"
    assert 'src="http://live.example.net/leak.png"' in answer.text, "nothing is rewritten"
    assert answer.headers["Memento-Datetime"]
    assert answer.headers["Cache-Control"] == "no-cache"


def test_each_request_may_name_its_time(proxied: Proxied):
    answer = proxied.ask(f"{SITE}/", headers={"Accept-Datetime": "Wed, 11 Sep 2019 08:00:00 GMT"})
    assert "edition 4" in answer.text
    wrong = proxied.ask(f"{SITE}/", headers={"Accept-Datetime": "soon"})
    assert (wrong.status, "not an HTTP date" in wrong.text) == (400, True)


def test_a_terminal_chooses_its_time_and_collection(proxied: Proxied):
    control = "http://webdepot.proxy/"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert 'value="1 January 2009"' in proxied.ask(control).text
    try:
        assert (
            proxied.ask(control, "POST", headers=form, body=b"date=juni+2012&collection=museums").status
            == 303
        )
        assert "edition 3" in proxied.ask(f"{SITE}/").text, "the end of that month"
        page = proxied.ask(control).text
        assert 'value="30 June 2012"' in page and 'value="museums"' in page
        assert proxied.ask(control, "POST", headers=form, body=b"date=yesterday").status == 400
        foreign = {**form, "Sec-Fetch-Site": "cross-site"}
        assert proxied.ask(control, "POST", headers=foreign, body=b"date=2019").status == 403
        assert "edition 3" in proxied.ask(f"{SITE}/").text
        assert proxied.ask(control, "POST", headers=form, body=b"date=&collection=elsewhere").status == 303
        assert proxied.ask(f"{SITE}/").status == 404
    finally:
        proxied.ask(control, "POST", headers=form, body=b"date=&collection=")
    assert "edition 1" in proxied.ask(f"{SITE}/").text


def test_https_is_spoken_with_a_certificate_of_the_archives_authority(proxied: Proxied):
    answer = proxied.ask(f"{SHOP}/")
    assert (answer.status, "clocks" in answer.text) == (200, True)
    given = proxied.ask("http://webdepot.proxy/authority.crt")
    assert given.body == proxied.authority.read_bytes()
    assert proxied.authority.with_name("authority.key").stat().st_mode & 0o077 == 0
    connection = http.client.HTTPSConnection(
        "127.0.0.1", proxied.port, timeout=30, context=ssl.create_default_context()
    )
    connection.set_tunnel("shop.example.org", 443)
    with pytest.raises(ssl.SSLCertVerificationError):
        connection.request("GET", "/")
    connection.close()


def test_archived_headers_act_but_those_that_lead_around_the_proxy(proxied: Proxied):
    headers = proxied.ask(f"{SHOP}/").headers
    assert headers["Set-Cookie"] == "basket=3; Path=/"
    assert headers["Content-Security-Policy"] == "img-src 'self'"
    assert not {"alt-svc", "strict-transport-security", "etag"} & {name.lower() for name in headers}
    moved = proxied.ask(f"{SHOP}/old")
    assert (moved.status, moved.headers["Location"]) == (301, f"{SHOP}/new?a=1")
    assert proxied.ask(f"{SHOP}/gone").status == 410


def test_parts_of_films(proxied: Proxied):
    part = proxied.ask(f"{SHOP}/film", headers={"Range": "bytes=256-257"})
    assert (part.status, part.body, part.headers["Content-Range"]) == (206, b"\x00\x01", "bytes 256-257/2560")
    assert proxied.ask(f"{SHOP}/film", "HEAD").headers["Content-Type"] == "video/mp4"


def test_what_is_not_kept_is_not_fetched(proxied: Proxied):
    """A server of this test listens at the address; the proxy must not contact it."""
    with socket.create_server(("127.0.0.1", 0)) as live:
        live.settimeout(0.3)
        port = live.getsockname()[1]
        for url in (f"http://127.0.0.1:{port}/", f"https://127.0.0.1:{port}/", f"http://localhost:{port}/"):
            answer = proxied.ask(url)
            assert answer.status == 404
            assert "is not archived" in answer.text
        with pytest.raises(TimeoutError):
            live.accept()


@pytest.mark.parametrize(
    "line",
    [
        b"CONNECT nonsense HTTP/1.1",
        b"CONNECT :443 HTTP/1.1",
        b"CONNECT a b:443 HTTP/1.1",
        b"CONNECT " + b"a" * 20_000,
    ],
)
def test_tunnels_to_nowhere_are_refused_with_a_message(proxied: Proxied, line: bytes):
    with socket.create_connection(("127.0.0.1", proxied.port), timeout=20) as connection:
        connection.sendall(line + b"\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_other_ports_take_no_tunnels(proxied: Proxied):
    host, _, port = proxied.portal.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(b"CONNECT shop.example.org:443 HTTP/1.1\r\nHost: shop.example.org\r\n\r\n")
        assert not connection.recv(100).startswith(b"HTTP/1.1 200 ")
