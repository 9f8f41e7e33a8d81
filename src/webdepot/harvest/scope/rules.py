"""The documented set of decide rules: from a table in a profile to a small callable, and into words.

A rule says accept or reject of the addresses for which its condition holds, and passes on all others:

    [[profiles.museum.rules]]
    reject = "extension"            # the answer, and the condition
    of = ["avi", "iso"]             # what it is compared with; `over = 200` where the condition is a number
    unless = true                   # optional: holds where the condition does not

`CONDITIONS` has every condition with its documentation. A condition is a function `Candidate -> str`: the
reason in words, empty where it does not hold. Most look at the address alone. Some ask for `Facts` that the
crawl or the service knows; `mime` looks at the answer, so it decides about keeping, not about asking.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from webdepot.errors import ConfigError
from webdepot.harvest.scope import scope
from webdepot.harvest.scope.scope import Rule
from webdepot.model import Answer, Candidate, Hop, Verdict
from webdepot.url import domain_of, host_of, key

Condition = Callable[[Candidate], str]
"""Why it holds, in words; empty where it does not."""

_PASS = Verdict(answer=Answer.PASS, rule="", reason="")


def _nothing(host: str) -> Sequence[str]:
    return ()


def _never(url: str) -> datetime | None:
    return None


def _zero(host: str) -> int:
    return 0


def _no_words(host: str) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a condition may ask beyond the address itself. Each answers at once, from what is known by then."""

    addresses_of: Callable[[str], Sequence[str]] = _nothing
    """Network addresses of a host, as far as it was looked up."""
    pages_of: Callable[[str], int] = _zero
    """Documents of a host in this harvest; of all hosts with an empty name."""
    bytes_of: Callable[[str], int] = _zero
    harvested_at: Callable[[str], datetime | None] = _never
    """When the archive last harvested an address."""
    organisation_of: Callable[[str], str] = _no_words
    """Why a host belongs to the organisation of the target, in words; empty where it does not."""
    now: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSpec:
    """A rule as it stands in a profile."""

    answer: Answer
    condition: str
    of: tuple[str, ...] = ()
    over: float = 0.0
    unless: bool = False

    def __str__(self) -> str:
        compared = (
            f" {', '.join(self.of)}"
            if self.of
            else f" over {self.over:g}"
            if CONDITIONS[self.condition].takes == "over"
            else ""
        )
        return f"{self.answer} {'unless ' if self.unless else ''}{self.condition}{compared}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A row of the documented set."""

    doc: str
    takes: str
    """`of` (texts), `over` (a number) or nothing."""
    make: Callable[[RuleSpec, Facts], Condition] | None
    """None where the answer must be seen first."""


def from_table(table: Mapping[str, object], where: str) -> RuleSpec:
    """Read one rule of a profile; ConfigError says what is wrong with it, and where."""
    unknown = set(table) - {"accept", "reject", "of", "over", "unless"}
    if unknown:
        raise ConfigError(
            f"{where}: a rule has no key `{sorted(unknown)[0]}`. It has accept or reject, of, over, unless."
        )
    answers = [answer for answer in (Answer.ACCEPT, Answer.REJECT) if answer in table]
    if len(answers) != 1:
        raise ConfigError(f'{where}: a rule says either accept = "…" or reject = "…".')
    name = table[answers[0]]
    known = CONDITIONS.get(name) if isinstance(name, str) else None
    if not isinstance(name, str) or known is None:
        raise ConfigError(f"{where}: {name!r} is no condition. Known: {', '.join(CONDITIONS)}.")
    of, over, unless = table.get("of", []), table.get("over", 0), table.get("unless", False)
    values = [of] if isinstance(of, str) else of
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
        raise ConfigError(f"{where}: `of` must be a text or a list of texts.")
    if isinstance(over, bool) or not isinstance(over, (int, float)) or over < 0:
        raise ConfigError(f"{where}: `over` must be a number from 0.")
    if not isinstance(unless, bool):
        raise ConfigError(f"{where}: `unless` must be true or false.")
    if (known.takes == "of") != bool(values) or ("over" in table) != (known.takes == "over"):
        wanted = {
            "of": "needs `of = [...]`",
            "over": "needs `over = NUMBER`",
            "": "takes neither `of` nor `over`",
        }[known.takes]
        raise ConfigError(f"{where}: the condition {name} {wanted}.")
    spec = RuleSpec(answer=answers[0], condition=name, of=tuple(values), over=float(over), unless=unless)
    try:
        condition_of(spec, Facts())
    except ValueError as error:
        raise ConfigError(f"{where}: {error}.") from error
    return spec


