"""What a crawl is given and what it says: settings, progress, and how it ended, in words a person can use."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from webdepot.harvest.fetch.mode import Fetching, Screenshots
from webdepot.harvest.host_book import HostCounts
from webdepot.harvest.links.extract import LinkLimits
from webdepot.harvest.politeness import robots
from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.scope.conditions import ScopeFacts
from webdepot.harvest.scope.host_rules import HostRules
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.membership import ScopeKind
from webdepot.harvest.scope.rules import RuleSpec
from webdepot.model import Failure
from webdepot.reasons import Reason, said, together
from webdepot.url import Url

RobotsPolicy = robots.RobotsPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What differs for one host from the settings of its harvest. None and 0 mean: as the harvest."""

    manners: Manners | None = None
    robots: RobotsPolicy | None = None
    limit_pages: int = 0
    limit_bytes: int = 0
    bytes_per_s: int = 0
    """Bandwidth of an answer of this host."""
    fetch: Fetching | None = None


_NOTHING_DIFFERS = HostSettings()


def as_harvest(host: str) -> HostSettings:
    return _NOTHING_DIFFERS


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings:
    """Everything a crawl decides by. A limit of 0 is none."""

    seeds: tuple[Url, ...]
    user_agent: str
    scope: ScopeKind = ScopeKind.HOST
    rejects: tuple[str, ...] = ()
    """Regular expressions; an address in which one is found is not fetched."""
    scope_limits: ScopeLimits = field(default_factory=ScopeLimits)
    rules: tuple[RuleSpec, ...] = ()
    """Decide rules of the profile, in their order."""
    facts: ScopeFacts = field(default_factory=ScopeFacts)
    """What the service knows for them."""
    look_up: Callable[[Collection[str]], Awaitable[None]] | None = None
    """Learns about host names before links to them are judged; set when a rule needs it (`ip_range`,
    `organisation`).
    """
    host_rules: HostRules | None = None
    """Rules of the service that decide whole hosts, such as by their owner."""
    nofollow: str = "all"
    """Which words against following are obeyed: all, page, none."""
    find_sitemaps: bool = False
    """Ask a host whose robots.txt names no sitemap for /sitemap.xml."""
    log_outside: bool = False
    """Log links that lead outside, too, each once; otherwise they are only counted."""
    robots: RobotsPolicy = RobotsPolicy.OBEY
    manners: Manners = field(default_factory=Manners)
    least_free_bytes: int = 0
    """The crawl stops when its disk has less room than that."""
    bytes_per_s: int = 0
    """Bandwidth of all requests together."""
    workers: int = 16
    limit_pages: int = 0
    limit_bytes: int = 0
    limit_time_s: float = 0.0
    checkpoint_s: float = 1.0
    links: LinkLimits = field(default_factory=LinkLimits)
    fetch: Fetching = Fetching.PLAIN
    screenshots: Screenshots = Screenshots.SEEDS
    behaviours: frozenset[str] = frozenset({"scroll", "play"})
    """What is done in a page that is opened, of `BEHAVIOURS`."""
    page_time_s: float = 60.0
    """Of its own time a page has so much in the browser."""
    progress_s: float = 0.25
    of_host: Callable[[str], HostSettings] = as_harvest
    """What differs for a host name; asked for every candidate, so it should remember its answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlProgress:
    fetched: int
    """Answers kept, without robots.txt."""
    waiting: int
    in_flight: int
    size_bytes: int
    rate: float
    """Pages a second over the last few seconds."""
    errors: int
    robots_refused: int
    host: str
    """The host of the newest answer."""
    elapsed_s: float
    seen: int = 0
    """Distinct addresses ever queued."""
    done: int = 0
    """Of those, the ones whose life is over."""
    paused: bool = False
    refusals: Mapping[str, int] = field(default_factory=dict)
    """Distinct addresses by the rule that rejected them."""
    hosts: Mapping[str, HostCounts] = field(default_factory=dict)
    """Hosts of which something came lately."""
    waiting_at: Mapping[str, int] = field(default_factory=dict)
    """What waits at those of which most came."""


class End(StrEnum):
    FINISHED = "finished"
    STOPPED = "stopped"
    ABORTED = "aborted"
    NO_ROOM = "no room"
    LIMIT_PAGES = "limit of pages"
    LIMIT_BYTES = "limit of bytes"
    LIMIT_TIME = "limit of time"


class Trouble(StrEnum):
    """Why a crawl brought nothing that could be shown."""

    NO_SUCH_HOST = "no such host"
    UNREACHABLE = "unreachable"
    PRIVATE_ADDRESS = "private address"
    TLS = "tls"
    ROBOTS = "robots"
    MOVED_AWAY = "moved away"
    ONLY_REDIRECTS = "only redirects"
    ERROR_ANSWERS = "error answers"
    EMPTY = "empty"
    SEVERAL = "several"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedOutcome:
    """What became of one seed."""

    seed: Url
    status: int = 0
    """Of the last answer on its way of redirects; 0 while there is none."""
    size_bytes: int = 0
    failure: Failure | None = None
    detail: str = ""
    moved_to: str = ""
    """Where it redirects to, when that is outside the scope."""

    @property
    def trouble(self) -> Trouble | None:
        if self.moved_to:
            return Trouble.MOVED_AWAY
        if self.failure is not None:
            return _TROUBLES.get(self.failure, Trouble.UNREACHABLE)
        if self.status >= 400:
            return Trouble.ERROR_ANSWERS
        if self.status >= 300:
            return Trouble.ONLY_REDIRECTS
        return Trouble.EMPTY if 200 <= self.status < 300 and not self.size_bytes else None

    def __str__(self) -> str:
        return str(self.told).removesuffix(".")

    @property
    def told(self) -> Reason:
        """As a sentence."""
        match self.trouble:
            case None if not self.status:
                return said("seed_waits", "{seed} has not been fetched yet.", seed=self.seed)
            case Trouble.MOVED_AWAY:
                words = "{seed} redirects to {place}, which is outside the scope."
                return said("seed_moved", words, seed=self.seed, place=self.moved_to)
            case Trouble.ONLY_REDIRECTS:
                return said(
                    "seed_redirects", "{seed} redirects without ever reaching a page.", seed=self.seed
                )
            case None | Trouble.ERROR_ANSWERS:
                return said(
                    "seed_answers",
                    "{seed} returned status {status}.",
                    seed=self.seed,
                    status=str(self.status),
                )
            case Trouble.EMPTY:
                return said("seed_empty", "{seed} is an empty page.", seed=self.seed)
            case Trouble.ROBOTS:
                return said(
                    "seed_robots", "{seed} may not be fetched: {detail}.", seed=self.seed, detail=self.detail
                )
            case _:
                return said(
                    "seed_unreachable",
                    "{seed} could not be reached: {detail}.",
                    seed=self.seed,
                    detail=self.detail,
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlResult:
    end: End
    reason: str
    """Why it ended, in words."""
    counts: Mapping[str, int]
    """fetched, bytes, errors, robots_refused, duplicates, outside, rejected, waiting, seen."""
    seeds: tuple[SeedOutcome, ...]
    shut_out: tuple[str, ...]
    """Hosts whose robots.txt shuts everybody out."""
    trouble: Trouble | None
    """Set when nothing was harvested that could be shown."""
    elapsed_s: float
    good_pages: int = 0
    """Pages with 2xx and a body."""

    @property
    def waiting(self) -> int:
        return self.counts["waiting"]

    def explain(self) -> str:
        """One or a few sentences: what happened and what to do."""
        if self.trouble is None:
            return self.reason
        words = _ADVICE[self.trouble]
        advice = [said(f"advice_{self.trouble.name.lower()}", words)] if words else []
        return together([*(outcome.told for outcome in self.seeds), *advice])


def trouble_of(seeds: Sequence[SeedOutcome], *, good_pages: int) -> Trouble | None:
    """The one trouble of all seeds, when no page came; an empty page alone does not count as one."""
    if good_pages:
        return None
    troubles = {outcome.trouble for outcome in seeds} - {None}
    if not troubles:
        return None
    return troubles.pop() if len(troubles) == 1 else Trouble.SEVERAL


def reason_of(end: End, settings: CrawlSettings, *, waiting: int, shut_out: Sequence[str]) -> str:
    """How it ended and what is left, in words."""
    hosts = ", ".join(shut_out[:5])
    closed = said("shut_out", "robots.txt of {hosts} excludes all crawlers.", hosts=hosts) if shut_out else ""
    if end is End.FINISHED:
        return together([_finished(waiting), closed])
    return together([_ending(end, settings), left_waiting(waiting)])


def _finished(waiting: int) -> Reason:
    reached = "All that could be reached was fetched;"
    match waiting:
        case 0:
            return said("fetched_all", "All addresses in scope were fetched.")
        case 1:
            return said(
                "reached_all_one", f"{reached} a server that stopped answering leaves one address waiting."
            )
    return said(
        "reached_all",
        f"{reached} servers that stopped answering leave {{waiting}} addresses waiting.",
        waiting=waiting,
    )


def _ending(end: End, settings: CrawlSettings) -> Reason:
    match end:
        case End.STOPPED:
            return said("stopped", "Stopped by request.")
        case End.NO_ROOM:
            words = "Less than {bytes} bytes are free on the disk. Free some space, then resume the harvest."
            return said("no_room", words, bytes=settings.least_free_bytes)
        case End.ABORTED:
            return said("given_up", "Given up by request.")
        case End.LIMIT_PAGES:
            return said("limit_pages", "The limit of {limit} pages was reached.", limit=settings.limit_pages)
        case End.LIMIT_BYTES:
            return said("limit_bytes", "The limit of {limit} bytes was reached.", limit=settings.limit_bytes)
        case End.LIMIT_TIME:
            return said(
                "limit_time", "The limit of {limit} seconds was reached.", limit=f"{settings.limit_time_s:g}"
            )
    raise AssertionError(end)


def limit_reached(end: End) -> Reason:
    """Of a harvest that several processes share."""
    return said(f"shared_{end.name.lower()}", f"The {_LIMITED[end]} limit of the harvest was reached.")


def left_waiting(waiting: int) -> str:
    if waiting == 1:
        return said("left_waiting_one", "One address was left waiting.")
    return said("left_waiting", "{waiting} addresses were left waiting.", waiting=waiting) if waiting else ""


_LIMITED = {End.LIMIT_PAGES: "page", End.LIMIT_BYTES: "byte", End.LIMIT_TIME: "time"}

_TROUBLES = {
    Failure.DNS: Trouble.NO_SUCH_HOST,
    Failure.PRIVATE_ADDRESS: Trouble.PRIVATE_ADDRESS,
    Failure.TLS: Trouble.TLS,
    Failure.ROBOTS: Trouble.ROBOTS,
}

_ADVICE = {
    Trouble.NO_SUCH_HOST: "Check the spelling of the host name, and that this computer can resolve host names.",
    Trouble.UNREACHABLE: "Try again later, or check the address and the network connection of this computer.",
    Trouble.PRIVATE_ADDRESS: "Private addresses are fetched only with --allow-private.",
    Trouble.TLS: 'Its certificate is not valid for this computer. Try http, ask the owner, or set tls = "accept" under [harvest].',
    Trouble.ROBOTS: "The robots.txt of the site forbids it. To harvest it anyway, use --robots ignore; this is recorded.",
    Trouble.MOVED_AWAY: "Archive the new address instead, or widen the scope.",
    Trouble.ONLY_REDIRECTS: "Open it in a browser to see where it leads, and archive that address.",
    Trouble.ERROR_ANSWERS: "Check the address in a browser.",
    Trouble.EMPTY: "The responses are kept, but there is nothing to show.",
    Trouble.SEVERAL: "",
}
