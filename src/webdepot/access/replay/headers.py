"""Headers of a replayed capture: what is passed on, renamed, dropped, and what we say ourselves.

* Archived headers that would make a browser do something to us or to the live web (cookies, policies,
  refresh, links to preload, storage clearing, worker scopes) or that speak about a connection long gone
  (caching, authentication) are renamed to `X-Archive-Orig-…`: nothing is lost for a person who looks, nothing
  acts.
* Transfer headers are dropped; the body has been transfer-decoded.
* `Location` leads to the archived target, never to the live web.
* `Memento-Datetime` and `Link` follow RFC 7089 (https://www.rfc-editor.org/rfc/rfc7089).
* The policy keeps every request of an archived page inside our origin. It names no `ws:` and no `wss:`.
  `object-src` stays 'none': browsers ask for the data of `<object>` past the worker, so it would come raw;
  `inside.js` shows pages and pictures in frames instead.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from webdepot.times import http_date

PREFIX = "X-Archive-Orig-"
_PREFIX = PREFIX.lower()

DROPPED = frozenset(
    "connection content-length keep-alive proxy-connection te trailer transfer-encoding upgrade content-range accept-ranges".split()  # noqa: SIM905 - reads better than a hundred quotes
)

RENAMED = frozenset(
    """
    accept-ch access-control-allow-credentials access-control-allow-headers access-control-allow-methods
    access-control-allow-origin access-control-expose-headers access-control-max-age age alt-svc authentication-info
    cache-control clear-site-data connection-allowlist connection-allowlist-report-only
    content-location content-security-policy content-security-policy-report-only critical-ch
    cross-origin-embedder-policy cross-origin-embedder-policy-report-only cross-origin-opener-policy
    cross-origin-opener-policy-report-only cross-origin-resource-policy date document-policy etag expect-ct expires
    feature-policy last-modified link location memento-datetime nel no-vary-search observe-browsing-topics origin-agent-cluster
    origin-trial p3p permissions-policy pragma proxy-authenticate public-key-pins public-key-pins-report-only
    referrer-policy refresh report-to reporting-endpoints server server-timing service-worker-allowed set-cookie set-cookie2 sourcemap
    speculation-rules status strict-transport-security supports-loading-mode timing-allow-origin use-as-dictionary vary via
    www-authenticate x-dns-prefetch-control x-frame-options x-sourcemap x-ua-compatible x-xss-protection
    x-redirect-status x-redirect-statustext x-orig-location x-orig-ts x-proxy-set-cookie x-wabac-preset-cookie
    """.split()  # noqa: SIM905
)
"""The last line is what the replay worker in the browser would take for orders of ours."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_URI = re.compile(r"[A-Za-z0-9!#$%&'()*+,/:;=?@\[\]~._-]*")
_NOT_IN_VALUES = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
MOST_HEADERS = 200
LONGEST_VALUE = 8000


WITHOUT_BODY = frozenset({204, 205, 304})
"""Status codes that are never sent with a body, whatever was archived."""
RAW_POLICY = "sandbox; default-src 'none'; img-src 'self' data:; media-src 'self' data:; style-src 'unsafe-inline'; form-action 'none'"
"""Of a raw capture opened by itself: it may be looked at, it may not act."""
CONNECTIONS = ("Connection-Allowlist", "(response-origin)")
"""With every part of a page rewritten in the browser: whatever it does, peer connections, preconnections and
look-ups of names included, which no Content-Security-Policy reaches, the browser connects to nobody but us
(https://wicg.github.io/connection-allowlists/).
"""
WORKER_POLICY = "default-src 'self'; connect-src 'self' data: blob:"
"""Of the replay worker: whatever an archived script tells it, it can ask nobody but us."""


def passed_on(archived: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Archived headers as they may be sent again, in their order; Content-Encoding is the caller's to keep or
    drop.
    """
    return [
        (PREFIX + name if (lower := name.lower()) in RENAMED or lower.startswith(_PREFIX) else name, value)
        for name, value in cleaned(archived)
    ]


def sendable(status: int) -> int:
    """The status that HTTP can send for an archived one: servers have said 999, and a record may hold a mere
    1xx.
    """
    if status < 200:
        return 200
    return status if status < 600 else 500


def cleaned(archived: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Archived headers that can be sent at all: no transfer headers, no names or signs that are no HTTP, a
    bounded number and length.
    """
    kept: list[tuple[str, str]] = []
    for name, value in archived:
        if name.lower() in DROPPED or not _TOKEN.match(name) or len(kept) >= MOST_HEADERS:
            continue
        if not (value.isascii() and value.isprintable()):
            value = _NOT_IN_VALUES.sub(" ", value)
        kept.append((name, value[:LONGEST_VALUE]))
    return kept


def memento(
    *, url: str, timestamp: str, replay_url: str, collection: str, steps: Mapping[str, str]
) -> list[tuple[str, str]]:
    """`Memento-Datetime` and `Link`; `steps` are relations such as `first` with their timestamps."""
    base, target = f"{replay_url}/{collection}", _target(url)
    links = [
        f'<{target}>; rel="original"',
        f'<{base}/{target}>; rel="timegate"',
        f'<{base}/timemap/link/{target}>; rel="timemap"; type="application/link-format"',
    ]
    for relation, step in steps.items():
        links.append(f'<{base}/{step}id_/{target}>; rel="{relation}"; datetime="{http_date(step)}"')
    return [("Memento-Datetime", http_date(timestamp)), ("Link", ", ".join(links))]


def _target(url: str) -> str:
    """An address inside <…>: RFC 8288 allows URI characters only."""
    return url if _URI.fullmatch(url) else quote(url, safe="!#$%&'()*+,/:;=?@[]~-._")
