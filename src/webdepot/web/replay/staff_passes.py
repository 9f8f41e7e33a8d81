"""A pass to one archived page that only staff, or only partners, may see.

The origins that show archived pages have no sessions, and must not have any, because archived scripts run on
them. So the portal, where staff are signed in, gives them a pass when they open such a page:

    frame    /-/pass/{token}/...           sets a cookie that scripts cannot read, and redirects to the page
    replay   /{collection}~{token}/...     the pass is part of the address, so everything that the page asks
                                           for has it, and no other archived page knows it

    token    until  8 hex digits, seconds
             point  1 hex digit, the access point: staff or partner
             page  16 hex digits, checksum of collection and key of the page
             host  15 hex digits, checksum of the page's host
             sign  32 hex digits, of the rest

A pass is valid for an hour and for reading only. It opens the page (all its versions) and its parts: what
the browser embeds as image, style sheet, script, font or media, and what its scripts ask of its own host.
Other pages need passes of their own, even if a script of this page asks for them. It is signed with a key of
the day that all portals share.
"""

import hashlib
import hmac
import re
from datetime import UTC, datetime

from webdepot.access.policy import AccessPoint
from webdepot.accounts import shared_keys
from webdepot.database import Database
from webdepot.url import key as key_of
from webdepot.web.replay.address import ReplayAddress

COOKIE = "pass"
DESTINATION = "x-replay-destination"
"""Header in which the replay worker says what the browser wants an address for."""
LASTS_S = 3600
_PURPOSE = "passes"
_SKEW_S = 60
"""How much the clocks of two portals may differ."""
_TOKEN = re.compile(r"([0-9a-f]{8})([01])([0-9a-f]{16})([0-9a-f]{15})([0-9a-f]{32})\Z")
_POINTS = (AccessPoint.STAFF, AccessPoint.PARTNER)
_PARTS = frozenset(
    [
        "audio",
        "font",
        "image",
        "manifest",
        "paintworklet",
        "audioworklet",
        "script",
        "serviceworker",
        "sharedworker",
        "style",
        "track",
        "video",
        "worker",
        "xslt",
    ]
)
"""Destinations of requests for parts of a page (https://fetch.spec.whatwg.org/#concept-request-destination)."""


def make(database: Database, now: datetime, point: AccessPoint, *, collection: str, url: str) -> str:
    """A new pass to a page for somebody who would see it at this access point; empty for readers, who need
    none.
    """
    if point not in _POINTS:
        return ""
    until = f"{int(now.timestamp()) + LASTS_S:08x}{_POINTS.index(point)}"
    rest = until + _page_of(collection, url) + _host_of(url)
    return rest + _sign(shared_keys.get(database, _PURPOSE, now), rest)


def is_valid(database: Database, token: str, now: datetime) -> bool:
    """Whether it is a pass to anything."""
    match = _TOKEN.match(token)
    left_s = int(match[1], 16) - now.timestamp() if match is not None else 0.0
    if match is None or not 0 < left_s <= LASTS_S + _SKEW_S:
        return False
    made_at = datetime.fromtimestamp(int(match[1], 16) - LASTS_S, UTC)
    key = shared_keys.find(database, _PURPOSE, made_at.date())
    return key is not None and hmac.compare_digest(match[5], _sign(key, token[:40]))


def find_point(
    database: Database, token: str, asked: ReplayAddress, now: datetime, *, destination: str = ""
) -> AccessPoint | None:
    """The access point at which a pass opens an address; None if it does not. `destination` says what the
    browser wants it for.
    """
    match = _TOKEN.match(token)
    if match is None or not is_valid(database, token, now):
        return None
    is_own_request = asked.modifier == "sw_" and match[4] == _host_of(asked.url)
    if match[3] == _page_of(asked.collection, asked.url) or destination in _PARTS or is_own_request:
        return _POINTS[int(match[2])]
    return None


def _page_of(collection: str, url: str) -> str:
    return _digest(f"{collection} {key_of(url)}")


def _host_of(url: str) -> str:
    return _digest(key_of(url).partition(")")[0])[:15]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _sign(key: bytes, rest: str) -> str:
    return hmac.new(key, rest.encode(), hashlib.sha256).hexdigest()[:32]