def to_table(spec: RuleSpec) -> dict[str, object]:
    """The form that `from_table` reads, for JSON and TOML."""
    table: dict[str, object] = {spec.answer.value: spec.condition}
    if spec.of:
        table["of"] = list(spec.of)
    if CONDITIONS[spec.condition].takes == "over":
        table["over"] = spec.over
    return table | ({"unless": True} if spec.unless else {})


def condition_of(spec: RuleSpec, facts: Facts) -> Condition | None:
    """The condition as a callable; None for one that needs the answer. ValueError for what cannot be compared
    with.
    """
    make = CONDITIONS[spec.condition].make
    if make is None:
        _media_ranges(spec.of)
        return None
    return make(spec, facts)


def rule_of(spec: RuleSpec, facts: Facts) -> Rule | None:
    """The rule as a callable of the scope chain; None for one about answers (`answer_rule_of`)."""
    condition = condition_of(spec, facts)
    if condition is None:
        return None
    name = f"{'not ' if spec.unless else ''}{spec.condition}"

    def rule(candidate: Candidate) -> Verdict:
        reason = condition(candidate)
        if bool(reason) is spec.unless:
            return _PASS
        return Verdict(
            answer=spec.answer,
            rule=name,
            reason=reason or f"it is not so that {spec.condition} {', '.join(spec.of)}".rstrip(),
        )

    return rule


def answer_rule_of(spec: RuleSpec) -> Callable[[str], Verdict] | None:
    """A rule about the type of an answer; None for one about addresses."""
    if spec.condition != "mime":
        return None
    ranges = _media_ranges(spec.of)

    def rule(mime: str) -> Verdict:
        found = next((given for given, pattern in ranges if pattern.fullmatch(mime)), "")
        if bool(found) is spec.unless:
            return _PASS
        return Verdict(
            answer=spec.answer,
            rule="mime",
            reason=f"{mime} is {found}" if found else f"{mime} is none of {', '.join(spec.of)}",
        )

    return rule


def of_answers(specs: Sequence[RuleSpec], facts: Facts) -> list[Callable[[Candidate, str], Verdict]]:
    """All rules in their order, as they judge an answer by its address and its type; none where no rule is
    about types.
    """
    if not any(spec.condition == "mime" for spec in specs):
        return []
    return [_of_answer(spec, facts) for spec in specs]


def _of_answer(spec: RuleSpec, facts: Facts) -> Callable[[Candidate, str], Verdict]:
    about_type, about_address = answer_rule_of(spec), rule_of(spec, facts)

    def rule(candidate: Candidate, mime: str) -> Verdict:
        if about_type is not None:
            return about_type(mime)
        verdict = about_address(candidate) if about_address is not None else _PASS
        return verdict if verdict else _PASS  # what is against its address was asked before it was fetched

    return rule


# --- conditions, one small callable each ---


def _host(spec: RuleSpec, facts: Facts) -> Condition:
    hosts = frozenset(value.lower() for value in spec.of)
    return lambda candidate: f"{host_of(candidate.url)} is named" if host_of(candidate.url) in hosts else ""


def _domain(spec: RuleSpec, facts: Facts) -> Condition:
    # By labels, not by the public suffix list: `of = ["museum"]` is a whole top-level domain, and meant.
    domains = tuple(value.lower().strip(".") for value in spec.of)

    def condition(candidate: Candidate) -> str:
        host = host_of(candidate.url).partition(":")[0]
        found = next((domain for domain in domains if host == domain or host.endswith(f".{domain}")), "")
        return f"{host} lies in {found}" if found else ""

    return condition


def _same_domain(spec: RuleSpec, facts: Facts) -> Condition:
    def condition(candidate: Candidate) -> str:
        is_same = candidate.via is not None and domain_of(candidate.via) == domain_of(candidate.url)
        return f"the page that links to it is of {domain_of(candidate.url)}, too" if is_same else ""

    return condition


def _prefix(spec: RuleSpec, facts: Facts) -> Condition:
    # The operator may write a SURT prefix or an address; both become the beginning of a key.
    prefixes = tuple(value if ")" in value or "," in value else key(value) for value in spec.of)

    def condition(candidate: Candidate) -> str:
        found = key(candidate.url)
        hit = next(
            (prefix for prefix in prefixes if found.startswith(prefix) or f"{found}/".startswith(prefix)), ""
        )
        return f"its key begins with {hit}" if hit else ""

    return condition


