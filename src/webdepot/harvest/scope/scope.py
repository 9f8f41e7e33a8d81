"""Which addresses belong to a harvest: a chain of small rules, of which the last real answer wins.

A rule is a callable `Candidate -> Verdict`: accept, reject, or pass. `decide` asks all of them in order, so a
later rule can overrule an earlier one, and the verdict names the rule that decided and its reason. `chain`
builds the usual order:

1. `outside`            reject: nothing belongs by itself
2. `host` / `domain` / `prefix` / `any`   accept what belongs to a seed
3. `hops outside`       accept so many links beyond
4. `embedded`           accept parts of accepted pages from anywhere
5. traps                reject: too many hops, guesses behind guesses, too deep, repeating, too long, dates without end
6. the operator's       regular expressions, then the rules of the profile (`rules`), in their order
7. `seed`               accept: seeds, their redirects within the domain, and robots.txt are always asked

`explain` asks every rule and says what each answered.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from webdepot.errors import InputError
from webdepot.model import Answer, Candidate, Hop, Verdict
from webdepot.url import domain_of, host_of, key

Rule = Callable[[Candidate], Verdict]
OUTSIDE = "outside"
"""The rule by which a link merely leads elsewhere."""

_PASS = Verdict(answer=Answer.PASS, rule="", reason="")
_OUTSIDE = Verdict(answer=Answer.REJECT, rule=OUTSIDE, reason="it does not belong to a seed")
_ANYTHING = Verdict(answer=Answer.ACCEPT, rule="any", reason="everything belongs")
_PART = Verdict(answer=Answer.ACCEPT, rule="embedded", reason="it is part of a page")
_NO_RULE = Verdict(answer=Answer.REJECT, rule="no rule", reason="no rule spoke for it")
# A member is found by its class in five times the time, and every address passes a dozen rules.
_GUESS, _REDIRECT, _PREREQUISITE = Hop.SPECULATIVE.value, Hop.REDIRECT.value, Hop.PREREQUISITE.value
_ENDS_OF_PARTS = (Hop.EMBED, Hop.REDIRECT, Hop.SPECULATIVE)
_PARTS = "".join(_ENDS_OF_PARTS)
_NO_LINKS = dict.fromkeys(map(ord, (Hop.EMBED, Hop.SPECULATIVE, Hop.REDIRECT, Hop.PREREQUISITE)))
_DATE = re.compile(
    r"(?i)[/=_-](\d{4})[/_-](?:0?[1-9]|1[0-2])(?=[/_&?-]|\Z)"  # /2031/07/ and =2031-07-01
    r"|[?&](?:\w*year|jahr|jaar|y)=(\d{4})(?=&|\Z)"
    r"|[?&](?:\w*date|datum|month|monat|maand|day|tag|dag|from|start|begin)=(\d{4})-?(?:0[1-9]|1[0-2])"
)
_FIRST_YEAR = 1000
"""Historians link to 1648; nobody links to the year 200 but a calendar that goes backwards."""


class Kind(StrEnum):
    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"
    ANY = "any"
    LIST = "list"
    """The seeds themselves with their parts, and nothing they lead to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeLimits:
    hops_outside: int = 0
    embed_hops: int = 3
    """An embedded page may embed a page that embeds a picture, and no more."""
    hops: int = 100
    """Links from the seed; parts, redirects and guesses do not count."""
    guess_hops: int = 1
    """An address guessed from a script may be fetched; what is guessed from that may not."""
    redirects: int = 10
    """A longer row of redirects is taken for a loop."""
    path_segments: int = 20
    repeats: int = 3
    """A path segment that stands there more often is taken for a trap."""
    url_letters: int = 2083
    query_letters: int = 1024
    calendar_years: int = 5
    """Dates in an address further ahead than this are taken for a calendar without end; 0 means no such rule.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one rule of a chain said, for a person who asks why."""

    rule: str
    verdict: Verdict
    decides: bool


