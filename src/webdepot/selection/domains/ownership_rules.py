"""Rules that decide whether a host belongs to an organisation: three simple ones, and `BelongsTo`, the
verdict on all evidence.

    InNetRange           an address of the host is in a network of the organisation
    SameNameServers      one of its authoritative name servers is also one of the organisation's
    SameRegistrant(T)    the registrant's mail domain is the organisation's,
                         or name and address have a similarity of T or more
    BelongsTo            the evidence model

A rule answers for a host: accept, or pass with the reason. If nothing is known, it passes and says so; it
never rejects.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from webdepot.errors import InputError
from webdepot.model import Answer, Verdict
from webdepot.selection.domains.facts import LookupStatus, Registrant, registrable
from webdepot.selection.domains.names import similarity
from webdepot.selection.domains.ownership_evidence import HostOrigin
from webdepot.selection.domains.profile import ProfileMatcher
from webdepot.selection.domains.verdict import HostJudge

DEFAULT_THRESHOLD = 0.8
_NAME_SHARE = 0.7
"""Weight of the name against the address, if both are known."""
HostRule = Callable[[str], Awaitable[Verdict]]


class HostRuleKind(StrEnum):
    IN_NET_RANGE = "InNetRange"
    SAME_NAME_SERVERS = "SameNameServers"
    SAME_REGISTRANT = "SameRegistrant"
    BELONGS_TO = "BelongsTo"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleName:
    """A rule as it is written: `InNetRange`, `SameRegistrant(0.8)`."""

    kind: HostRuleKind
    threshold: float = DEFAULT_THRESHOLD

    def __str__(self) -> str:
        return (
            f"{self.kind.value}({self.threshold:g})"
            if self.kind is HostRuleKind.SAME_REGISTRANT
            else self.kind.value
        )


def parse(text: str) -> RuleName:
    """Read a rule; InputError if the text is not a rule."""
    match = re.fullmatch(r"(\w++)\s*+(?:\(\s*+([0-9.]*+)\s*+\))?", text.strip())
    kind = next((kind for kind in HostRuleKind if match and kind.value.lower() == match[1].lower()), None)
    if match is None or kind is None:
        raise InputError(
            f"{text!r} is not a rule about hosts. Known: {', '.join(HostRuleKind)}; "
            "SameRegistrant takes a threshold: SameRegistrant(0.8)."
        )
    try:
        threshold = float(match[2]) if match[2] else DEFAULT_THRESHOLD
    except ValueError as error:
        raise InputError(f"{text!r}: the threshold must be a number between 0 and 1.") from error
    if not 0 <= threshold <= 1:
        raise InputError(f"{text!r}: the threshold must be between 0 and 1.")
    return RuleName(kind=kind, threshold=threshold)


def rule_of(name: RuleName, judge: HostJudge) -> HostRule:
    """The rule as a callable that looks up what it needs."""
    match name.kind:
        case HostRuleKind.IN_NET_RANGE:
            return lambda host: in_net_range(host, judge)
        case HostRuleKind.SAME_NAME_SERVERS:
            return lambda host: same_name_servers(host, judge)
        case HostRuleKind.SAME_REGISTRANT:
            return lambda host: same_registrant(host, judge, name.threshold)
        case HostRuleKind.BELONGS_TO:
            return lambda host: belongs_to(host, judge)
    raise AssertionError(name)


async def in_net_range(host: str, judge: HostJudge) -> Verdict:
    records = await judge.sources.host(host)
    held = judge.measure.range_of(records.addresses)
    if held:
        return _accepted(
            HostRuleKind.IN_NET_RANGE.value, f"{host} is at {', '.join(records.addresses[:2])}, in {held}"
        )
    return _passed(
        HostRuleKind.IN_NET_RANGE.value,
        f"{host} has no address in the organisation's networks "
        f"({records.detail or ', '.join(records.addresses[:2])})",
    )


async def same_name_servers(host: str, judge: HostJudge) -> Verdict:
    zone = await judge.sources.zone(registrable(host))
    shared = sorted(set(zone.name_servers) & judge.measure.name_servers)
    if shared:
        return _accepted(
            HostRuleKind.SAME_NAME_SERVERS.value,
            f"{shared[0]} is authoritative for {registrable(host)} and for the organisation",
        )
    return _passed(HostRuleKind.SAME_NAME_SERVERS.value, f"{registrable(host)} has other name servers")


async def same_registrant(host: str, judge: HostJudge, threshold: float) -> Verdict:
    name = str(RuleName(kind=HostRuleKind.SAME_REGISTRANT, threshold=threshold))
    registration = await judge.sources.registration(registrable(host))
    if registration.status is not LookupStatus.FOUND:
        return _passed(name, f"the registry has no data about {registrable(host)}")
    likeness, reason = registrant_similarity(registration.registrant, judge.measure)
    return _accepted(name, reason) if likeness >= threshold else _passed(name, reason)


async def belongs_to(host: str, judge: HostJudge) -> Verdict:
    return (await judge.examine(host, judge.origins.get(host, HostOrigin.MEMBER))).verdict()


def registrant_similarity(registrant: Registrant, measure: ProfileMatcher) -> tuple[float, str]:
    """How similar a registrant is to the organisation, 0 to 1, with the reason: the mail domain decides
    alone; otherwise the Levenshtein similarity of name and address.
    """
    mail = next((domain for domain in registrant.mail_domains if measure.is_own_mail(domain)), "")
    if mail:
        return 1.0, f"the registrant's mail domain is {mail}"
    if not registrant.name:
        return 0.0, "the registrant is redacted or a private person"
    by_name = max((similarity(registrant.name, name) for name in measure.names), default=0.0)
    known = [item.value for item in measure.profile.address]
    reason = f"the registrant {registrant.name} is similar to {measure.profile.name} by {by_name:.2f}"
    if not registrant.address or not known:
        return by_name, reason
    by_address = max(similarity(registrant.address, address) for address in known)
    whole = max(
        by_name * _NAME_SHARE + by_address * (1 - _NAME_SHARE), by_name if by_address < by_name else 0.0
    )
    return whole, f"{reason}, its address by {by_address:.2f}"


def _accepted(rule: str, reason: str) -> Verdict:
    return Verdict(answer=Answer.ACCEPT, rule=rule, reason=reason)


def _passed(rule: str, reason: str) -> Verdict:
    return Verdict(answer=Answer.PASS, rule=rule, reason=reason)
