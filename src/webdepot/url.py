"""Addresses: the one canonical form that goes over the wire, and the one sort key that all indexes share.

* `canonicalise` returns the WHATWG form (https://url.spec.whatwg.org, through ada) without fragment: what a
  browser would request. Containers store it unchanged.
* `key` returns the SURT key (Sort-friendly URI Reordering Transform): host reversed; scheme, `www.`, default
  port, case, session ids and order of query arguments removed, so that spellings of one page have one key:

      https://www.Example.org/News/?b=2&a=1   ->   org,example)/news?a=1&b=2

  It agrees with pywb, OutbackCDX and the Internet Archive's CDX files, so their indexes and ours can be
  mixed; `tests/test_url_keys.py` lists the few differences with their reasons. Its version number is stored
  in every index; a change of one key in a billion is a new version. A key is printable ASCII without spaces,
  so byte order is text order.
* `key_range` returns the range of keys that an address, a path, a host or a domain covers.

Steps of a key: split (ada; by hand where a browser would refuse) -> host -> path -> query.
"""

import re
from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, NewType
from urllib.parse import unquote_to_bytes

import ada_url
from publicsuffixlist import PublicSuffixList

from webdepot.errors import InputError
from webdepot.reasons import said

KEY_VERSION = 1
LONGEST_URL = 65_536

Url = NewType("Url", str)


class UrlMatch(StrEnum):
    """How many addresses a query covers."""

    EXACT = "exact"
    PREFIX = "prefix"
    HOST = "host"
    DOMAIN = "domain"


class _Parts(NamedTuple):
    scheme: str
    host: str
    """With the port, unless it is the scheme's default; empty if the address has no host."""
    path: str
    query: str


_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_HOST_AND_PORT = re.compile(r"[^/?#:@]+:\d+(?:[/?#]|\Z)")
# Addresses that need no parser: nine of ten in containers. The host ends in letters, so it is not an IPv4
# address in another notation.
_PLAIN = re.compile(r"https?://((?:[a-zA-Z0-9-]+\.)+[a-zA-Z]+)(/[!-\"$->@-\[\]-~]*)?(?:\?([!-\"$-~]*))?")
# Addresses that are in their wire form already, and paths below such a host: a sixth of the time that ada
# takes. The host ends in letters (without `xn--`, which ada must check) or is an IPv4 address in its normal
# notation; a port is not a default port.
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ORIGIN = (
    rf"https?://(?!(?:[^/]*\.)?xn--)(?:(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]+|{_BYTE}(?:\.{_BYTE}){{3}})"
    r"(?::(?!443?[/]|80[/])[1-9][0-9]{1,3})?"
)
_CANONICAL_ORIGIN = re.compile(rf"{_ORIGIN}(?=/)")
_CANONICAL = re.compile(rf"{_ORIGIN}/[A-Za-z0-9_~!$&()*+,;=:@/.-]*")
_ROOTED = re.compile(r"/(?!/)[A-Za-z0-9_~!$&()*+,;=:@/.-]*")
_DOT_SEGMENT = re.compile(r"/(?:\.|%2[eE])")
_WWW = re.compile(r"www\d*\.", re.ASCII)
_PORT = re.compile(r":[0-9]*\Z")
_IPV4 = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}\Z", re.ASCII)
_SLASHES = re.compile(r"//+")
_CONTROLS = "".join(map(chr, range(0x21)))
_NO_LINE_BREAKS = dict.fromkeys(map(ord, "\t\r\n"))
_SURROGATE = re.compile("[\ud800-\udfff]")
_MUST_ESCAPE = re.compile(r"[^!-\"$&-~]")
_HEX = frozenset(b"0123456789abcdefABCDEF")
_ASP_SESSIONS = (re.compile(r"(?<=/)\((?:[a-z]\([0-9a-z]{24}\))+\)/"), re.compile(r"(?<=/)\([0-9a-z]{24}\)/"))
_QUERY_SESSIONS = (
    re.compile(r"jsessionid=[0-9a-z]{32}(?=&|\Z)"),
    re.compile(r"phpsessid=[0-9a-z]{32}(?=&|\Z)"),
    re.compile(r"sid=[0-9a-z]{32}(?=&|\Z)"),
    re.compile(r"aspsessionid[a-z]{8}=[a-z]{24}(?=&|\Z)"),
)