def _path(spec: RuleSpec, facts: Facts) -> Condition:
    prefixes = tuple(value if value.startswith("/") else f"/{value}" for value in spec.of)

    def condition(candidate: Candidate) -> str:
        found = scope.path_of(candidate.url)
        hit = next((prefix for prefix in prefixes if found.startswith(prefix)), "")
        return f"its path begins with {hit}" if hit else ""

    return condition


def _regex(spec: RuleSpec, facts: Facts) -> Condition:
    patterns = [(value, _compiled(value)) for value in spec.of]

    def condition(candidate: Candidate) -> str:
        hit = next((value for value, pattern in patterns if pattern.search(candidate.url)), "")
        return f"it matches {hit}" if hit else ""

    return condition


def _extension(spec: RuleSpec, facts: Facts) -> Condition:
    endings = {value.lower().lstrip(".") for value in spec.of}

    def condition(candidate: Candidate) -> str:
        name = scope.path_of(candidate.url).rpartition("/")[2]
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        return f"it ends in .{ending}" if ending in endings else ""

    return condition


def _scheme(spec: RuleSpec, facts: Facts) -> Condition:
    schemes = tuple(f"{value.lower().rstrip(':/')}://" for value in spec.of)
    return lambda candidate: (
        f"it is {candidate.url.partition(':')[0]}" if candidate.url.startswith(schemes) else ""
    )


def _hops(spec: RuleSpec, facts: Facts) -> Condition:
    def condition(candidate: Candidate) -> str:
        hops = scope.links_in(candidate.path)
        return f"{hops} links from the seed" if hops > spec.over else ""

    return condition


def _embedded(spec: RuleSpec, facts: Facts) -> Condition:
    return lambda candidate: "it is part of a page" if scope.embed_depth(candidate.path) else ""


def _embed_depth(spec: RuleSpec, facts: Facts) -> Condition:
    def condition(candidate: Candidate) -> str:
        depth = scope.embed_depth(candidate.path)
        return f"embedded {depth} deep" if depth > spec.over else ""

    return condition


def _guessed(spec: RuleSpec, facts: Facts) -> Condition:
    return lambda candidate: "it was guessed from a script" if Hop.SPECULATIVE in candidate.path else ""


def _hops_outside(spec: RuleSpec, facts: Facts) -> Condition:
    return lambda candidate: f"{candidate.outside} links outside" if candidate.outside > spec.over else ""


def _path_depth(spec: RuleSpec, facts: Facts) -> Condition:
    def condition(candidate: Candidate) -> str:
        depth = scope.path_of(candidate.url).count("/")
        return f"{depth} path segments" if depth > spec.over else ""

    return condition


def _repeating(spec: RuleSpec, facts: Facts) -> Condition:
    rule = scope.repeating(int(spec.over))
    return lambda candidate: rule(candidate).reason


def _address_length(spec: RuleSpec, facts: Facts) -> Condition:
    return lambda candidate: f"{len(candidate.url)} letters" if len(candidate.url) > spec.over else ""


def _query_length(spec: RuleSpec, facts: Facts) -> Condition:
    def condition(candidate: Candidate) -> str:
        query = candidate.url.partition("?")[2]
        return f"{len(query)} letters after the question mark" if len(query) > spec.over else ""

    return condition


def _query_arguments(spec: RuleSpec, facts: Facts) -> Condition:
    def condition(candidate: Candidate) -> str:
        query = candidate.url.partition("?")[2]
        arguments = query.count("&") + 1 if query else 0
        return f"{arguments} arguments" if arguments > spec.over else ""

    return condition


def _ip_range(spec: RuleSpec, facts: Facts) -> Condition:
    networks = [_network(value) for value in spec.of]

    def condition(candidate: Candidate) -> str:
        host = host_of(candidate.url)
        name = host[: host.index("]") + 1] if host.startswith("[") else host.partition(":")[0]
        for address in (name.strip("[]"), *facts.addresses_of(name)):
            found = next((network for network in networks if _lies_in(address, network)), None)
            if found is not None:
                return f"{name} is at {address}, in {found}"
        return ""

    return condition


def _host_pages(spec: RuleSpec, facts: Facts) -> Condition:
    def condition(candidate: Candidate) -> str:
        count = facts.pages_of(host_of(candidate.url))
        return f"{count} documents came from its host" if count >= spec.over else ""

    return condition


def _host_bytes(spec: RuleSpec, facts: Facts) -> Condition:
    def condition(candidate: Candidate) -> str:
        count = facts.bytes_of(host_of(candidate.url))
        return f"{count} bytes came from its host" if count >= spec.over else ""

    return condition


def _pages(spec: RuleSpec, facts: Facts) -> Condition:
    return lambda candidate: (
        f"the harvest has {facts.pages_of('')} documents" if facts.pages_of("") >= spec.over else ""
    )


