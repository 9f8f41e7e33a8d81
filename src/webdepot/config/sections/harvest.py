"""Sections about harvests: how sites are harvested, written, scheduled, checked and accepted."""

from collections.abc import Mapping
from dataclasses import dataclass

from webdepot.config.keys import at_least, check_networks, each_of, key, one_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestConfig:
    """How sites are harvested."""

    scope: str = key(
        "host",
        "Scope of a seed: the same host, domain or path prefix, or any address.",
        one_of("host", "domain", "prefix", "any"),
    )
    delay_s: float = key(1.0, "Minimum delay between two requests to one server, in seconds.", at_least(0))
    delay_factor: float = key(
        2.0,
        "The delay is the last response time times this factor, between delay_s and longest_delay_s.",
        at_least(0),
    )
    longest_delay_s: float = key(
        30.0, "Maximum delay for slow servers and for Crawl-delay in robots.txt, in seconds.", at_least(0)
    )
    workers: int = key(
        16,
        "Maximum number of parallel requests over all servers; never more than one per server.",
        at_least(1),
    )
    robots: str = key(
        "obey",
        "robots.txt: obey, obey-but-embeds (embedded parts of pages are fetched anyway) or ignore. "
        "If it is not obeyed, this is recorded with the harvest.",
        one_of("obey", "obey-but-embeds", "ignore"),
    )
    robots_reason: str = key(
        "", "Why robots.txt is not obeyed; recorded with the harvest and in its containers."
    )
    nofollow: str = key(
        "all",
        "Which nofollow instructions are obeyed if robots.txt is: all, page (meta robots and X-Robots-Tag, "
        "but not rel=nofollow) or none.",
        one_of("all", "page", "none"),
    )
    fetch: str = key(
        "auto",
        "How pages are fetched: plain, browser (each page is also opened in a browser), when-empty "
        "(only pages that are empty until scripts run) or auto (when-empty where a browser is installed, "
        "otherwise plain).",
        one_of("plain", "browser", "when-empty", "auto"),
    )
    screenshots: str = key(
        "seeds",
        "Which pages opened in the browser get a screenshot: none, seeds or pages (all). With fetch auto, "
        "start pages are opened for it even if they are not empty.",
        one_of("none", "seeds", "pages"),
    )
    behaviours: tuple[str, ...] = key(
        ("consent", "scroll", "play", "click"),
        "What is done in pages opened in the browser: consent (close consent banners, rejecting where "
        "possible), scroll (to the end), play (media), click (load more, tabs, menus and in-page navigation; "
        "nothing is submitted).",
        each_of("consent", "scroll", "play", "click"),
    )
    page_time_s: float = key(
        60.0,
        "Maximum time for a page in the browser, in seconds; time spent fetching its parts does not count.",
        at_least(1),
    )
    browser: str = key("", "Name or path of Chromium; empty means the installed one.")
    browser_tabs: int = key(2, "Pages open in the browser at the same time.", at_least(1))
    browser_sandbox: bool = key(
        True,
        "Use Chromium's sandbox. It does not work for root; switch it off only if the whole machine is a "
        "sandbox, such as a container.",
    )
    include: tuple[str, ...] = key(
        (),
        "Kinds of addresses to harvest that are left out by default because they are not content, such as "
        "histories or feeds; all for every kind. `webdepot scope software` lists them.",
    )
    guess: bool = key(
        True,
        "Extract probable addresses from scripts (speculative links). They are fetched last, are marked, and"
        " are given up at hosts where most of them fail.",
    )
    sitemaps: bool = key(
        True, "Request /sitemap.xml from hosts in scope if robots.txt does not name a sitemap."
    )
    ignore_parameters: tuple[str, ...] = key(
        (),
        "Query parameters that do not identify a page, like utm_*. Common session ids are always ignored.",
    )
    tries: int = key(5, "Maximum number of tries for a URI.", at_least(1))
    retry_delay_s: float = key(
        2.0,
        "Delay before the second try of a URI, in seconds; doubled for each further try.",
        at_least(0),
    )
    dns_patience_s: float = key(
        7200.0,
        "How long to retry DNS failures, in seconds; after that the harvest stops and can be resumed.",
        at_least(0),
    )
    bytes_per_s: int = key(
        0,
        "Maximum bandwidth of a harvest over all servers, in bytes per second; 0 means no limit.",
        at_least(0),
    )
    host_bytes_per_s: int = key(
        0, "Maximum bandwidth for one server, in bytes per second; 0 means no limit.", at_least(0)
    )
    tls: str = key(
        "verify",
        "Invalid certificates: verify (the page is not fetched) or accept (it is fetched, and the containers "
        "record it).",
        one_of("verify", "accept"),
    )
    cookies: bool = key(
        True, "Send cookies back to the servers that set them, as browsers do. Login cookies are not stored."
    )
    logins_file: str = key(
        "logins.toml",
        "File with logins by host name, relative to the home. Only its owner may have access (mode 600).",
    )
    processes: int = key(
        1,
        "Processes that share a harvest, each with its own hosts. With [cluster] harvesters, the number of "
        "parts that harvesters of any machine can take.",
        at_least(1),
    )
    least_free_bytes: int = key(
        1 << 30,
        "Minimum free disk space in bytes; below it a harvest stops and can be resumed.",
        at_least(0),
    )
    timeout_s: float = key(
        60.0,
        "Maximum time of a request in seconds; the part received by then is kept and marked as truncated.",
        at_least(1),
    )
    connect_timeout_s: float = key(15.0, "Maximum time to establish a connection, in seconds.", at_least(0.1))
    limit_pages: int = key(
        0, "Maximum number of pages of a harvest, not counting their parts; 0 means no limit.", at_least(0)
    )
    limit_documents: int = key(
        0, "Maximum number of pages, parts and files of a harvest; 0 means no limit.", at_least(0)
    )
    limit_bytes: int = key(0, "Maximum number of bytes of a harvest; 0 means no limit.", at_least(0))
    limit_time_s: float = key(
        0.0, "Maximum duration of a harvest, in seconds; 0 means no limit.", at_least(0)
    )
    limit_host_pages: int = key(
        0, "Maximum number of pages from one host, not counting their parts; 0 means no limit.", at_least(0)
    )
    limit_host_documents: int = key(
        0, "Maximum number of pages, parts and files from one host; 0 means no limit.", at_least(0)
    )
    limit_host_bytes: int = key(0, "Maximum number of bytes from one host; 0 means no limit.", at_least(0))
    limit_file_bytes: int = key(
        4 << 30,
        "Maximum size of a single response in bytes; the rest is cut off and it is marked as truncated.",
        at_least(1024),
    )
    hops_outside: int = key(0, "Number of links to follow outside the scope.", at_least(0))
    allow_private: bool = key(
        False,
        "Allow private, loopback and link-local addresses. Off by default, so that a harvested page cannot "
        "make the crawler read the intranet.",
    )
    private_networks: tuple[str, ...] = key(
        (),
        "Private networks in which harvested sites and partners may be, such as 10.1.0.0/16. "
        "Curators cannot set this.",
        check_networks,
    )
    user_agent: str = key("", "User agent; empty means `Webdepot/VERSION (+contact; name)`.")
    connect_to: Mapping[str, str] = key(
        {},
        "Connect to another address for these host names (with or without port): "
        '{"www.example.org" = "127.0.0.1:8001"}.',
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerConfig:
    """How containers (WARC files) are written."""

    size_bytes: int = key(
        100_000_000, "Approximate size at which a container is sealed and a new one started.", at_least(1024)
    )
    checkpoint_s: float = key(
        1.0, "Maximum time between two flushes of fetched documents to the disk, in seconds.", at_least(0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityConfig:
    """Limits within which a harvest counts as good without review by a person. Shares are relative to the
    number of harvested documents.
    """

    missing_parts: float = key(0.05, "Maximum share of missing embedded parts.", at_least(0))
    broken_links: float = key(0.10, "Maximum share of broken links within the site.", at_least(0))
    truncated: float = key(0.01, "Maximum share of truncated responses.", at_least(0))
    false_pages: float = key(
        0.05,
        "Maximum share of pages that show an error, a login form or a CAPTCHA instead of their content.",
        at_least(0),
    )
    failed_seeds: int = key(0, "Maximum number of seeds that fail.", at_least(0))
    queue_may_be_left: bool = key(
        False, "Whether addresses may be left in the queue when a harvest reaches a limit."
    )
    differs: bool = key(
        True,
        "Whether a person must review a harvest that differs much from earlier ones in size, number or "
        "types.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConfig:
    """Scheduled harvests."""

    in_server: bool = key(
        True,
        "Run the scheduler inside `webdepot serve`. Switch it off if `webdepot scheduler` runs separately.",
    )
    at_once: int = key(
        2,
        "Maximum number of scheduled harvests that run in parallel, over all schedulers of this archive.",
        at_least(1),
    )
    timezone: str = key("UTC", "Time zone of schedules, such as Europe/Amsterdam.")
    look_every_s: float = key(
        15.0, "Interval between two checks for harvests that are due, in seconds.", at_least(0.1)
    )
    lease_s: float = key(
        120.0,
        "Time in seconds after which a scheduler that stopped responding counts as dead; another one resumes"
        " its harvests.",
        at_least(1),
    )
    late_s: float = key(
        900.0,
        "A scheduled harvest that is more than this many seconds late counts as missed; each target with "
        "missed harvests is harvested once.",
        at_least(1),
    )
    spread_s: float = key(3600.0, "Missed harvests are spread over this many seconds.", at_least(0))
    tries: int = key(3, "Maximum number of tries for a scheduled harvest that failed.", at_least(1))
    retry_s: float = key(3600.0, "Delay before the next try, in seconds.", at_least(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewConfig:
    """Acceptance of scheduled harvests into the depot: by a person, or automatically within these limits."""

    accept: str = key(
        "person",
        "person: every harvest awaits review. rules: harvests within the limits of [quality] and of this "
        "section are accepted automatically. always: every harvest that fetched something is accepted.",
        one_of("person", "rules", "always"),
    )
    after_accepted: int = key(
        1,
        "Number of harvests of a site that must have been accepted before rules accept another.",
        at_least(0),
    )
    documents_differ: float = key(
        0.5,
        "Rules accept a difference in the number of documents up to this share of the last accepted harvest.",
        at_least(0),
    )
    bytes_differ: float = key(
        0.5,
        "Rules accept a difference in the number of bytes up to this share of the last accepted harvest.",
        at_least(0),
    )
    not_valid: float = key(0.1, "Rules accept up to this share of invalid files.", at_least(0))
    four_eyes: bool = key(
        False, "The person who planned or started a harvest may not accept it (four-eyes principle)."
    )
