"""Access rules, added and removed by people. The events keep who did so, when and why, even after a rule is
removed. A pattern covers:

    example.org/news/*      all addresses that begin with example.org/news/
    example.org/page.html   that page alone
    example.org             the whole host
    *.example.org           the host and all hosts below it (two rules, one for each)
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice

from sqlalchemy import Connection

from webdepot.access import aclj, rule_rows
from webdepot.access.closed_areas import after_prefix
from webdepot.access.policy import AccessPoint, Rule, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.provenance import Event, EventFilter, append, difference
from webdepot.provenance import page as page_of_events
from webdepot.reasons import said
from webdepot.times import period_of, read_date, to_timestamp
from webdepot.url import UrlMatch, address_of_key, from_typed, host_of, key_range, split_wildcard

MOST_COUNTED = 100
MOST_EXAMINED = 300
"""Captures that are counted for a rule in a list, and read for it."""
MOST_ENDED = 20
LONGEST_FILE_BYTES = aclj.LONGEST_BYTES


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
        return [
            _store(archive, held, replace(draft, prefix=prefix, exact=exact), pattern, agent)
            for prefix, exact in _prefixes(pattern)
        ]


def _store(archive: Archive, connection: Connection, draft: Rule, pattern: str, agent: str) -> Rule:
    """Store a rule with its event."""
    rule = rule_rows.add(connection, draft)
    append(connection, _event(archive, rule, _ACTIONS[rule.answer], pattern, agent))
    return rule


_ACTIONS = {
    RuleAnswer.SHOW: "opened",
    RuleAnswer.REFUSE: "closed",
    RuleAnswer.HIDE: "closed",
    RuleAnswer.WARN: "warned",
    RuleAnswer.LEND: "lent",
}


def remove(
    archive: Archive, number: int, *, by: str = "", why: str = "", connection: Connection | None = None
) -> Rule:
    """Remove a rule, in the caller's transaction if there is one; NotFound if there is no such rule."""
    with nullcontext(connection) if connection is not None else archive.database.transaction() as held:
        rule = rule_rows.remove(held, number)
        pattern = f"{pattern_of(rule)} ({why.strip()})" if why.strip() else pattern_of(rule)
        append(held, _event(archive, rule, "took back", pattern, by or archive.agent))
    return rule


def end(archive: Archive, number: int, *, by: str, why: str) -> Rule:
    """Remove a rule; the reason is kept. InputError without one, NotFound if there is no such rule."""
    if not why.strip():
        raise InputError(said("why_rule_ends", "Write why the rule ends."))
    return remove(archive, number, by=by, why=why.strip()[:1000])


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleImport:
    """The result of reading a file of rules."""

    rules: Sequence[Rule]
    """The new ones; with an `id` if they were added."""
    known: int
    """How many the archive has already."""
    bad: Sequence[tuple[int, str]]
    """Line number and what is wrong with it; if there is one, nothing was added."""


def import_file(
    archive: Archive, raw: bytes, *, users: Mapping[str, AccessPoint], reason: str = "", dry_run: bool = False
) -> RuleImport:
    """Add the rules of an .aclj file of pywb, all of them or, if a line cannot be expressed, none. Rules that
    the archive has already are left as they are, so that an import can be repeated.
    """
    read = aclj.read(raw, users, now=archive.clock())
    with archive.database.transaction() as connection:
        seen = {_meaning(rule) for rule in rule_rows.every(connection)}
        new: dict[tuple[object, ...], Rule] = {}
        for rule in read.rules:
            if _meaning(rule) not in seen:
                new.setdefault(_meaning(rule), rule)
        added = [
            replace(rule, reason=reason.strip()[:40], created_by=archive.agent[:200]) for rule in new.values()
        ]
        if not read.bad and not dry_run:
            added = [_store(archive, connection, rule, pattern_of(rule), archive.agent) for rule in added]
    return RuleImport(rules=added, known=len(read.rules) - len(added), bad=read.bad)


def add_missing(archive: Archive, connection: Connection, drafts: Sequence[Rule]) -> None:
    """Add rules in the caller's transaction, except those that the archive has already."""
    seen = {_meaning(rule) for rule in rule_rows.every(connection)} if drafts else set()
    for draft in drafts:
        if _meaning(draft) not in seen:
            _store(archive, connection, draft, pattern_of(draft), draft.created_by or archive.agent)


