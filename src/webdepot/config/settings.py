"""Every key of the configuration, by section, with its default, check and description.

`config` reads the values from a file and the environment. The commented `webdepot.toml` that `webdepot init`
writes and `docs/reference/configuration.md` are generated from the descriptions. Over 500 lines, because it
is a list.
"""

# Longer than other modules because it is one table: the reference page is generated from it, in this order.

import ipaddress
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdepot import times

_Check = Callable[[Any], str | None]


def _key(default: Any, doc: str, check: _Check | None = None) -> Any:
    """A configuration key: default, description, and a check that returns what is wrong with a value."""
    if isinstance(default, (dict, tuple)):
        return field(default_factory=lambda: default, metadata={"doc": doc, "check": check})
    return field(default=default, metadata={"doc": doc, "check": check})


def _at_least(lowest: float) -> _Check:
    return lambda value: None if value >= lowest else f"must be at least {lowest:g}"


def _port(value: int) -> str | None:
    return None if 0 <= value <= 65535 else "must be a port from 0 (any free port) to 65535"


def _postgresql(value: str) -> str | None:
    if value and not value.startswith("postgresql://"):
        return "must begin with postgresql://"
    if re.match(r"postgresql://[^/@]*:[^/@]*@", value):
        return "must not contain the password; give it in [database] password or WEBDEPOT_DATABASE_PASSWORD"
    return None


def _scheduler(value: str) -> str | None:
    if value and not re.fullmatch(r"(tcp|tls)://[^/]+:\d+", value):
        return "must be an address such as tcp://batch.example.org:8786 or tls://batch.example.org:8786"
    return None


def _search_nodes(value: str) -> str | None:
    if not all(re.fullmatch(r"https?://[^/@,\s]+/?", url) for url in value.split(",") if value):
        return (
            "must be an address such as https://search.example.org:9200, without user, password and path; "
            "several are separated by commas"
        )
    return None


def _index_name(value: str) -> str | None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,99}", value):
        return "must consist of lower-case letters, digits, - and _, and begin with a letter or digit"
    return None


def _share(value: float) -> str | None:
    return None if 0 <= value <= 1 else "must be between 0 and 1"


def _moment(value: str) -> str | None:
    try:
        times.from_timestamp(value or "2000")
    except ValueError:
        return "must be a timestamp of 4 to 14 digits, such as 2012 or 20120601"
    return None


def _one_of(*known: str) -> _Check:
    return lambda value: None if value in known else f"must be one of {', '.join(known)}"


def _each_of(*known: str) -> _Check:
    return lambda values: None if set(values) <= set(known) else f"may contain only {', '.join(known)}"


def _networks(values: tuple[str, ...]) -> str | None:
    for text in values:
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            return f"contains {text!r}, which is not a network. Write it like 192.0.2.0/24 or 2001:db8::/48"
    return None


