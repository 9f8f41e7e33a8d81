"""Test whether the portal believes a forged client address, at the address where readers reach it.

The server answers at `PROBE_PATH` whether the request seems to come from FORGED_NETWORK, which no client has
(RFC 5737).
"""

import http.client
import ssl
from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import urlsplit

from webdepot.config.sections.portal import WebConfig

PROBE_PATH = "/-/asked-from"
FORGED_NETWORK = "198.51.100.0/24"
_FORGED = "198.51.100.77"
_TIMEOUT_S = 10
_HEADERS: Mapping[str, str] = {
    "X-Forwarded-For": _FORGED,
    "X-Real-IP": _FORGED,
    "Forwarded": f"for={_FORGED}",
    "User-Agent": "webdepot doctor",
}


class ProbeResult(StrEnum):
    """How the server sees a request with a forged address."""

    FORGED = "forged"
    UNKNOWN = "unknown"
    REAL = "real"


def probe(url: str) -> ProbeResult | None:
    """How the portal or the replay server at this public address treats a forged client address; None if it
    is not reached, or if another program answers.
    """
    parts = urlsplit(url)
    assert parts.hostname  # noqa: S101 - checked when the server starts
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=_TIMEOUT_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", PROBE_PATH, headers=_HEADERS)
        response = connection.getresponse()
        text = response.read(100).decode("ascii", "replace").strip()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return ProbeResult(text) if response.status == 200 and text in set(ProbeResult) else None


def is_proxied(config: WebConfig, host: str = "") -> bool:
    """Whether requests can only come through another web server: this one is reached from its own machine
    alone, or readers use HTTPS, which it does not speak itself.
    """
    is_local = (host or config.host).startswith("127.") or (host or config.host) in ("localhost", "::1")
    return bool(config.portal_url) and (is_local or config.portal_url.lower().startswith("https:"))
