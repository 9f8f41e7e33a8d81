"""Rules of access in the database. They are added or taken back and never changed: a younger rule overrides
an older one.
"""

from collections.abc import Sequence
from datetime import date

from sqlalchemy import Connection, RowMapping, delete, insert, select

from webdepot.access.policy import AccessPoint, Rule, RuleAnswer
from webdepot.access.tables import access_rules
from webdepot.errors import InputError, NotFound


def add(connection: Connection, rule: Rule) -> Rule:
    """Keep a rule (its `id` is given here); InputError when it would close everything or nothing."""
    if not rule.prefix.strip():
        raise InputError(
            "A rule of access needs the start of an address. Without one it would speak about everything."
        )
    if rule.captured_from > rule.captured_to or rule.valid_from > rule.valid_to:
        raise InputError(f"The rule for {rule.prefix} ends before it begins.")
    if rule.embargo_days < 0:
        raise InputError(f"The embargo for {rule.prefix} has fewer than 0 days.")
    values = {
        "prefix": rule.prefix,
        "exact": rule.exact,
        "embargo_days": rule.embargo_days,
        "reason": rule.reason,
        "captured_from": rule.captured_from,
        "captured_to": rule.captured_to,
        "valid_from": rule.valid_from.isoformat(),
        "valid_to": rule.valid_to.isoformat(),
        "access_point": rule.access_point.value if rule.access_point else "",
        "answer": rule.answer.value,
        "public_text": rule.public_text,
        "private_note": rule.private_note,
        "created_by": rule.created_by,
        "created_at": rule.created_at,
    }
    kept = (
        connection.execute(insert(access_rules).values(**values).returning(*access_rules.c)).mappings().one()
    )
    return _rule(kept)


def remove(connection: Connection, number: int) -> Rule:
    """Take a rule back; NotFound when there is none with that number. What it said stays in the events."""
    row = (
        connection.execute(delete(access_rules).where(access_rules.c.id == number).returning(*access_rules.c))
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise NotFound(f"There is no rule of access {number}. See: webdepot rule list")
    return _rule(row)


def by_prefix(connection: Connection) -> "RulesByPrefix":
    """All rules, laid out so that those about one key are found without looking at the others."""
    return RulesByPrefix(every(connection))


def every(connection: Connection) -> list[Rule]:
    return [
        _rule(row) for row in connection.execute(select(access_rules).order_by(access_rules.c.id)).mappings()
    ]


class RulesByPrefix:
    """Rules by their prefix. Looking up costs one step for each different length of a prefix, not one for
    each rule.
    """

    def __init__(self, every: Sequence[Rule]) -> None:
        self.every = tuple(every)
        self._by_prefix: dict[str, list[Rule]] = {}
        for rule in every:
            self._by_prefix.setdefault(rule.prefix, []).append(rule)
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix})
        self.lends = any(rule.answer is RuleAnswer.LEND for rule in every)
        """Whether a page may have to be held by one reader."""

    def covering(self, key: str) -> list[Rule]:
        """The rules that may speak about captures of one key."""
        return [
            rule
            for length in self._lengths
            if length <= len(key)
            for rule in self._by_prefix.get(key[:length], ())
        ]

    def covering_between(self, start: str, stop: str) -> list[Rule]:
        """The rules that may speak about captures of keys from `start` to before `stop`."""
        inside = [rule for rule in self.every if start <= rule.prefix < stop]
        return inside + [rule for rule in self.covering(start) if rule.prefix < start]


def _rule(row: RowMapping) -> Rule:
    return Rule(
        id=row["id"],
        prefix=row["prefix"],
        exact=bool(row["exact"]),
        embargo_days=row["embargo_days"],
        reason=row["reason"],
        captured_from=row["captured_from"],
        captured_to=row["captured_to"],
        valid_from=date.fromisoformat(row["valid_from"]),
        valid_to=date.fromisoformat(row["valid_to"]),
        access_point=AccessPoint(row["access_point"]) if row["access_point"] else None,
        answer=RuleAnswer(row["answer"]),
        public_text=row["public_text"],
        private_note=row["private_note"],
        created_by=row["created_by"],
        created_at=row["created_at"],
    )