def decide(candidate: Candidate, rules: Sequence[Rule]) -> Verdict:
    """The last answer that is not pass; with none, reject. Asked from the end, which is the same and quicker."""
    for rule in reversed(rules):
        verdict = rule(candidate)
        if verdict is not _PASS and verdict.answer is not Answer.PASS:
            return verdict
    return _NO_RULE


def explain(candidate: Candidate, rules: Sequence[tuple[str, Rule]]) -> list[Step]:
    """Every rule with its answer, in their order; the one that decides is marked. `named_chain` gives such
    rules.
    """
    answers = [(name, rule(candidate)) for name, rule in rules]
    last = max(
        (number for number, (_, verdict) in enumerate(answers) if verdict.answer is not Answer.PASS),
        default=-1,
    )
    return [
        Step(rule=name, verdict=verdict, decides=number == last)
        for number, (name, verdict) in enumerate(answers)
    ]


def chain(
    kind: Kind,
    seeds: Sequence[str],
    *,
    limits: ScopeLimits,
    rejects: Sequence[str] = (),
    hosts: Sequence[Rule] = (),
    more: Sequence[tuple[str, Rule]] = (),
    year: int = 0,
) -> tuple[Rule, ...]:
    """The usual rules in their usual order; InputError for a regular expression that is none."""
    return tuple(
        rule
        for _, rule in named_chain(
            kind, seeds, limits=limits, rejects=rejects, hosts=hosts, more=more, year=year
        )
    )


def named_chain(
    kind: Kind,
    seeds: Sequence[str],
    *,
    limits: ScopeLimits,
    rejects: Sequence[str] = (),
    hosts: Sequence[Rule] = (),
    more: Sequence[tuple[str, Rule]] = (),
    year: int = 0,
) -> list[tuple[str, Rule]]:
    """The same with a name for each. `hosts` decide whole hosts, `more` are the profile's own; `year` is the
    present one or 0.
    """
    dates = (
        [("calendar", dates_without_end(year, limits.calendar_years))]
        if year and limits.calendar_years
        else []
    )
    return [
        (OUTSIDE, everything_is_outside),
        (kind.value, belongs(kind, seeds)),
        *(("host rules", rule) for rule in hosts[:1]),
        ("hops outside", few_hops_outside(limits.hops_outside)),
        *(("undecided", rule) for rule in hosts[1:]),
        ("embedded", embedded(limits.embed_hops)),
        ("hops", too_many_hops(limits.hops)),
        ("guesses", too_many_guesses(limits.guess_hops)),
        ("redirects", too_many_redirects(limits.redirects)),
        ("path depth", too_deep(limits.path_segments)),
        ("repeating", repeating(limits.repeats)),
        ("length", too_long(limits.url_letters, limits.query_letters)),
        *dates,
        *((f"reject {pattern}", reject_pattern(pattern)) for pattern in rejects),
        *more,
        ("scheme", only_web_addresses),
        ("seed", seeds_themselves(seeds)),
    ]


# --- what belongs ---


def everything_is_outside(candidate: Candidate) -> Verdict:
    return _OUTSIDE


def belongs(kind: Kind, seeds: Sequence[str]) -> Rule:
    """The rule that says what belongs to the seeds; used alone it also tells inside from outside."""
    match kind:
        case Kind.HOST:
            return same_host(seeds)
        case Kind.DOMAIN:
            return same_domain(seeds)
        case Kind.PREFIX:
            return surt_prefix([_folder_key(seed) for seed in seeds])
        case Kind.ANY:
            return anything
        case Kind.LIST:
            return nothing_more
    raise AssertionError(kind)


def same_host(seeds: Sequence[str]) -> Rule:
    """The host of a seed, by http or https, with or without `www.`."""
    verdicts = {host: _accepted("host", f"{host} is a seed's host") for host in map(_bare_host, seeds)}

    def rule(candidate: Candidate) -> Verdict:
        return verdicts.get(_bare_host(candidate.url), _PASS)

    return rule


