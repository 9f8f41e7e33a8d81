"""Cookies of a harvest: set by servers and sent back. RFC 6265, https://www.rfc-editor.org/rfc/rfc6265

A cookie is sent back to the host that set it, or with Domain to the hosts below that domain, never to a
public suffix; only below its path; `Secure` ones only over https. The cookies of a login are secret: they are
sent, but removed from the stored request. The number is bounded: a site that sets ever more cookies replaces
its own oldest ones.
"""

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from webdepot.times import from_http
from webdepot.url import domain_of, host_of

MOST_OF_DOMAIN = 50
MOST_DOMAINS = 10_000
LONGEST_LETTERS = 4096
HIDDEN = "[removed]"

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
    secret: bool


def parse(line: str, url: str, now: datetime, *, secret: bool = False) -> Cookie | None:
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
        secret=secret,
    )


class CookieJar:
    def __init__(self) -> None:
        self._by_domain: dict[str, dict[tuple[str, str, str], Cookie]] = {}

    def take(self, lines: list[str], url: str, now: datetime, *, secret: bool = False) -> None:
        """Store the Set-Cookie lines of a response."""
        for line in lines:
            cookie = parse(line, url, now, secret=secret)
            if cookie is None:
                continue
            kept = self._by_domain.setdefault(domain_of(url), {})
            key = (cookie.domain, cookie.path, cookie.name)
            earlier = kept.pop(key, None)
            if cookie.ends_at is None or cookie.ends_at > now:
                kept[key] = (
                    cookie if earlier is None or not earlier.secret else replace(cookie, secret=True)
                )  # a renewed login
            while len(kept) > MOST_OF_DOMAIN:
                kept.pop(next(iter(kept)))
        while len(self._by_domain) > MOST_DOMAINS:
            self._by_domain.pop(next(iter(self._by_domain)))

    def header(self, url: str, now: datetime) -> tuple[str, str]:
        """The value of the Cookie header, as sent and as it may be shown; empty if there is none."""
        kept = self._by_domain.get(domain_of(url)) if self._by_domain else None
        if not kept:
            return "", ""
        matching = sorted(
            (cookie for cookie in kept.values() if _matches(cookie, url, now)),
            key=lambda cookie: -len(cookie.path),
        )
        sent = "; ".join(f"{cookie.name}={cookie.value}" for cookie in matching)
        shown = "; ".join(f"{cookie.name}={HIDDEN if cookie.secret else cookie.value}" for cookie in matching)
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
    )


def _may_share(domain: str, host: str) -> bool:
    """Whether a host may set cookies for a domain: not for a public suffix, which strangers share."""
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
