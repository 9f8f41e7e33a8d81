"""Access rules in the database. They are added or removed, never changed: a newer rule overrides an older
one.
"""

from collections.abc import Sequence
from datetime import date

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, func, insert, or_, select

from webdepot.access.policy import AccessPoint, Rule, RuleAnswer
from webdepot.access.tables import access_rules
from webdepot.errors import InputError, NotFound
from webdepot.reasons import said

ROWS = 50


def add(connection: Connection, rule: Rule) -> Rule:
    """Store a rule and give it its `id`; InputError if it would apply to everything or to nothing."""
    if not rule.prefix.strip():
        raise InputError(
            "An access rule needs the start of an address. Without one it would apply to everything."
        )
    if rule.captured_from > rule.captured_to or rule.valid_from > rule.valid_to:
        raise InputError(f"The access rule for {rule.prefix} ends before it begins. Check its dates.")
    if rule.embargo_days < 0:
        raise InputError(f"The embargo for {rule.prefix} is less than 0 days. Give 0 or more.")
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
    row = (
        connection.execute(insert(access_rules).values(**values).returning(*access_rules.c)).mappings().one()
    )
    return _rule(row)


def remove(connection: Connection, number: int) -> Rule:
    """Remove a rule; NotFound if there is none with that number. The events keep a record of it."""
    row = (
        connection.execute(delete(access_rules).where(access_rules.c.id == number).returning(*access_rules.c))
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise NotFound(
            said(
                "missing_rule",
                "There is no access rule {number}. See: webdepot rule list",
                number=str(number),
            )
        )
    return _rule(row)


def by_prefix(connection: Connection) -> "RulesByPrefix":
    """All rules, arranged so that those for one key are found without looking at the others."""
    return RulesByPrefix(every(connection))


def every(connection: Connection) -> list[Rule]:
    return [
        _rule(row) for row in connection.execute(select(access_rules).order_by(access_rules.c.id)).mappings()
    ]


def listing(
    connection: Connection,
    *,
    words: str = "",
    answer: RuleAnswer | None = None,
    embargoes: bool = False,
    page: int,
) -> tuple[list[Rule], int]:
    """One page of rules, newest first, and how many there are; `words` are part of a key, reason or text."""
    where = _matching(words, answer, embargoes)
    total = connection.execute(select(func.count()).select_from(access_rules).where(*where)).scalar_one()
    chosen = select(access_rules).where(*where).order_by(access_rules.c.id.desc())
    rows = connection.execute(chosen.limit(ROWS).offset((max(page, 1) - 1) * ROWS))
    return [_rule(row) for row in rows.mappings()], total


def past(
    connection: Connection,
    *,
    words: str = "",
    answer: RuleAnswer | None = None,
    embargoes: bool = False,
    last: int | None = None,
    limit: int,
) -> list[Rule]:
    """The next rules, newest first, after the one with the number `last`."""
    where = [
        *_matching(words, answer, embargoes),
        *([access_rules.c.id < last] if last is not None else []),
    ]
    chosen = select(access_rules).where(*where).order_by(access_rules.c.id.desc()).limit(limit)
    return [_rule(row) for row in connection.execute(chosen).mappings()]


def _matching(words: str, answer: RuleAnswer | None, embargoes: bool) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = []
    if words:
        columns = (access_rules.c.prefix, access_rules.c.reason, access_rules.c.public_text)
        where.append(or_(*(column.contains(words, autoescape=True) for column in columns)))
    if answer:
        where.append(access_rules.c.answer == answer.value)
    if embargoes:
        where.append(access_rules.c.embargo_days > 0)
    return where


class RulesByPrefix:
    """Rules by their prefix. A lookup takes one step for each different length of a prefix, not one for each
    rule.
    """

    def __init__(self, every: Sequence[Rule]) -> None:
        self.every = tuple(every)
        self._by_prefix: dict[str, list[Rule]] = {}
        for rule in every:
            self._by_prefix.setdefault(rule.prefix, []).append(rule)
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix})
        self.lends = any(rule.answer is RuleAnswer.LEND for rule in every)
        """Whether any rule lends a page to one reader at a time."""

    def covering(self, key: str) -> list[Rule]:
        """The rules that may apply to captures of one key."""
        return [
            rule
            for length in self._lengths
            if length <= len(key)
            for rule in self._by_prefix.get(key[:length], ())
        ]

    def covering_between(self, start: str, stop: str) -> list[Rule]:
        """The rules that may apply to captures of keys from `start` to before `stop`."""
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
