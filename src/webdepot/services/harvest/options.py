"""What may differ from harvest to harvest, and what a crawl makes of it.

    configuration  <  profile  <  command line or form  <  orders while it runs

The options are kept with the harvest as plain values, so it can be said for ever by which rules it was made,
and a resumed harvest goes on by the same. `settings_of` turns them into the settings of a crawl; `changed`
applies what was ordered while it runs.
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
from webdepot.errors import InputError
from webdepot.harvest.browser import launch
from webdepot.harvest.fetch import login
from webdepot.harvest.fetch.addresses import Router
from webdepot.harvest.fetch.curl_transfer import HostAccess
from webdepot.harvest.fetch.mode import Fetching, Screenshots
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.politeness.robots import RobotsPolicy, product_token
from webdepot.harvest.profile import KEYS, Profile
from webdepot.harvest.report.result import CrawlSettings, HostSettings
from webdepot.harvest.scope import rules
from webdepot.harvest.scope.conditions import ScopeFacts
from webdepot.harvest.scope.host_rules import HostRules
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.membership import ScopeKind
from webdepot.settings import Config
from webdepot.times import from_timestamp
from webdepot.url import Url, key

_LIMITS = frozenset(item.name for item in fields(ScopeLimits))
_NEED_LOOK_UP = frozenset({"ip_range", "organisation"})
CHANGEABLE = frozenset(
    {"limit_pages", "limit_bytes", "limit_time_s", "limit_host_pages", "limit_host_bytes"}
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
        "guess",
    }
)
"""What can be ordered while a harvest runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestOptions:
    """What may differ from harvest to harvest; kept with it."""

    scope: str
    delay_s: float
    workers: int
    robots: str
    robots_reason: str = ""
    """Why robots.txt is not obeyed, where it is not."""
    nofollow: str = "all"
    guess: bool = False
    fetch: str = Fetching.PLAIN.value
    screenshots: str = Screenshots.SEEDS.value
    behaviours: tuple[str, ...] = ("scroll", "play")
    page_time_s: float = 60.0
    reject: tuple[str, ...] = ()
    limit_pages: int = 0
    limit_bytes: int = 0
    limit_time_s: float = 0.0
    limit_host_pages: int = 0
    limit_host_bytes: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)
    """Of `ScopeLimits`, by name."""
    rules: tuple[Mapping[str, object], ...] = ()
    """Decide rules as tables (`harvest.rules`)."""
    hosts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What differs for a host, or, with a dot before it, for a domain."""
    ignore_parameters: tuple[str, ...] = ()
    allow_private: bool = False
    collection: str = "sites"
    profile: str = ""
    """Name of the profile it was made with; what that said is in the other options."""
    patch_of: str = ""
    """The harvest whose gaps it fills; empty for all others."""
    organisation: str = ""
    """Root domain of the organisation whose hosts belong to the harvest."""
    host_rules: tuple[str, ...] = ()
    """How its hosts are told: `BelongsTo`, or `InNetRange`, `SameNameServers`, `SameRegistrant(0.8)`; any of
    them is enough.
    """

    @classmethod
    def from_config(cls, config: Config) -> "HarvestOptions":
        given = config.harvest
        return cls(
            scope=given.scope,
            delay_s=given.delay_s,
            workers=given.workers,
            robots=given.robots,
            robots_reason=given.robots_reason,
            nofollow=given.nofollow,
            guess=given.guess,
            fetch=given.fetch,
            screenshots=given.screenshots,
            behaviours=given.behaviours,
            page_time_s=given.page_time_s,
            limit_pages=given.limit_pages,
            limit_bytes=given.limit_bytes,
            limit_time_s=given.limit_time_s,
            limit_host_pages=given.limit_host_pages,
            limit_host_bytes=given.limit_host_bytes,
            limits={"hops_outside": given.hops_outside},
            ignore_parameters=given.ignore_parameters,
            allow_private=given.allow_private,
        )


def with_profile(options: HarvestOptions, profile: Profile) -> HarvestOptions:
    """What the profile says, put over the options; what it does not say stays."""
    known = {item.name for item in fields(HarvestOptions)}
    said: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in profile.values.items()
    }
    return replace(
        options,
        profile=profile.name,
        rules=tuple(rules.to_table(spec) for spec in profile.rules),
        hosts=dict(profile.hosts),
        limits={**options.limits, **{name: value for name, value in said.items() if name in _LIMITS}},
        **{name: value for name, value in said.items() if name in known},
    )


def from_kept(settings: Mapping[str, Any]) -> HarvestOptions:
    """As kept with a harvest: JSON has lists where we have tuples. Options of other versions are passed over."""
    known = {item.name for item in fields(HarvestOptions)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in settings.items()
        if name in known
    }
    return HarvestOptions(**values)


def changed(options: HarvestOptions, changes: Mapping[str, object]) -> HarvestOptions:
    """The options after what was ordered; InputError for what cannot be changed, or not to that."""
    for name, value in changes.items():
        if name not in CHANGEABLE:
            raise InputError(
                f"{name} cannot be changed while a harvest runs. What can: {', '.join(sorted(CHANGEABLE))}."
            )
        known = KEYS.get(name)
        if (
            known is not None
            and known.kind in (int, float)
            and (isinstance(value, bool) or not isinstance(value, (int, float)))
        ):
            raise InputError(f"{name} = {value!r} must be a number.")
        wrong = known.check(value) if known is not None else ""
        if wrong:
            raise InputError(f"{name} {wrong}.")
    return from_kept(asdict(options) | dict(changes))


def settings_of(
    archive: Archive,
    seeds: Sequence[Url],
    options: HarvestOptions,
    *,
    agent: str,
    router: Router | None = None,
    organisation_of: Callable[[str], str] | None = None,
    host_rules: HostRules | None = None,
) -> CrawlSettings:
    """What a crawl is given. `router` looks hosts up for rules about net ranges; ConfigError for a rule that
    is none.
    """
    given = archive.config.harvest
    specs = tuple(
        rules.from_table(table, f"rule {number}") for number, table in enumerate(options.rules, start=1)
    )
    needs_look_up = router is not None and any(spec.condition in _NEED_LOOK_UP for spec in specs)
    manners = _manners(archive.config, options.delay_s)
    facts = ScopeFacts(
        addresses_of=_addresses_of(router) if router is not None else lambda host: (),
        harvested_at=lambda url: _harvested_at(archive, url),
        organisation_of=organisation_of or (lambda host: ""),
        now=archive.clock(),
    )
    return CrawlSettings(
        seeds=tuple(seeds),
        user_agent=agent,
        scope=ScopeKind(options.scope),
        rejects=options.reject,
        scope_limits=ScopeLimits(
            **{name: value for name, value in options.limits.items() if name in _LIMITS}
        ),
        rules=specs,
        facts=facts,
        look_up=_look_up(router) if router is not None and needs_look_up else None,
        host_rules=host_rules,
        nofollow=options.nofollow if options.robots != RobotsPolicy.IGNORE else "none",
        find_sitemaps=given.sitemaps,
        robots=RobotsPolicy(options.robots),
        manners=manners,
        bytes_per_s=given.bytes_per_s,
        least_free_bytes=given.least_free_bytes,
        workers=options.workers,
        limit_pages=options.limit_pages,
        limit_bytes=options.limit_bytes,
        limit_time_s=options.limit_time_s,
        checkpoint_s=archive.config.container.checkpoint_s,
        links=LinkLimits(guess=options.guess, agent=product_token(agent)),
        of_host=_of_host(archive.config, options),
        fetch=Fetching(options.fetch),
        screenshots=Screenshots(options.screenshots),
        behaviours=frozenset(options.behaviours),
        page_time_s=options.page_time_s,
    )


def wants_browser(options: HarvestOptions) -> bool:
    """May a page of the harvest be opened in a browser?"""
    return any(
        way != Fetching.PLAIN
        for way in (options.fetch, *(told.get("fetch", Fetching.PLAIN) for told in options.hosts.values()))
    )


def browser_of(config: Config, options: HarvestOptions) -> Path | None:
    """The browser to open its pages in; None where it needs none. ConfigError when it needs one and there is
    none.
    """
    given = config.harvest
    return (
        launch.get_program(given.browser, sandbox=given.browser_sandbox) if wants_browser(options) else None
    )


def _manners(config: Config, delay_s: float) -> Manners:
    given = config.harvest
    # --delay 0 is the operator's word that the server bears it; otherwise slowness of the server lengthens
    # the pause.
    factor = given.delay_factor if delay_s else 0.0
    return Manners(
        delay_s=delay_s,
        delay_factor=factor,
        longest_delay_s=given.longest_delay_s,
        tries=given.tries,
        retry_delay_s=given.retry_delay_s,
        dns_patience_s=given.dns_patience_s,
    )


def _of_host(config: Config, options: HarvestOptions) -> Callable[[str], HostSettings]:
    """What differs for a host: by its name, else by the longest domain, written `.example.org`, in which it
    lies.
    """

    @lru_cache(maxsize=10_000)
    def of_host(host: str) -> HostSettings:
        told = told_of(host, options.hosts)
        return HostSettings(
            manners=_manners(config, told["delay_s"]) if "delay_s" in told else None,
            robots=RobotsPolicy(told["robots"]) if "robots" in told else None,
            limit_pages=told.get("limit_pages", options.limit_host_pages),
            limit_bytes=told.get("limit_bytes", options.limit_host_bytes),
            bytes_per_s=told.get("bytes_per_s", config.harvest.host_bytes_per_s),
            fetch=Fetching(told["fetch"]) if "fetch" in told else None,
        )

    return of_host


def told_of(host: str, hosts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """What a profile says of a host: under its name, else under the longest domain, written `.example.org`,
    in which it lies.
    """
    name = re.sub(r":\d+\Z", "", host)
    for exact in (host, name):
        if exact in hosts:
            return hosts[exact]
    domains = sorted(
        (domain for domain in hosts if domain.startswith(".") and f".{name}".endswith(domain)), key=len
    )
    return hosts[domains[-1]] if domains else {}


def credentials_of(host: str, options: HarvestOptions) -> str:
    """Name of the credentials for a host; empty where it has none."""
    return str(told_of(host, options.hosts).get("credentials", ""))


def access_of(archive: Archive, options: HarvestOptions) -> Callable[[str], HostAccess]:
    """What is particular about asking a host: account, bandwidth, certificate. ConfigError for a file of
    accounts that is wrong.
    """
    given = archive.config.harvest
    logins = login.read(archive.home / given.logins_file)
    of_host = _of_host(archive.config, options)

    @lru_cache(maxsize=10_000)
    def access(host: str) -> HostAccess:
        name = credentials_of(host, options) or host
        caps = [cap for cap in (of_host(host).bytes_per_s, given.bytes_per_s) if cap]
        return HostAccess(
            bytes_per_s=min(caps, default=0), verify=given.tls == "verify", login=logins.get(name)
        )

    return access


def _addresses_of(router: Router) -> Callable[[str], Sequence[str]]:
    def addresses_of(host: str) -> Sequence[str]:
        route = router.find_known(host, 80) if host else None
        if route is None:
            return ()
        return (route.connect_to.rpartition(":")[0].strip("[]"),) if route.connect_to else route.addresses

    return addresses_of


def _look_up(router: Router) -> Callable[[Collection[str]], Awaitable[None]]:
    async def look_up(hosts: Collection[str]) -> None:
        names = {re.sub(r":\d+\Z", "", host) for host in hosts if host}
        await asyncio.gather(*(router.find(name, 80) for name in names))

    return look_up


def _harvested_at(archive: Archive, url: str) -> datetime | None:
    found = archive.captures.last(key(url))
    return from_timestamp(found.timestamp) if found is not None else None
