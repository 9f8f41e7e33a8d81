"""Input and output of a crawl: its settings, its progress, and how it ended, in sentences for people."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from webdepot.harvest.fetch.fetch_mode import BEHAVIOURS, Fetching, Screenshots
from webdepot.harvest.host_book import HostCounts
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.politeness.robots import RobotsPolicy
from webdepot.harvest.scope.conditions import ScopeFacts
from webdepot.harvest.scope.host_rules import HostRules
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.membership import ScopeKind
from webdepot.harvest.scope.profile_rules import RuleSpec
from webdepot.harvest.scope.software_rules import NO_SOFTWARE, SoftwareCatalogue
from webdepot.model import Failure
from webdepot.reasons import Reason, said, together
from webdepot.url import Url


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """Settings of one host that differ from those of its harvest. None and 0 mean: as for the harvest."""

    manners: Manners | None = None
    robots: RobotsPolicy | None = None
    limit_pages: int = 0
    limit_documents: int = 0
    limit_bytes: int = 0
    bytes_per_s: int = 0
    """Bandwidth for a response of this host."""
    fetch: Fetching | None = None


_NOTHING_DIFFERS = HostSettings()


def as_harvest(host: str) -> HostSettings:
    return _NOTHING_DIFFERS


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings:
    """All settings of a crawl. A limit of 0 means no limit."""

    seeds: tuple[Url, ...]
    user_agent: str
    scope: ScopeKind = ScopeKind.HOST
    rejects: tuple[str, ...] = ()
    """Regular expressions; a matching address is not fetched."""
    scope_limits: ScopeLimits = field(default_factory=ScopeLimits)
    rules: tuple[RuleSpec, ...] = ()
    """Rules of the profile, in their order."""
    facts: ScopeFacts = field(default_factory=ScopeFacts)
    """Facts of the service for the rules."""
    look_up: Callable[[Collection[str]], Awaitable[None]] | None = None
    """Looks up hosts before links to them are judged; set only if a rule needs it (`ip_range`,
    `organisation`).
    """
    host_rules: HostRules | None = None
    """Rules of the service about whole hosts, for example by their owner."""
    software: SoftwareCatalogue = NO_SOFTWARE
    """Rules about the addresses that the software of a site makes."""
    include: tuple[str, ...] = ()
    """Kinds of such addresses that are not left out."""
    nofollow: str = "all"
    """Which nofollow directives are obeyed: all, page, none."""
    find_sitemaps: bool = False
    """Fetch /sitemap.xml of hosts whose robots.txt names no sitemap."""
    log_outside: bool = False
    """Also log links that lead outside, each once; otherwise they are only counted."""
    robots: RobotsPolicy = RobotsPolicy.OBEY
    manners: Manners = field(default_factory=Manners)
    least_free_bytes: int = 0
    """The crawl stops when its disk has less free space than this."""
    bytes_per_s: int = 0
    """Bandwidth of all requests together."""
    workers: int = 16
    limit_pages: int = 0
    """HTML pages; their parts are fetched nevertheless."""
    limit_documents: int = 0
    """Pages, parts and files."""
    limit_bytes: int = 0
    limit_time_s: float = 0.0
    checkpoint_s: float = 1.0
    links: LinkLimits = field(default_factory=LinkLimits)
    fetch: Fetching = Fetching.PLAIN
    screenshots: Screenshots = Screenshots.SEEDS
    behaviours: frozenset[str] = frozenset(BEHAVIOURS)
    """Which of `BEHAVIOURS` are run in a page that is opened in the browser."""
    page_time_s: float = 60.0
    """Time limit of a page in the browser, without the time that we take to answer its requests."""
    progress_s: float = 0.25
    of_host: Callable[[str], HostSettings] = as_harvest
    """The settings of a host; called for every candidate, so it should remember its results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWait:
    """A host that is paused, because its last answer asks for that or because it did not answer."""

    host: str
    status: int
    """Its last status; 0 if there was no response."""
    failure: str
    """Why there was no response (`Failure`); empty if there was one, or if its server is paused because of
    another host or another harvest.
    """
    next_at: datetime
    """When it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlNumbers:
    """The numbers that a crawl reports and `live.json` stores.

    A base class, so that both stay flat: the fields are the keys of `live.json` and are read by templates.
    """

    fetched: int
    """Responses kept, without robots.txt."""
    waiting: int
    in_flight: int
    size_bytes: int
    rate: float
    """Documents a second over the last few seconds."""
    errors: int
    """Pages and parts that could not be fetched."""
    robots_refused: int
    host: str
    """The host of the latest response."""
    elapsed_s: float
    asked: str = ""
    """The address that was requested last."""
    opened: str = ""
    """A page that is open in the browser at the moment."""
    wait_s: float = 0.0
    """Time until a server may be asked again, while nothing is being fetched."""
    pages: int = 0
    """HTML pages among the responses kept."""
    failed_parts: int = 0
    """Parts among `errors`."""
    paused: bool = False
    refusals: Mapping[str, int] = field(default_factory=dict)
    """Distinct addresses by the rule that rejected them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlProgress(CrawlNumbers):
    seen: int = 0
    """Distinct addresses ever queued."""
    done: int = 0
    """Of those, the ones that are finished, fetched or not."""
    hosts: Mapping[str, HostCounts] = field(default_factory=dict)
    """Hosts with recent responses."""
    waiting_at: Mapping[str, int] = field(default_factory=dict)
    """Queue length of the hosts with the most documents."""
    waits: Sequence[HostWait] = ()
    """Hosts that are tried again later, the next one first."""


