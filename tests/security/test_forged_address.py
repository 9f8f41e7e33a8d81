"""Nobody can claim the address of a reading room, however the header that carries addresses is written."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from behind_nginx import PORTAL, PROGRAM, REPLAY, Front, blocks_of_page, running
from museum import PASSWORD, Warc, make_home

from webdepot.access.policy import AccessPoint, RuleAnswer
from webdepot.access.replay.site_hosts import label_of
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.config.config import from_tree
from webdepot.errors import ConfigError
from webdepot.services.access import rules
from webdepot.services.admin.doctor import doctor, health_check
from webdepot.times import utc_now
from webdepot.web.client_address import ForwardedClient, network_of
from webdepot.web.serve import choose_urls

SECRET = "http://secret.example/"
CAPTURE = f"/all/20240102030405id_/{SECRET}"
ROOM, PUBLIC = "127.0.0.2", "127.0.0.9"
NETWORKS = f'reading_room_networks = ["{ROOM}/32"]\npartner_networks = ["192.0.2.0/24"]\n'
FORGED = [
    [("X-Forwarded-For", ROOM)],
    [("X-Forwarded-For", "192.0.2.7")],
    [("X-Forwarded-For", f"{ROOM}, {ROOM}")],
    [("X-Forwarded-For", f"{ROOM}, 127.0.0.1")],
    [("X-Forwarded-For", ROOM), ("X-Forwarded-For", ROOM)],
    [("X-Forwarded-For", f"[::ffff:{ROOM}]:80")],
    [("X-Forwarded-For", f"::ffff:{ROOM}")],
    [("x-forwarded-for", f'"{ROOM}"')],
    [("X-Forwarded-For", f" {ROOM}\t,")],
    [("X_Forwarded_For", ROOM)],
    [("X-Real-IP", ROOM), ("Client-IP", ROOM), ("True-Client-IP", ROOM), ("X-Client-IP", ROOM)],
    [("Forwarded", f"for={ROOM};proto=https")],
    [("X-Forwarded-Proto", "http"), ("X-Forwarded-Host", REPLAY), ("X-Forwarded-For", ROOM)],
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secret")
    warc = Warc(folder / "secret.warc.gz")
    warc.response(SECRET, "20240102030405", b"<title>Secret</title>TOPSECRETWORD for the reading room only")
    home = make_home(folder / "home", warc.write())
    with Archive.open(home) as archive:
        rules.add(archive, "secret.example/*", answer=RuleAnswer.REFUSE, access_point=AccessPoint.PUBLIC)
        accounts.add(archive.database, "boss", PASSWORD, [Role.ADMINISTRATOR], utc_now())
    return home


@pytest.fixture
def own_home(home: Path, tmp_path: Path) -> Path:
    """A home whose settings a test may change."""
    return shutil.copytree(home, tmp_path / "home")


@pytest.fixture(scope="module")
def front(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with running(home, tmp_path_factory.mktemp("nginx"), more=NETWORKS) as front:
        yield front


def test_the_reading_room_gets_in_and_others_do_not(front: Front) -> None:
    assert front.ask(REPLAY, CAPTURE, source=PUBLIC).status == 451
    inside = front.ask(REPLAY, CAPTURE, source=ROOM)
    assert inside.status == 200 and "TOPSECRETWORD" in inside.text
    assert json.loads(front.ask(PORTAL, "/api/search?q=topsecretword", source=ROOM).text)["pages"] == 1


@pytest.mark.parametrize("headers", FORGED, ids=[str(number) for number in range(len(FORGED))])
def test_a_forged_header_opens_nothing(front: Front, headers: list[tuple[str, str]]) -> None:
    assert front.ask(REPLAY, CAPTURE, *headers, source=PUBLIC).status == 451
    found = front.ask(PORTAL, "/api/search?q=topsecretword", *headers, source=PUBLIC)
    assert json.loads(found.text)["pages"] == 0
    assert (
        "secret" not in front.ask(PORTAL, "/all/cdx?url=secret.example/*", *headers, source=PUBLIC).text[:30]
    )


def test_a_forged_header_cannot_shut_the_reading_room_out(front: Front) -> None:
    assert front.ask(REPLAY, CAPTURE, ("X-Forwarded-For", "203.0.113.9"), source=ROOM).status == 200


def sign_in(front: Front, name: str, password: str, *headers: tuple[str, str], source: str) -> int:
    body = f"name={name}&password={password.replace(' ', '+')}".encode()
    kind = ("Content-Type", "application/x-www-form-urlencoded")
    return front.ask(PORTAL, "/sign-in", kind, *headers, source=source, method="POST", body=body).status


def test_a_rotating_header_does_not_avoid_the_limit_and_others_are_not_limited(front: Front) -> None:
    statuses = [
        sign_in(
            front, f"name{number}", "wrong", ("X-Forwarded-For", f"203.0.113.{number}"), source="127.0.0.5"
        )
        for number in range(60)
    ]
    assert statuses.count(401) < 40 and statuses[-1] == 429
    assert sign_in(front, "boss", PASSWORD, source="127.0.0.6") == 303


def test_cookies_behind_https_are_bound_to_the_host(front: Front) -> None:
    body = f"name=boss&password={PASSWORD.replace(' ', '+')}".encode()
    answer = front.ask(
        PORTAL,
        "/sign-in",
        ("Content-Type", "application/x-www-form-urlencoded"),
        source="127.0.0.7",
        method="POST",
        body=body,
    )
    cookies = answer.headers.get_all("Set-Cookie")
    session = next(cookie for cookie in cookies if cookie.startswith("__Host-session="))
    assert "Secure" in session and "Path=/" in session and "Domain" not in session
    # A sibling host could set a cookie without the prefix: it counts for nothing.
    token = session.partition(";")[0].partition("=")[2]
    assert front.ask(PORTAL, "/account", ("Cookie", f"session={token}")).status == 303
    assert front.ask(PORTAL, "/account", ("Cookie", f"__Host-session={token}")).status == 200


def test_each_archived_site_has_a_host_name_behind_nginx(front: Front) -> None:
    page = f"/all/20240102030405/{SECRET}"
    own = f"{label_of(SECRET)}.{REPLAY}"
    framed = front.ask(PORTAL, page, source=ROOM)
    assert f'src="https://{own}/-/start{page.replace("5/", "5mp_/")}"' in framed.text
    assert framed.headers["Content-Security-Policy"].endswith(f"frame-src https://{own}")
    start = front.ask(own, f"/-/start{page.replace('5/', '5mp_/')}", source=ROOM)
    policy = start.headers["Content-Security-Policy"]
    assert f"worker-src https://{own}/sw.js;" in policy and policy.endswith(f"'self' https://{PORTAL}")
    assert front.ask(own, "/sw.js").status == 200
    elsewhere = front.ask(f"other-0123456789abcdef.{REPLAY}", f"/-/start{page}", source=ROOM)
    assert elsewhere.status == 307 and elsewhere.headers["Location"].startswith(f"https://{own}/-/start/")
    assert front.ask(f"other.{REPLAY}", "/sw.js").status == 421


def test_a_language_that_another_host_chose_is_ignored(front: Front) -> None:
    assert '<html lang="en"' in front.ask(PORTAL, "/", ("Cookie", "language=nl")).text
    assert '<html lang="nl"' in front.ask(PORTAL, "/", ("Cookie", "__Host-language=nl")).text


# --- doctor ---


def examine(
    home: Path, monkeypatch: pytest.MonkeyPatch, front: Front, *, name: str = "addresses of readers"
) -> health_check.HealthCheck:
    """What doctor says when the names lead to this nginx."""
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, port, *rest, **more: (
            real("127.0.0.1", front.port, *rest, **more)
            if str(host).endswith(PORTAL)
            else real(host, port, *rest, **more)
        ),
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(front.certificate))
    return next(check for check in doctor.examine(home) if check.name == name)


@pytest.mark.parametrize(
    ("old", "new", "state", "message"),
    [
        ("", "", "ok", "each archived site has a host name"),
        (f" *.{REPLAY};", ";", "error", "no answer from https://site-example-"),
        ('host_per_site = "on"', "", "warning", "all archived sites share one host name"),
    ],
)
def test_doctor_asks_by_the_name_of_a_site(
    own_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    state: str,
    message: str,
) -> None:
    web, servers = (text.replace(old, new) if old else text for text in blocks_of_page())
    other = "server { listen 443 ssl default_server; ssl_reject_handshake on; }"
    assert other.split() == servers[servers.rindex("server {") :].split()
    with running(own_home, tmp_path, nginx=servers, web=web) as front:
        check = examine(own_home, monkeypatch, front, name="host names of sites")
    assert check.state == state and message in check.message


def test_doctor_is_content_with_the_page(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    assert examine(front.home, monkeypatch, front).state == "ok"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("proxy_set_header X-Forwarded-For $remote_addr;", "", "forged X-Forwarded-For was believed"),
        (
            "proxy_set_header X-Forwarded-For $remote_addr;",
            'proxy_set_header X-Forwarded-For "";',
            "does not send the addresses",
        ),
    ],
)
def test_doctor_finds_an_open_server(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    servers = blocks_of_page()[1]
    open_servers = servers[: servers.index(REPLAY)] + servers[servers.index(REPLAY) :].replace(old, new)
    assert open_servers != servers
    with running(own_home, tmp_path, more=NETWORKS, nginx=open_servers) as front:
        check = examine(own_home, monkeypatch, front)
    assert check.state == "error" and message in check.message and REPLAY in check.message
    assert "X-Forwarded-For $remote_addr" in check.remedy


def test_doctor_warns_of_a_portal_that_does_not_know_its_proxy(own_home: Path) -> None:
    (own_home / "webdepot.toml").write_text(blocks_of_page()[0].replace('["127.0.0.1"]', "[]"))
    check = next(check for check in doctor.examine(own_home) if check.name == "addresses of readers")
    assert check.state == "warning" and "trusted_proxies is empty" in check.message


# --- starting ---


@pytest.mark.parametrize(
    ("host", "settings", "said"),
    [
        ("127.0.0.1", {}, "trusted_proxies is empty"),
        ("0.0.0.0", {}, "trusted_proxies is empty"),
        ("127.0.0.1", {"trusted_proxies": ["127.0.0.0/8"]}, "could then claim any address"),
        ("127.0.0.1", {"trusted_proxies": ["192.0.0.0/8"]}, "could then claim any address"),
    ],
)
def test_networks_are_not_served_to_readers_whose_address_is_not_known(
    tmp_path: Path, host: str, settings: dict[str, Any], said: str
) -> None:
    web = {
        "portal_url": "https://archive.example.org",
        "replay_url": "https://replay.example.org",
        "reading_room_networks": [f"{ROOM}/32"],
        "partner_networks": ["192.0.2.0/24"],
        **settings,
    }
    archive = Archive(from_tree(tmp_path, {"web": web}, environment={}, origin="test"))
    with pytest.raises(ConfigError, match=said):
        choose_urls(archive, host, 8080, 8081)
    archive.close()


def test_the_program_says_so_and_does_not_start(own_home: Path) -> None:
    settings = blocks_of_page()[0].replace('trusted_proxies = ["127.0.0.1"]', "")
    (own_home / "webdepot.toml").write_text(f"{settings}\n{NETWORKS}")
    ended = subprocess.run(
        [PROGRAM, "--home", own_home, "serve", "--port", "0", "--replay-port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ,
    )
    assert ended.returncode == 2 and "trusted_proxies" in ended.stderr, ended.stderr


@pytest.mark.parametrize("value", ["0.0.0.0/0", "::/0", "0.0.0.0/1", "localhost", "nginx", "127.0.0.1/33"])
def test_a_proxy_is_named_by_its_address(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match="trusted_proxies"):
        from_tree(tmp_path, {"web": {"trusted_proxies": [value]}}, environment={}, origin="test")


def test_an_old_setting_is_ignored(tmp_path: Path) -> None:
    tree = {"web": {"secure_cookies": False, "portal_url": "https://archive.example.org"}}
    assert from_tree(tmp_path, tree, environment={}, origin="test").web.secure_cookies


# --- reading the header ---


def client_of(peer: str, *values: str, trusted: tuple[str, ...] = ("127.0.0.1", "10.0.0.0/24")) -> str | None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"])

    headers = [(b"x-forwarded-for", value.encode("latin-1")) for value in values]
    scope = {"type": "http", "path": "/", "client": (peer, 1), "headers": headers, "scheme": "http"}
    asyncio.run(ForwardedClient(app, trusted)(scope, None, None))  # type: ignore[arg-type]
    return seen[0][0] if seen[0] else None


@pytest.mark.parametrize(
    ("peer", "values", "client"),
    [
        ("192.0.2.1", ("198.51.100.1",), "192.0.2.1"),  # nobody we trust
        ("127.0.0.1", ("198.51.100.1",), "198.51.100.1"),
        ("127.0.0.1", ("203.0.113.1, 198.51.100.1",), "198.51.100.1"),
        ("127.0.0.1", ("203.0.113.1, 198.51.100.1, 10.0.0.7",), "198.51.100.1"),
        ("127.0.0.1", ("203.0.113.1", "198.51.100.1", "10.0.0.7"), "198.51.100.1"),
        ("127.0.0.1", ("198.51.100.1:4711",), "198.51.100.1"),
        ("127.0.0.1", ("[2001:db8::1]:4711",), "2001:db8::1"),
        ("127.0.0.1", ("::ffff:198.51.100.1",), "198.51.100.1"),
        ("127.0.0.1", ("10.0.0.8, 10.0.0.7",), "10.0.0.8"),
        ("127.0.0.1", (), None),
        ("127.0.0.1", ("",), None),
        ("127.0.0.1", ("unknown",), None),
        ("127.0.0.1", ("198.51.100.1, unknown",), None),
        ("127.0.0.1", ("198.51.100.1, ",), None),
        ("127.0.0.1", ("1.2.3.4.5",), None),
    ],
)
def test_the_header_is_read_from_its_end(peer: str, values: tuple[str, ...], client: str | None) -> None:
    assert client_of(peer, *values) == client


def test_ipv6_counts_by_network() -> None:
    same = ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:0db8:0001:0002:0:0:0:1"]
    assert {network_of(host) for host in same} == {"2001:db8:1:2::/64"}
    assert network_of("2001:db8::1") == network_of("2001:db8::2") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") == "192.0.2.1"
    assert network_of("fe80::1%eth0") == "fe80::/64"
    assert network_of("") == "unknown"