# --- the wire form ---


def canonicalise(raw: str, base: str | None = None) -> Url:
    """The wire form of an absolute address, or of a reference on the page `base`; InputError if none."""
    url = find_canonical(raw, base)
    if url is None:
        raise _not_an_address(raw)
    return url


def _not_an_address(typed: str) -> InputError:
    return InputError(
        said(
            "no_web_address",
            "{typed} is not a web address. Write it like https://www.example.org/",
            typed=repr(typed[:200]),
        )
    )


def origin_of(url: str) -> str:
    """Scheme, host and port of a canonical URL, without user and password."""
    slash = url.find("/", 8)
    if slash > 0 and url[:4] == "http" and "@" not in url[:slash]:
        return url[:slash]
    start = url.index("//") + 2
    end = url.find("/", start)
    authority = url[start:] if end < 0 else url[start:end]
    return url[:start] + authority.rpartition("@")[2]


def find_canonical(raw: str, base: str | None = None) -> Url | None:
    """Like `canonicalise`, but None for addresses that cannot be fetched (`javascript:`, `mailto:`, invalid
    hosts, too long).
    """
    if len(raw) > LONGEST_URL:
        return None
    if _CANONICAL.fullmatch(raw) and "/." not in raw:
        return Url(raw)
    if base and _ROOTED.fullmatch(raw) and "/." not in raw and (origin := _CANONICAL_ORIGIN.match(base)):
        return Url(origin[0] + raw)
    try:
        href: str = ada_url.join_url(base, raw) if base else ada_url.normalize_url(raw)
    except (ValueError, UnicodeError):
        return None
    if not href.startswith(("http://", "https://", "ftp://")) or len(href) > LONGEST_URL:
        return None
    return Url(href.partition("#")[0])


def from_typed(raw: str) -> Url:
    """The wire form of an address that a person typed: the scheme may be missing."""
    url = find_canonical(_with_scheme(raw))
    if url is None:
        raise _not_an_address(raw.strip())
    return url


def _with_scheme(typed: str) -> str:
    text = typed.strip()
    if not text:
        raise InputError(
            said("empty_address", "The address is empty. Write it like https://www.example.org/")
        )
    if not _SCHEME.match(text) or _HOST_AND_PORT.match(text):
        before, mark, _ = text.partition("://")
        if mark and not set(before) & set("/?#"):
            raise InputError(
                said(
                    "no_scheme",
                    "{typed} is not a known scheme. Write the address like https://www.example.org/",
                    typed=repr(before[:50]),
                )
            )
        return "http://" + text.lstrip("/")
    return text


# --- parts ---


def host_of(url: str) -> str:
    """Host and, unless it is the scheme's default, port of a canonical address: `www.example.org:8080`; empty
    if it has none.
    """
    host = url.partition("://")[2].partition("/")[0]
    if "?" in host or "#" in host or "@" in host:
        return re.split(r"[?#]", host, maxsplit=1)[0].rpartition("@")[2]
    return host


def domain_of(url: str) -> str:
    """The registrable domain by the public suffix list (`www.lib.ox.ac.uk` -> `ox.ac.uk`), or the host."""
    host = host_of(url)
    name = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0].rstrip(".")
    if name.startswith("[") or _IPV4.match(name):
        return name
    return _suffixes().privatesuffix(name) or name


def is_known_host(name: str) -> bool:
    """Whether a host name is below a top-level domain that exists: `kb.nl` is, `index.html` is not."""
    return bool(_suffixes().privatesuffix(name.lower().rstrip("."), accept_unknown=False))


# --- the key ---


def key(url: str) -> str:
    """The SURT key of any text; `-` for an empty one. Addresses without host (`urn:`, `dns:`) keep their
    scheme. Never fails.
    """
    plain = _PLAIN.fullmatch(url)
    if plain is None:
        return _key_of_parts(_split(url))
    host, path, query = plain.groups()
    if path is None:
        path = "/"
    elif "%" not in path and "/." not in path:
        path = _tidy_path(path)
    elif _DOT_SEGMENT.search(path):
        return _key_of_parts(_split(url))
    else:
        path = _key_path(path)
    if not query:
        return f"{_key_host(host)}){path}"
    return f"{_key_host(host)}){path}{_key_query(_unescaped(query) if '%' in query else query)}"


