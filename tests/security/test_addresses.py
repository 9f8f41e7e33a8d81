"""Which addresses are public, and that look-ups are led to no others."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from harvest_site import running_site

from webdepot import event_loop
from webdepot.harvest.fetch.host_addresses import Router, is_public
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.selection.domains.lookup.answer_cache import KeptAnswers
from webdepot.selection.domains.lookup.http_query import Asker
from webdepot.selection.domains.lookup.pace import Pace
from webdepot.selection.domains.lookup.whois import Whois
from webdepot.times import utc_now

SPECIAL = """
0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29
192.0.0.8/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24
203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32
::1/128 ::/128 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:2::/48 2001:db8::/32 2002::/16 3fff::/20
5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8
"""
"""Blocks that are not globally reachable, in IANA's registries of special-purpose addresses; the deprecated
site-local block and multicast besides."""


@pytest.mark.parametrize("block", SPECIAL.split())
def test_no_address_of_a_special_block_is_public(block: str) -> None:
    network = ip_network(block)
    middle = network[network.num_addresses // 2]
    assert not any(is_public(str(address)) for address in (network[0], middle, network[-1]))


@pytest.mark.parametrize(
    "inner", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "100.100.100.200"]
)
def test_no_private_address_hides_in_another_one(inner: str) -> None:
    number = int(ip_address(inner))
    forms = [
        f"::ffff:{inner}",
        f"::{inner}",
        f"64:ff9b::{inner}",
        f"64:ff9b:1::{inner}",
        f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1",
        f"2001:0:{number >> 16:x}:{number & 0xFFFF:x}::1",
        f"fe80::5efe:{inner}",
        f"fec0::{inner}",
    ]
    assert not [form for form in forms if is_public(form)]


@pytest.mark.parametrize(
    "address", ["9.9.9.9", "2620:fe::fe", "2a00:1450::1", "::ffff:9.9.9.9", "64:ff9b::909:909"]
)
def test_the_rest_is_public(address: str) -> None:
    assert is_public(address)


@contextmanager
def whois_server(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A whois server on loopback: its address, and the queries that it got."""
    queries: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.2)
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection:
                queries.append(connection.recv(1000))
                connection.sendall(answer)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}", queries
    finally:
        done.set()
        thread.join()
        listener.close()


@pytest.mark.parametrize("is_port_43", [False, True])
def test_a_whois_server_cannot_refer_us_to_a_private_address(tmp_path: Path, is_port_43: bool) -> None:
    with whois_server(b"inside\n") as (inside, inside_queries):
        referred = "127.0.0.1" if is_port_43 else inside
        with whois_server(f"refer: {referred}\n".encode()) as (first, queries):
            kept = KeptAnswers(tmp_path / "lookups.db", utc_now)

            async def ask() -> None:
                whois = Whois(first, Pace(0.0), kept, is_public, timeout_s=2.0)
                await whois.registration("a.example", at=utc_now())
                await whois.registration("b.example", at=utc_now())  # by the referral that was kept

            event_loop.run(ask())
            kept.close()
            assert queries[0] == b"a.example\r\n"
        assert not inside_queries


def test_a_registry_cannot_redirect_us_to_a_private_address() -> None:
    with running_site() as registry, running_site() as inside:
        inside.page("/latest/meta-data/", "secret")
        registry.page("/domain/a", "", status="302 Found", Location=f"{inside.url}/latest/meta-data/")

        async def ask() -> str:
            fetchers = [
                CurlFetcher(user_agent="test", router=Router(allow_private=allow)) for allow in (True, False)
            ]
            try:
                asker = Asker(fetchers[0], Pace(0.0), utc_now, onward=fetchers[1])
                return (await asker.get(f"{registry.url}/domain/a")).detail
            finally:
                await asyncio.gather(*(fetcher.close() for fetcher in fetchers))

        assert "no public address" in event_loop.run(ask())
        assert registry.log and not inside.log
