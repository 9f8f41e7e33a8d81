"""The options of a harvest, and the settings of a crawl made from them.

    configuration  <  profile  <  command line or form  <  orders while it runs

The options are stored with the harvest as plain values, so that it is always known by which rules it was
made, and a resumed harvest uses the same. `settings_of` turns them into the settings of a crawl;
`with_changes` applies orders given while it runs.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from webdepot.archive import Archive
from webdepot.config.settings import Config
from webdepot.errors import ConfigError, InputError
from webdepot.harvest.browser import launch
from webdepot.harvest.fetch import login
from webdepot.harvest.fetch.curl_transfer import HostAccess
from webdepot.harvest.fetch.fetch_mode import BEHAVIOURS, Fetching, Screenshots
from webdepot.harvest.fetch.host_addresses import LookUp, Router
from webdepot.harvest.fetch.login import Login
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.politeness.robots import RobotsPolicy, product_token
from webdepot.harvest.profile import KEYS, HarvestProfile
from webdepot.harvest.report.result import CrawlSettings, HostSettings
from webdepot.harvest.scope import profile_rules, software_rules
from webdepot.harvest.scope.conditions import ScopeFacts
from webdepot.harvest.scope.host_rules import HostRules
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.membership import ScopeKind
from webdepot.harvest.scope.software_rules import SoftwareCatalogue
from webdepot.times import from_timestamp
from webdepot.url import Url, key

_LIMITS = frozenset(item.name for item in fields(ScopeLimits))
_NEED_LOOK_UP = frozenset({"ip_range", "organisation"})
DOCUMENTS_FOR_A_PAGE = 100
"""A limit of pages also limits the documents, so that a site with endless parts comes to an end."""
CHANGEABLE = frozenset(
    {
        "limit_pages",
        "limit_documents",
        "limit_bytes",
        "limit_time_s",
        "limit_host_pages",
        "limit_host_documents",
        "limit_host_bytes",
    }
    | {
        "delay_s",
        "workers",
        "reject",
        "rules",
        "hosts",
        "limits",
        "scope",
        "robots",
        "robots_reason",
        "nofollow",
        "include",
        "guess",
    }
)
"""Options that can be changed while a harvest runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestOptions:
    """The options of one harvest, which are stored with it."""

    scope: str
    delay_s: float
    workers: int
    robots: str
    robots_reason: str = ""
    """Why robots.txt is not obeyed, if it is not."""
    nofollow: str = "all"
    include: tuple[str, ...] = ()
    """Kinds of addresses that are not left out (`harvest/scope/software_rules`)."""
    guess: bool = False
    fetch: str = Fetching.AUTO.value
    screenshots: str = Screenshots.SEEDS.value
    behaviours: tuple[str, ...] = BEHAVIOURS
    page_time_s: float = 60.0
    reject: tuple[str, ...] = ()
    limit_pages: int = 0
    limit_documents: int = 0
    limit_bytes: int = 0
    limit_time_s: float = 0.0
    limit_host_pages: int = 0
    limit_host_documents: int = 0
    limit_host_bytes: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)
    """Fields of `ScopeLimits` by name."""
    rules: tuple[Mapping[str, object], ...] = ()
    """The rules of the profile as tables (`harvest/scope/profile_rules`)."""
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of a host or, with a leading dot, of a domain."""
    ignore_parameters: tuple[str, ...] = ()
    allow_private: bool = False
    collection: str = "sites"
    profile: str = ""
    """Name of the profile it was made with; its values are in the other options."""
    patch_of: str = ""
    """The harvest whose gaps it fills; empty if it is not a patch."""
    only_page: bool = False
    """One page with its parts, which a person asked for: later harvests of the site are not compared with it.
    """
    organisation: str = ""
    """Root domain of the organisation to whose hosts the harvest is limited."""
    host_rules: tuple[str, ...] = ()
    """How its hosts are matched: `BelongsTo`, or `InNetRange`, `SameNameServers`, `SameRegistrant(0.8)`; one
    match is enough.
    """

    @classmethod
    def from_config(cls, config: Config) -> "HarvestOptions":
        """The options that the configuration sets."""
        harvest = config.harvest
        return cls(
            scope=harvest.scope,
            delay_s=harvest.delay_s,
            workers=harvest.workers,
            robots=harvest.robots,
            robots_reason=harvest.robots_reason,
            nofollow=harvest.nofollow,
            include=harvest.include,
            guess=harvest.guess,
            fetch=harvest.fetch,
            screenshots=harvest.screenshots,
            behaviours=harvest.behaviours,
            page_time_s=harvest.page_time_s,
            limit_pages=harvest.limit_pages,
            limit_documents=harvest.limit_documents,
            limit_bytes=harvest.limit_bytes,
            limit_time_s=harvest.limit_time_s,
            limit_host_pages=harvest.limit_host_pages,
            limit_host_documents=harvest.limit_host_documents,
            limit_host_bytes=harvest.limit_host_bytes,
            limits={"hops_outside": harvest.hops_outside},
            ignore_parameters=harvest.ignore_parameters,
            allow_private=harvest.allow_private,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganisationHosts:
    """What a harvest needs to know if it is limited to the hosts of an organisation; empty for all others."""

    rules: HostRules | None = None
    seeds: tuple[Url, ...] = ()
    """Front pages of the hosts that are known to belong: some of them are linked from nowhere."""
    look_up: LookUp | None = None
    """How names are looked up in a closed network."""
    ca_file: Path | None = None
    """Certificate authorities of a closed network."""


_NO_ORGANISATION = OrganisationHosts()


def with_profile(options: HarvestOptions, profile: HarvestProfile) -> HarvestOptions:
    """The options with those that the profile sets."""
    known = {item.name for item in fields(HarvestOptions)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in profile.values.items()
    }
    return replace(
        options,
        profile=profile.name,
        rules=tuple(profile_rules.to_table(spec) for spec in profile.rules),
        hosts=dict(profile.hosts),
        limits={**options.limits, **{name: value for name, value in values.items() if name in _LIMITS}},
        **{name: value for name, value in values.items() if name in known},
    )


def most_documents(limit_documents: int, limit_pages: int) -> int:
    """The limit of documents: as it is set, or as the limit of pages implies; 0 for none."""
    return limit_documents or limit_pages * DOCUMENTS_FOR_A_PAGE


def from_kept(settings: Mapping[str, Any]) -> HarvestOptions:
    """The options stored with a harvest: JSON has lists instead of tuples. Unknown options are ignored."""
    known = {item.name for item in fields(HarvestOptions)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in settings.items()
        if name in known
    }
    return HarvestOptions(**values)


def with_changes(options: HarvestOptions, changes: Mapping[str, object]) -> HarvestOptions:
    """The options after changes; InputError if an option cannot be changed or its value is invalid."""
    for name, value in changes.items():
        if name not in CHANGEABLE:
            raise InputError(
                f"{name} cannot be changed while a harvest runs. "
                f"These options can: {', '.join(sorted(CHANGEABLE))}."
            )
        known = KEYS.get(name)
        if (
            known is not None
            and known.kind in (int, float)
            and (isinstance(value, bool) or not isinstance(value, (int, float)))
        ):
            raise InputError(f"{name} = {value!r} must be a number.")
        problem = known.check(value) if known is not None else ""
        if problem:
            raise InputError(f"{name} {problem}.")
    return from_kept(asdict(options) | dict(changes))


def settings_of(
    archive: Archive,
    seeds: Sequence[Url],
    options: HarvestOptions,
    *,
    agent: str,
    router: Router | None = None,
    organisation: OrganisationHosts = _NO_ORGANISATION,
) -> CrawlSettings:
    """The settings of a crawl. `router` looks up hosts for rules about networks. ConfigError if a rule is
    invalid.
    """
    config = archive.config.harvest
    specs = tuple(
        profile_rules.from_table(table, f"rule {number}")
        for number, table in enumerate(options.rules, start=1)
    )
    needs_look_up = router is not None and any(spec.condition in _NEED_LOOK_UP for spec in specs)
    manners = _manners(archive.config, options.delay_s)
    catalogue = check_include(archive, options.include)
    facts = ScopeFacts(
        addresses_of=_addresses_of(router) if router is not None else lambda host: (),
        harvested_at=lambda url: _harvested_at(archive, url),
        organisation_of=_reason_of(organisation.rules),
        now=archive.clock(),
    )
    return CrawlSettings(
        seeds=tuple(dict.fromkeys((*seeds, *organisation.seeds))),
        user_agent=agent,
        scope=ScopeKind(options.scope),
        rejects=options.reject,
        scope_limits=ScopeLimits(
            **{name: value for name, value in options.limits.items() if name in _LIMITS}
        ),
        rules=specs,
        facts=facts,
        look_up=_look_up(router) if router is not None and needs_look_up else None,
        host_rules=organisation.rules,
        software=catalogue,
        include=options.include,
        nofollow=options.nofollow if options.robots != RobotsPolicy.IGNORE else "none",
        find_sitemaps=config.sitemaps,
        robots=RobotsPolicy(options.robots),
        manners=manners,
        bytes_per_s=config.bytes_per_s,
        least_free_bytes=config.least_free_bytes,
        workers=options.workers,
        limit_pages=options.limit_pages,
        limit_documents=most_documents(options.limit_documents, options.limit_pages),
        limit_bytes=options.limit_bytes,
        limit_time_s=options.limit_time_s,
        checkpoint_s=archive.config.container.checkpoint_s,
        links=LinkLimits(guess=options.guess, software=catalogue, agent=product_token(agent)),
        of_host=_of_host(archive.config, options),
        fetch=Fetching(options.fetch),
        screenshots=Screenshots(options.screenshots),
        behaviours=frozenset(options.behaviours),
        page_time_s=options.page_time_s,
    )


def check_include(archive: Archive, kinds: Sequence[str]) -> SoftwareCatalogue:
    """The rules about software, after a check that they know these kinds of addresses; InputError if not."""
    catalogue = software_rules.of_archive(archive.home)
    problem = software_rules.check_kinds(kinds, catalogue)
    if problem:
        raise InputError(f"include {problem}. `webdepot scope software` explains them.")
    return catalogue


def wants_browser(options: HarvestOptions) -> bool:
    """Whether the harvest cannot do without a browser."""
    return bool(_modes(options) - {Fetching.PLAIN, Fetching.AUTO})


def browser_of(config: Config, options: HarvestOptions) -> Path | None:
    """The browser program for the harvest; None if it needs none. ConfigError if it needs one and none can be
    used.
    """
    try:
        if _modes(options) != {Fetching.PLAIN}:
            return launch.get_program(config.harvest.browser, sandbox=config.harvest.browser_sandbox)
    except ConfigError:
        if wants_browser(options):
            raise
    return None


def _modes(options: HarvestOptions) -> set[str]:
    return {options.fetch, *(host.get("fetch", Fetching.PLAIN) for host in options.hosts.values())}


def _manners(config: Config, delay_s: float) -> Manners:
    harvest = config.harvest
    # With --delay 0 the operator says that the server can handle it; otherwise the pause grows with the
    # response time of the server.
    factor = harvest.delay_factor if delay_s else 0.0
    return Manners(
        delay_s=delay_s,
        delay_factor=factor,
        longest_delay_s=harvest.longest_delay_s,
        tries=harvest.tries,
        retry_delay_s=harvest.retry_delay_s,
        dns_patience_s=harvest.dns_patience_s,
    )


def _of_host(config: Config, options: HarvestOptions) -> Callable[[str], HostSettings]:
    """The settings of a host, as `settings_of_host` finds them."""

    @lru_cache(maxsize=10_000)
    def of_host(host: str) -> HostSettings:
        values = settings_of_host(host, options.hosts)
        return HostSettings(
            manners=_manners(config, values["delay_s"]) if "delay_s" in values else None,
            robots=RobotsPolicy(values["robots"]) if "robots" in values else None,
            limit_pages=values.get("limit_pages", options.limit_host_pages),
            limit_documents=most_documents(
                values.get("limit_documents", options.limit_host_documents),
                values.get("limit_pages", options.limit_host_pages),
            ),
            limit_bytes=values.get("limit_bytes", options.limit_host_bytes),
            bytes_per_s=values.get("bytes_per_s", config.harvest.host_bytes_per_s),
            fetch=Fetching(values["fetch"]) if "fetch" in values else None,
        )

    return of_host


def settings_of_host(host: str, hosts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The settings of a host: those under its name, else those of the longest domain that contains it,
    written `.example.org`.
    """
    name = re.sub(r":\d+\Z", "", host)
    for exact in (host, name):
        if exact in hosts:
            return hosts[exact]
    domains = sorted(
        (domain for domain in hosts if domain.startswith(".") and f".{name}".endswith(domain)), key=len
    )
    return hosts[domains[-1]] if domains else {}


