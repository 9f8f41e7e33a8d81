"""Access rules, added and removed by people. The events keep who did so, when and why, even after a rule is
removed. A pattern covers:

    example.org/news/*      all addresses that begin so
    example.org/page.html   that page alone
    example.org             the whole host
    *.example.org           the host and all hosts below it (two rules, one for each)
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import date

from sqlalchemy import Connection

from webdepot.access import rules
from webdepot.access.policy import AccessPoint, Rule, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.provenance import Event, append, difference
from webdepot.times import period_of, to_timestamp
from webdepot.url import UrlMatch, from_typed, host_of, key_range, split_wildcard


def add(
    archive: Archive,
    pattern: str,
    *,
    answer: RuleAnswer,
    captured_from: str = "",
    captured_to: str = "",
    embargo_days: int = 0,
    valid_from: date = date.min,
    valid_to: date = date.max,
    access_point: AccessPoint | None = None,
    public_text: str = "",
    private_note: str = "",
    reason: str = "",
    by: str = "",
    connection: Connection | None = None,
) -> Sequence[Rule]:
    """Add the rules for a pattern; they hold everywhere with the next request. InputError if a value is
    wrong.

    With a `connection`, in the caller's transaction: a decision and the rules that carry it out are stored
    together or not at all.
    """
    agent = by or archive.agent
    draft = Rule(
        id=0,
        prefix="",
        answer=answer,
        captured_from=_edge(captured_from, end=False),
        captured_to=_edge(captured_to, end=True),
        embargo_days=embargo_days,
        valid_from=valid_from,
        valid_to=valid_to,
        access_point=access_point,
        public_text=public_text.strip(),
        private_note=private_note.strip(),
        reason=reason.strip()[:40],
        created_by=agent[:200],
        created_at=archive.clock(),
    )
    with nullcontext(connection) if connection is not None else archive.database.transaction() as held:
        added = [
            rules.add(held, replace(draft, prefix=prefix, exact=exact))
            for prefix, exact in _prefixes(pattern)
        ]
        for rule in added:
            append(held, _event(archive, rule, _ACTIONS[rule.answer], pattern, agent))
    return added


_ACTIONS = {
    RuleAnswer.SHOW: "opened",
    RuleAnswer.REFUSE: "closed",
    RuleAnswer.HIDE: "closed",
    RuleAnswer.WARN: "warned",
    RuleAnswer.LEND: "lent",
}


def remove(archive: Archive, number: int, *, by: str = "", connection: Connection | None = None) -> Rule:
    """Remove a rule, in the caller's transaction if there is one; NotFound if there is no such rule."""
    with nullcontext(connection) if connection is not None else archive.database.transaction() as held:
        rule = rules.remove(held, number)
        append(held, _event(archive, rule, "took back", rule.prefix, by or archive.agent))
    return rule


def every(archive: Archive) -> Sequence[Rule]:
    """All access rules, the oldest first."""
    with archive.database.reading() as connection:
        return rules.every(connection)


def _prefixes(pattern: str) -> list[tuple[str, bool]]:
    """The key prefixes of a pattern, and whether each is a whole key."""
    address, how = split_wildcard(pattern)
    start, _ = key_range(address, UrlMatch.DOMAIN if how is UrlMatch.DOMAIN else how)
    if how is UrlMatch.DOMAIN:
        return [(start, False), (start[:-1] + ",", False)]
    if how is UrlMatch.PREFIX:
        return [(start, False)]
    url = from_typed(address)
    rest = address.partition("://")[2] if "://" in address else address
    if rest.strip("/") == host_of(url) and not rest.endswith("/"):
        return [(start.partition(")")[0] + ")", False)]
    return [(start, True)]


def _edge(text: str, *, end: bool) -> str:
    if not text:
        return "9" * 14 if end else "0" * 14
    try:
        period = period_of(text.replace("-", ""))
    except ValueError:
        raise InputError(f"{text[:30]!r} is not a date. Write it like 2019, 2019-03 or 2019-03-04.") from None
    return to_timestamp(period.end if end else period.start)


def _event(archive: Archive, rule: Rule, action: str, pattern: str, agent: str) -> Event:
    facts: dict[str, object] = {
        "answer": rule.answer.value,
        "prefix": rule.prefix,
        "exact": rule.exact,
        "reason": rule.reason,
        "public_text": rule.public_text,
        "note": rule.private_note,
    }
    return archive.event(
        action,
        "access rule",
        str(rule.id),
        by=agent[:200],
        message=f"{rule.answer.value} {pattern}",
        detail=difference(facts, {}) if action == "took back" else difference({}, facts),
    )
