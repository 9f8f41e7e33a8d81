"""Which network addresses are fetched from: only public ones, checked when the socket opens; names; mappings."""

import asyncio
import socket

import pytest
from harvest_fetch import fetch, fetching
from harvest_site import Site

from webdepot import event_loop
from webdepot.errors import ConfigError
from webdepot.harvest.fetch.host_addresses import Router, is_public, parse_connect_to
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.model import Candidate, Failure
from webdepot.url import Url


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
    """DNS rebinding: the second lookup gives another address."""
    answers = iter([["127.0.0.1"], ["127.0.0.1"]])

    async def look_up(host: str) -> list[str]:
        return next(answers)

    visit, _ = fetch(f"http://rebound.example:{site.port}/", router=Router(look_up=look_up))
    assert visit.failure is Failure.PRIVATE_ADDRESS
    assert site.log == []


def test_only_the_checked_addresses_are_asked(site: Site) -> None:
    """Of a private and a public address only the public one is used, and libcurl makes no lookup."""

    async def look_up(host: str) -> list[str]:
        return ["127.0.0.1", "192.0.2.1"]

    router = Router(look_up=look_up)
    route = event_loop.run(router.find("localhost", site.port))
    assert route.failure is Failure.PRIVATE_ADDRESS  # 192.0.2.1 is for documentation

    async def public(host: str) -> list[str]:
        return ["127.0.0.1", "8.8.8.8"]

    route = event_loop.run(Router(look_up=public).find("localhost", site.port))
    assert route.addresses == ("8.8.8.8",)


def test_the_socket_itself_is_checked(site: Site) -> None:
    """If a private address passes the lookup, no connection is made."""

    class Careless(Router):
        def _checked(self, host: str, addresses: tuple[str, ...]):  # type: ignore[no-untyped-def]
            from webdepot.harvest.fetch.host_addresses import Route

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
def test_a_wrong_mapping_is_reported(place: str) -> None:
    with pytest.raises(ConfigError, match="connect_to"):
        parse_connect_to({"a.example": place})


def test_names_that_do_not_exist_differ_from_a_failed_lookup() -> None:
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
