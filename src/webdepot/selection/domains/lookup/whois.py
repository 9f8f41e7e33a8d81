"""Whois queries (RFC 3912), for top-level domains without RDAP and for RIPE-style networks.

One line is sent, and `whois_parser` reads the text that is returned. The first server is the configured one
(IANA's by default); its `refer:` line names the right one, which is cached for each top-level domain. Answers
are cut at a limit; a server that reports too many queries is not queried again for a minute. The operator
names the first server, so it may be anywhere; an answer may refer to port 43 of a public address only.
"""

import asyncio
import socket
from collections.abc import Callable
from datetime import datetime

from webdepot.selection.domains.facts import Network, Registration
from webdepot.selection.domains.lookup import whois_parser
from webdepot.selection.domains.lookup.answer_cache import KeptAnswers
from webdepot.selection.domains.lookup.pace import Pace

OFF = "off"
_PORT = 43
_REFERRAL_S = 7 * 86_400.0
_PAUSE_S = 60.0


class Whois:
    def __init__(
        self,
        first_server: str,
        pace: Pace,
        kept: KeptAnswers,
        allows: Callable[[str], bool],
        *,
        timeout_s: float = 10.0,
    ) -> None:
        self._first = first_server
        self._pace = pace
        self._kept = kept
        self._allows = allows
        self._timeout_s = timeout_s
        self.queries = 0

    async def registration(self, domain: str, *, at: datetime) -> Registration:
        if self._first in ("", OFF):
            return Registration(
                at=at, detail="no RDAP server is known for this top-level domain, and whois is off"
            )
        server, text = await self._answer(domain.rpartition(".")[2], domain)
        if not text:
            return Registration(source=server, at=at, detail="no answer from whois")
        if whois_parser.is_limited(text):
            self._pace.hold(server, _PAUSE_S)
        return whois_parser.registration_of(text, domain, source=f"whois {server}", at=at)

    async def network(self, address: str, *, at: datetime) -> Network:
        if self._first in ("", OFF):
            return Network(at=at)
        server, text = await self._answer(
            "ip6" if ":" in address else f"ip {address.partition('.')[0]}", address
        )
        return whois_parser.network_of(text, address, source=f"whois {server}", at=at)

    async def _answer(self, group: str, query: str) -> tuple[str, str]:
        """The answer of the server cached for the group, or of the first one and the server it refers to."""
        server = self._kept.find("whois server", f"{self._first} {group}") or self._first
        text = await self._ask(server, query)
        referred = whois_parser.referral_of(text)
        if referred and referred != server and server == self._first:
            self._kept.keep("whois server", f"{self._first} {group}", referred, _REFERRAL_S)
            more = await self._ask(referred, query)
            return (referred, more) if more else (server, text)
        return server, text

    async def _ask(self, server: str, query: str) -> str:
        self.queries += 1
        is_first = server == self._first
        host, port = _place(server)
        if port != _PORT and not is_first:
            return ""
        line = f"-T dn {query}" if host == "whois.denic.de" else query
        async with self._pace.turn(server):
            try:
                return whois_parser.decoded(
                    await asyncio.wait_for(
                        _exchange(host, port, line, anywhere if is_first else self._allows), self._timeout_s
                    )
                )
            except (OSError, TimeoutError, ValueError, OverflowError):
                return ""


def _place(server: str) -> tuple[str, int]:
    host, colon, port = server.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5
    return (host.strip("[]"), int(port)) if colon and is_port else (server, _PORT)


def anywhere(address: str) -> bool:
    return True


async def _exchange(host: str, port: int, line: str, allows: Callable[[str], bool]) -> bytes:
    # Connected by address, so that the name cannot lead elsewhere after the check.
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    address = next((str(entry[4][0]) for entry in entries if allows(str(entry[4][0]))), "")
    if not address:
        raise OSError(f"{host} has no public address")
    reader, writer = await asyncio.open_connection(address, port)
    try:
        writer.write(f"{line}\r\n".encode())
        await writer.drain()
        answer = b""
        while len(answer) < whois_parser.LONGEST_ANSWER_BYTES and (piece := await reader.read(65_536)):
            answer += piece
        return answer
    finally:
        writer.close()
