"""The conditions of profile rules, each with its documentation (`CONDITIONS`).

A condition is a function `Candidate -> str`: the reason why it holds, empty if it does not. Most look at the
address alone. Some ask for `ScopeFacts` that the crawl or the service knows. `mime` looks at the response, so
it decides what is kept, not what is requested; it has no function here (`media_ranges`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from webdepot.harvest.scope import address_traps
from webdepot.harvest.scope.hop_path import count_links, embed_depth
from webdepot.harvest.scope.limits import path_of
from webdepot.model import Candidate, Hop
from webdepot.text.patterns import LinearPattern, wildcard
from webdepot.url import domain_of, host_of, key

Condition = Callable[[Candidate], str]
"""The reason why it holds; empty if it does not."""


def _no_addresses(host: str) -> Sequence[str]:
    return ()


def _never(url: str) -> datetime | None:
    return None


def _zero(host: str) -> int:
    return 0


def _no_reason(host: str) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeFacts:
    """Facts that a condition may need beyond the address. Each is answered at once, without a lookup."""

    addresses_of: Callable[[str], Sequence[str]] = _no_addresses
    """Network addresses of a host, if it was looked up."""
    pages_of: Callable[[str], int] = _zero
    """Documents of a host in this harvest; of all hosts for an empty name."""
    bytes_of: Callable[[str], int] = _zero
    harvested_at: Callable[[str], datetime | None] = _never
    """When the archive last harvested an address."""
    organisation_of: Callable[[str], str] = _no_reason
    """Why a host belongs to the organisation of the target; empty if it does not."""
    now: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionType:
    """A row of `CONDITIONS`."""

    doc: str
    takes: str
    """`of` (texts), `over` (a number) or nothing."""
    make: Callable[[Sequence[str], float, ScopeFacts], Condition] | None
    """Builds the condition from `of`, `over` and the facts. None if the response must be seen first."""


def _host(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    hosts = frozenset(value.lower() for value in of)
    return lambda candidate: (
        f"{host_of(candidate.url)} is in the list" if host_of(candidate.url) in hosts else ""
    )


def _domain(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    # By labels, not by the public suffix list: `of = ["museum"]` means the whole top-level domain.
    domains = tuple(value.lower().strip(".") for value in of)

    def condition(candidate: Candidate) -> str:
        host = host_of(candidate.url).partition(":")[0]
        parent = next((domain for domain in domains if host == domain or host.endswith(f".{domain}")), "")
        return f"{host} is in {parent}" if parent else ""

    return condition


def _same_domain(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    def condition(candidate: Candidate) -> str:
        is_same = candidate.via is not None and domain_of(candidate.via) == domain_of(candidate.url)
        return f"the page that links to it is also in {domain_of(candidate.url)}" if is_same else ""

    return condition


def _prefix(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    # The operator may write a SURT prefix or an address; both become the start of a key.
    prefixes = tuple(value if ")" in value or "," in value else key(value) for value in of)

    def condition(candidate: Candidate) -> str:
        url_key = f"{key(candidate.url)}/"  # a key ends without a slash; the folder itself must match too
        hit = next((prefix for prefix in prefixes if url_key.startswith(prefix)), "")
        return f"its key starts with {hit}" if hit else ""

    return condition


def _path(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    prefixes = tuple(value if value.startswith("/") else f"/{value}" for value in of)

    def condition(candidate: Candidate) -> str:
        path = path_of(candidate.url)
        hit = next((prefix for prefix in prefixes if path.startswith(prefix)), "")
        return f"its path starts with {hit}" if hit else ""

    return condition


def _regex(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    patterns = [(value, _compiled(value)) for value in of]

    def condition(candidate: Candidate) -> str:
        hit = next((value for value, pattern in patterns if pattern.search(candidate.url)), "")
        return f"it matches {hit}" if hit else ""

    return condition


def _extension(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    endings = {value.lower().lstrip(".") for value in of}

    def condition(candidate: Candidate) -> str:
        name = path_of(candidate.url).rpartition("/")[2]
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        return f"it ends in .{ending}" if ending in endings else ""

    return condition


def _scheme(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    schemes = tuple(f"{value.lower().rstrip(':/')}://" for value in of)
    return lambda candidate: (
        f"it is {candidate.url.partition(':')[0]}" if candidate.url.startswith(schemes) else ""
    )


def _hops(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    def condition(candidate: Candidate) -> str:
        hops = count_links(candidate.path)
        return f"{hops} links from the seed" if hops > over else ""

    return condition


def _embedded(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    return lambda candidate: "it is part of a page" if embed_depth(candidate.path) else ""


def _embed_depth(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    def condition(candidate: Candidate) -> str:
        depth = embed_depth(candidate.path)
        return f"embedded {depth} deep" if depth > over else ""

    return condition


def _guessed(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    return lambda candidate: "it was guessed from a script" if Hop.SPECULATIVE in candidate.path else ""


def _hops_outside(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    return lambda candidate: f"{candidate.outside} links outside" if candidate.outside > over else ""


def _path_depth(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    def condition(candidate: Candidate) -> str:
        depth = path_of(candidate.url).count("/")
        return f"{depth} path segments" if depth > over else ""

    return condition


def _repeating(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    rule = address_traps.repeating(int(over))
    return lambda candidate: rule(candidate).reason


def _address_length(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    return lambda candidate: f"{len(candidate.url)} characters" if len(candidate.url) > over else ""


def _query_length(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    def condition(candidate: Candidate) -> str:
        query = candidate.url.partition("?")[2]
        return f"{len(query)} characters after the question mark" if len(query) > over else ""

    return condition


def _query_arguments(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    def condition(candidate: Candidate) -> str:
        query = candidate.url.partition("?")[2]
        arguments = query.count("&") + 1 if query else 0
        return f"{arguments} arguments" if arguments > over else ""

    return condition


def _ip_range(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    networks = [_network(value) for value in of]

    def condition(candidate: Candidate) -> str:
        host = host_of(candidate.url)
        name = host[: host.index("]") + 1] if host.startswith("[") else host.partition(":")[0]
        for address in (name.strip("[]"), *facts.addresses_of(name)):
            network = next((network for network in networks if _is_in(address, network)), None)
            if network is not None:
                return f"{name} has the address {address}, in {network}"
        return ""

    return condition


def _host_pages(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    def condition(candidate: Candidate) -> str:
        count = facts.pages_of(host_of(candidate.url))
        return f"{count} documents of its host are in the harvest" if count >= over else ""

    return condition


def _host_bytes(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    def condition(candidate: Candidate) -> str:
        count = facts.bytes_of(host_of(candidate.url))
        return f"{count} bytes of its host are in the harvest" if count >= over else ""

    return condition


def _pages(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    return lambda candidate: (
        f"the harvest has {facts.pages_of('')} documents" if facts.pages_of("") >= over else ""
    )


def _bytes(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    return lambda candidate: (
        f"the harvest has {facts.bytes_of('')} bytes" if facts.bytes_of("") >= over else ""
    )


def _harvested_days(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    """Last harvested more than `over` days ago, or never; with `unless`, within the last `over` days."""

    def condition(candidate: Candidate) -> str:
        at = facts.harvested_at(candidate.url)
        if at is None or facts.now is None:
            return "it was never harvested" if facts.now is not None else ""
        days = (facts.now - at).days
        return f"it was last harvested {days} days ago" if days > over else ""

    return condition


def _organisation(of: Sequence[str], over: float, facts: ScopeFacts) -> Condition:
    return lambda candidate: facts.organisation_of(host_of(candidate.url).partition(":")[0])


CONDITIONS: Mapping[str, ConditionType] = {
    "host": ConditionType(
        doc="The host (with its port, unless it is the default one) is one of these.", takes="of", make=_host
    ),
    "domain": ConditionType(
        doc="The host is one of these domains or below one of them.", takes="of", make=_domain
    ),
    "same_domain": ConditionType(
        doc="The page that links to it has the same registrable domain.", takes="", make=_same_domain
    ),
    "prefix": ConditionType(
        doc="The SURT key starts with one of these (`org,example)/news/`, or an address).",
        takes="of",
        make=_prefix,
    ),
    "path": ConditionType(doc="The path starts with one of these, on any host.", takes="of", make=_path),
    "regex": ConditionType(
        doc="The address matches one of these regular expressions.", takes="of", make=_regex
    ),
    "extension": ConditionType(
        doc="The file name of the path ends in one of these.", takes="of", make=_extension
    ),
    "scheme": ConditionType(doc="The scheme is one of these.", takes="of", make=_scheme),
    "mime": ConditionType(
        doc="The response has one of these types (`video/*`). Decides whether it is kept.",
        takes="of",
        make=None,
    ),
    "hops": ConditionType(
        doc="More links than this lead from the seed to it; parts, redirects and guesses do not count.",
        takes="over",
        make=_hops,
    ),
    "hops_outside": ConditionType(
        doc="More links than this lead from the scope to it.", takes="over", make=_hops_outside
    ),
    "embedded": ConditionType(
        doc="It is part of a page: an image, a style sheet, a script, a frame.", takes="", make=_embedded
    ),
    "embed_depth": ConditionType(doc="It is embedded deeper than this.", takes="over", make=_embed_depth),
    "guessed": ConditionType(
        doc="It was guessed from a script, or found through such a guess.", takes="", make=_guessed
    ),
    "path_depth": ConditionType(doc="The path has more segments than this.", takes="over", make=_path_depth),
    "repeating": ConditionType(
        doc="A path segment occurs more often than this.", takes="over", make=_repeating
    ),
    "address_length": ConditionType(
        doc="The address has more characters than this.", takes="over", make=_address_length
    ),
    "query_length": ConditionType(
        doc="More characters than this follow the question mark.", takes="over", make=_query_length
    ),
    "query_arguments": ConditionType(
        doc="More arguments than this follow the question mark.", takes="over", make=_query_arguments
    ),
    "ip_range": ConditionType(
        doc="The host has an address in one of these network ranges (`192.0.2.0/24`).",
        takes="of",
        make=_ip_range,
    ),
    "host_pages": ConditionType(
        doc="This harvest has at least this many documents of its host.", takes="over", make=_host_pages
    ),
    "host_bytes": ConditionType(
        doc="This harvest has at least this many bytes of its host.", takes="over", make=_host_bytes
    ),
    "pages": ConditionType(doc="The harvest has at least this many documents.", takes="over", make=_pages),
    "bytes": ConditionType(doc="The harvest has at least this many bytes.", takes="over", make=_bytes),
    "harvested_days": ConditionType(
        doc="It was last harvested more days ago than this, or never; with `unless`: within this many days.",
        takes="over",
        make=_harvested_days,
    ),
    "organisation": ConditionType(
        doc="The host belongs to the organisation of the target, judged by its domains.",
        takes="",
        make=_organisation,
    ),
}


def _compiled(pattern: str) -> LinearPattern:
    try:
        return LinearPattern(pattern)
    except ValueError as error:
        raise ValueError(f"{pattern!r} is not a usable regular expression: {error}") from error


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a network range like 192.0.2.0/24") from error


def _is_in(address: str, network: IPv4Network | IPv6Network) -> bool:
    try:
        return ip_address(address) in network
    except ValueError:
        return False


def media_ranges(values: Sequence[str]) -> list[tuple[str, LinearPattern]]:
    """Patterns for media types, each with its text; ValueError for a text that is not one."""
    for value in values:
        if value.count("/") != 1 or not re.fullmatch(r"[\w.+*-]+/[\w.+*-]+", value):
            raise ValueError(f"{value!r} is not a media type like video/mp4 or video/*")
    return [(value, wildcard(value)) for value in values]