class End(StrEnum):
    FINISHED = "finished"
    STOPPED = "stopped"
    ABORTED = "aborted"
    NO_ROOM = "no room"
    LIMIT_PAGES = "limit of pages"
    LIMIT_DOCUMENTS = "limit of documents"
    LIMIT_BYTES = "limit of bytes"
    LIMIT_TIME = "limit of time"


class Trouble(StrEnum):
    """Why a crawl harvested nothing that can be replayed."""

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
    """The result for one seed."""

    seed: Url
    status: int = 0
    """Of the last response in its chain of redirects; 0 while there is none."""
    size_bytes: int = 0
    failure: Failure | None = None
    detail: str = ""
    moved_to: str = ""
    """Where it redirects to, if that is outside the scope."""

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
        return str(self.reason).removesuffix(".")

    @property
    def reason(self) -> Reason:
        """The result as a sentence."""
        match self.trouble:
            case None if not self.status:
                return said("seed_waits", "{seed} has not been fetched yet.", seed=self.seed)
            case Trouble.MOVED_AWAY:
                text = "{seed} redirects to {place}, which is outside the scope."
                return said("seed_moved", text, seed=self.seed, place=self.moved_to)
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
    """Why it ended, as a sentence."""
    counts: Mapping[str, int]
    """fetched, pages, empty_pages, noindex_pages, bytes, errors, failed_parts, robots_refused, nofollow,
    duplicates, outside, rejected, waiting, seen; opened, unopened, screenshots and program_errors if any;
    `left_out_KIND` for each kind of address that was left out because of the software of its site.
    """
    seeds: tuple[SeedOutcome, ...]
    shut_out: tuple[str, ...]
    """Hosts whose robots.txt excludes all crawlers."""
    trouble: Trouble | None
    """Set if nothing was harvested that can be replayed."""
    elapsed_s: float
    good_pages: int = 0
    """Pages with status 2xx and a body."""

    @property
    def waiting(self) -> int:
        return self.counts["waiting"]

    def explain(self) -> str:
        """What happened and what to do, in one or a few sentences."""
        if self.trouble is None:
            return self.reason
        text = _ADVICE[self.trouble]
        advice = [said(f"advice_{self.trouble.name.lower()}", text)] if text else []
        return together([*(outcome.reason for outcome in self.seeds), *advice])


