"""Scope rules that limit hops, redirects, depth and length, and the operator's own regular expressions."""

from dataclasses import dataclass

from webdepot.errors import InputError
from webdepot.harvest.scope.hop_path import count_links, count_redirects, embed_depth
from webdepot.harvest.scope.verdicts import PASS, Rule, reject
from webdepot.model import Candidate, Hop, Verdict
from webdepot.text.patterns import LinearPattern

_DEEPEST_EMBEDDED = 100
"""A frame that contains itself under another address would be endless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeLimits:
    hops_outside: int = 0
    embed_hops: int = 3
    """Enough for an embedded page with an embedded page with an image. It does not limit what belongs to a
    seed, or is on the host of the part that contains it.
    """
    hops: int = 100
    """Links from the seed; parts, redirects and guesses do not count."""
    guess_hops: int = 1
    """An address guessed from a script may be fetched; an address guessed from that one may not."""
    redirects: int = 10
    """More redirects in a row are treated as a loop."""
    path_segments: int = 20
    repeats: int = 3
    """A path segment that occurs more often is treated as a trap."""
    url_letters: int = 2083
    query_letters: int = 1024
    """Both count for links and guesses only: traps grow by links, while the addresses of parts may be long,
    such as those of combined scripts or with a signature.
    """
    calendar_years: int = 5
    """Dates further ahead than this are treated as an endless calendar; 0 turns the rule off."""


def too_many_hops(most: int) -> Rule:
    def rule(candidate: Candidate) -> Verdict:
        hops = count_links(candidate.path)
        if hops > most:
            return reject("hops", f"{hops} hops from the seed")
        depth = embed_depth(candidate.path) if len(candidate.path) > _DEEPEST_EMBEDDED else 0
        return reject("hops", f"embedded {depth} deep") if depth > _DEEPEST_EMBEDDED else PASS

    return rule


def too_many_guesses(most: int) -> Rule:
    """Reject what is guessed from a guess: it is mostly nonsense."""

    def rule(candidate: Candidate) -> Verdict:
        guesses = candidate.path.count(Hop.SPECULATIVE)
        return reject("guesses", f"{guesses} guesses led to it") if guesses > most else PASS

    return rule


def too_many_redirects(most: int) -> Rule:
    def rule(candidate: Candidate) -> Verdict:
        redirects = count_redirects(candidate.path)
        return reject("redirects", f"{redirects} redirects in a row") if redirects > most else PASS

    return rule


def too_deep(most: int) -> Rule:
    def rule(candidate: Candidate) -> Verdict:
        depth = path_of(candidate.url).count("/")
        return reject("path depth", f"{depth} path segments") if depth > most else PASS

    return rule


def too_long(most_letters: int, most_in_query: int) -> Rule:
    def rule(candidate: Candidate) -> Verdict:
        if embed_depth(candidate.path):
            return PASS
        if len(candidate.url) > most_letters:
            return reject("length", f"{len(candidate.url)} characters")
        query = candidate.url.partition("?")[2]
        if len(query) > most_in_query:
            return reject("query length", f"{len(query)} characters after the question mark")
        return PASS

    return rule


def reject_pattern(pattern: str) -> Rule:
    """Reject addresses that match; InputError if it is not a regular expression."""
    try:
        compiled = LinearPattern(pattern)
    except ValueError as error:
        raise InputError(f"{pattern!r} is not a usable regular expression: {error}.") from error

    def rule(candidate: Candidate) -> Verdict:
        return reject("reject", f"it matches {pattern}") if compiled.search(candidate.url) else PASS

    return rule


def only_web_addresses(candidate: Candidate) -> Verdict:
    if candidate.url.startswith(("http://", "https://")):
        return PASS
    return reject("scheme", "only http and https are fetched")


def path_of(url: str) -> str:
    """The path without the query."""
    rest = url.partition("://")[2].partition("?")[0]
    return rest[rest.find("/") :] if "/" in rest else "/"