def _bytes(spec: RuleSpec, facts: Facts) -> Condition:
    return lambda candidate: (
        f"the harvest has {facts.bytes_of('')} bytes" if facts.bytes_of("") >= spec.over else ""
    )


def _harvested_days(spec: RuleSpec, facts: Facts) -> Condition:
    """Turned round with `unless`, it is "harvested within so many days"."""

    def condition(candidate: Candidate) -> str:
        at = facts.harvested_at(candidate.url)
        if at is None or facts.now is None:
            return "it was never harvested" if facts.now is not None else ""
        days = (facts.now - at).days
        return f"it was last harvested {days} days ago" if days > spec.over else ""

    return condition


def _organisation(spec: RuleSpec, facts: Facts) -> Condition:
    return lambda candidate: facts.organisation_of(host_of(candidate.url).partition(":")[0])


CONDITIONS: Mapping[str, _Known] = {
    "host": _Known(
        doc="The host (with port, where it is not the usual one) is one of these.", takes="of", make=_host
    ),
    "domain": _Known(doc="The host is one of these domains or lies below one.", takes="of", make=_domain),
    "same_domain": _Known(
        doc="The page that links to it has the same registrable domain.", takes="", make=_same_domain
    ),
    "prefix": _Known(
        doc="The SURT key begins with one of these (`org,example)/news/`, or an address).",
        takes="of",
        make=_prefix,
    ),
    "path": _Known(doc="The path begins with one of these, on any host.", takes="of", make=_path),
    "regex": _Known(doc="One of these regular expressions is found in the address.", takes="of", make=_regex),
    "extension": _Known(doc="The file name of the path ends in one of these.", takes="of", make=_extension),
    "scheme": _Known(doc="The scheme is one of these.", takes="of", make=_scheme),
    "mime": _Known(
        doc="The answer is of one of these types (`video/*`); it is then not kept.", takes="of", make=None
    ),
    "hops": _Known(
        doc="More links than this lead from the seed; parts, redirects and guesses do not count.",
        takes="over",
        make=_hops,
    ),
    "hops_outside": _Known(
        doc="More links than this lead from the scope to it.", takes="over", make=_hops_outside
    ),
    "embedded": _Known(
        doc="It is part of a page: a picture, a style, a script, a frame.", takes="", make=_embedded
    ),
    "embed_depth": _Known(doc="It is a part of a part, deeper than this.", takes="over", make=_embed_depth),
    "guessed": _Known(
        doc="It was guessed from a script, or such a guess led to it.", takes="", make=_guessed
    ),
    "path_depth": _Known(doc="The path has more segments.", takes="over", make=_path_depth),
    "repeating": _Known(doc="One path segment stands there more often.", takes="over", make=_repeating),
    "address_length": _Known(doc="The address has more letters.", takes="over", make=_address_length),
    "query_length": _Known(doc="More letters follow the question mark.", takes="over", make=_query_length),
    "query_arguments": _Known(
        doc="More arguments follow the question mark.", takes="over", make=_query_arguments
    ),
    "ip_range": _Known(
        doc="The host has an address in one of these net ranges (`192.0.2.0/24`).", takes="of", make=_ip_range
    ),
    "host_pages": _Known(
        doc="So many documents of its host are in this harvest.", takes="over", make=_host_pages
    ),
    "host_bytes": _Known(
        doc="So many bytes of its host are in this harvest.", takes="over", make=_host_bytes
    ),
    "pages": _Known(doc="The harvest has so many documents.", takes="over", make=_pages),
    "bytes": _Known(doc="The harvest has so many bytes.", takes="over", make=_bytes),
    "harvested_days": _Known(
        doc="It was last harvested more days ago, or never; with `unless`: within so many days.",
        takes="over",
        make=_harvested_days,
    ),
    "organisation": _Known(
        doc="The host belongs to the organisation of the target, by its domains.",
        takes="",
        make=_organisation,
    ),
}


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise ValueError(f"{text!r} is no net range like 192.0.2.0/24") from error


def _lies_in(address: str, network: IPv4Network | IPv6Network) -> bool:
    try:
        return ip_address(address) in network
    except ValueError:
        return False


def _media_ranges(values: Sequence[str]) -> list[tuple[str, re.Pattern[str]]]:
    for value in values:
        if value.count("/") != 1 or not re.fullmatch(r"[\w.+*-]+/[\w.+*-]+", value):
            raise ValueError(f"{value!r} is no media type like video/mp4 or video/*")
    return [(value, re.compile(re.escape(value.lower()).replace(r"\*", ".*"))) for value in values]