def address_of_key(key: str) -> str:
    """The address of a key as people write it, without its scheme: `org,example)/a` -> `example.org/a`. A key
    without a host is returned unchanged.
    """
    labels, mark, path = key.partition(")")
    if not mark:
        return key
    name, _, port = labels.partition(":")
    host = ".".join(reversed([label for label in name.split(",") if label]))
    return host + (f":{port}" if port else "") + path


def _key_of_parts(parts: _Parts) -> str:
    if parts.host:
        head = f"{_key_host(parts.host)}){_key_path(parts.path or '/')}"
    elif parts.scheme:
        head = f"{parts.scheme}:{_tidy_path(_unescaped(parts.path), below_host=False)}"
    else:
        return "-"
    return head + _key_query(_unescaped(parts.query)) if parts.query else head


def _split(url: str) -> _Parts:
    """The parts as a browser sees them; if it would refuse the address, roughly as in RFC 3986, so that no
    capture is lost.
    """
    text = _SURROGATE.sub(_escaped_surrogate, url).strip(_CONTROLS)
    if not text:
        return _Parts("", "", "", "")
    if not _SCHEME.match(text):
        text = "http://" + text
    try:
        text = ada_url.normalize_url(text)
    except (ValueError, UnicodeError):
        text = text.translate(_NO_LINE_BREAKS)
    scheme, _, rest = text.partition(":")
    rest, _, query = rest.partition("#")[0].partition("?")
    if scheme.lower() in ("http", "https"):
        rest = "//" + rest.lstrip("/")
    if not rest.startswith("//"):
        return _Parts(scheme.lower(), "", rest, query)
    authority, slash, path = rest[2:].partition("/")
    return _Parts(scheme.lower(), authority.rpartition("@")[2], slash + path, query)


def _escaped_surrogate(match: re.Match[str]) -> str:
    """A byte that was not UTF-8 (read with `surrogateescape`) as its percent-encoding; any other lone
    surrogate as U+FFFD.
    """
    code = ord(match[0])
    return f"%{code & 0xFF:02x}" if 0xDC80 <= code <= 0xDCFF else "%ef%bf%bd"


@lru_cache(maxsize=8192)
def _key_host(host: str) -> str:
    if host.startswith("["):
        address, _, port = host[1:].partition("]")
        return _unescaped(address.lower() + port)
    match = _PORT.search(host)
    name, port = (host[: match.start()], match[0].rstrip(":")) if match else (host, "")
    name = _unescaped(name).lower().replace("..", ".").strip(".")
    www = _WWW.match(name)
    if www:
        name = name[www.end() :]
    return ",".join(reversed(name.split("."))) + port


def _key_path(path: str) -> str:
    path = _unescaped(path)
    return _tidy_path(_without_dots(path) if "/." in path else path)


def _tidy_path(path: str, *, below_host: bool = True) -> str:
    path = path.lower()
    if below_host and "//" in path:
        path = _SLASHES.sub("/", path)
    if ".aspx" in path and ")/" in path:
        for session in _ASP_SESSIONS:
            path = _without_asp_session(path, session)
    return path[:-1] if path.endswith("/") and len(path) > 1 else path


