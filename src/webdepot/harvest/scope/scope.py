"""Which addresses belong to a harvest: a chain of small rules; the last answer that is not "pass" wins.

A rule is a callable `Candidate -> Verdict`: accept, reject, or pass. A later rule overrules an earlier one,
and the verdict names the rule that decided and its reason. `named_chain` builds the usual order:

1. `outside`            reject everything; `embed depth` gives the reason for deeply embedded parts
2. `host` / `domain` / `prefix` / `any`   accept what belongs to a seed
3. `hops outside`       accept up to N links beyond
4. `embedded`           accept parts of accepted pages from anywhere, but not guesses
5. traps                reject: too many hops or guesses, too deep, repeating, too long, endless dates;
   `software`           reject: what the software of the site adds to its content (`site_software`)
6. the operator's       regular expressions, then the rules of the profile (`rules`), in their order
7. `seed`               accept: seeds, their redirects within the domain, and robots.txt are always fetched

Steps 1 to 4 and 7 are in `membership`, the expressions of 6 in `limits`, and 5 in `limits`, `address_traps`
and `site_software`. `explain` asks every rule and returns each answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from webdepot.harvest.scope import address_traps, membership
from webdepot.harvest.scope import limits as limit_rules
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.membership import OUTSIDE, ScopeKind
from webdepot.harvest.scope.verdicts import Rule, reject
from webdepot.model import Answer, Candidate, Verdict

_NO_RULE = reject("no rule", "no rule accepted it")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeStep:
    """The answer of one rule of a chain, for a person who asks why."""

    rule: str
    verdict: Verdict
    decides: bool


def decide(candidate: Candidate, rules: Sequence[Rule]) -> Verdict:
    """The last answer that is not pass; reject if there is none. Asks from the end and stops at the first."""
    for rule in reversed(rules):
        verdict = rule(candidate)
        if verdict.answer is not Answer.PASS:
            return verdict
    return _NO_RULE


def explain(candidate: Candidate, rules: Sequence[tuple[str, Rule]]) -> list[ScopeStep]:
    """Every rule of a `named_chain` with its answer, in order; the deciding one is marked."""
    answers = [(name, rule(candidate)) for name, rule in rules]
    last = max(
        (number for number, (_, verdict) in enumerate(answers) if verdict.answer is not Answer.PASS),
        default=-1,
    )
    return [
        ScopeStep(rule=name, verdict=verdict, decides=number == last)
        for number, (name, verdict) in enumerate(answers)
    ]


def named_chain(
    kind: ScopeKind,
    seeds: Sequence[str],
    *,
    limits: ScopeLimits,
    rejects: Sequence[str] = (),
    hosts: Sequence[Rule] = (),
    software: Sequence[tuple[str, Rule]] = (),
    more: Sequence[tuple[str, Rule]] = (),
    year: int = 0,
) -> list[tuple[str, Rule]]:
    """The usual rules in their usual order, each with its name.

    `rejects` are regular expressions (InputError if one is not), `hosts` decide whole hosts, `software` is
    the rule about what the software of a site adds, `more` are the profile's rules, `year` is the current
    year, or 0 for no rule about dates.
    """
    dates = (
        [("calendar", address_traps.endless_dates(year, limits.calendar_years))]
        if year and limits.calendar_years
        else []
    )
    return [
        (OUTSIDE, membership.everything_is_outside),
        ("embed depth", membership.embedded_too_deep(limits.embed_hops)),
        (kind.value, membership.belongs(kind, seeds)),
        *(("host rules", rule) for rule in hosts[:1]),
        ("hops outside", membership.few_hops_outside(limits.hops_outside)),
        *(("undecided", rule) for rule in hosts[1:]),
        ("embedded", membership.embedded(limits.embed_hops)),
        ("hops", limit_rules.too_many_hops(limits.hops)),
        ("guesses", limit_rules.too_many_guesses(limits.guess_hops)),
        ("redirects", limit_rules.too_many_redirects(limits.redirects)),
        ("path depth", limit_rules.too_deep(limits.path_segments)),
        ("repeating", address_traps.repeating(limits.repeats)),
        ("length", limit_rules.too_long(limits.url_letters, limits.query_letters)),
        *dates,
        *software,
        *((f"reject {pattern}", limit_rules.reject_pattern(pattern)) for pattern in rejects),
        *more,
        ("scheme", limit_rules.only_web_addresses),
        ("seed", membership.seeds_themselves(seeds)),
    ]
