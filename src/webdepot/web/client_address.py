"""Which client a request comes from, if web servers in front of this one pass requests on.

A server in front (a reverse proxy) adds the address of its own client to the end of `X-Forwarded-For`.
Everything before that was sent by the client, who can write anything. So the header is believed only from the
networks of `[web] trusted_proxies`, and it is read from its end: the first address that is not one of these
proxies is the client. If such a proxy sends no address, the client is unknown, and counts as the public.

https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/X-Forwarded-For#selecting_an_ip_address
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from webdepot.services.admin.proxy_probe import FORGED_NETWORK, PROBE_PATH, ProbeResult

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_MOST_HOPS = 32
"""Addresses that are read from the end of the header."""
_WITH_PORT = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::[0-9]{1,5})?\Z")
IPV6_PREFIX = 64
"""What one household or machine has of IPv6: it can use any address in it."""


class ForwardedClient:
    """Puts the address and the protocol that a trusted proxy reports into each request. Also tells `webdepot
    doctor` what becomes of a forged header.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[str]) -> None:
        self.app = app
        networks = [ipaddress.ip_network(text, strict=False) for text in trusted]
        self._is_trusted = lru_cache(maxsize=4096)(lambda host: _is_in(find_address(host), networks))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        client = scope.get("client")
        if client and self._is_trusted(client[0]):
            host = self._find_client(_values(scope, b"x-forwarded-for"))
            scope["client"] = (host, 0) if host else None
            protocol = _values(scope, b"x-forwarded-proto").rpartition(",")[2].strip().lower()
            if protocol in ("http", "https"):
                scope["scheme"] = protocol
        app = _tell_probe if scope["path"] == PROBE_PATH else self.app
        await app(scope, receive, send)

    def _find_client(self, chain: str) -> str:
        """The last address of the header that is not a trusted proxy; the first if all are; empty if it has
        none, or something that is not an address comes before.
        """
        nearest = ""
        for text in reversed(chain.split(",")[-_MOST_HOPS:]):
            address = find_address(text)
            if address is None:
                return ""
            nearest = str(address)
            if not self._is_trusted(nearest):
                return nearest
        return nearest


def find_address(text: str) -> _Address | None:
    """An IP address, possibly in brackets or with a port; None for anything else. IPv4 written as IPv6 is
    IPv4.
    """
    text = text.strip()
    match = _WITH_PORT.match(text)
    if match:
        text = match[1] or match[2]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, ipaddress.IPv6Address) else address


@lru_cache(maxsize=4096)
def network_of(host: str) -> str:
    """What counts as one sender where requests are limited: an IPv4 address, or the /64 of an IPv6
    address.
    """
    return _cut(host, IPV6_PREFIX)


@lru_cache(maxsize=4096)
def wider_network_of(host: str) -> str:
    """What one customer of a provider may have: an IPv4 address, or the /48 of an IPv6 address."""
    return _cut(host, 48)


def _cut(host: str, ipv6_prefix: int) -> str:
    address = find_address(host)
    if address is None:
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, ipv6_prefix), strict=False))
    return str(address)


def _is_in(
    address: _Address | None, networks: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> bool:
    return address is not None and any(address in network for network in networks)


def _values(scope: Scope, wanted: bytes) -> str:
    """All values of a header, in order, separated by commas."""
    return ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == wanted)


async def _tell_probe(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer whether this request seems to come from a forged address, one that no client has."""
    client = scope.get("client")
    if client is None:
        result = ProbeResult.UNKNOWN
    elif _is_in(find_address(client[0]), [ipaddress.ip_network(FORGED_NETWORK)]):
        result = ProbeResult.FORGED
    else:
        result = ProbeResult.REAL
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    await PlainTextResponse(f"{result}\n", headers=headers)(scope, receive, send)
