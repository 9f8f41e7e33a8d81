"""Addresses: the one canonical form that goes over the wire, and the one sort key that all indexes share.

* `canonicalise` gives the WHATWG form (https://url.spec.whatwg.org, through ada) without fragment: what a browser would
  request. It is stored untouched in containers.
* `key` gives the SURT key (Sort-friendly URI Reordering Transform): host reversed, scheme, `www.`, default port, case,
  session ids and order of query arguments taken out, so that spellings of one page meet:

      https://www.Example.org/News/?b=2&a=1   ->   org,example)/news?a=1&b=2

  It agrees with what pywb, OutbackCDX and the Internet Archive's CDX files use, so their indexes and ours can be mixed.
  Its version number is stored in every index; a change of one key in a billion is a new version.
"""

import re
from functools import lru_cache
from typing import NewType
from urllib.parse import unquote_to_bytes

import ada_url
from publicsuffixlist import PublicSuffixList

from webdepot.errors import InputError

KEY_VERSION = 1
LONGEST_URL = 65_536

Url = NewType("Url", str)

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_WWW = re.compile(r"www\d*\.(?=[^.]+\.)")
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}\Z")
_ESCAPED = frozenset(range(0x21)) | frozenset(range(0x7F, 0x100)) | {ord("#"), ord("%")}
_ESCAPES = {byte: f"%{byte:02x}" for byte in _ESCAPED}
_PATH_SESSIONS = (
    re.compile(r"^(.*/)(?:\((?:[a-z]\([0-9a-z]{24}\))+\)/)([^?]+\.aspx.*)$"),
    re.compile(r"^(.*/)(?:\([0-9a-z]{24}\)/)([^?]+\.aspx.*)$"),
)
_QUERY_SESSIONS = (
    re.compile(r"^(.*)(?:jsessionid=[0-9a-z]{32})(?:&(.*))?$"),
    re.compile(r"^(.*)(?:phpsessid=[0-9a-z]{32})(?:&(.*))?$"),
    re.compile(r"^(.*)(?:sid=[0-9a-z]{32})(?:&(.*))?$"),
    re.compile(r"^(.*)(?:aspsessionid[a-z]{8}=[a-z]{24})(?:&(.*))?$"),
    re.compile(r"^(.*)(?:cfid=[^&]+&cftoken=[^&]+)(?:&(.*))?$"),
)


def canonicalise(raw: str, base: str | None = None) -> Url:
    """The wire form of an absolute address, or of a reference seen on the page `base`; InputError when it has none."""
    found = find_canonical(raw, base)
    if found is None:
        raise InputError(f"{raw[:200]!r} is no web address. Write it like https://www.example.org/")
    return found


def find_canonical(raw: str, base: str | None = None) -> Url | None:
    """As `canonicalise`, but None for what cannot be fetched (`javascript:`, `mailto:`, broken hosts, over-long)."""
    if len(raw) > LONGEST_URL:
        return None
    try:
        href: str = ada_url.join_url(base, raw) if base else ada_url.normalize_url(raw)
    except (ValueError, UnicodeError):
        return None
    if not href.startswith(("http://", "https://", "ftp://")) or len(href) > LONGEST_URL:
        return None
    return Url(href.partition("#")[0])


def from_typed(raw: str) -> Url:
    """What a person typed into a box or on a command line: the scheme may be missing."""
    text = raw.strip()
    if not text:
        raise InputError("The address is empty. Write it like https://www.example.org/")
    if not _SCHEME.match(text) or re.match(r"[^/:]+:\d+(/|\Z)", text):
        text = "http://" + text.lstrip("/")
    return canonicalise(text)


def key(url: str) -> str:
    """The SURT key. Addresses with no host (`urn:`, `dns:`) are their own key; the function never fails."""
    try:
        href: str = ada_url.normalize_url(url)
    except (ValueError, UnicodeError):
        return url.strip().lower()
    _, slashes, rest = href.partition("://")
    if not slashes:
        return href
    rest = rest.partition("#")[0]
    authority, slash, path = rest.partition("/")
    if not slash:
        authority, _, query = rest.partition("?")
        path = f"?{query}" if query else ""
    host = authority.rpartition("@")[2]
    path, _, query = path.partition("?")
    key_path = _key_path("/" + path)
    key_query = _key_query(query) if query else ""
    return f"{_key_host(host)}){key_path}{'?' if key_query else ''}{key_query}"


def host_of(url: str) -> str:
    """Host and, unless it is the scheme's own, port: `www.example.org:8080`. Empty where there is none."""
    rest = url.partition("://")[2]
    return re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]


def domain_of(url: str) -> str:
    """The registrable domain by the public suffix list (`www.lib.ox.ac.uk` -> `ox.ac.uk`), or the bare host."""
    host = host_of(url)
    name = host if host.startswith("[") else host.partition(":")[0]
    if name.startswith("[") or _IPV4.match(name):
        return name
    return _suffixes().privatesuffix(name) or name


def _key_host(host: str) -> str:
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        return name + port
    name, colon, port = host.partition(":")
    name = name.rstrip(".")
    www = _WWW.match(name)
    if www:
        name = name[www.end() :]
    return ",".join(reversed(name.split("."))) + colon + port


def _key_path(path: str) -> str:
    if "%" in path:
        path = _unescaped(path)
    path = re.sub(r"/{2,}", "/", path).lower()
    if ".aspx" in path:
        for session in _PATH_SESSIONS:
            path = session.sub(r"\1\2", path)
    return path[:-1] if len(path) > 1 and path.endswith("/") else path


def _key_query(query: str) -> str:
    if "%" in query:
        query = _unescaped(query)
    query = query.lower()
    if "sid=" in query or "sessionid" in query or "cfid=" in query:
        for session in _QUERY_SESSIONS:
            found = session.match(query)
            if found:
                query = found.group(1) + (found.group(2) or "") if found.group(2) else found.group(1).rstrip("&")
    if "&" not in query:
        return query
    return "&".join(sorted(query.split("&"), key=lambda argument: argument.split("=", 1)))


def _unescaped(text: str) -> str:
    """Undo escapes until none is left (`%2541` -> `%41` -> `A`), then escape what must be: one spelling for all."""
    data = text.encode("utf-8")
    for _ in range(8):
        decoded = unquote_to_bytes(data)
        if decoded == data:
            break
        data = decoded
    return "".join(_ESCAPES.get(byte) or chr(byte) for byte in data)


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()
