"""Certificate transparency search: names in certificates below a domain or of an organisation. It *finds*
hosts of sectors 4 and 5; it proves nothing.

The service is queried like crt.sh (`?q=%.example.org&output=json`, `?O=Name&output=json`) and returns a list
of objects with `name_value` and `common_name`; lists in `dns_names` are read too. If the configured address
contains `{query}`, the query is inserted there instead.
"""

import json
from typing import Any
from urllib.parse import quote, urlsplit

from webdepot.selection.domains.facts import bare_host
from webdepot.selection.domains.lookup.http_query import Asker

MOST_NAMES = 20_000
_KEYS = ("name_value", "common_name", "dns_names", "names")


class Transparency:
    """Queries a certificate transparency search; without an address every result is empty."""

    def __init__(self, address: str, asker: Asker) -> None:
        self._address = address.rstrip("/")
        self._asker = asker
        self.queries = 0

    @property
    def is_on(self) -> bool:
        return bool(self._address)

    async def below(self, domain: str) -> tuple[str, ...]:
        return await self._ask("q", f"%.{domain}") or await self._ask("q", domain)

    async def of_organisation(self, name: str) -> tuple[str, ...]:
        return await self._ask("O", name)

    async def _ask(self, key: str, query: str) -> tuple[str, ...]:
        if not self.is_on:
            return ()
        self.queries += 1
        if "{query}" in self._address:
            url = self._address.replace("{query}", quote(query, safe=""))
        else:
            joint = "&" if "?" in self._address else "?" if urlsplit(self._address).path else "/?"
            url = f"{self._address}{joint}{key}={quote(query, safe='')}&output=json"
        reply = await self._asker.get(url)
        return names_in(reply.data) if reply.status == 200 else ()


def names_in(data: bytes) -> tuple[str, ...]:
    """Host names in an answer; a wildcard gives the name after it."""
    try:
        rows = json.loads(data)
    except (ValueError, RecursionError):
        return ()
    hosts: dict[str, None] = {}
    for row in rows if isinstance(rows, list) else []:
        for name in _names(row):
            host = bare_host(name.removeprefix("*."))
            if "." in host and "@" not in host and " " not in host and len(hosts) < MOST_NAMES:
                hosts[host] = None
    return tuple(hosts)


def _names(row: Any) -> list[str]:
    if not isinstance(row, dict):
        return []
    values = [row.get(key) for key in _KEYS]
    texts = [
        text
        for value in values
        for text in (value if isinstance(value, list) else [value])
        if isinstance(text, str)
    ]
    return [name for text in texts for name in text.split()]
