"""Every key of the configuration, section by section: its name, default, check and documentation stand here
once.

`config` reads them from a file and from the environment; `docs/reference/configuration.md` is made from them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdepot import times

_Check = Callable[[Any], str | None]


def _key(default: Any, doc: str, check: _Check | None = None) -> Any:
    """A configuration key: default, documentation, and a check that returns what is wrong."""
    if isinstance(default, (dict, tuple)):
        return field(default_factory=lambda: default, metadata={"doc": doc, "check": check})
    return field(default=default, metadata={"doc": doc, "check": check})


def _at_least(lowest: float) -> _Check:
    return lambda value: None if value >= lowest else f"must be at least {lowest:g}"


def _port(value: int) -> str | None:
    return None if 0 <= value <= 65535 else "must be a port from 0 (any free one) to 65535"


def _share(value: float) -> str | None:
    return None if 0 <= value <= 1 else "must lie between 0 and 1"


def _moment(value: str) -> str | None:
    try:
        times.from_timestamp(value or "2000")
    except ValueError:
        return "must be a timestamp of 4 to 14 digits, as 2012 or 20120601"
    return None


def _one_of(*known: str) -> _Check:
    return lambda value: None if value in known else f"must be one of {', '.join(known)}"


def _each_of(*known: str) -> _Check:
    return lambda values: None if set(values) <= set(known) else f"must have nothing but {', '.join(known)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveConfig:
    """Who runs this archive."""

    name: str = _key(
        "Web archive",
        "Name of the institution's archive, shown on every page and written into every container.",
    )
    contact: str = _key(
        "", "Address of a page or mailbox where site owners reach you; part of the user agent."
    )
    purpose: str = _key(
        "This archive keeps web sites as part of the cultural and public record.",
        "One sentence on why the archive exists; shown on the about page.",
    )
    languages: tuple[str, ...] = _key(
        ("en", "nl", "de"), "Languages of the material; text is told apart among these only."
    )
    demo: bool = _key(
        False, "Mark everything as a demonstration whose dates are invented. Set by `webdepot demo`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestConfig:
    """How sites are asked."""

    scope: str = _key(
        "host",
        "What belongs to a seed: host, domain, prefix or any.",
        _one_of("host", "domain", "prefix", "any"),
    )
    delay_s: float = _key(1.0, "Shortest pause between two requests to one server, in seconds.", _at_least(0))
    delay_factor: float = _key(
        2.0, "The pause is this many times the last response time, within the two bounds.", _at_least(0)
    )
    longest_delay_s: float = _key(
        30.0, "Longest pause that slowness or a Crawl-delay line can cause, in seconds.", _at_least(0)
    )
    workers: int = _key(
        16, "Requests in flight at once, over all servers; never more than one per server.", _at_least(1)
    )
    robots: str = _key(
        "obey",
        "robots.txt: obey, obey-but-embeds (parts of pages are fetched all the same) or ignore. Not to obey is recorded with the harvest.",
        _one_of("obey", "obey-but-embeds", "ignore"),
    )
    robots_reason: str = _key(
        "", "Why robots.txt is not obeyed, where it is not; recorded with the harvest and in its containers."
    )
    nofollow: str = _key(
        "all",
        "Which words against following links are obeyed, together with robots.txt: all, page (meta robots and X-Robots-Tag, but not "
        "rel=nofollow) or none.",
        _one_of("all", "page", "none"),
    )
    fetch: str = _key(
        "plain",
        "How pages are fetched: plain, browser (each is opened in one, too) or when-empty (those that say nothing before scripts run).",
        _one_of("plain", "browser", "when-empty"),
    )
    screenshots: str = _key(
        "seeds",
        "Of which pages that are opened in the browser a picture is kept: none, seeds or pages.",
        _one_of("none", "seeds", "pages"),
    )
    behaviours: tuple[str, ...] = _key(
        ("scroll", "play"),
        "What is done in a page that is open in the browser: scroll, play, click.",
        _each_of("scroll", "play", "click"),
    )
    page_time_s: float = _key(
        60.0,
        "Seconds that a page has in the browser; what we take to fetch its parts does not count.",
        _at_least(1),
    )
    browser: str = _key("", "The browser: name or path of a Chromium; empty means the one that is installed.")
    browser_tabs: int = _key(2, "Pages that are open at once in the browser of a harvest.", _at_least(1))
    browser_sandbox: bool = _key(
        True,
        "Chromium's own sandbox. It cannot work for root; off only where the whole machine is a sandbox, such as a container.",
    )
    guess: bool = _key(
        True,
        "Read addresses out of scripts: tried last, marked, and no more at a host where most of them fail.",
    )
    sitemaps: bool = _key(True, "Ask hosts of the scope for /sitemap.xml where robots.txt names no sitemap.")
    ignore_parameters: tuple[str, ...] = _key(
        (),
        "Query arguments that make no other page, like utm_*; session ids of well-known kinds are always such.",
    )
    tries: int = _key(5, "At most so many tries for a URI.", _at_least(1))
    retry_delay_s: float = _key(
        2.0,
        "Distance between the first and the second try of a URI, in seconds; each next one is twice as long.",
        _at_least(0),
    )
    dns_patience_s: float = _key(
        7200.0,
        "While names cannot be looked up a harvest waits so long, in seconds; then what is left waits to be resumed.",
        _at_least(0),
    )
    bytes_per_s: int = _key(
        0, "Bandwidth of a harvest in bytes a second, over all servers; 0 means no cap.", _at_least(0)
    )
    host_bytes_per_s: int = _key(
        0, "Bandwidth at one server in bytes a second; 0 means no cap.", _at_least(0)
    )
    tls: str = _key(
        "verify",
        "Certificates that are not valid: verify (the page is not fetched) or accept (it is, and the containers say so).",
        _one_of("verify", "accept"),
    )
    cookies: bool = _key(
        True, "Send cookies back to the servers that set them, as browsers do; those of log-ins are not kept."
    )
    logins_file: str = _key(
        "logins.toml",
        "File with accounts by host name, relative to the home; only its owner may read it (mode 600).",
    )
    processes: int = _key(1, "Processes that share a harvest, each with its own hosts.", _at_least(1))
    least_free_bytes: int = _key(
        1 << 30,
        "A harvest stops, and can be resumed, when less than so many bytes are free on the disk.",
        _at_least(0),
    )
    timeout_s: float = _key(
        60.0, "A request that takes longer is cut; what came is kept and marked as truncated.", _at_least(1)
    )
    connect_timeout_s: float = _key(15.0, "A connection that takes longer counts as failed.", _at_least(0.1))
    limit_pages: int = _key(0, "A harvest stops after so many documents; 0 means no limit.", _at_least(0))
    limit_bytes: int = _key(0, "A harvest stops after so many bytes; 0 means no limit.", _at_least(0))
    limit_time_s: float = _key(0.0, "A harvest stops after so many seconds; 0 means no limit.", _at_least(0))
    limit_host_pages: int = _key(0, "So many documents of one host at most; 0 means no limit.", _at_least(0))
    limit_host_bytes: int = _key(0, "So many bytes of one host at most; 0 means no limit.", _at_least(0))
    limit_file_bytes: int = _key(
        4 << 30, "A single answer is cut after so many bytes and marked as truncated.", _at_least(1024)
    )
    hops_outside: int = _key(0, "How many links outside the scope are followed.", _at_least(0))
    allow_private: bool = _key(
        False,
        "Allow private, loopback and link-local addresses. Off, so that a page cannot make us read the intranet.",
    )
    user_agent: str = _key("", "Overrides the user agent; empty means `Webdepot/VERSION (+contact)`.")
    connect_to: Mapping[str, str] = _key(
        {},
        'Host names (with or without port) that are asked at another address: {"www.example.org" = "127.0.0.1:8001"}.',
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerConfig:
    """How containers are written."""

    size_bytes: int = _key(
        100_000_000, "A container is sealed when it has reached about this size.", _at_least(1024)
    )
    checkpoint_s: float = _key(
        1.0, "What was fetched is made safe against a crash at least this often, in seconds.", _at_least(0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityConfig:
    """Up to which limits a harvest counts as good without a person looking. Shares are of the documents
    harvested.
    """

    missing_parts: float = _key(0.05, "Share of embedded parts that may be missing.", _at_least(0))
    broken_links: float = _key(0.10, "Share of the site's own links that may be broken.", _at_least(0))
    truncated: float = _key(0.01, "Share of answers that may be cut off.", _at_least(0))
    false_pages: float = _key(
        0.05, "Share of pages that may be an error page, a form to sign in or a riddle instead.", _at_least(0)
    )
    failed_seeds: int = _key(0, "So many seeds may fail.", _at_least(0))
    queue_may_be_left: bool = _key(
        False, "Whether addresses may be left waiting when a harvest ends at a limit."
    )
    differs: bool = _key(
        True, "Whether a person should look when size, number or types differ much from the last harvests."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotConfig:
    """Long-term keeping."""

    place: str = _key(
        "depot",
        "Main place of the depot: a folder, relative to the home, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME.",
    )
    audit_days: int = _key(
        90, "Every copy of every file is read and compared at least once in so many days.", _at_least(1)
    )
    audit_bytes_per_s: int = _key(
        0,
        "Audits and fills read no more than so many bytes a second; 0 means as fast as they can.",
        _at_least(0),
    )
    audit_threads: int = _key(2, "Copies that are read at once.", _at_least(1))
    cache_bytes: int = _key(
        20 << 30,
        "Containers fetched from a depot on another machine take no more room here.",
        _at_least(1 << 20),
    )
    virus_scanner: str = _key(
        "",
        "Command that looks through a submission: it gets the path as last argument, and exits 0 when it is clean, 1 when it is not.",
    )
    migration_tools: Mapping[str, str] = _key(
        {}, 'Tools that convert a format: {"name" = "SOURCE-TYPE TARGET-TYPE command {input} {output}"}.'
    )
    alarm_mail: tuple[str, ...] = _key(
        (),
        "Addresses that get a letter, over the server of [mail], when something cannot be repaired or a place stays away.",
    )
    alarm_command: str = _key(
        "",
        "Command that is run when something cannot be repaired or a place stays away; it gets the words on its standard input.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeConfig:
    """The catalogue, and exchange with partner depots over OAI-PMH."""

    urn_namespace: str = _key(
        "urn:nbn:de:0000-",
        "Prefix under which URNs are minted for sites and slices; get your own from your national library.",
    )
    repository: str = _key(
        "",
        "Domain name in OAI identifiers (oai:NAME:key). It must never change. Empty means the host of web.portal_url, if it has one.",
    )
    admin_email: str = _key(
        "", "Address of whoever answers partners; empty means archive.contact, where that is a mailbox."
    )
    institution_code: str = _key(
        "", "Code of the institution in library records (ISIL, like DE-9999); empty means none."
    )
    records_per_page: int = _key(
        100, "Records in one answer of OAI-PMH; validators want 100 to 500.", _at_least(1)
    )
    token_hours: int = _key(
        48, "A resumption token is good for so many hours; validators want 24 at least.", _at_least(1)
    )
    most_requests: int = _key(
        4, "Requests for lists that are answered at once; further ones are asked to come again.", _at_least(1)
    )
    provenance: bool = _key(
        False,
        "Say in OAI answers where records of partners came from (an `about` block, as the DINI certificate recommends).",
    )
    transfer: str = _key(
        "containers",
        "What partners get of a harvest unless they are set otherwise: its containers, or its files unpacked into a tree (files).",
        _one_of("containers", "files"),
    )
    most_tree_files: int = _key(
        10_000,
        "A harvest with more files is handed over in containers, also where files are wanted; each is told in the record.",
        _at_least(1),
    )
    largest_transfer_bytes: int = _key(
        1 << 40, "A partner's object that is larger is refused.", _at_least(1024)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexConfig:
    """The indexes. All of them can be rebuilt from the depot."""

    workers: int = _key(0, "Processes for reading containers; 0 means one per core.", _at_least(0))
    limit_text_bytes: int = _key(
        8 << 20, "Of one document so many bytes are read for words.", _at_least(1024)
    )
    memory_bytes: int = _key(128 << 20, "Memory of the text index while it is written.", _at_least(16 << 20))
    engine: str = _key(
        "tantivy",
        "What keeps the words: tantivy, or sqlite for a small archive (no stems, slower). After a change: webdepot index rebuild.",
        _one_of("tantivy", "sqlite"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    """The portal and the replay server."""

    host: str = _key("127.0.0.1", "Address the portal listens on.")
    port: int = _key(8080, "Port of the portal; 0 means any free one.", _port)
    replay_port: int = _key(8081, "Port of the replay server; 0 means any free one.", _port)
    proxy_port: int = _key(
        0, "Port on which reading-room terminals use the archive as their HTTP proxy; 0 means off.", _port
    )
    proxy_date: str = _key(
        "",
        "The time that terminals of proxy mode look at first, as 2012 or 20120601; empty means now.",
        _moment,
    )
    proxy_collection: str = _key("all", "The collection that terminals of proxy mode look into first.")
    portal_url: str = _key(
        "", "Address of the portal as readers see it, when it stands behind another web server."
    )
    replay_url: str = _key(
        "",
        "Address of the replay server as readers see it. It must be another host name than the portal's: archived pages run there.",
    )
    secure_cookies: bool = _key(False, "Send cookies over HTTPS only. Set it when readers come over HTTPS.")
    session_hours: int = _key(12, "A staff session ends after so many hours.", _at_least(1))
    reading_room_networks: tuple[str, ...] = _key(
        (), "Networks of reading rooms, as 192.0.2.0/24: readers there are at that access point."
    )
    lend_minutes: int = _key(
        5,
        "A page that one reader at a time may see is free again at most so many minutes after it was last seen open.",
        _at_least(2),
    )
    partner_networks: tuple[str, ...] = _key(
        (), "Networks of partner institutions; readers there are at the access point partner."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConfig:
    """Harvests by plan."""

    in_server: bool = _key(
        True, "`webdepot serve` runs the scheduler, too. Off where `webdepot scheduler` runs by itself."
    )
    at_once: int = _key(
        2, "So many planned harvests run at once, over all schedulers of this archive.", _at_least(1)
    )
    timezone: str = _key("UTC", "Time zone of dates, times and windows, like Europe/Amsterdam.")
    look_every_s: float = _key(15.0, "Seconds between two looks at what is due.", _at_least(0.1))
    lease_s: float = _key(
        120.0,
        "A scheduler that gave no sign of life for so long was killed; its harvests are resumed by another.",
        _at_least(1),
    )
    late_s: float = _key(
        900.0,
        "What is later than this was missed during a stop; it is made up for once, and spread.",
        _at_least(1),
    )
    spread_s: float = _key(
        3600.0, "Missed harvests start within so many seconds, each at a time of its own.", _at_least(0)
    )
    tries: int = _key(3, "So many tries for a date of which nothing came.", _at_least(1))
    retry_s: float = _key(3600.0, "Seconds before the next try.", _at_least(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewConfig:
    """Who accepts planned harvests into the depot: a person, or rules within these limits."""

    accept: str = _key(
        "person",
        "person: everything waits for a reviewer. rules: what is within the limits of [quality] and of this section is accepted. "
        "always: everything that brought something.",
        _one_of("person", "rules", "always"),
    )
    after_accepted: int = _key(
        1, "Rules accept a site only when so many of its harvests have been accepted before.", _at_least(0)
    )
    documents_differ: float = _key(
        0.5,
        "Rules accept up to this share of documents more or less than in the last accepted harvest.",
        _at_least(0),
    )
    bytes_differ: float = _key(
        0.5,
        "Rules accept up to this share of bytes more or less than in the last accepted harvest.",
        _at_least(0),
    )
    not_valid: float = _key(
        0.1, "Rules accept up to this share of files that are not valid by their format.", _at_least(0)
    )
    four_eyes: bool = _key(False, "Whoever planned or started a harvest may not accept it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcConfig:
    """Signing in with an account of the institution (OpenID Connect). The address to register there is
    PORTAL/sign-in/oidc/back.
    """

    issuer: str = _key("", "Address of the provider, as https://login.example.org/realm. Empty means off.")
    client_id: str = _key("", "Name under which the provider knows this portal.")
    client_secret: str = _key(
        "",
        "Secret of the portal at the provider; best given as WEBDEPOT_OIDC_CLIENT_SECRET. Empty for a public client.",
    )
    scopes: str = _key("openid profile email", "What is asked for, separated by spaces.")
    label: str = _key("Sign in with your institution", "Words on the button.")
    name_claim: str = _key(
        "preferred_username", "Claim that becomes the person's name here; `email` and `sub` stand in for it."
    )
    roles_claim: str = _key(
        "",
        "Claim with groups or roles, dots for claims within claims, as realm_access.roles. Empty: roles are given here.",
    )
    roles: Mapping[str, str] = _key(
        {}, 'What a value of that claim means here: {"web-curators" = "curator"}. Others are readers.'
    )
    timeout_s: float = _key(
        10.0, "An answer of the provider that takes longer counts as failed.", _at_least(0.1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsConfig:
    """What is counted of the use of the archive. Never persons."""

    count: bool = _key(
        True, "Count pages opened, lists, searches and refusals by month, site, collection and access point."
    )
    country_header: str = _key(
        "",
        "Header in which the web server in front names the reader's country by two letters; empty means that countries are not counted.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryConfig:
    """Which domains belong to an organisation: whom to ask, how gently, and what to do with the answer."""

    resolver: str = _key(
        "", "DNS servers to ask: 192.0.2.53 or 127.0.0.1:5353, several by commas. Empty means the system's."
    )
    rdap_bootstrap: str = _key(
        "https://data.iana.org/rdap/",
        "Address or folder of the RDAP bootstrap files dns.json, ipv4.json and ipv6.json (RFC 9224).",
    )
    whois: str = _key(
        "whois.iana.org", "First whois server, host or host:port, for what has no RDAP; `off` asks none."
    )
    ct_search: str = _key(
        "",
        "Certificate transparency search that answers like crt.sh, for example https://crt.sh. Empty means off.",
    )
    extra_ca_file: str = _key("", "PEM file of certificate authorities to believe besides the system's.")
    follow_at: float = _key(0.75, "A host with this score or more belongs to the organisation.", _share)
    ignore_at: float = _key(
        0.25, "A host with this score or less does not belong; between the two a curator is asked.", _share
    )
    new_domains: str = _key(
        "follow",
        "A domain newly found during a harvest is followed at once, or waits for a curator: follow or ask.",
        _one_of("follow", "ask"),
    )
    registry_pause_s: float = _key(
        1.0, "Pause between two questions to one registry server, in seconds.", _at_least(0)
    )
    page_pause_s: float = _key(1.0, "Pause between two pages of one host, in seconds.", _at_least(0))
    workers: int = _key(24, "Hosts examined at once.", _at_least(1))
    timeout_s: float = _key(
        5.0, "A look-up or connection that takes longer counts as failed.", _at_least(0.1)
    )
    limit_hosts: int = _key(20_000, "A survey examines so many hosts at most.", _at_least(1))
    http_port: int = _key(
        80, "Port on which sites are asked over HTTP; another only in a closed network.", _port
    )
    https_port: int = _key(
        443, "Port on which sites are asked over HTTPS; another only in a closed network.", _port
    )
    scan: bool = _key(False, "Allow `webdepot organisation scan` in the ranges of own_ranges.")
    own_ranges: tuple[str, ...] = _key((), "Net ranges that are your own; only these are ever scanned.")
    scan_per_s: float = _key(50.0, "Connections a second while scanning.", _at_least(0.1))
    reopen_months: int = _key(12, "Verdicts older than this are looked at again.", _at_least(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionConfig:
    """Choosing sites and asking their owners."""

    points_needed: float = _key(
        1.0, "So many points of criteria that are not required speak for a site.", _at_least(0)
    )
    term_days: int = _key(
        28,
        "An owner has so many days, from the sending of the letter, to refuse; then silence is consent.",
        _at_least(1),
    )
    reminder_days: int = _key(
        14, "A reminder goes out so many days after the letter; 0 means none.", _at_least(0)
    )
    suggestions_per_hour: int = _key(
        10, "So many suggestions or complaints from one address in an hour; more are put off.", _at_least(1)
    )
    suggestions_in_all: int = _key(
        200, "So many suggestions or complaints in an hour, from everybody together.", _at_least(1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MailConfig:
    """The mail server that takes our letters. The password belongs into WEBDEPOT_MAIL_PASSWORD."""

    host: str = _key("", "Name of the SMTP server; empty means that no letters can be sent.")
    port: int = _key(587, "Its port.", _port)
    security: str = _key(
        "starttls", "How the line is protected: starttls, tls or none.", _one_of("starttls", "tls", "none")
    )
    user: str = _key("", "Account at the server; empty means none.")
    password: str = _key("", "Password of that account.")
    sender: str = _key(
        "", "Address that letters come from: webarchive@example.org or Web archive <webarchive@example.org>."
    )
    reply_to: str = _key("", "Address that answers go to, where it is another one.")
    timeout_s: float = _key(30.0, "A server that takes longer counts as failed.", _at_least(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    home: Path
    archive: ArchiveConfig = field(default_factory=ArchiveConfig)
    harvest: HarvestConfig = field(default_factory=HarvestConfig)
    container: ContainerConfig = field(default_factory=ContainerConfig)
    quality: QualityConfig = field(default_factory=QualityConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    review: ReviewConfig = field(default_factory=ReviewConfig)
    depot: DepotConfig = field(default_factory=DepotConfig)
    exchange: ExchangeConfig = field(default_factory=ExchangeConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    web: WebConfig = field(default_factory=WebConfig)
    statistics: StatisticsConfig = field(default_factory=StatisticsConfig)
    oidc: OidcConfig = field(default_factory=OidcConfig)
    discovery: DiscoveryConfig = field(default_factory=DiscoveryConfig)
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    mail: MailConfig = field(default_factory=MailConfig)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Tables [profiles.NAME] as written; `harvest.profile` reads and checks them."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each key that is not a default came from: `harvest.delay_s` -> `webdepot.toml` or the variable's
    name.
    """
