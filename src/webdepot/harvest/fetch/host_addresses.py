"""From host names to addresses, and whether we may connect to them.

A page can link to `http://127.0.0.1/admin`, or to a name whose address changes between two lookups (DNS
rebinding). So we look names up ourselves, remove addresses that are not public, and give the HTTP client the
rest: it never asks DNS itself.

Order of steps, for each request:
1. A host in `connect_to` goes to the place that the operator set, whatever that is.
2. An address literal is used as it is; a name is looked up, and its addresses are kept for `keep_s`.
3. Addresses that are not public are removed, unless the operator allowed them all (`allow_private`) or their
   network (`private_networks`).
"""

import asyncio
import math
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from webdepot.errors import ConfigError
from webdepot.model import Failure

LookUp = Callable[[str], Awaitable[Sequence[str]]]
"""The addresses of a name, as text; raises `socket.gaierror` if there are none."""

_GONE = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
_MOST_KEPT = 10_000

_GLOBAL_IPV6 = ip_network("2000::/3")
"""All IPv6 addresses that are given to networks of the Internet; the rest is special or not in use yet."""
_SPECIAL = tuple(
    ip_network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
    )
)
"""Networks that are not reachable from everywhere, after the registries of special-purpose addresses,
https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry. Python's own list
depends on its version.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where to connect for a host: allowed addresses, or a place set by the operator, or why it is
    refused.
    """

    addresses: tuple[str, ...] = ()
    connect_to: str = ""
    failure: Failure | None = None
    detail: str = ""
    permanent: bool = False


def is_public(address: str) -> bool:
    """Whether an address is public; looks also at IPv4 addresses embedded in IPv6 ones."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _embedded_ipv4(parsed) if isinstance(parsed, IPv6Address) else None
    if inner is not None:
        return is_public(str(inner))
    if isinstance(parsed, IPv6Address) and parsed not in _GLOBAL_IPV6:
        return False
    return not any(parsed in network for network in _SPECIAL)


def is_allowed(address: str, private_networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Whether we may connect to an address: a public one, or one of a network that the operator named."""
    if is_public(address):
        return True
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return any(parsed in network for network in private_networks)


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address in ::ffff:a.b.c.d, ::a.b.c.d and 64:ff9b::/96 (NAT64). 6to4 and Teredo are obsolete
    and are in the list of special networks.
    """
    if address.ipv4_mapped:
        return address.ipv4_mapped
    if int(address) >> 32 == 0x64FF9B << 64 or int(address) >> 32 == 0:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def parse_connect_to(mapping: Mapping[str, str]) -> dict[str, str]:
    """Check the operator's table: host or host:port -> address:port; ConfigError names the wrong line."""
    for host, place in mapping.items():
        address, colon, port = place.rpartition(":")
        if not host or not colon or not address or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigError(
                f"harvest.connect_to: {host!r} = {place!r} is wrong. "
                'Write it like "www.example.org" = "127.0.0.1:8001".'
            )
    return {host.lower(): place for host, place in mapping.items()}


class Router:
    """Finds the route of a host and keeps the results of lookups for `keep_s`. For one event loop."""

    def __init__(
        self,
        *,
        allow_private: bool = False,
        private_networks: Sequence[str] = (),
        connect_to: Mapping[str, str] | None = None,
        look_up: LookUp | None = None,
        timeout_s: float = 15.0,
        keep_s: float = 300.0,
        on_found: Callable[[str, Sequence[str]], None] = lambda host, addresses: None,
    ) -> None:
        """`on_found` is called with the addresses of every successful lookup, so that they can be
        recorded.
        """
        self._on_found = on_found
        self._allow_private = allow_private
        self._private_networks = tuple(map(ip_network, private_networks))
        self._connect_to = parse_connect_to(connect_to or {})
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="lookup")
        self._look_up = look_up or self._look_up_in_thread
        self._timeout_s = timeout_s
        self._keep_s = keep_s
        self._kept: dict[str, tuple[float, Route]] = {}

    def allows(self, address: str) -> bool:
        return self._allow_private or is_allowed(address, self._private_networks)

    def find_known(self, host: str, port: int) -> Route | None:
        """The route if it needs no lookup. `host` is as in a canonical URL: lower case, IPv6 in brackets."""
        if self._connect_to and (
            place := self._connect_to.get(f"{host}:{port}") or self._connect_to.get(host)
        ):
            return Route(connect_to=place)
        kept = self._kept.get(host)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        if host[0] == "[" or host[-1].isdigit():
            literal = host.strip("[]")
            try:
                ip_address(literal)
            except ValueError:
                return None
            return self._keep(host, math.inf, (literal,))
        return None

    async def find(self, host: str, port: int) -> Route:
        """The route, with a lookup if needed. Never raises: a failure is in the route."""
        known = self.find_known(host, port)
        if known is not None:
            return known
        try:
            addresses = tuple(await asyncio.wait_for(self._look_up(host), self._timeout_s))
        except TimeoutError:
            return Route(
                failure=Failure.DNS, detail=f"the lookup of {host} took longer than {self._timeout_s:g} s"
            )
        except (OSError, UnicodeError) as error:
            gone = isinstance(error, UnicodeError) or error.errno in _GONE
            detail = f"there is no host {host}" if gone else f"the lookup of {host} failed: {error}"
            return Route(failure=Failure.DNS, detail=detail, permanent=gone)
        self._on_found(host, addresses)
        return self._keep(host, time.monotonic() + self._keep_s, addresses)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _keep(self, host: str, until_s: float, addresses: tuple[str, ...]) -> Route:
        """Store the route of a host, checked once: each request needs it several times."""
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        route = self._checked(host, addresses)
        self._kept[host] = (until_s, route)
        return route

    def _checked(self, host: str, addresses: tuple[str, ...]) -> Route:
        allowed = tuple(address for address in addresses if self.allows(address))
        if allowed:
            return Route(addresses=allowed)
        detail = f"{host} has no public address: {', '.join(addresses) or 'none at all'}"
        return Route(failure=Failure.PRIVATE_ADDRESS, detail=detail, permanent=True)

    async def _look_up_in_thread(self, host: str) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        entries = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(entry[4][0]) for entry in entries))