def same_domain(seeds: Sequence[str]) -> Rule:
    """The registrable domain of a seed with all its hosts."""
    domains = {domain_of(seed) for seed in seeds}

    def rule(candidate: Candidate) -> Verdict:
        # The public suffix list is slow to ask; most hosts end in a known domain by plain comparison or not
        # at all.
        domain = domain_of(candidate.url)
        return _accepted("domain", f"{domain} is a seed's domain") if domain in domains else _PASS

    return rule


def surt_prefix(prefixes: Sequence[str]) -> Rule:
    """Addresses whose SURT key begins so: `org,example)/news/`."""
    known = tuple(prefixes)

    def rule(candidate: Candidate) -> Verdict:
        # A key ends without slash, so the folder itself is compared with one.
        found = key(candidate.url)
        return (
            _accepted("prefix", "it lies below a seed")
            if found.startswith(known) or f"{found}/".startswith(known)
            else _PASS
        )

    return rule


def nothing_more(candidate: Candidate) -> Verdict:
    return _PASS


def anything(candidate: Candidate) -> Verdict:
    return _ANYTHING


def few_hops_outside(most: int) -> Rule:
    def rule(candidate: Candidate) -> Verdict:
        if not 0 < candidate.outside <= most:
            return _PASS
        return _accepted("hops outside", f"{candidate.outside} of {most} links outside")

    return rule


def embedded(most: int) -> Rule:
    """Parts of an accepted page, from anywhere: the trailing embeds of the path, with redirects and guesses
    between them.
    """

    def rule(candidate: Candidate) -> Verdict:
        depth = embed_depth(candidate.path)
        if depth == 0:
            return _PASS
        return _PART if depth <= most else _rejected("embedded", f"embedded {depth} deep")

    return rule


# --- traps ---


def too_many_hops(most: int) -> Rule:
    def rule(candidate: Candidate) -> Verdict:
        if len(candidate.path) <= most:
            return _PASS
        hops = links_in(candidate.path)
        return _rejected("hops", f"{hops} hops from the seed") if hops > most else _PASS

    return rule


def too_many_guesses(most: int) -> Rule:
    """What is guessed from a guess is mostly nonsense; and pages behind guesses are followed no further by
    guessing.
    """

    def rule(candidate: Candidate) -> Verdict:
        if _GUESS not in candidate.path:
            return _PASS
        guesses = candidate.path.count(_GUESS)
        return _rejected("guesses", f"{guesses} guesses led to it") if guesses > most else _PASS

    return rule


def too_many_redirects(most: int) -> Rule:
    def rule(candidate: Candidate) -> Verdict:
        if not candidate.path.endswith(_REDIRECT):
            return _PASS
        row = len(candidate.path) - len(candidate.path.rstrip(_REDIRECT))
        return _rejected("redirects", f"{row} redirects in a row") if row > most else _PASS

    return rule


def too_deep(most: int) -> Rule:
    def rule(candidate: Candidate) -> Verdict:
        if candidate.url.count("/") <= most + 2:  # the two of `://`: nearly all addresses end here
            return _PASS
        depth = path_of(candidate.url).count("/")
        return _rejected("path depth", f"{depth} path segments") if depth > most else _PASS

    return rule


def repeating(most: int) -> Rule:
    """`/a/b/a/b/a/b/a/b`: relative links gone wrong."""

    def rule(candidate: Candidate) -> Verdict:
        if candidate.url.count("/") <= most + 2:
            return _PASS
        path = path_of(candidate.url)
        segment, times = max(
            Counter(filter(None, path.split("/"))).items(), key=lambda item: item[1], default=("", 0)
        )
        return (
            _rejected("repeating", f"the segment {segment!r} stands there {times} times")
            if times > most
            else _PASS
        )

    return rule


def too_long(most_letters: int, most_in_query: int) -> Rule:
    def rule(candidate: Candidate) -> Verdict:
        if len(candidate.url) > most_letters:
            return _rejected("length", f"{len(candidate.url)} letters")
        if "?" in candidate.url and len(candidate.url.partition("?")[2]) > most_in_query:
            return _rejected(
                "query length", f"{len(candidate.url.partition('?')[2])} letters after the question mark"
            )
        return _PASS

    return rule


