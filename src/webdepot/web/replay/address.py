"""Addresses of archived pages as web archives write them, read from the raw bytes of a request:

    /{collection}/{timestamp}{modifier}/{url}      one version; modifiers: id_ (raw), sw_ (for the worker),
                                                   mp_ (rewritten), ns_ (without scripts), none (framed)
    /{collection}/*/{url}, /{collection}/2019*/{url}   all versions, those of a year
    /{collection}/{url}                            the latest; with Accept-Datetime a TimeGate (RFC 7089)
    /{collection}/timegate/{url}                   the same, always a TimeGate
    /{collection}/timemap/link/{url}               all versions for machines; json and cdxj too
    /{collection}/timemap/link/20120601/{url}      a page of them, from that moment on
    /{collection}~{token}/...                      the same with a pass (`staff_passes.py`)

The archived address is at the end, unescaped and with its own query string, so it is taken from the raw path
and query and never from the decoded path. Proxies that merge slashes (`http:/host`) are tolerated.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from urllib.parse import quote

from starlette.requests import Request

from webdepot.errors import InputError
from webdepot.model import EVERYTHING
from webdepot.times import from_timestamp, to_timestamp
from webdepot.url import LONGEST_URL, Url, canonicalise

COLLECTION = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}\Z", re.IGNORECASE)
RESERVED = frozenset(
    {
        "-",
        "search",
        "about",
        "help",
        "status",
        "sign-in",
        "sign-out",
        "static",
        "api",
        "sw.js",
        "cdx",
        "compare",
        "cite",
        "developers",
        "evidence",
        "complain",
        "suggest",
    }
)
"""First parts of a path that are pages of the portal and so cannot be names of collections."""

_PATH = re.compile(
    r"/([^/]*)/"
    r"(?:([0-9]{4}\*|\*|timemap/(?:link|json|cdxj)(?:/[0-9]{4,14})?|[^/.:]*)/)?"
    r"((?:[a-zA-Z][a-zA-Z0-9+.-]*:/|//|www\.|urn:).*|[^/]+\..*)\Z",
    re.DOTALL,
)
_TOKEN = re.compile(r"[0-9a-f]{72}\Z")
_STAMP = re.compile(r"([0-9]*)([a-z]{2}_)?\Z")
_SAFE = re.compile(r"[A-Za-z0-9!$%&'()*+,/:;=?@\[\]~._|^`{}-]*")
_VISIBLE = re.compile(rb"[!-~]*")
_VISIBLE_SIGNS = "".join(map(chr, range(33, 127)))
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_ONE_SLASH = re.compile(r"(https?|ftp):/(?=[^/])", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAddress:
    """The archived address that a request names, validated."""

    collection: str
    timestamp: str
    """Digits as given; empty for the latest."""
    modifier: str
    """`id_`, `sw_`, `mp_`, `*`, `timemap`, `timegate` or empty."""
    url: Url
    form: str = ""
    """The format of a TimeMap: `link`, `json` or `cdxj`."""
    token: str = ""
    """A pass to a page (`staff_passes.py`)."""

    @property
    def shelf(self) -> str:
        """The first part of paths that keep the pass."""
        return shelf_of(self.collection, self.token)


class BadAddress(InputError):
    """An invalid address; the key of a text and its values explain it in the reader's language."""

    def __init__(self, key: str, **values: str) -> None:
        super().__init__(f"{key}: {values}")
        self.key = key
        self.values = values


class TooLong(BadAddress):
    http_status = 414


def find_address(raw_path: bytes, query: bytes) -> ReplayAddress | None:
    """The archived address that a path names; None when the path has another form, BadAddress when a part of
    it is invalid.
    """
    if len(raw_path) + len(query) > LONGEST_URL + 200:
        raise TooLong("errors.text_414")
    path = raw_path.decode("ascii") if _VISIBLE.fullmatch(raw_path) else quote(raw_path, safe=_VISIBLE_SIGNS)
    if query:
        path = f"{path}?{query.decode('latin-1')}"
    match = _PATH.match(path)
    if not match or match[1] in RESERVED:
        return None
    collection, is_passed, token = match[1].partition("~")
    step, url = match[2] or "", match[3]
    if not COLLECTION.match(collection) or (is_passed and not _TOKEN.match(token)):
        raise BadAddress("errors.text_collection", collection=match[1][:60])
    if step.endswith("*"):
        timestamp, modifier = _stamp(step[:-1])[0][:4], "*"  # versions are listed by year
    elif step.startswith("timemap/"):
        _, form, *page = step.split("/")
        timestamp, _ = _stamp(page[0] if page else "")
        return ReplayAddress(
            collection=collection.lower(),
            timestamp=timestamp,
            modifier="timemap",
            url=archived_url(url),
            form=form,
        )
    elif step == "timegate":
        timestamp, modifier = "", step
    else:
        timestamp, modifier = _stamp(step)
    return ReplayAddress(
        collection=collection.lower(),
        timestamp=timestamp,
        modifier=modifier,
        url=archived_url(url),
        token=token,
    )


def address_of(request: Request, *, below: str = "") -> ReplayAddress | None:
    """`find_address` of a request whose path is an archived address after the prefix `below`."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return find_address(raw.removeprefix(below.encode()), request.scope["query_string"])


def archived_url(text: str) -> Url:
    """The archived address at the end of a path or in a parameter; its scheme may be missing. Files of works
    that are not web sites have a URN.
    """
    if text[:4].lower() == "urn:" and len(text) > 4:
        return Url(text)
    if not text.startswith(("http://", "https://")):
        text = _ONE_SLASH.sub(r"\1://", text, count=1)
    if text.startswith("//"):
        text = "http:" + text
    elif not _SCHEME.match(text):
        text = "http://" + text
    try:
        return canonicalise(text)
    except InputError:
        raise BadAddress("errors.text_url", url=text[:200]) from None


def nearest_stamp(timestamp: str, now: datetime) -> str:
    """The 14 digits to find the closest version to: a short timestamp means its first moment, none means
    now.
    """
    if not timestamp:
        return to_timestamp(now)
    return timestamp if len(timestamp) == 14 else to_timestamp(from_timestamp(timestamp))


def shelf_of(collection: str, token: str) -> str:
    """The first part of paths to a collection, with a pass if there is one."""
    return f"{collection or EVERYTHING}~{token}" if token else collection


def path_of(collection: str, step: str, url: str) -> str:
    """The path of an archived address; `step` is a timestamp with or without modifier, or `*`."""
    return f"/{collection or EVERYTHING}/{step}/{quote_url(url)}"


def quote_url(url: str) -> str:
    """An address made safe for a path and a header; a canonical address stays as it is."""
    return url if _SAFE.fullmatch(url) else quote(url, safe="!$%&'()*+,/:;=?@[]~-._|^`{}")


@lru_cache(maxsize=1024)
def _stamp(step: str) -> tuple[str, str]:
    match = _STAMP.match(step)
    if not match or len(match[1]) > 14:
        raise BadAddress("errors.text_timestamp", timestamp=step[:40])
    try:
        if match[1]:
            from_timestamp(match[1])
    except ValueError:
        raise BadAddress("errors.text_timestamp", timestamp=match[1]) from None
    return match[1], match[2] or ""