def remove_same(archive: Archive, connection: Connection, drafts: Sequence[Rule], *, why: str) -> None:
    """Remove the rules that do and say the same as these, in the caller's transaction."""
    wanted = {(_meaning(draft), draft.private_note) for draft in drafts}
    for rule in rule_rows.every(connection) if drafts else ():
        if (_meaning(rule), rule.private_note) in wanted:
            remove(archive, rule.id, why=why, connection=connection)


def _meaning(rule: Rule) -> tuple[object, ...]:
    """What a rule does, without who made it and why."""
    return (
        rule.prefix,
        rule.exact,
        rule.answer,
        rule.captured_from,
        rule.captured_to,
        rule.embargo_days,
        rule.valid_from,
        rule.valid_to,
        rule.access_point,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRule:
    """A rule as a page shows it."""

    rule: Rule
    pattern: str
    captures: int
    """How many captures it applies to today, at most MOST_COUNTED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePage:
    rows: Sequence[ListedRule]
    total: int
    page: int

    @property
    def pages(self) -> int:
        return max(-(-self.total // rule_rows.ROWS), 1)


def list_rules(
    archive: Archive,
    *,
    words: str = "",
    answer: RuleAnswer | None = None,
    embargoes: bool = False,
    page: int = 1,
) -> RulePage:
    """One page of access rules with what each covers, the newest first."""
    words = _searched(words)
    with archive.database.reading() as connection:
        listed, total = rule_rows.listing(
            connection, words=words, answer=answer, embargoes=embargoes, page=page
        )
    today = archive.clock().date()
    return RulePage(
        rows=[
            ListedRule(rule=rule, pattern=pattern_of(rule), captures=_count(archive, rule, today))
            for rule in listed
        ],
        total=total,
        page=page,
    )


def list_past(
    archive: Archive,
    *,
    words: str = "",
    answer: RuleAnswer | None = None,
    embargoes: bool = False,
    last: int | None = None,
    limit: int,
) -> list[Rule]:
    """The next access rules, the newest first, after the one with the number `last`."""
    with archive.database.reading() as connection:
        return rule_rows.past(
            connection, words=_searched(words), answer=answer, embargoes=embargoes, last=last, limit=limit
        )


def _searched(typed: str) -> str:
    """What a search for rules looks for: people type an address, but rules have keys."""
    words = typed.strip()[:200]
    if "." in words and " " not in words:
        with suppress(InputError):
            return _prefixes(words)[0][0]
    return words


def ended(archive: Archive) -> Sequence[Event]:
    """The events of the rules that were removed last: who removed them, when and why."""
    with archive.database.reading() as connection:
        wanted = EventFilter(action="took back", subject_kind="access rule")
        return [event for _, event in page_of_events(connection, wanted, limit=MOST_ENDED)]


def pattern_of(rule: Rule) -> str:
    """The pattern that a rule covers, as people type it."""
    if rule.prefix.startswith("urn:"):
        return rule.prefix if rule.exact else f"{rule.prefix}*"
    labels, mark, path = rule.prefix.partition(")")
    address = address_of_key(f"{labels}){path}")
    if not mark:
        return f"*.{address}"
    return f"{address}*" if path and not rule.exact else address


def _count(archive: Archive, rule: Rule, today: date) -> int:
    """How many captures a rule applies to, at most MOST_COUNTED."""
    first, last = rule.span(today)
    below = archive.captures.scan(rule.prefix, after_prefix(rule.prefix))
    matching = (
        capture
        for capture in islice(below, MOST_EXAMINED)
        if first <= capture.timestamp <= last and (not rule.exact or capture.key == rule.prefix)
    )
    return sum(1 for _ in islice(matching, MOST_COUNTED))


def every(archive: Archive) -> Sequence[Rule]:
    """All access rules, the oldest first."""
    with archive.database.reading() as connection:
        return rule_rows.every(connection)


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
    """The first or last timestamp that a date names: one that a person typed, or the time of a capture."""
    if not text:
        return "9" * 14 if end else "0" * 14
    try:
        period = period_of(text if text.isdecimal() else read_date(text))
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
