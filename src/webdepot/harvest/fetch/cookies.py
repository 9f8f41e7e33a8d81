"""Cookies of a harvest: set by servers and sent back. RFC 6265, https://www.rfc-editor.org/rfc/rfc6265

A cookie is sent back to the host that set it, or with Domain to the hosts below that domain, never to a
public suffix; only below its path; `Secure` ones only over https. The number is bounded: a site that sets
ever more cookies replaces its own oldest ones.

The cookies of a login are secret: they are sent to the origins of the login only, and their values are
removed from the stored request (`CookieJar.header`) and response (`hide_values`). That includes every cookie
that an origin of a login sets, because any of them may be the session, or renew it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from webdepot.times import from_http
from webdepot.url import domain_of, host_of, origin_of

MOST_OF_DOMAIN = 50
MOST_DOMAINS = 10_000
LONGEST_LETTERS = 4096
HIDDEN = "[removed]"
_SETTING = (b"set-cookie", b"set-cookie2")
_ATTRIBUTES = frozenset(
    (
        b"domain",
        b"expires",
        b"httponly",
        b"max-age",
        b"partitioned",
        b"path",
        b"priority",
        b"samesite",
        b"secure",
    )
)

_AGE = re.compile(r"-?[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    name: str
    value: str
    domain: str
    host_only: bool
    path: str
    secure: bool
    ends_at: datetime | None
    origins: frozenset[str] | None
    """The only origins to which a secret cookie is sent; None if it is not secret."""


def parse(line: str, url: str, now: datetime, *, origins: frozenset[str] | None = None) -> Cookie | None:
    """The cookie of a Set-Cookie line (5.2, 5.3); None if it must be ignored."""
    if len(line) > LONGEST_LETTERS:
        return None
    pair, *rest = line.split(";")
    name, equals, value = pair.partition("=")
    name, value = (name.strip(), value.strip()) if equals else ("", pair.strip())
    if not name or not _is_plain(name) or not _is_plain(value):
        return None
    attributes = {
        name.strip().lower(): value.strip() for name, _, value in (part.partition("=") for part in rest)
    }
    host = _name(url)
    domain = attributes.get("domain", "").lstrip(".").lower()
    if domain and domain != host and (not host.endswith(f".{domain}") or not _may_share(domain, host)):
        return None
    path = attributes.get("path", "")
    return Cookie(
        name=name,
        value=value,
        domain=domain or host,
        host_only=not domain,
        path=path if path.startswith("/") else _folder(url),
        secure="secure" in attributes,
        ends_at=_end(attributes, now),
        origins=origins,
    )


def hide_values(head: bytes, is_secret: Callable[[str], bool]) -> bytes:
    """The head of a response without the values of the cookies that are secret; names and attributes stay."""
    lines: list[bytes] = []
    is_hiding = False
    for line in head.split(b"\n"):
        if line[:1] in (b" ", b"\t"):  # a folded line belongs to the one before it
            if not is_hiding:
                lines.append(line)
            continue
        name, _, value = line.partition(b":")
        is_hiding = name.strip().lower() in _SETTING and is_secret(_cookie_name(value))
        lines.append(
            name + b": " + _without_value(value) + line[len(line.rstrip(b"\r")) :] if is_hiding else line
        )
    return b"\n".join(lines)


def _cookie_name(value: bytes) -> str:
    return value.partition(b";")[0].partition(b"=")[0].strip().decode("latin-1")


def _without_value(value: bytes) -> bytes:
    """A cookie with its name and attributes, without its value; text that a proxy joined to an attribute is
    dropped, too.
    """
    pair, *rest = value.strip().split(b";")
    name, equals, _ = pair.partition(b"=")
    split = ((part.strip(), part.partition(b"=")) for part in rest)
    kept = [part for part, (key, _, text) in split if key.strip().lower() in _ATTRIBUTES and b"=" not in text]
    return b"; ".join([(name.strip() + b"=" if equals else b"") + HIDDEN.encode(), *kept])


class CookieJar:
    def __init__(self) -> None:
        self._by_domain: dict[str, dict[tuple[str, str, str], Cookie]] = {}

    def take(
        self, lines: list[str], url: str, now: datetime, *, origins: frozenset[str] | None = None
    ) -> None:
        """Store the Set-Cookie lines of a response. With `origins` they are secret and sent to these only."""
        for line in lines:
            cookie = parse(line, url, now, origins=origins)
            if cookie is None:
                continue
            kept = self._by_domain.setdefault(domain_of(url), {})
            key = (cookie.domain, cookie.path, cookie.name)
            earlier = kept.pop(key, None)
            if cookie.ends_at is None or cookie.ends_at > now:
                if earlier is not None and earlier.origins is not None:  # a renewed login
                    cookie = replace(cookie, origins=earlier.origins)
                kept[key] = cookie
            while len(kept) > MOST_OF_DOMAIN:
                kept.pop(next(iter(kept)))
        while len(self._by_domain) > MOST_DOMAINS:
            self._by_domain.pop(next(iter(self._by_domain)))

    def is_secret(self, name: str, url: str) -> bool:
        """Whether a login at the site of this address has a cookie of this name."""
        kept = self._by_domain.get(domain_of(url), {})
        return any(cookie.name == name and cookie.origins is not None for cookie in kept.values())

    def header(self, url: str, now: datetime) -> tuple[str, str]:
        """The value of the Cookie header as sent, and with secret values hidden; both empty if there is
        none.
        """
        kept = self._by_domain.get(domain_of(url)) if self._by_domain else None
        if not kept:
            return "", ""
        matching = sorted(
            (cookie for cookie in kept.values() if _matches(cookie, url, now)),
            key=lambda cookie: -len(cookie.path),
        )
        sent = "; ".join(f"{cookie.name}={cookie.value}" for cookie in matching)
        shown = "; ".join(
            f"{cookie.name}={cookie.value if cookie.origins is None else HIDDEN}" for cookie in matching
        )
        return sent, shown


def _matches(cookie: Cookie, url: str, now: datetime) -> bool:
    host, path = _name(url), "/" + url.partition("://")[2].partition("/")[2].partition("?")[0]
    return (
        (host == cookie.domain or (not cookie.host_only and host.endswith(f".{cookie.domain}")))
        and (
            path == cookie.path
            or path.startswith(cookie.path if cookie.path.endswith("/") else f"{cookie.path}/")
        )
        and (not cookie.secure or url.startswith("https:"))
        and (cookie.ends_at is None or cookie.ends_at > now)
        and (cookie.origins is None or origin_of(url) in cookie.origins)
    )


def _may_share(domain: str, host: str) -> bool:
    """Whether a host may set cookies for a domain: not for a public suffix, which unrelated sites share."""
    registered = domain_of(f"http://{host}/")
    return domain == registered or domain.endswith(f".{registered}")


def _name(url: str) -> str:
    """The host without its port: cookies are shared between ports (8.5)."""
    host = host_of(url)
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _folder(url: str) -> str:
    path = "/" + url.partition("://")[2].partition("/")[2].partition("?")[0]
    return path[: path.rfind("/")] or "/"


def _end(attributes: dict[str, str], now: datetime) -> datetime | None:
    """When the cookie expires: Max-Age has precedence over Expires."""
    age = attributes.get("max-age", "")
    if _AGE.fullmatch(age):
        seconds = int(age[:12])
        return now + timedelta(seconds=min(seconds, 400 * 86400)) if seconds > 0 else now
    try:
        return from_http(attributes["expires"].replace("-", " ")) if "expires" in attributes else None
    except ValueError:
        return None


def _is_plain(text: str) -> bool:
    return text.isascii() and (text.isprintable() or not text)
