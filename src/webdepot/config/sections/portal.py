"""Sections about the portal: the archive's name and purpose, the web servers, sign-in, statistics."""

from collections.abc import Mapping
from dataclasses import dataclass

from webdepot.config.keys import (
    at_least,
    check_moment,
    check_networks,
    check_port,
    check_proxies,
    key,
    one_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveConfig:
    """Who runs this archive."""

    name: str = key(
        "Web archive",
        "Name of the archive, shown on every page and written into every container.",
    )
    contact: str = key(
        "", "Web page or email address where site owners can reach you; part of the user agent."
    )
    purpose: str = key(
        "This archive keeps web sites as part of the cultural and public record.",
        "One sentence about the purpose of the archive; shown on the about page and in letters.",
    )
    purposes: Mapping[str, str] = key(
        {}, 'The purpose in other languages: {"nl" = "Wij bewaren …", "de" = "Wir bewahren …"}.'
    )
    languages: tuple[str, ...] = key(
        ("en", "nl", "de"), "Languages of the archived sites; language detection considers only these."
    )
    demo: bool = key(False, "Mark every page as a demonstration with invented dates. Set by `webdepot demo`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    """The portal and the replay server."""

    host: str = key("127.0.0.1", "Address the portal listens on.")
    port: int = key(8080, "Port of the portal; 0 means any free port.", check_port)
    replay_port: int = key(8081, "Port of the replay server; 0 means any free port.", check_port)
    proxy_port: int = key(
        0,
        "Port of the HTTP proxy through which reading-room terminals use the archive; 0 means off.",
        check_port,
    )
    proxy_date: str = key(
        "",
        "Initial date for terminals in proxy mode, such as 2012 or 20120601; empty means now.",
        check_moment,
    )
    proxy_collection: str = key("all", "Initial collection for terminals in proxy mode.")
    portal_url: str = key("", "Public address of the portal, if it is behind a reverse proxy.")
    replay_url: str = key(
        "",
        "Public address of the replay server. Its host name must differ from the portal's, because archived "
        "pages run their scripts there.",
    )
    host_per_site: str = key(
        "auto",
        "Whether each archived site is shown on its own subdomain of the host of replay_url, so that "
        "browsers keep the sites apart: on, off, or auto (on if portal_url is empty). Behind another web "
        "server it needs a wildcard name and certificate.",
        one_of("auto", "on", "off"),
    )
    trusted_proxies: tuple[str, ...] = key(
        (),
        "Addresses or networks of the web servers in front of the portal, such as 127.0.0.1. Only their "
        "X-Forwarded-For and X-Forwarded-Proto are trusted; each must send the address of its client in "
        "X-Forwarded-For. Empty: no such header is trusted.",
        check_proxies,
    )
    session_hours: int = key(12, "Duration of a session in hours.", at_least(1))
    reading_room_networks: tuple[str, ...] = key(
        (),
        "Networks of reading rooms, such as 192.0.2.0/24. Readers there have the access point reading room.",
        check_networks,
    )
    lend_minutes: int = key(
        5,
        "A page on loan to one reader is released at most this many minutes after it was last open.",
        at_least(2),
    )
    partner_networks: tuple[str, ...] = key(
        (), "Networks of partner institutions. Readers there have the access point partner.", check_networks
    )
    upload_bytes: int = key(
        4_000_000_000,
        "Maximum size of an upload of WARC and WACZ files in the portal, in bytes; 0 switches uploads off.",
        at_least(0),
    )

    @property
    def secure_cookies(self) -> bool:
        """Whether cookies are sent over HTTPS only: readers use it if the portal's public address says so."""
        return self.portal_url.lower().startswith("https:")


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcConfig:
    """Sign-in with an account of the institution (OpenID Connect). The redirect URI to register with the
    provider is PORTAL/sign-in/oidc/back.
    """

    issuer: str = key(
        "", "Issuer URL of the provider, such as https://login.example.org/realm. Empty means off."
    )
    client_id: str = key("", "Client id of this portal at the provider.")
    client_secret: str = key(
        "",
        "Client secret; better set as WEBDEPOT_OIDC_CLIENT_SECRET. Empty for a public client.",
    )
    scopes: str = key("openid profile email", "Requested scopes, separated by spaces.")
    label: str = key("Sign in with your institution", "Text of the button.")
    name_claim: str = key(
        "preferred_username", "Claim used as the account name; if it is missing, `email` or `sub`."
    )
    roles_claim: str = key(
        "",
        "Claim with groups or roles; dots for nested claims, such as realm_access.roles. Empty: roles are "
        "assigned in Webdepot.",
    )
    roles: Mapping[str, str] = key(
        {}, 'Role for a value of that claim: {"web-curators" = "curator"}. Everybody else is a reader.'
    )
    timeout_s: float = key(10.0, "Maximum time for a response of the provider, in seconds.", at_least(0.1))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsConfig:
    """Usage statistics. No personal data is stored."""

    count: bool = key(
        True,
        "Count opened pages, viewed lists, searches and refusals by month, site, collection and access "
        "point.",
    )
    country_header: str = key(
        "",
        "Header in which the reverse proxy sends the reader's country as two letters; empty means that "
        "countries are not counted.",
    )
