"""Which addresses in the operator's own ranges run a web server? A plain TCP connection to two ports, slowly,
and only in ranges that the operator declared as their own.

Only the handshake is sent. IPv6 ranges and ranges wider than a /16 are not probed.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from webdepot.errors import InputError, NotPermitted

MOST_ADDRESSES = 1 << 16
_AT_ONCE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """An address that accepts connections on these ports."""

    address: str
    ports: tuple[int, ...]


def checked(
    wanted: Sequence[str], declared: Sequence[str], *, is_on: bool
) -> list[IPv4Network | IPv6Network]:
    """The ranges to probe. NotPermitted for any address that is not in a declared range."""
    if not is_on:
        raise NotPermitted(
            "Scanning is off. Set discovery.scan = true and list your own ranges in discovery.own_ranges."
        )
    own = [_network(text) for text in declared]
    if not own:
        raise NotPermitted(
            "No range is declared as your own. List your ranges in discovery.own_ranges; "
            "nothing else is ever scanned."
        )
    chosen = [_network(text) for text in wanted] or own
    for network in chosen:
        if not any(_is_inside(network, mine) for mine in own):
            raise NotPermitted(
                f"{network} is not in discovery.own_ranges ({', '.join(map(str, own))}). "
                "Only declared ranges are scanned."
            )
        if network.version == 6 or network.num_addresses > MOST_ADDRESSES:
            raise InputError(
                f"{network} cannot be scanned: the limit is {MOST_ADDRESSES:,} IPv4 addresses. "
                "Name a smaller range."
            )
    return chosen


async def probe(
    ranges: Sequence[IPv4Network | IPv6Network],
    *,
    ports: Sequence[int],
    per_second: float,
    timeout_s: float,
    progress: Callable[[int], None],
) -> AsyncIterator[Answering]:
    """Addresses that accept a connection on one of the ports, in order of discovery."""
    addresses = (str(address) for network in ranges for address in _hosts(network))
    running: set[asyncio.Task[Answering | None]] = set()
    begun_s = time.monotonic()
    for number, address in enumerate(addresses):
        await asyncio.sleep(max(begun_s + number / per_second - time.monotonic(), 0.0))
        running.add(asyncio.create_task(_ask(address, ports, timeout_s)))
        if len(running) >= _AT_ONCE:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if (answering := task.result()) is not None:
                    yield answering
        progress(number + 1)
    for answering in await asyncio.gather(*running):
        if answering is not None:
            yield answering


async def _ask(address: str, ports: Sequence[int], timeout_s: float) -> Answering | None:
    open_ports = tuple([port for port in ports if await _accepts(address, port, timeout_s)])
    return Answering(address=address, ports=open_ports) if open_ports else None


async def _accepts(address: str, port: int, timeout_s: float) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(address, port), timeout_s)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _hosts(network: IPv4Network | IPv6Network) -> "list[object]":
    return list(network.hosts()) or [network.network_address]


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError as error:
        raise InputError(f"{text!r} is not a network range: {error}. Write it like 192.0.2.0/24.") from error


def _is_inside(network: IPv4Network | IPv6Network, mine: IPv4Network | IPv6Network) -> bool:
    return network.version == mine.version and network.subnet_of(mine)  # type: ignore[arg-type]
