"""A generated matrix of rules, addresses, capture dates, days and access points, and a slow reference with which every interface is compared.

The reference does not share code with the gate: it follows the documentation, one capture at a time.
"""

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from webdepot.access.policy import AccessPoint, Reader, Rule, RuleAnswer
from webdepot.model import Capture
from webdepot.url import key as key_of

URLS = [
    "http://a.org/",
    "http://a.org/x",
    "http://a.org/x/y",
    "http://a.org/xz",
    "http://sub.a.org/",
    "http://b.org/x",
]
STAMPS = [
    "20100101000000",
    "20150615120000",
    "20150615120001",
    "20191231235959",
    "20260101000000",
    "20260420000000",
]
PREFIXES = ["org,a)", "org,a)/", "org,a)/x", "org,a)/x/", "org,a,", "org,b)/x", "org,"]
DAYS = [date(2026, 5, 1), date(2027, 5, 1)]


def random_rules(chance: random.Random, answers: Sequence[RuleAnswer] = tuple(RuleAnswer)) -> list[Rule]:
    made = []
    for _ in range(chance.randint(1, 6)):
        span = sorted(chance.sample(["0" * 14, *STAMPS, "9" * 14], 2))
        days = sorted(chance.sample([date.min, date(2026, 4, 30), date(2026, 12, 31), date.max], 2))
        exact = chance.random() < 0.3
        made.append(
            Rule(
                id=0,
                prefix=key_of(chance.choice(URLS)) if exact else chance.choice(PREFIXES),
                exact=exact,
                captured_from=span[0],
                captured_to=span[1],
                embargo_days=chance.choice([0, 0, 30, 200, 4000]),
                valid_from=days[0],
                valid_to=days[1],
                access_point=chance.choice([None, None, *AccessPoint]),
                answer=chance.choice(answers),
                public_text="Closed.",
                created_at=datetime(2026, 1, 1, tzinfo=UTC),
            )
        )
    return made


def reference(capture: Capture, every: list[Rule], reader: Reader, today: date) -> RuleAnswer:
    """The answer by the documentation, one condition after another."""
    speaking = []
    for rule in every:
        if rule.answer is RuleAnswer.WARN:
            continue
        if rule.exact and capture.key != rule.prefix:
            continue
        if not capture.key.startswith(rule.prefix):
            continue
        if capture.timestamp < rule.captured_from or capture.timestamp > rule.captured_to:
            continue
        if rule.embargo_days:
            made = datetime.strptime(capture.timestamp + "Z", "%Y%m%d%H%M%S%z")
            if made < datetime(today.year, today.month, today.day, tzinfo=UTC) - timedelta(
                days=rule.embargo_days
            ):
                continue
        if today < rule.valid_from or today > rule.valid_to:
            continue
        if rule.access_point is not None and rule.access_point != reader.access_point:
            continue
        speaking.append(rule)
    for longest in sorted({len(rule.prefix) for rule in speaking}, reverse=True):
        nearest = [rule for rule in speaking if len(rule.prefix) == longest]
        nearest = [rule for rule in nearest if rule.exact] or nearest
        nearest = [rule for rule in nearest if rule.access_point is not None] or nearest
        answer = max(nearest, key=lambda rule: rule.id).answer
        # A lent page is shown: whether another reader has it open is not decided by rules, and every list
        # contains it anyway.
        return RuleAnswer.SHOW if answer is RuleAnswer.LEND else answer
    return RuleAnswer.SHOW