def check_credentials(logins: Mapping[str, Login], hosts: Mapping[str, Mapping[str, Any]]) -> None:
    """ConfigError if a host's settings name a login that does not exist or is for other hosts."""
    for host, settings in hosts.items():
        name = settings.get("credentials", "").lower()
        if not name:
            continue
        if name not in logins:
            raise ConfigError(
                f"{host}: credentials = {name!r} is not in the file of logins. "
                f"Known logins: {', '.join(sorted(logins)) or 'none'}."
            )
        names = {re.sub(r":\d+\Z", "", origin.partition("://")[2]) for origin in logins[name].origins}
        bare = re.sub(r":\d+\Z", "", host)
        if not any(bare == each or (host.startswith(".") and f".{each}".endswith(host)) for each in names):
            raise ConfigError(
                f"{host}: the login {name!r} is for {', '.join(sorted(logins[name].origins))} only and not "
                "sent elsewhere. If that is right, add the host to its origins in the file of logins."
            )


def access_of(archive: Archive, options: HarvestOptions) -> Callable[[str], HostAccess]:
    """How an origin is accessed: login, bandwidth, certificate check. ConfigError if the file of logins is
    invalid, or has no login for a host whose settings name one.
    """
    config = archive.config.harvest
    logins = login.read(archive.home / config.logins_file)
    check_credentials(logins, options.hosts)
    of_host = _of_host(archive.config, options)

    @lru_cache(maxsize=10_000)
    def access(origin: str) -> HostAccess:
        host = origin.partition("://")[2]
        chosen = login.find(logins, origin, settings_of_host(host, options.hosts).get("credentials", ""))
        caps = [cap for cap in (of_host(host).bytes_per_s, config.bytes_per_s) if cap]
        return HostAccess(
            bytes_per_s=min(caps, default=0),
            verify=config.tls == "verify" or (chosen is not None and not chosen.insecure),
            login=chosen,
        )

    return access


def _addresses_of(router: Router) -> Callable[[str], Sequence[str]]:
    def addresses_of(host: str) -> Sequence[str]:
        route = router.find_known(host, 80) if host else None
        if route is None:
            return ()
        return (route.connect_to.rpartition(":")[0].strip("[]"),) if route.connect_to else route.addresses

    return addresses_of


def _reason_of(host_rules: HostRules | None) -> Callable[[str], str]:
    """Why a host belongs to the organisation; empty if it does not or is not known."""

    def reason_of(host: str) -> str:
        verdict = host_rules.find(host) if host_rules is not None else None
        return verdict.reason if verdict else ""

    return reason_of


def _look_up(router: Router) -> Callable[[Collection[str]], Awaitable[None]]:
    async def look_up(hosts: Collection[str]) -> None:
        names = {re.sub(r":\d+\Z", "", host) for host in hosts if host}
        await asyncio.gather(*(router.find(name, 80) for name in names))

    return look_up


def _harvested_at(archive: Archive, url: str) -> datetime | None:
    capture = archive.captures.last(key(url))
    return from_timestamp(capture.timestamp) if capture is not None else None
