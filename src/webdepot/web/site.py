"""What every route needs: the opened archive, the addresses of the site, the person and reader of a request,
the language of the answer, and templates.
"""

import ipaddress
import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, lru_cache, partial
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlsplit

import jinja2
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse

from webdepot.access.policy import ANYONE, AccessPoint, Reader
from webdepot.access.replay.site_hosts import SiteHosts
from webdepot.accounts import api_keys, sessions
from webdepot.accounts.accounts import Person
from webdepot.accounts.roles import STAFF, Role
from webdepot.archive import Archive
from webdepot.ports.search import Hit
from webdepot.services.access import gate
from webdepot.url import host_of
from webdepot.version import VERSION
from webdepot.web.language import language, wording
from webdepot.web.language.language import Language
from webdepot.web.replay import address, staff_passes
from webdepot.web.replay.address import ReplayAddress
from webdepot.web.request_turns import HeavyWork
from webdepot.web.staff_menu import menu_of

LANGUAGE_COOKIE = "language"
BEARER = "bearer "
API_PREFIX = "/api/"
Shared = TypeVar("Shared")
_shared_lock = Lock()


class WebOrigin(StrEnum):
    """Which of the three origins answers a request.

    Archived pages run on REPLAY and must not share cookies with PORTAL, so their host names differ. But a
    browser that blocks third-party storage does not give a worker to a framed page of another *site*, so the
    page around them, FRAME, must belong to the same site as REPLAY but to another origin. With
    archive.example.org and replay.example.org the portal itself fulfils that; on loopback FRAME is
    `webdepot.localhost` with the portal's port, and archived pages are on names below it with the replay
    port.
    """

    PORTAL = "portal"
    FRAME = "frame"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One origin of the web server. Addresses have no final slash."""

    archive: Archive
    origin: WebOrigin
    portal_url: str
    frame_url: str
    replay_url: str
    """For machines, and for archived pages too if `pages_url` is empty."""
    pages_url: str = ""
    """The parent of the host names of archived sites (`access/replay/site_hosts.py`)."""
    heavy: HeavyWork = field(default_factory=HeavyWork)
    """The origins of one server share it."""

    @property
    def to_portal(self) -> str:
        """The prefix of a link to a path of the portal."""
        return "" if self.origin is WebOrigin.PORTAL else self.portal_url

    @property
    def hosts(self) -> SiteHosts:
        return SiteHosts(replay_url=self.replay_url, parent_url=self.pages_url)

    @property
    def session_cookie(self) -> str:
        return self.cookie_name("session")

    @property
    def device_cookie(self) -> str:
        """Shows that a person has signed in with this browser before."""
        return self.cookie_name("device")

    def cookie_name(self, name: str) -> str:
        """The name of a cookie for all paths that archived scripts, on hosts below, cannot set. `__Host-`
        binds it to this host alone, but browsers accept that over HTTPS only; on one's own machine the names
        on the frame are secret. The portal there has a host that they cannot set cookies for.
        """
        if self.archive.config.web.secure_cookies:
            return f"__Host-{name}"
        return f"{name}-{_frame_secret()}" if self.origin is WebOrigin.FRAME else name


@cache
def _frame_secret() -> str:
    return secrets.token_hex(8)


def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


def of_app(request: Request, kind: type[Shared]) -> Shared:
    """`shared_of` the application that answers this request."""
    return shared_of(request.app, kind)


def shared_of(app: Starlette, kind: type[Shared]) -> Shared:
    """The one object of a class that all requests to this application share; created on first use."""
    with _shared_lock:
        objects: dict[type[Any], Any] = app.state._state.setdefault("shared", {})
        shared: Shared = objects.get(kind) or objects.setdefault(kind, kind())
    return shared


def language_of(request: Request) -> Language:
    """The language that `?lang=` asks for (unless the query belongs to an archived address), else the
    cookie's, else the browser's. Replay does not look at cookies: archived scripts can set them.
    """
    site = site_of(request)
    is_archived = bool(getattr(request.state, "is_archived", False))
    return language.choose(
        asked=None if is_archived else request.query_params.get("lang"),
        cookie=None
        if site.origin is WebOrigin.REPLAY
        else request.cookies.get(site.cookie_name(LANGUAGE_COOKIE)),
        accept=request.headers.get("accept-language"),
    )


def person_of(request: Request) -> Person | None:
    """The person who is signed in, by API key (`Authorization: Bearer`) or else by session. With a wrong key
    nobody is signed in, even if the session is valid.

    Only on the portal: archived scripts can set cookies for the hosts of the other origins.
    """
    if hasattr(request.state, "person"):
        known: Person | None = request.state.person
        return known
    request.state.person = person = _find_person(request)
    return person


def _find_person(request: Request) -> Person | None:
    site = site_of(request)
    if site.origin is not WebOrigin.PORTAL:
        return None
    if has_key(request):
        return api_keys.find_key(
            site.archive.database,
            request.headers["authorization"][len(BEARER) :].strip(),
            site.archive.clock(),
        )
    token = session_token(request)
    return sessions.find_session(site.archive.database, token, site.archive.clock()) if token else None


def is_api(request: Request) -> bool:
    """Whether a program asks the API of the portal."""
    return site_of(request).origin is WebOrigin.PORTAL and request.url.path.startswith(API_PREFIX)


def has_key(request: Request) -> bool:
    """Whether an API key was sent, valid or not."""
    return request.headers.get("authorization", "").lower().startswith(BEARER)


def session_token(request: Request) -> str:
    token = request.cookies.get(site_of(request).session_cookie, "")
    return token if len(token) <= 200 else ""


def name_of(request: Request) -> str:
    """The name of the person who is signed in, for the audit trail; empty for nobody."""
    person = person_of(request)
    return person.name if person is not None else ""


def may(request: Request, roles: frozenset[Role]) -> bool:
    """Whether the person who is signed in has one of these roles."""
    person = person_of(request)
    return person is not None and bool(person.roles & roles)


def reader_by_network(request: Request) -> Reader:
    """The reader that this client would be without signing in."""
    config = site_of(request).archive.config.web
    host = request.client.host if request.client else ""
    return Reader(access_point=network_point(host, config.reading_room_networks, config.partner_networks))


def reader_of(request: Request, asked: ReplayAddress | None = None) -> Reader:
    """Who asks, and from where: staff by their session, or by a pass to the archived address that is asked
    for; readers by their network.
    """
    site = site_of(request)
    config, client = site.archive.config.web, request.client
    point, person = AccessPoint.PUBLIC, None
    if config.reading_room_networks or config.partner_networks:
        point = network_point(
            client.host if client else "", config.reading_room_networks, config.partner_networks
        )
    seat = client.host if client and gate.has_lending_rules(site.archive) else ""
    if site.origin is WebOrigin.PORTAL:
        person = person_of(request)
    elif asked is not None:
        point = _point_by_pass(request, asked) or point
    if person is None:
        return ANYONE if point is AccessPoint.PUBLIC and not seat else Reader(access_point=point, seat=seat)
    if person.roles & STAFF:
        point = AccessPoint.STAFF
    elif Role.PARTNER in person.roles and point is AccessPoint.PUBLIC:
        point = AccessPoint.PARTNER
    return Reader(name=person.name, roles=person.roles, access_point=point, seat=seat)


def machine_reader(request: Request, asked: ReplayAddress | None = None) -> tuple[Reader, dict[str, str]]:
    """Who asks for a list of captures or a raw capture, and the headers that say who may read it.

    Pages of other sites may read what the public may see, and get no more than that even in a reading room:
    otherwise every site that is open there could read lists of closed captures.
    """
    reader = reader_of(request, asked)
    if "origin" in request.headers:
        site = site_of(request)
        own_urls = (site.portal_url, site.frame_url, site.replay_url, _origin_asked(request))
        if request.headers["origin"] not in own_urls:
            # A capture that is lent stays with its seat, and then no other site may read it.
            reader = Reader(seat=reader.seat) if asked is not None and reader.seat else ANYONE
    headers = {"Cache-Control": "no-cache", "Vary": "Origin"}
    if reader is ANYONE:
        headers["Access-Control-Allow-Origin"] = "*"
    return reader, headers


def _origin_asked(request: Request) -> str:
    """The origin that the request was sent to: archived sites have names of their own."""
    return site_of(request).hosts.find_asked(request.headers.get("host", "")) or ""


def pass_cookie(request: Request) -> str:
    """The pass in a cookie, valid or not. Replay does not look at cookies: archived scripts can set them."""
    name = site_of(request).cookie_name(staff_passes.COOKIE)
    return request.cookies.get(name, "") if "cookie" in request.headers else ""


def _point_by_pass(request: Request, asked: ReplayAddress) -> AccessPoint | None:
    site = site_of(request)
    is_replay = site.origin is WebOrigin.REPLAY
    token = asked.token if is_replay else pass_cookie(request)
    if not token:
        return None
    name = staff_passes.DESTINATION if asked.modifier == "sw_" else "sec-fetch-dest"
    destination = request.headers.get(name, "") if is_replay else ""
    return staff_passes.find_point(
        site.archive.database, token, asked, site.archive.clock(), destination=destination
    )


@lru_cache(maxsize=4096)
def network_point(host: str, reading_rooms: tuple[str, ...], partners: tuple[str, ...]) -> AccessPoint:
    """The access point of an IP address; public unless it is in one of these networks."""
    try:
        client = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return AccessPoint.PUBLIC
    for networks, point in ((reading_rooms, AccessPoint.READING_ROOM), (partners, AccessPoint.PARTNER)):
        if any(client in ipaddress.ip_network(text, strict=False) for text in networks):
            return point
    return AccessPoint.PUBLIC


def render(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """A page in the reader's language; `values` are passed to the template. `here` among them is the page to
    return to after a change of the language, if it is not this one.
    """
    site = site_of(request)
    spoken = language_of(request)
    person = person_of(request)
    text = (
        templates()
        .get_template(template)
        .render(
            t=spoken.say,
            tn=spoken.count,
            language=spoken,
            languages=[language.load(code) for code in language.CODES],
            site=site,
            archive=site.archive.config.archive,
            person=person,
            is_staff=person is not None and bool(person.roles & STAFF),
            staff_menu=menu_of(site.archive, person),
            here=values.pop("here", "") or here(request),
            section="/" + request.url.path.split("/")[1],
            path_of=address.path_of,
            words_of=partial(wording.of_finding, spoken),
            reason_of=partial(wording.of_reason, spoken),
            rule_of=partial(wording.of_rule, spoken),
            scope_rule_of=partial(wording.of_scope_rule, spoken),
            action_of=partial(wording.of_action, spoken),
            kind_of=partial(wording.of_kind, spoken),
            said_of=partial(wording.of_said, spoken),
            failure_of=partial(wording.of_failure, spoken),
            field_of=partial(wording.of_field, spoken),
            version=VERSION,
            **values,
        )
    )
    fresh = {
        "Cache-Control": "no-cache, private",
        "Content-Language": spoken.code,
        "Vary": "Accept-Language, Cookie",
    }
    return HTMLResponse(text, status_code=status, headers={**fresh, **(headers or {})})


def here(request: Request) -> str:
    """Path and query of this request, to return to."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    query: bytes = request.scope["query_string"]
    return (raw + (b"?" + query if query else b"")).decode("latin-1")


def local_path(text: str | None) -> str:
    """A path on this site to redirect to; `/` for anything that could lead to another site."""
    if (
        not text
        or len(text) > 4000
        or not text.startswith("/")
        or text.startswith(("//", "/\\"))
        or not text.isprintable()
    ):
        return "/"
    return text if not urlsplit(text).netloc else "/"


@cache
def templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("webdepot.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["host"] = host_of
    environment.filters["path"] = lambda url: url.partition("://")[2].removeprefix(host_of(url)) or "/"
    environment.filters["snippet"] = snippet
    environment.filters["language_name"] = language.name_of
    return environment


def snippet(hit: Hit) -> Markup:
    """The snippet as HTML with its matching words marked."""
    marked, at = Markup(""), 0
    for first, last in hit.marks:
        marked += (
            escape(hit.snippet[at:first])
            + Markup("<mark>")
            + escape(hit.snippet[first:last])
            + Markup("</mark>")
        )
        at = last
    return marked + escape(hit.snippet[at:])
