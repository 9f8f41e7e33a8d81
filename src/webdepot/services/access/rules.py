"""Rules of access, made and taken back by people: who, when and why stays in the events, whatever becomes of
the rule.

example.org/news/*     what begins so         example.org/page.html   that page alone
example.org            the whole host         *.example.org           the host and all below it: two rules, one for each
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import date

from sqlalchemy import Connection

from webdepot.access import closed, rules
from webdepot.access.policy import AccessPoint, Reader, Rule, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.ports import Closed
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
    """Make a rule about what a pattern covers; it holds on every surface with the next request. InputError
    when a part of it is wrong.

    With a `connection` in the caller's transaction: a decision and the rules that carry it out are kept or
    lost together.
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
        made = [
            rules.add(held, replace(draft, prefix=prefix, exact=exact))
            for prefix, exact in _prefixes(pattern)
        ]
        for rule in made:
            append(
                held, _event(archive, rule, _ACTIONS[rule.answer], f"{rule.answer.value} {pattern}", agent)
            )
    return made


_ACTIONS = {
    RuleAnswer.SHOW: "opened",
    RuleAnswer.REFUSE: "closed",
    RuleAnswer.HIDE: "closed",
    RuleAnswer.WARN: "warned",
    RuleAnswer.LEND: "lent",
}


def remove(archive: Archive, number: int, *, by: str = "", connection: Connection | None = None) -> Rule:
    """Take a rule back, in the caller's transaction if there is one; NotFound when there is no such rule."""
    with nullcontext(connection) if connection is not None else archive.database.transaction() as held:
        rule = rules.remove(held, number)
        append(
            held,
            _event(archive, rule, "took back", f"{rule.answer.value} {rule.prefix}", by or archive.agent),
        )
    return rule


def every(archive: Archive) -> Sequence[Rule]:
    with archive.database.reading() as connection:
        return rules.every(connection)


def _prefixes(pattern: str) -> list[tuple[str, bool]]:
    """Starts of keys that a pattern names, and whether each is the whole key."""
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
        raise InputError(f"{text[:30]!r} is no date. Write it like 2019, 2019-03 or 2019-03-04.") from None
    return to_timestamp(period.end if end else period.start)


def _event(archive: Archive, rule: Rule, action: str, words: str, agent: str) -> Event:
    facts: dict[str, object] = {
        "answer": rule.answer.value,
        "prefix": rule.prefix,
        "exact": rule.exact,
        "reason": rule.reason,
        "public_text": rule.public_text,
        "note": rule.private_note,
    }
    return Event(
        at=archive.clock(),
        agent=agent[:200],
        action=action,
        subject_kind="access rule",
        subject=str(rule.id),
        message=words,
        detail=difference(facts, {}) if action == "took back" else difference({}, facts),
    )


def closed_to(archive: Archive, reader: Reader) -> tuple[Closed, ...]:
    """What this reader must not know of, as areas that an index leaves out."""
    by_prefix = archive.database.remembered("access rules", rules.by_prefix)
    return closed.areas(by_prefix.every, reader, archive.clock().date())