def _without_dots(path: str) -> str:
    """Resolve dot segments that were hidden in escapes (`%252e`, `a%2f..`); `..` stops at the root."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _without_asp_session(path: str, session: re.Pattern[str]) -> str:
    """Remove the last `(session)/` before a `.aspx` page without a `?` in between. Linear: no `.*` twice."""
    stretches = path.split("?")
    for at in range(len(stretches) - 1, -1, -1):
        page = stretches[at].rfind(".aspx")
        last = _last(session.finditer(stretches[at], 0, max(page - 1, 0)))
        if last:
            stretches[at] = stretches[at][: last.start()] + stretches[at][last.end() :]
            return "?".join(stretches)
    return path


def _last(matches: Iterable[re.Match[str]]) -> re.Match[str] | None:
    return next(iter(deque(matches, maxlen=1)), None)


def _key_query(query: str) -> str:
    """The query with its question mark; empty if nothing is left of it."""
    query = query.lower()
    if "sid=" in query or "sessionid" in query or "cfid=" in query:
        query = _without_sessions(query)
    if "&" in query:
        query = "&".join(sorted(query.split("&"), key=_name_then_value))
    return f"?{query}" if query else ""


def _name_then_value(argument: str) -> str:
    # An argument without `=` sorts before one with it; "\0" sorts before every character of a query.
    return argument.replace("=", "\0", 1)


def _without_sessions(query: str) -> str:
    """Remove the last session id of each kind, as other indexes do (the `&` before it stays)."""
    for session in _QUERY_SESSIONS:
        last = _last(session.finditer(query))
        if last:
            query = query[: last.start()] + query[last.end() + 1 :]
    return _without_coldfusion_session(query)


def _without_coldfusion_session(query: str) -> str:
    """Remove `cfid=…&cftoken=…`, found by its rare middle: a pattern would take quadratic time for
    `cfid=cfid=cfid=…`.
    """
    middle = query.rfind("&cftoken=")
    while middle >= 0:
        value = middle + len("&cftoken=")
        argument = query.rfind("&", 0, middle) + 1
        start = query.rfind("cfid=", argument, max(middle - 1, 0))
        if start >= 0 and query[value : value + 1] not in ("", "&"):
            end = query.find("&", value)
            return query[:start] + (query[end + 1 :] if end >= 0 else "")
        middle = query.rfind("&cftoken=", 0, middle)
    return query


def _unescaped(text: str) -> str:
    """Remove escapes until none is left (`%2541` -> `%41` -> `A`), then escape what must be, so that there is
    one spelling.
    """
    data = text.encode("utf-8")
    for _ in range(3):
        if b"%" not in data:
            break
        decoded = unquote_to_bytes(data)
        if decoded == data:
            break
        data = decoded
    else:
        data = _unescaped_deeply(data)
    return _MUST_ESCAPE.sub(lambda match: f"%{ord(match[0]):02x}", data.decode("latin-1"))


def _unescaped_deeply(data: bytes) -> bytes:
    """The same result in one pass: two escapes never overlap, so their order does not matter."""
    done = bytearray()
    for byte in data:
        done.append(byte)
        while len(done) > 2 and done[-3] == 0x25 and done[-1] in _HEX and done[-2] in _HEX:
            done[-3:] = bytes([int(done[-2:], 16)])
    return bytes(done)


# --- ranges of keys ---


def split_wildcard(typed: str) -> tuple[str, UrlMatch]:
    """The address without its star, and what it covers: `*.example.org` a domain, `example.org/news/*` a
    prefix, anything else one address.
    """
    text = typed.strip()
    scheme = re.match(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*://)?", text)
    start = scheme.end() if scheme else 0
    if text.startswith("*.", start):
        host, _, path = text[start + 2 :].partition("/")
        if path not in ("", "*"):
            raise InputError(
                f"{text[:200]!r} asks for a domain and a path at once. "
                f"Ask for *.{host[:100]} or for one host with its path."
            )
        return text[:start] + host, UrlMatch.DOMAIN
    if text.endswith("*"):
        return text[:-1], UrlMatch.PREFIX
    return text, UrlMatch.EXACT


def key_range(typed: str, match: UrlMatch | None = None) -> tuple[str, str]:
    """The keys that an address covers, as bounds: start <= key < stop. Without `match` a star in the address
    decides.

    * exact: only that key. prefix: every key that begins with it; `/news/` covers neither `/newspaper` nor
      the page `/news`.
    * host: every page of that host and port, not of others (`example-shop.org`, `example.org:8080`).
    * domain: the host on the scheme's default port, and all hosts below it on any port.
    """
    address, how = split_wildcard(typed) if match is None else (typed.strip(), match)
    if len(address) > LONGEST_URL:
        raise InputError(f"The address {address[:100]!r}… is longer than {LONGEST_URL} characters.")
    start = key(_with_scheme(address))
    if how is UrlMatch.EXACT:
        return start, start + " "
    if how is UrlMatch.PREFIX:
        if address.endswith(("/", "?")) and not start.endswith(address[-1]):
            start += address[-1]
        return start, start[:-1] + chr(ord(start[-1]) + 1)
    host, bracket, _ = start.partition(")")
    if not bracket or not host:
        raise InputError(f"{address[:200]!r} has no host. Write it like www.example.org")
    # In ASCII: `)` ends a host, `,` continues to one below it, `-` and later characters make another name.
    return f"{host})", f"{host}{'*' if how is UrlMatch.HOST else '-'}"


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()
