"""Shared turns at servers, cookies, orders, and DNS failures for an hour."""

import asyncio
import fcntl
import os
import socket
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from harvest_crawl import kept, run
from harvest_site import Asked, Site, whole
from hypothesis import given
from hypothesis import strategies as st

from webdepot.errors import ConfigError
from webdepot.harvest import order_file, peer_processes
from webdepot.harvest.fetch import login
from webdepot.harvest.fetch.cookies import CookieJar
from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.order_file import Orders, OrderVerb
from webdepot.harvest.peer_processes import PeerReport
from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.politeness.servers import SharedServers

NOW = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)


def test_one_turn_at_a_server_over_two_crawls(tmp_path: Path) -> None:
    one, other = SharedServers(tmp_path / "servers"), SharedServers(tmp_path / "servers")
    assert one.begin("192.0.2.1") == 0.0
    assert other.begin("192.0.2.1") > time.monotonic()
    assert other.begin("192.0.2.2") == 0.0
    later_s = time.monotonic() + 60
    one.end("192.0.2.1", later_s)
    assert other.begin("192.0.2.1") == one.begin("192.0.2.1") == later_s
    one.close()
    other.close()


def test_a_crawl_that_dies_lets_go_of_its_turns(tmp_path: Path) -> None:
    living = SharedServers(tmp_path / "servers")
    child = os.fork()
    if not child:
        dying = SharedServers(tmp_path / "servers")
        os._exit(0 if dying.begin("192.0.2.1") == 0.0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert living.begin("192.0.2.1") == 0.0
    living.close()


def test_times_of_an_earlier_boot_do_not_count(tmp_path: Path) -> None:
    before = SharedServers(tmp_path / "servers")
    assert before.begin("192.0.2.1") == 0.0
    before.end("192.0.2.1", time.monotonic() + 1e6)
    before.close()
    with (tmp_path / "servers").open("r+b") as file:
        file.write(b"another boot".ljust(64))
    after = SharedServers(tmp_path / "servers")
    assert after.begin("192.0.2.1") == 0.0
    after.close()


def test_two_harvests_at_once_are_as_polite_as_one(site: Site, tmp_path: Path) -> None:
    async def slow(writer: asyncio.StreamWriter, asked: Asked) -> None:
        await asyncio.sleep(0.01)
        asked.ended_s = time.monotonic()
        writer.write(whole("".join(f"<a href=/{number}>" for number in range(6))))
        await writer.drain()

    site.answers["/"] = slow
    for number in range(6):
        site.answers[f"/{number}"] = slow
    manners = Manners(delay_s=0.03, delay_factor=0.0)

    def harvest(name: str) -> None:
        shared = SharedServers(tmp_path / "servers")
        run(tmp_path / name, [f"{site.url}/"], shared=shared, manners=manners)
        shared.close()

    threads = [threading.Thread(target=harvest, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(site.log) == 16
    for earlier, later in pairwise(sorted(site.log, key=lambda asked: asked.began_s)):
        assert later.began_s - earlier.ended_s >= 0.03


# --- cookies ---


@pytest.mark.parametrize(
    ("line", "url", "sent"),
    [
        ("a=1", "http://www.a.example/x", "a=1"),
        ("a=1", "http://a.example/x", ""),
        ("a=1; Domain=a.example", "http://other.a.example/", "a=1"),
        ("a=1; Domain=example", "http://www.a.example/", ""),
        ("a=1; Domain=b.example", "http://www.a.example/", ""),
        ("a=1; Path=/deep", "http://www.a.example/deep/er", "a=1"),
        ("a=1; Path=/deep", "http://www.a.example/deeper", ""),
        ("a=1; Secure", "http://www.a.example/", ""),
        ("a=1; Secure", "https://www.a.example/", "a=1"),
        ("a=1; Max-Age=0", "http://www.a.example/", ""),
        ("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://www.a.example/", "a=1"),
        ("a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://www.a.example/", ""),
        ("a=1\x07", "http://www.a.example/", ""),
        ("a=" + "x" * 5000, "http://www.a.example/", ""),
    ],
)
def test_where_a_cookie_goes_back_to(line: str, url: str, sent: str) -> None:
    jar = CookieJar()
    jar.take([line], "http://www.a.example/", NOW)
    assert jar.header(url, NOW)[0] == sent


def test_cookies_end_are_replaced_and_bounded_and_secrets_are_not_shown() -> None:
    jar = CookieJar()
    url = "http://www.a.example/"
    jar.take(["a=1; Max-Age=60"], url, NOW)
    assert jar.header(url, NOW + timedelta(seconds=61)) == ("", "")
    jar.take(["a=2"], url, NOW)
    assert jar.header(url, NOW)[0] == "a=2"
    jar.take(["a=3"], url, NOW, origins=frozenset({"http://www.a.example"}))
    jar.take(["a=4"], url, NOW)
    assert jar.header(url, NOW) == ("a=4", "a=[removed]")
    jar.take([f"n{number}=x" for number in range(500)], url, NOW)
    assert jar.header(url, NOW)[0].count("=") == 50


@given(st.text(max_size=200))
def test_no_cookie_breaks_a_request(line: str) -> None:
    jar = CookieJar()
    jar.take([line], "http://www.a.example/", NOW)
    sent, shown = jar.header("http://www.a.example/", NOW)
    assert sent == shown
    assert not set(sent) & set("\r\n\0")


def test_cookies_are_sent_back_in_a_crawl(site: Site, tmp_path: Path) -> None:
    site.page("/", "<a href=/next>", Set_Cookie="seen=yes")
    site.page("/next", "next")
    run(tmp_path, [f"{site.url}/"], cookies=CookieJar())
    assert [b"Cookie: seen=yes" in asked.raw for asked in site.log if asked.target in ("/", "/next")] == [
        False,
        True,
    ]


def test_accounts_are_read_only_from_a_file_that_is_private(tmp_path: Path) -> None:
    path = tmp_path / "logins.toml"
    assert login.read(path) == {}
    path.write_text('["A.example"]\nuser = "me"\npassword = "secret"\n')
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        login.read(path)
    path.chmod(0o600)
    found = login.read(path)["a.example"]
    assert (found.user, found.password) == ("me", "secret")
    assert "secret" not in repr(found)
    path.write_text('["a.example"]\nuser = "me"\nform = "https://a.example/"\n')
    with pytest.raises(ConfigError, match="either"):
        login.read(path)


# --- orders and peers ---


def test_orders_survive_a_process_that_died_while_giving_one(tmp_path: Path) -> None:
    order_file.give(tmp_path, OrderVerb.PAUSE, at=NOW, by="curator")
    orders = Orders(tmp_path)
    assert [order.verb for order in orders.poll()] == [OrderVerb.PAUSE]
    with (tmp_path / order_file.FILE_NAME).open("ab") as file:
        file.write(b'{"verb": "st')
    assert orders.poll() == []
    given_order = order_file.give(tmp_path, OrderVerb.CHANGE, at=NOW, changes={"delay_s": 3})
    assert given_order.number == 2
    assert [order.changes for order in orders.poll()] == [{"delay_s": 3}]
    summary = order_file.summarize(order_file.read(tmp_path))
    assert summary.paused and summary.changes == {"delay_s": 3}


def test_it_is_over_when_all_are_idle_and_all_was_read() -> None:
    idle = [
        PeerReport(idle=True, written_bytes=10, read_bytes=5),
        PeerReport(idle=True, written_bytes=5, read_bytes=10),
    ]
    assert peer_processes.is_over(idle)
    assert not peer_processes.is_over([idle[0], PeerReport(idle=True, written_bytes=15, read_bytes=10)])
    assert not peer_processes.is_over([idle[0], PeerReport(idle=False, written_bytes=5, read_bytes=10)])
    assert not peer_processes.is_over([idle[0], None])


def test_each_process_gets_as_many_hosts_of_the_seeds_and_a_host_has_one_owner(tmp_path: Path) -> None:
    by_hash = peer_processes.owners(tmp_path, 7)
    assert by_hash.of("http://www.a.example/x") == by_hash.of("https://a.example:8443/y")
    seeds = [f"http://{www}h{number}.example/" for number in range(50) for www in ("", "www.")]
    peer_processes.deal_out(tmp_path, seeds, 3)
    owners = peer_processes.owners(tmp_path, 3)
    assert Counter(owners.of(seed) for seed in seeds) == {0: 34, 1: 34, 2: 32}
    assert all(
        owners.of(f"http://h{number}.example/") == owners.of(f"https://www.h{number}.example:8443/x")
        for number in range(50)
    )
    assert {owners.of(f"http://other{number}.example/") for number in range(50)} == {0, 1, 2}


# --- names ---


def test_names_that_fail_for_an_hour_are_asked_again_by_the_next_run(site: Site, tmp_path: Path) -> None:
    site.page("/", "<a href=/next>")
    site.page("/next", "next")
    is_down = True

    async def look_up(host: str) -> list[str]:
        if is_down:
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return ["127.0.0.1"]

    seed = f"http://host.example:{site.port}/"
    first = run(tmp_path, [seed], router=Router(allow_private=True, look_up=look_up))
    assert first.waiting >= 1 or first.trouble is not None
    assert site.log == []
    is_down = False
    second = run(tmp_path, [seed], router=Router(allow_private=True, look_up=look_up))
    assert second.waiting == 0
    assert sorted(set(kept(tmp_path))) == sorted(
        [f"http://host.example:{site.port}{path}" for path in ("/", "/next", "/robots.txt")]
    )


def test_a_harvest_waits_while_names_cannot_be_looked_up(site: Site, tmp_path: Path) -> None:
    site.page("/", "home")
    asked = 0

    async def look_up(host: str) -> list[str]:
        nonlocal asked
        asked += 1
        if asked < 12:
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return ["127.0.0.1"]

    manners = Manners(delay_s=0.0, delay_factor=0.0, retry_delay_s=0.001, dns_patience_s=60.0)
    result = run(
        tmp_path,
        [f"http://host.example:{site.port}/"],
        router=Router(allow_private=True, look_up=look_up),
        manners=manners,
    )
    assert result.waiting == 0 and result.trouble is None
    assert f"http://host.example:{site.port}/" in kept(tmp_path)


def test_the_lock_of_the_shared_file_is_not_kept(tmp_path: Path) -> None:
    opened = SharedServers(tmp_path / "servers")
    with (tmp_path / "servers").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    opened.close()