def trouble_of(seeds: Sequence[SeedOutcome], *, good_pages: int) -> Trouble | None:
    """The common trouble of all seeds if no good page was harvested; None if there was one, or no trouble."""
    if good_pages:
        return None
    troubles = {outcome.trouble for outcome in seeds} - {None}
    if not troubles:
        return None
    return troubles.pop() if len(troubles) == 1 else Trouble.SEVERAL


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What was left out of a harvest: addresses because of the owner's instructions, and content that scripts
    show; and instructions that had no effect.
    """

    nofollow: int = 0
    robots: int = 0
    empty_pages: int = 0
    """Pages that are empty until scripts fill them."""
    unopened: int = 0
    """Pages that the browser could not open or read."""
    noindex_pages: int = 0
    """Pages that ask search engines not to list them. They are harvested."""

    def sentences(self) -> list[Reason]:
        """What was left out, and how to include it."""
        empty_unopened = min(self.empty_pages, self.unopened)
        empty = self.empty_pages - empty_unopened
        counts = (self.nofollow, self.robots, empty, empty_unopened, self.noindex_pages)
        return [
            said(f"{key}_one", one) if count == 1 else said(key, several, count=count)
            for (key, one, several), count in zip(_LEFT_OUT, counts, strict=True)
            if count
        ]


_NOFOLLOW = "If the law allows it, include {}: --nofollow none, or nofollow in the profile."
_ROBOTS = "If the law allows it, include {}: --robots ignore, or robots in the profile."
_EMPTY = "Harvest the site with a browser: --browser always, or fetch in the profile."
_UNOPENED = "and the browser could not open or read {} completely: see the findings."
_LEFT_OUT = (
    (
        "left_out_nofollow",
        f"One address of the site was left out because its page says nofollow. {_NOFOLLOW.format('it')}",
        "{count} addresses of the site were left out because its pages say nofollow. "
        + _NOFOLLOW.format("them"),
    ),
    (
        "left_out_robots",
        f"One address was left out because robots.txt forbids it. {_ROBOTS.format('it')}",
        f"{{count}} addresses were left out because robots.txt forbids them. {_ROBOTS.format('them')}",
    ),
    (
        "empty_pages",
        f"One page is empty without its scripts. {_EMPTY}",
        f"{{count}} pages are empty without their scripts. {_EMPTY}",
    ),
    (
        "empty_unopened",
        f"One page is empty without its scripts, {_UNOPENED.format('it')}",
        f"{{count}} pages are empty without their scripts, {_UNOPENED.format('them')}",
    ),
    (
        "noindex_pages",
        "One page says noindex, which is meant for search engines; it was harvested.",
        "{count} pages say noindex, which is meant for search engines; they were harvested.",
    ),
)
"""Key, sentence about one, and about several; in the order of `LeftOut`."""
NOTHING_LEFT_OUT = LeftOut()


def reason_of(
    end: End,
    settings: CrawlSettings,
    *,
    waiting: int,
    shut_out: Sequence[str],
    left_out: LeftOut = NOTHING_LEFT_OUT,
) -> str:
    """Sentences that say what was left out, how the crawl ended and what is left in the queue."""
    if end is End.FINISHED:
        return finished_reason(waiting=waiting, shut_out=shut_out, left_out=left_out)
    return together([*left_out.sentences(), _ending(end, settings), left_waiting(waiting)])


def finished_reason(*, waiting: int, shut_out: Sequence[str], left_out: LeftOut) -> str:
    """The reason of a crawl that ended because its queue was empty."""
    hosts = ", ".join(shut_out[:5])
    closed = said("shut_out", "robots.txt of {hosts} excludes all crawlers.", hosts=hosts) if shut_out else ""
    is_rest = bool(left_out.nofollow or left_out.robots)
    return together([*left_out.sentences(), _finished(waiting, is_rest=is_rest), closed])


def _finished(waiting: int, *, is_rest: bool) -> Reason:
    reached = "All that could be reached was fetched;"
    match waiting:
        case 0 if is_rest:
            return said("fetched_rest", "All other addresses in scope were fetched.")
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
            return stopped_reason()
        case End.NO_ROOM:
            text = "Less than {bytes} bytes are free on the disk. Free some space, then resume the harvest."
            return said("no_room", text, bytes=settings.least_free_bytes)
        case End.ABORTED:
            return said("given_up", "Given up by request.")
        case End.LIMIT_PAGES:
            return said("limit_pages", "The limit of {limit} pages was reached.", limit=settings.limit_pages)
        case End.LIMIT_DOCUMENTS:
            text = "The limit of {limit} documents was reached."
            return said("limit_documents", text, limit=settings.limit_documents)
        case End.LIMIT_BYTES:
            return said("limit_bytes", "The limit of {limit} bytes was reached.", limit=settings.limit_bytes)
        case End.LIMIT_TIME:
            return said(
                "limit_time", "The limit of {limit} seconds was reached.", limit=f"{settings.limit_time_s:g}"
            )
    raise AssertionError(end)


def stopped_reason() -> Reason:
    return said("stopped", "Stopped by request.")


def limit_reached(end: End) -> Reason:
    """The reason why a harvest in several processes ended."""
    return said(f"shared_{end.name.lower()}", f"The {_LIMITED[end]} limit of the harvest was reached.")


def left_waiting(waiting: int) -> str:
    if waiting == 1:
        return said("left_waiting_one", "One address was left waiting.")
    return said("left_waiting", "{waiting} addresses were left waiting.", waiting=waiting) if waiting else ""


_LIMITED = {
    End.LIMIT_PAGES: "page",
    End.LIMIT_DOCUMENTS: "document",
    End.LIMIT_BYTES: "byte",
    End.LIMIT_TIME: "time",
}

_TROUBLES = {
    Failure.DNS: Trouble.NO_SUCH_HOST,
    Failure.PRIVATE_ADDRESS: Trouble.PRIVATE_ADDRESS,
    Failure.TLS: Trouble.TLS,
    Failure.ROBOTS: Trouble.ROBOTS,
}

_ADVICE = {
    Trouble.NO_SUCH_HOST: "Check the spelling of the host name, "
    "and that this computer can resolve host names.",
    Trouble.UNREACHABLE: "Try again later, or check the address and the network connection of this computer.",
    Trouble.PRIVATE_ADDRESS: "Private addresses are fetched only with --allow-private.",
    Trouble.TLS: "Its certificate is not valid for this computer. Try http, ask the owner, "
    'or set tls = "accept" under [harvest].',
    Trouble.ROBOTS: "The robots.txt of the site forbids it. To harvest it anyway, use --robots ignore; "
    "this is recorded.",
    Trouble.MOVED_AWAY: "Archive the new address instead, or widen the scope.",
    Trouble.ONLY_REDIRECTS: "Open it in a browser to see where it leads, and archive that address.",
    Trouble.ERROR_ANSWERS: "Check the address in a browser.",
    Trouble.EMPTY: "The responses are kept, but there is nothing to show.",
    Trouble.SEVERAL: "",
}