def _proxies(values: tuple[str, ...]) -> str | None:
    """Networks that are not too wide: everybody in them can claim any address."""
    wrong = _networks(values)
    for text in () if wrong else values:
        network = ipaddress.ip_network(text, strict=False)
        if network.prefixlen < (8 if network.version == 4 else 16):
            return f"contains {text}, in which anybody could claim any address. Name the proxies themselves"
    return wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveConfig:
    """Who runs this archive."""

    name: str = _key(
        "Web archive",
        "Name of the archive, shown on every page and written into every container.",
    )
    contact: str = _key(
        "", "Web page or email address where site owners can reach you; part of the user agent."
    )
    purpose: str = _key(
        "This archive keeps web sites as part of the cultural and public record.",
        "One sentence about the purpose of the archive; shown on the about page and in letters.",
    )
    purposes: Mapping[str, str] = _key(
        {}, 'The purpose in other languages: {"nl" = "Wij bewaren …", "de" = "Wir bewahren …"}.'
    )
    languages: tuple[str, ...] = _key(
        ("en", "nl", "de"), "Languages of the archived sites; language detection considers only these."
    )
    demo: bool = _key(
        False, "Mark every page as a demonstration with invented dates. Set by `webdepot demo`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestConfig:
    """How sites are harvested."""

    scope: str = _key(
        "host",
        "Scope of a seed: the same host, domain or path prefix, or any address.",
        _one_of("host", "domain", "prefix", "any"),
    )
    delay_s: float = _key(1.0, "Minimum delay between two requests to one server, in seconds.", _at_least(0))
    delay_factor: float = _key(
        2.0,
        "The delay is the last response time times this factor, between delay_s and longest_delay_s.",
        _at_least(0),
    )
    longest_delay_s: float = _key(
        30.0, "Maximum delay for slow servers and for Crawl-delay in robots.txt, in seconds.", _at_least(0)
    )
    workers: int = _key(
        16,
        "Maximum number of parallel requests over all servers; never more than one per server.",
        _at_least(1),
    )
    robots: str = _key(
        "obey",
        "robots.txt: obey, obey-but-embeds (embedded parts of pages are fetched anyway) or ignore. "
        "If it is not obeyed, this is recorded with the harvest.",
        _one_of("obey", "obey-but-embeds", "ignore"),
    )
    robots_reason: str = _key(
        "", "Why robots.txt is not obeyed; recorded with the harvest and in its containers."
    )
    nofollow: str = _key(
        "all",
        "Which nofollow instructions are obeyed if robots.txt is: all, page (meta robots and X-Robots-Tag, "
        "but not rel=nofollow) or none.",
        _one_of("all", "page", "none"),
    )
    fetch: str = _key(
        "auto",
        "How pages are fetched: plain, browser (each page is also opened in a browser), when-empty "
        "(only pages that are empty until scripts run) or auto (when-empty where a browser is installed, "
        "otherwise plain).",
        _one_of("plain", "browser", "when-empty", "auto"),
    )
    screenshots: str = _key(
        "seeds",
        "Which pages opened in the browser get a screenshot: none, seeds or pages (all). With fetch auto, "
        "start pages are opened for it even if they are not empty.",
        _one_of("none", "seeds", "pages"),
    )
    behaviours: tuple[str, ...] = _key(
        ("consent", "scroll", "play", "click"),
        "What is done in pages opened in the browser: consent (close consent banners, rejecting where "
        "possible), scroll (to the end), play (media), click (load more, tabs, menus and in-page navigation; "
        "nothing is submitted).",
        _each_of("consent", "scroll", "play", "click"),
    )
    page_time_s: float = _key(
        60.0,
        "Maximum time for a page in the browser, in seconds; time spent fetching its parts does not count.",
        _at_least(1),
    )
    browser: str = _key("", "Name or path of Chromium; empty means the installed one.")
    browser_tabs: int = _key(2, "Pages open in the browser at the same time.", _at_least(1))
    browser_sandbox: bool = _key(
        True,
        "Use Chromium's sandbox. It does not work for root; switch it off only if the whole machine is a "
        "sandbox, such as a container.",
    )
    include: tuple[str, ...] = _key(
        (),
        "Kinds of addresses to harvest although the software of a site only adds them to its content, such "
        "as histories or feeds; all for every kind. `webdepot scope software` lists them.",
    )
    guess: bool = _key(
        True,
        "Extract probable addresses from scripts (speculative links). They are fetched last, are marked, and"
        " are given up at hosts where most of them fail.",
    )
    sitemaps: bool = _key(
        True, "Request /sitemap.xml from hosts in scope if robots.txt does not name a sitemap."
    )
    ignore_parameters: tuple[str, ...] = _key(
        (),
        "Query parameters that do not identify a page, like utm_*. Common session ids are always ignored.",
    )
    tries: int = _key(5, "Maximum number of tries for a URI.", _at_least(1))
    retry_delay_s: float = _key(
        2.0,
        "Delay before the second try of a URI, in seconds; doubled for each further try.",
        _at_least(0),
    )
    dns_patience_s: float = _key(
        7200.0,
        "How long to retry DNS failures, in seconds; after that the harvest stops and can be resumed.",
        _at_least(0),
    )
    bytes_per_s: int = _key(
        0,
        "Maximum bandwidth of a harvest over all servers, in bytes per second; 0 means no limit.",
        _at_least(0),
    )
    host_bytes_per_s: int = _key(
        0, "Maximum bandwidth for one server, in bytes per second; 0 means no limit.", _at_least(0)
    )
    tls: str = _key(
        "verify",
        "Invalid certificates: verify (the page is not fetched) or accept (it is fetched, and the containers "
        "record it).",
        _one_of("verify", "accept"),
    )
    cookies: bool = _key(
        True, "Send cookies back to the servers that set them, as browsers do. Login cookies are not stored."
    )
    logins_file: str = _key(
        "logins.toml",
        "File with logins by host name, relative to the home. Only its owner may have access (mode 600).",
    )
    processes: int = _key(
        1,
        "Processes that share a harvest, each with its own hosts. With [cluster] harvesters, the number of "
        "parts that harvesters of any machine can take.",
        _at_least(1),
    )
    least_free_bytes: int = _key(
        1 << 30,
        "Minimum free disk space in bytes; below it a harvest stops and can be resumed.",
        _at_least(0),
    )
    timeout_s: float = _key(
        60.0,
        "Maximum time of a request in seconds; the part received by then is kept and marked as truncated.",
        _at_least(1),
    )
    connect_timeout_s: float = _key(
        15.0, "Maximum time to establish a connection, in seconds.", _at_least(0.1)
    )
    limit_pages: int = _key(
        0, "Maximum number of pages of a harvest, not counting their parts; 0 means no limit.", _at_least(0)
    )
    limit_documents: int = _key(
        0, "Maximum number of pages, parts and files of a harvest; 0 means no limit.", _at_least(0)
    )
    limit_bytes: int = _key(0, "Maximum number of bytes of a harvest; 0 means no limit.", _at_least(0))
    limit_time_s: float = _key(
        0.0, "Maximum duration of a harvest, in seconds; 0 means no limit.", _at_least(0)
    )
    limit_host_pages: int = _key(
        0, "Maximum number of pages from one host, not counting their parts; 0 means no limit.", _at_least(0)
    )
    limit_host_documents: int = _key(
        0, "Maximum number of pages, parts and files from one host; 0 means no limit.", _at_least(0)
    )
    limit_host_bytes: int = _key(0, "Maximum number of bytes from one host; 0 means no limit.", _at_least(0))
    limit_file_bytes: int = _key(
        4 << 30,
        "Maximum size of a single response in bytes; the rest is cut off and it is marked as truncated.",
        _at_least(1024),
    )
    hops_outside: int = _key(0, "Number of links to follow outside the scope.", _at_least(0))
    allow_private: bool = _key(
        False,
        "Allow private, loopback and link-local addresses. Off by default, so that a harvested page cannot "
        "make the crawler read the intranet.",
    )
    private_networks: tuple[str, ...] = _key(
        (),
        "Networks that harvests and partners may be in although they are not public, such as 10.1.0.0/16. "
        "Curators cannot set this.",
        _networks,
    )
    user_agent: str = _key("", "User agent; empty means `Webdepot/VERSION (+contact; name)`.")
    connect_to: Mapping[str, str] = _key(
        {},
        "Connect to another address for these host names (with or without port): "
        '{"www.example.org" = "127.0.0.1:8001"}.',
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerConfig:
    """How containers (WARC files) are written."""

    size_bytes: int = _key(
        100_000_000, "Approximate size at which a container is sealed and a new one started.", _at_least(1024)
    )
    checkpoint_s: float = _key(
        1.0, "Maximum time between two flushes of fetched documents to the disk, in seconds.", _at_least(0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityConfig:
    """Limits within which a harvest counts as good without review by a person. Shares are relative to the
    number of harvested documents.
    """

    missing_parts: float = _key(0.05, "Maximum share of missing embedded parts.", _at_least(0))
    broken_links: float = _key(0.10, "Maximum share of broken links within the site.", _at_least(0))
    truncated: float = _key(0.01, "Maximum share of truncated responses.", _at_least(0))
    false_pages: float = _key(
        0.05,
        "Maximum share of pages that are an error page, a login form or a CAPTCHA instead.",
        _at_least(0),
    )
    failed_seeds: int = _key(0, "Maximum number of seeds that fail.", _at_least(0))
    queue_may_be_left: bool = _key(
        False, "Whether addresses may be left in the queue when a harvest reaches a limit."
    )
    differs: bool = _key(
        True,
        "Whether a person must review a harvest that differs much from earlier ones in size, number or "
        "types.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseConfig:
    """Decisions of people, states and events."""

    url: str = _key(
        "",
        "Address of a PostgreSQL database, for an archive on several machines: "
        "postgresql://USER@HOST/NAME (needs webdepot[cluster]). Empty means the file webdepot.db in the "
        "home.",
        _postgresql,
    )
    password: str = _key("", "Password at the database server; better set as WEBDEPOT_DATABASE_PASSWORD.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotConfig:
    """Long-term preservation."""

    place: str = _key(
        "depot",
        "Main place of the depot: a folder, relative to the home, or "
        "s3://BUCKET/PREFIX?endpoint=URL&region=NAME.",
    )
    import_files: int = _key(
        1000,
        "Maximum number of containers that `webdepot import` puts into one harvest and package; more files "
        "become several.",
        _at_least(1),
    )
    import_bytes: int = _key(
        10 << 30,
        "An import begins the next harvest and package after this many bytes of containers. The disk must "
        "have room for that much beside the depot.",
        _at_least(1),
    )
    portal_places: tuple[str, ...] = _key(
        (),
        "Folders and buckets, such as /mnt/vault or s3://depot, below which administrators may add places of "
        "the depot in the portal. Empty: places are added with `webdepot depot copy add` only.",
    )
    audit_days: int = _key(90, "Maximum number of days between two fixity checks of a copy.", _at_least(1))
    audit_bytes_per_s: int = _key(
        0,
        "Maximum number of bytes per second read by audits and copying; 0 means no limit.",
        _at_least(0),
    )
    audit_threads: int = _key(2, "Number of copies checked in parallel.", _at_least(1))
    cache_bytes: int = _key(
        20 << 30,
        "Maximum size of the cache of containers fetched from a remote depot, in bytes.",
        _at_least(1 << 20),
    )
    virus_scanner: str = _key(
        "",
        "Command that scans a submission for viruses: gets its path as the last argument; exit code 0 means "
        "clean, 1 infected. Of our environment it gets only PATH, HOME and the like. A daemon of another "
        "user cannot read our files: write `clamdscan --fdpass`.",
    )
    migration_tools: Mapping[str, str] = _key(
        {}, 'Format conversion tools: {"name" = "SOURCE-TYPE TARGET-TYPE command {input} {output}"}.'
    )
    alarm_mail: tuple[str, ...] = _key(
        (),
        "Email addresses to notify if damage cannot be repaired or a place stays unreachable (needs [mail]).",
    )
    alarm_command: str = _key(
        "",
        "Command to run if damage cannot be repaired or a place stays unreachable; gets the message on its "
        "standard input, and of our environment only PATH, HOME and the like.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeConfig:
    """The catalogue, and exchange with partner depots over OAI-PMH."""

    urn_namespace: str = _key(
        "urn:nbn:de:0000-",
        "Prefix of URNs for sites and their harvests; request your own from your national library.",
    )
    repository: str = _key(
        "",
        "Domain name in OAI identifiers (oai:NAME:key). It must never change. Empty means the host of "
        "web.portal_url, if set.",
    )
    admin_email: str = _key(
        "", "Email address for partners; empty means archive.contact, if it is an email address."
    )
    institution_code: str = _key(
        "", "Code of the institution in library records (ISIL, such as DE-9999); empty means none."
    )
    records_per_page: int = _key(
        100, "Records in one OAI-PMH response; validators expect 100 to 500.", _at_least(1)
    )
    token_hours: int = _key(
        48, "Validity of a resumption token in hours; validators expect at least 24.", _at_least(1)
    )
    most_requests: int = _key(
        4,
        "Maximum number of OAI-PMH requests that are answered or wait for their turn; others are asked to "
        "retry later.",
        _at_least(1),
    )
    provenance: bool = _key(
        False,
        "State the origin of partners' records in OAI-PMH responses (an `about` element, as recommended by "
        "the DINI certificate).",
    )
    transfer: str = _key(
        "containers",
        "How partners get a harvest, unless set for the partner: containers, or files (unpacked into "
        "folders).",
        _one_of("containers", "files"),
    )
    most_tree_files: int = _key(
        10_000,
        "Harvests with more files than this are transferred as containers even if files are wanted, because "
        "each file is listed in the record.",
        _at_least(1),
    )
    largest_transfer_bytes: int = _key(
        1 << 40, "Maximum size of a partner's object in bytes; larger ones are refused.", _at_least(1024)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexConfig:
    """The indexes. All of them can be rebuilt from the depot."""

    workers: int = _key(0, "Processes that read containers; 0 means one per core.", _at_least(0))
    niceness: int = _key(
        10,
        "How far imports and rebuilds give way to readers on the same machine: 0 not at all, 19 most.",
        _at_least(0),
    )
    limit_text_bytes: int = _key(
        8 << 20, "Maximum number of bytes of one document that are indexed as text.", _at_least(1024)
    )
    memory_bytes: int = _key(128 << 20, "Memory for writing the text index, in bytes.", _at_least(16 << 20))
    engine: str = _key(
        "tantivy",
        "Engine of the text index: tantivy; sqlite for a small archive (no stemming, slower); or opensearch, "
        "a server, for an archive on several machines. After a change run: webdepot index rebuild",
        _one_of("tantivy", "sqlite", "opensearch"),
    )
    opensearch_url: str = _key(
        "",
        "Address of the OpenSearch server, such as https://search.example.org:9200; several nodes are "
        "separated by commas.",
        _search_nodes,
    )
    opensearch_index: str = _key(
        "webdepot",
        "Beginning of the names of the archive's indexes on the server. Each archive needs another one.",
        _index_name,
    )
    opensearch_user: str = _key("", "User name at the search server; empty if it needs none.")
    opensearch_password: str = _key(
        "", "Password at the search server; better set as WEBDEPOT_INDEX_OPENSEARCH_PASSWORD."
    )
    opensearch_shards: int = _key(
        1,
        "Parts into which the server divides the text index: one for each 30 GB, at most one for each core. "
        "After a change run: webdepot index rebuild",
        _at_least(1),
    )
    opensearch_replicas: int = _key(
        0,
        "Further copies of the text index on other nodes; with 1, search continues when a node fails. After "
        "a change run: webdepot index rebuild",
        _at_least(0),
    )
    captures: str = _key(
        "sqlite",
        "Where the index of addresses is: sqlite (a file in the home), or postgresql (in the database of "
        "[database] url, for an archive on several machines). After a change run: webdepot index rebuild",
        _one_of("sqlite", "postgresql"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Who reads containers: for the indexes and to identify formats."""

    kind: str = _key(
        "processes",
        "processes of this machine, or dask: workers of a Dask cluster, on any number of machines (needs "
        "webdepot[cluster]).",
        _one_of("processes", "dask"),
    )
    scheduler: str = _key(
        "",
        "Address of the Dask scheduler, such as tcp://batch.example.org:8786. Anyone who can connect to it "
        "can run programs on the workers.",
        _scheduler,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkConfig:
    """Where files are that workers on other machines read and write."""

    place: str = _key(
        "",
        "A folder that all machines have at the same path, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME "
        "(credentials: WEBDEPOT_PLACE_WORK_ACCESS_KEY, WEBDEPOT_PLACE_WORK_SECRET_KEY). Empty means the "
        "home.",
    )
    safe_s: float = _key(
        10.0,
        "Time in seconds between two checkpoints of a harvest by `webdepot harvester`. If a machine and its "
        "disk are lost, at most the requests of this time are repeated.",
        _at_least(0.2),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Harvests on several machines."""

    harvesters: bool = _key(
        False,
        "Offer harvests to the processes `webdepot harvester` of all machines, instead of running them where "
        "they are started. Needs [database] url and [work] place.",
    )
    lease_s: float = _key(
        30.0,
        "Time in seconds after which a harvester that stopped responding counts as dead; another one "
        "continues from its last checkpoint.",
        _at_least(2),
    )
    machine: str = _key("", "Name of this machine in lists; empty means its host name.")

    @property
    def machine_name(self) -> str:
        return (self.machine or socket.gethostname())[:60]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    """The portal and the replay server."""

    host: str = _key("127.0.0.1", "Address the portal listens on.")
    port: int = _key(8080, "Port of the portal; 0 means any free port.", _port)
    replay_port: int = _key(8081, "Port of the replay server; 0 means any free port.", _port)
    proxy_port: int = _key(
        0, "Port of the HTTP proxy through which reading-room terminals use the archive; 0 means off.", _port
    )
    proxy_date: str = _key(
        "",
        "Initial date for terminals in proxy mode, such as 2012 or 20120601; empty means now.",
        _moment,
    )
    proxy_collection: str = _key("all", "Initial collection for terminals in proxy mode.")
    portal_url: str = _key("", "Public address of the portal, if it is behind a reverse proxy.")
    replay_url: str = _key(
        "",
        "Public address of the replay server. Its host name must differ from the portal's, because archived "
        "pages run their scripts there.",
    )
    host_per_site: str = _key(
        "auto",
        "Whether each archived site is shown on a host name of its own below that of replay_url, so that "
        "browsers keep the sites apart: on, off, or auto, which means on if portal_url is empty. Behind "
        "another web server it needs a wildcard name and certificate.",
        _one_of("auto", "on", "off"),
    )
    trusted_proxies: tuple[str, ...] = _key(
        (),
        "Addresses or networks of the web servers in front of the portal, such as 127.0.0.1. Only their "
        "X-Forwarded-For and X-Forwarded-Proto are believed; each must send the address of its client in "
        "X-Forwarded-For. Empty: no such header is believed.",
        _proxies,
    )
    session_hours: int = _key(12, "Duration of a session in hours.", _at_least(1))
    reading_room_networks: tuple[str, ...] = _key(
        (),
        "Networks of reading rooms, such as 192.0.2.0/24. Readers there have the access point reading room.",
        _networks,
    )
    lend_minutes: int = _key(
        5,
        "A page that only one reader at a time may see becomes free this many minutes after it was last seen "
        "open, at the latest.",
        _at_least(2),
    )
    partner_networks: tuple[str, ...] = _key(
        (), "Networks of partner institutions. Readers there have the access point partner.", _networks
    )
    upload_bytes: int = _key(
        4_000_000_000,
        "Largest upload of WARC and WACZ files in the portal, in bytes; 0 means that none can be uploaded.",
        _at_least(0),
    )

    @property
    def secure_cookies(self) -> bool:
        """Whether cookies are sent over HTTPS only: readers use it if the portal's public address says so."""
        return self.portal_url.lower().startswith("https:")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConfig:
    """Scheduled harvests."""

    in_server: bool = _key(
        True,
        "Run the scheduler inside `webdepot serve`. Switch it off if `webdepot scheduler` runs separately.",
    )
    at_once: int = _key(
        2,
        "Maximum number of scheduled harvests that run in parallel, over all schedulers of this archive.",
        _at_least(1),
    )
    timezone: str = _key("UTC", "Time zone of schedules, such as Europe/Amsterdam.")
    look_every_s: float = _key(
        15.0, "Interval between two checks for harvests that are due, in seconds.", _at_least(0.1)
    )
    lease_s: float = _key(
        120.0,
        "Time in seconds after which a scheduler that stopped responding counts as dead; another one resumes"
        " its harvests.",
        _at_least(1),
    )
    late_s: float = _key(
        900.0,
        "Harvests more than this many seconds late were missed while no scheduler was running; each target "
        "is harvested once to make up for it.",
        _at_least(1),
    )
    spread_s: float = _key(3600.0, "Missed harvests are spread over this many seconds.", _at_least(0))
    tries: int = _key(3, "Maximum number of tries for a scheduled harvest that failed.", _at_least(1))
    retry_s: float = _key(3600.0, "Delay before the next try, in seconds.", _at_least(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsConfig:
    """Long work that people start in the portal: imports, audits, surveys, actions on many sites."""

    in_server: bool = _key(
        True, "Run jobs inside `webdepot serve`. Switch it off if only `webdepot batch` should run them."
    )
    at_once: int = _key(4, "Maximum number of jobs that one worker runs in parallel.", _at_least(1))
    lease_s: float = _key(
        30.0,
        "Time in seconds after which a worker that stopped responding counts as dead; another one repeats "
        "its jobs.",
        _at_least(1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewConfig:
    """Acceptance of scheduled harvests into the depot: by a person, or automatically within these limits."""

    accept: str = _key(
        "person",
        "person: every harvest awaits review. rules: harvests within the limits of [quality] and of this "
        "section are accepted automatically. always: every harvest that fetched something is accepted.",
        _one_of("person", "rules", "always"),
    )
    after_accepted: int = _key(
        1,
        "Number of harvests of a site that must have been accepted before rules accept another.",
        _at_least(0),
    )
    documents_differ: float = _key(
        0.5,
        "Rules accept a difference in the number of documents up to this share of the last accepted harvest.",
        _at_least(0),
    )
    bytes_differ: float = _key(
        0.5,
        "Rules accept a difference in the number of bytes up to this share of the last accepted harvest.",
        _at_least(0),
    )
    not_valid: float = _key(0.1, "Rules accept up to this share of invalid files.", _at_least(0))
    four_eyes: bool = _key(
        False, "The person who planned or started a harvest may not accept it (four-eyes principle)."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcConfig:
    """Sign-in with an account of the institution (OpenID Connect). The redirect URI to register with the
    provider is PORTAL/sign-in/oidc/back.
    """

    issuer: str = _key(
        "", "Issuer URL of the provider, such as https://login.example.org/realm. Empty means off."
    )
    client_id: str = _key("", "Client id of this portal at the provider.")
    client_secret: str = _key(
        "",
        "Client secret; better set as WEBDEPOT_OIDC_CLIENT_SECRET. Empty for a public client.",
    )
    scopes: str = _key("openid profile email", "Requested scopes, separated by spaces.")
    label: str = _key("Sign in with your institution", "Text of the button.")
    name_claim: str = _key(
        "preferred_username", "Claim used as the account name; if it is missing, `email` or `sub`."
    )
    roles_claim: str = _key(
        "",
        "Claim with groups or roles; dots for nested claims, such as realm_access.roles. Empty: roles are "
        "assigned in Webdepot.",
    )
    roles: Mapping[str, str] = _key(
        {}, 'Role for a value of that claim: {"web-curators" = "curator"}. Everybody else is a reader.'
    )
    timeout_s: float = _key(10.0, "Maximum time for a response of the provider, in seconds.", _at_least(0.1))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsConfig:
    """Usage statistics. No personal data is stored."""

    count: bool = _key(
        True,
        "Count opened pages, viewed lists, searches and refusals by month, site, collection and access "
        "point.",
    )
    country_header: str = _key(
        "",
        "Header in which the reverse proxy sends the reader's country as two letters; empty means that "
        "countries are not counted.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryConfig:
    """Finding the domains of an organisation: sources, politeness and thresholds."""

    resolver: str = _key(
        "",
        "DNS servers, such as 192.0.2.53 or 127.0.0.1:5353, separated by commas. Empty means those of the "
        "system.",
    )
    rdap_bootstrap: str = _key(
        "https://data.iana.org/rdap/",
        "URL or folder of the RDAP bootstrap files dns.json, ipv4.json and ipv6.json (RFC 9224).",
    )
    whois: str = _key(
        "whois.iana.org", "First whois server (host or host:port) if there is no RDAP; `off` disables whois."
    )
    ct_search: str = _key(
        "",
        "Certificate transparency search with the interface of crt.sh, such as https://crt.sh. Empty means "
        "off.",
    )
    extra_ca_file: str = _key(
        "", "PEM file with certificate authorities to trust besides those of the system."
    )
    follow_at: float = _key(0.75, "A host with this score or more belongs to the organisation.", _share)
    ignore_at: float = _key(
        0.25, "A host with this score or less does not belong; between the two a curator decides.", _share
    )
    new_domains: str = _key(
        "follow",
        "New domains found during a harvest: follow (at once), or ask (a curator decides first).",
        _one_of("follow", "ask"),
    )
    registry_pause_s: float = _key(
        1.0, "Delay between two queries to one registry server, in seconds.", _at_least(0)
    )
    page_pause_s: float = _key(1.0, "Delay between two pages of one host, in seconds.", _at_least(0))
    workers: int = _key(24, "Number of hosts examined in parallel.", _at_least(1))
    timeout_s: float = _key(5.0, "Maximum time for a lookup or a connection, in seconds.", _at_least(0.1))
    limit_hosts: int = _key(20_000, "Maximum number of hosts examined in a survey.", _at_least(1))
    http_port: int = _key(80, "Port for HTTP; change it only in a closed network.", _port)
    https_port: int = _key(443, "Port for HTTPS; change it only in a closed network.", _port)
    scan: bool = _key(False, "Allow `webdepot organisation scan` in own_ranges.")
    own_ranges: tuple[str, ...] = _key((), "IP ranges of your institution; only these are ever scanned.")
    scan_per_s: float = _key(50.0, "Maximum number of connections per second while scanning.", _at_least(0.1))
    reopen_months: int = _key(
        12, "Automatic decisions about a host are made again after this many months.", _at_least(1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionConfig:
    """Selecting sites and asking their owners."""

    points_needed: float = _key(
        1.0, "Points from optional criteria that a site needs to be recommended.", _at_least(0)
    )
    term_days: int = _key(
        28,
        "Days the owner has to refuse after the letter was sent; after that, silence counts as consent.",
        _at_least(1),
    )
    reminder_days: int = _key(
        14, "Days after the letter on which a reminder is sent; 0 means no reminder.", _at_least(0)
    )
    suggestions_per_hour: int = _key(
        10,
        "Maximum number of suggestions and complaints per hour from one address; further ones are refused "
        "for now.",
        _at_least(1),
    )
    suggestions_in_all: int = _key(
        200, "Maximum number of suggestions and complaints per hour from all addresses.", _at_least(1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MailConfig:
    """The mail server for letters. Set the password as WEBDEPOT_MAIL_PASSWORD rather than in this file."""

    host: str = _key("", "Host name of the SMTP server; empty means that no letters can be sent.")
    port: int = _key(587, "Port of the SMTP server.", _port)
    security: str = _key(
        "starttls", "Encryption of the connection: starttls, tls or none.", _one_of("starttls", "tls", "none")
    )
    user: str = _key("", "User name at the SMTP server; empty means no authentication.")
    password: str = _key("", "Password at the SMTP server.")
    sender: str = _key(
        "", "Sender of letters: webarchive@example.org or Web archive <webarchive@example.org>."
    )
    reply_to: str = _key("", "Address for replies, if it differs from the sender.")
    timeout_s: float = _key(30.0, "Maximum time for a response of the SMTP server, in seconds.", _at_least(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    home: Path
    archive: ArchiveConfig = field(default_factory=ArchiveConfig)
    database: DatabaseConfig = field(default_factory=DatabaseConfig)
    harvest: HarvestConfig = field(default_factory=HarvestConfig)
    container: ContainerConfig = field(default_factory=ContainerConfig)
    quality: QualityConfig = field(default_factory=QualityConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    jobs: JobsConfig = field(default_factory=JobsConfig)
    review: ReviewConfig = field(default_factory=ReviewConfig)
    depot: DepotConfig = field(default_factory=DepotConfig)
    exchange: ExchangeConfig = field(default_factory=ExchangeConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    work: WorkConfig = field(default_factory=WorkConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    web: WebConfig = field(default_factory=WebConfig)
    statistics: StatisticsConfig = field(default_factory=StatisticsConfig)
    oidc: OidcConfig = field(default_factory=OidcConfig)
    discovery: DiscoveryConfig = field(default_factory=DiscoveryConfig)
    selection: SelectionConfig = field(default_factory=SelectionConfig)
    mail: MailConfig = field(default_factory=MailConfig)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The tables [profiles.NAME] as written; `harvest.profile` parses them."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The source of each key that is not a default: `harvest.delay_s` -> `webdepot.toml` or a variable name.
    """