def dates_without_end(year: int, years_ahead: int) -> Rule:
    """Calendars link to the next month for ever: `/2031/07/`, `?date=2044-01-01`, `year=2044&month=1`."""
    latest = year + years_ahead

    def rule(candidate: Candidate) -> Verdict:
        found = _DATE.search(candidate.url)
        if found is None:
            return _PASS
        dated = int(found[1] or found[2] or found[3])
        if latest < dated <= 9999 or dated < _FIRST_YEAR:
            return _rejected("calendar", f"it is about the year {dated}, and calendars have no end")
        return _PASS

    return rule


# --- the operator's own, and what stands above all ---


def reject_pattern(pattern: str) -> Rule:
    compiled = _compiled(pattern)

    def rule(candidate: Candidate) -> Verdict:
        return _rejected("reject", f"it matches {pattern}") if compiled.search(candidate.url) else _PASS

    return rule


def accept_pattern(pattern: str) -> Rule:
    compiled = _compiled(pattern)

    def rule(candidate: Candidate) -> Verdict:
        return _accepted("accept", f"it matches {pattern}") if compiled.search(candidate.url) else _PASS

    return rule


def not_(rule: Rule) -> Rule:
    """Turn a rule round: accept where it rejects, reject where it accepts."""

    def turned(candidate: Candidate) -> Verdict:
        verdict = rule(candidate)
        match verdict.answer:
            case Answer.ACCEPT:
                return _rejected(f"not {verdict.rule}", verdict.reason)
            case Answer.REJECT:
                return _accepted(f"not {verdict.rule}", verdict.reason)
            case _:
                return verdict

    return turned


def only_web_addresses(candidate: Candidate) -> Verdict:
    return (
        _PASS
        if candidate.url.startswith(("http://", "https://"))
        else _rejected("scheme", "only http and https are fetched")
    )


def seeds_themselves(seeds: Sequence[str]) -> Rule:
    known = frozenset(seeds)

    def rule(candidate: Candidate) -> Verdict:
        if candidate.path == "" or (candidate.url in known and not candidate.path.strip(_REDIRECT)):
            return _accepted("seed", "it is a seed")
        if candidate.path.rstrip(_REDIRECT).endswith(_PREREQUISITE):
            return _accepted("prerequisite", "robots.txt is always asked for")
        return _PASS

    return rule


def may_move(seed: str, target: str) -> bool:
    """Whether a seed's redirect is taken for the seed itself: another scheme or host of the same registrable
    domain.
    """
    return domain_of(seed) == domain_of(target)


def is_seed_way(path: str) -> bool:
    """Whether a path leads from a seed by redirects alone."""
    return not path.strip(_REDIRECT)


def links_in(path: str) -> int:
    """Hops that a person would have to click."""
    return len(path.translate(_NO_LINKS))


def embed_depth(path: str) -> int:
    """How deep a part of a page it is: the trailing embeds, with redirects and guesses between them; 0 for no
    part.
    """
    if not path.endswith(_ENDS_OF_PARTS):
        return 0
    return path[len(path.rstrip(_PARTS)) :].count(Hop.EMBED)


def _folder_key(seed: str) -> str:
    """The SURT key up to the last slash of the path: what lies beside and below the seed."""
    bare = seed.partition("?")[0]
    folder = bare[: bare.rindex("/") + 1]
    found = key(folder)
    return found if found.endswith("/") else f"{found}/"


def _bare_host(url: str) -> str:
    host = host_of(url)
    return host[4:] if host.startswith("www.") else host


def path_of(url: str) -> str:
    """The path without query."""
    rest = url.partition("://")[2].partition("?")[0]
    return rest[rest.find("/") :] if "/" in rest else "/"


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InputError(f"{pattern!r} is no regular expression: {error}.") from error


def _accepted(rule: str, reason: str) -> Verdict:
    return Verdict(answer=Answer.ACCEPT, rule=rule, reason=reason)


def _rejected(rule: str, reason: str) -> Verdict:
    return Verdict(answer=Answer.REJECT, rule=rule, reason=reason)
