"""Scope rules about what belongs to a harvest: to the seeds, near them, or as part of an accepted page."""

from collections.abc import Sequence
from enum import StrEnum

from webdepot.harvest.scope.hop_path import embed_depth, is_guess, is_seed_path
from webdepot.harvest.scope.verdicts import PASS, Rule, accept, reject
from webdepot.model import Candidate, Hop, Verdict
from webdepot.url import domain_of, host_of, key

OUTSIDE = "outside"
"""The rule that rejects links to other sites."""
_OUTSIDE = reject(OUTSIDE, "it does not belong to a seed")
_ANYTHING = accept("any", "everything belongs")
_PART = accept("embedded", "it is part of a page")


class ScopeKind(StrEnum):
    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"
    ANY = "any"
    LIST = "list"
    """Only the seeds and the parts of their pages; links are not followed."""


def everything_is_outside(candidate: Candidate) -> Verdict:
    return _OUTSIDE


def belongs(kind: ScopeKind, seeds: Sequence[str]) -> Rule:
    """The rule that accepts what belongs to the seeds. It is also used alone, to decide what is outside the
    scope.
    """
    match kind:
        case ScopeKind.HOST:
            return same_host(seeds)
        case ScopeKind.DOMAIN:
            return same_domain(seeds)
        case ScopeKind.PREFIX:
            return surt_prefix([_folder_key(seed) for seed in seeds])
        case ScopeKind.ANY:
            return anything
        case ScopeKind.LIST:
            return nothing_more
    raise AssertionError(kind)


def same_host(seeds: Sequence[str]) -> Rule:
    """Accept the host of a seed, over http or https, with or without `www.`."""
    verdicts = {host: accept("host", f"{host} is a seed's host") for host in map(_bare_host, seeds)}

    def rule(candidate: Candidate) -> Verdict:
        return verdicts.get(_bare_host(candidate.url), PASS)

    return rule


def same_domain(seeds: Sequence[str]) -> Rule:
    """Accept all hosts of a seed's registrable domain."""
    domains = {domain_of(seed) for seed in seeds}

    def rule(candidate: Candidate) -> Verdict:
        domain = domain_of(candidate.url)
        return accept("domain", f"{domain} is a seed's domain") if domain in domains else PASS

    return rule


def surt_prefix(prefixes: Sequence[str]) -> Rule:
    """Accept addresses whose SURT key starts with a prefix such as `org,example)/news/`."""
    starts = tuple(prefixes)

    def rule(candidate: Candidate) -> Verdict:
        # A key ends without a slash; the folder itself must match too.
        if f"{key(candidate.url)}/".startswith(starts):
            return accept("prefix", "it lies below a seed")
        return PASS

    return rule


def nothing_more(candidate: Candidate) -> Verdict:
    return PASS


def anything(candidate: Candidate) -> Verdict:
    return _ANYTHING


def few_hops_outside(most: int) -> Rule:
    def rule(candidate: Candidate) -> Verdict:
        if not 0 < candidate.outside <= most or is_guess(candidate.path):
            return PASS
        return accept("hops outside", f"{candidate.outside} of {most} links outside")

    return rule


def embedded_too_deep(most: int) -> Rule:
    """Reject what is embedded deeper, unless a later rule accepts it: what belongs to the harvest may be
    embedded at any depth.
    """

    def rule(candidate: Candidate) -> Verdict:
        depth = embed_depth(candidate.path)
        return reject("embedded", f"embedded {depth} deep") if depth > most else PASS

    return rule


def embedded(most: int) -> Rule:
    """Accept parts of an accepted page from any host, and the parts of such a part that are on its host: the
    modules of a library import each other many times over.
    """

    def rule(candidate: Candidate) -> Verdict:
        depth = embed_depth(candidate.path)
        if depth == 0:
            return PASS
        is_near = candidate.via is not None and host_of(candidate.via) == host_of(candidate.url)
        return _PART if depth <= most or is_near else PASS

    return rule


def seeds_themselves(seeds: Sequence[str]) -> Rule:
    """Accept seeds, their redirects within the domain, and robots.txt, whatever the rules before say."""
    known = frozenset(seeds)

    def rule(candidate: Candidate) -> Verdict:
        if candidate.path == "" or (candidate.url in known and is_seed_path(candidate.path)):
            return accept("seed", "it is a seed")
        if candidate.path.rstrip(Hop.REDIRECT).endswith(Hop.PREREQUISITE):
            return accept("prerequisite", "robots.txt is always fetched")
        return PASS

    return rule


def may_move(seed: str, target: str) -> bool:
    """Whether the target of a seed's redirect counts as the seed: it is in the same registrable domain."""
    return domain_of(seed) == domain_of(target)


def _folder_key(seed: str) -> str:
    """The SURT key up to the last slash of the path: everything beside and below the seed."""
    bare = seed.partition("?")[0]
    folder_key = key(bare[: bare.rindex("/") + 1])
    return folder_key if folder_key.endswith("/") else f"{folder_key}/"


def _bare_host(url: str) -> str:
    return host_of(url).removeprefix("www.")
