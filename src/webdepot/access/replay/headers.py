"""Headers of a replayed capture: which are passed on, renamed or dropped, and which we add.

* Archived headers without which a body cannot be shown keep their names; there is one `Content-Type`.
* All others are renamed to `X-Archive-Orig-…`: people can still read them, but neither a browser nor a web
  server in front of ours acts on them (policies, refresh, preloading, `X-Accel-Redirect`, and future ones).
* Cookies are dropped. So are transfer headers; the body has been transfer-decoded.
* `Location` leads to the archived target, never to the live web.
* `Memento-Datetime` and `Link` follow RFC 7089 (https://www.rfc-editor.org/rfc/rfc7089).
* The Content-Security-Policy keeps every request of an archived page inside our origin. It allows neither
  `ws:` nor `wss:`. `object-src` is 'none', because browsers request the data of `<object>` without the
  worker, so it would arrive raw; `archived_page.js` shows pages and images in frames instead.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from webdepot.times import http_date

PREFIX = "X-Archive-Orig-"

DROPPED = frozenset(
    """
    connection content-length keep-alive proxy-connection te trailer transfer-encoding upgrade content-range
    accept-ranges
    """.split()  # noqa: SIM905 - reads better than a dozen quotes
)
COOKIES = frozenset({"set-cookie", "set-cookie2"})
"""Not sent in any form: one may be the key to an account that the archive logged in with."""
KEPT = frozenset({"content-disposition", "content-encoding", "content-language", "content-type"})
"""Sent under their own names: what a browser needs to show the body."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_URI = re.compile(r"[A-Za-z0-9!#$%&'()*+,/:;=?@\[\]~._-]*")
_NOT_IN_VALUES = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
MOST_HEADERS = 200
LONGEST_VALUE = 8000


WITHOUT_BODY = frozenset({204, 205, 304})
"""Status codes that are never sent with a body, even if one was archived."""
RAW_POLICY = (
    "sandbox; default-src 'none'; img-src 'self' data:; media-src 'self' data:; style-src 'unsafe-inline'; "
    "form-action 'none'"
)
"""Content-Security-Policy of a raw capture that is opened directly: it is shown, but cannot run anything."""
CONNECTIONS = ("Connection-Allowlist", "(response-origin);redirects=allow")
"""Sent with every part of a page rewritten in the browser: the browser connects only to us, even for peer
connections, preconnections and name lookups, which a Content-Security-Policy does not cover
(https://wicg.github.io/connection-allowlists/). Redirects come from us, too, and lead into the
archive; without `redirects=allow` the browser follows none in a frame.
"""
WORKER_POLICY = "default-src 'self'; connect-src 'self' data: blob:"
"""The Content-Security-Policy of the replay worker: even if an archived script controls it, it can connect
only to us.
"""


def passed_on(archived: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Archived headers as they may be sent again, in order; the caller keeps or drops Content-Encoding."""
    passed: list[tuple[str, str]] = []
    has_type = False
    for name, value in cleaned(archived):
        lower = name.lower()
        if lower in COOKIES:
            continue
        if lower == "content-type" and not has_type:
            # One type, since browsers take the last of several, in one header or in many.
            kept = value.partition(",")[0].strip()
            passed.append((name, kept))
            has_type = True
            if kept == value.strip():
                continue
        is_kept = lower in KEPT and lower != "content-type"
        passed.append((name if is_kept else PREFIX + name, value))
    return passed


def sendable(status: int) -> int:
    """The status that HTTP can send for an archived one: some servers sent 999, and a record may have only a
    1xx.
    """
    if status < 200:
        return 200
    return status if status < 600 else 500


def cleaned(archived: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Archived headers that can be sent at all: without transfer headers and without names or characters that
    are invalid in HTTP, bounded in number and length. Cookies are the caller's decision.
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
    *, url: str, timestamp: str, replay_url: str, collection: str, steps: Mapping[str, tuple[str, str]]
) -> list[tuple[str, str]]:
    """`Memento-Datetime` and `Link`; `steps` are relations such as `first` with timestamps and addresses. The
    memento itself is among the links, and each memento is there once with all its relations.
    """
    base, target = f"{replay_url}/{collection}", _target(url)
    links = [
        f'<{target}>; rel="original"',
        f'<{base}/{target}>; rel="timegate"',
        f'<{base}/timemap/link/{target}>; rel="timemap"; type="application/link-format"',
    ]
    relations: dict[tuple[str, str], str] = {}
    for relation, step in steps.items():
        relations[step] = f"{relations.get(step, '')}{relation} "
    relations.setdefault((timestamp, url), "")
    for (stamp, address), names in sorted(relations.items()):
        where = f"{base}/{stamp}id_/{_target(address)}"
        links.append(f'<{where}>; rel="{names}memento"; datetime="{http_date(stamp)}"')
    return [("Memento-Datetime", http_date(timestamp)), ("Link", ", ".join(links))]


def _target(url: str) -> str:
    """An address inside <…>, where RFC 8288 allows URI characters only."""
    return url if _URI.fullmatch(url) else quote(url, safe="!#$%&'()*+,/:;=?@[]~-._")
