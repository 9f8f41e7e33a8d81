"""Decide whether a reader may see a capture. Services call this through `services/access/gate.py`.

An access rule closes or opens captures of a period below a key prefix, at one access point or at all of them,
while it is valid. If several rules match a capture, one decides:

1. the one with the longest prefix (closest to the page); with the same prefix, a rule for that page alone
   comes before one for everything below it,
2. then one that names an access point before one for all,
3. then the newest.

A rule that warns decides nothing: the page is shown or not as without the rule, and if it is shown, the
rule's text is above it.

A rolling embargo applies to captures that are younger than a number of days, counted from today.

Without a matching rule the capture is open. The reason of a verdict is the public text of the rule; **an
empty reason means that the reader must not learn that the capture exists** (the rule hides it), so interfaces
answer as if it did not exist.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from webdepot.accounts.roles import Role
from webdepot.model import Answer, Verdict
from webdepot.times import to_timestamp


class AccessPoint(StrEnum):
    """Where a reader is."""

    PUBLIC = "public"
    READING_ROOM = "reading room"
    STAFF = "staff"
    PARTNER = "partner"


class RuleAnswer(StrEnum):
    SHOW = "show"
    REFUSE = "refuse"
    HIDE = "hide"
    WARN = "warn"
    """Opens and closes nothing: its public text is shown above the page."""
    LEND = "lend"
    """Shows a page to one reader at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The person or program that asks. A reader without a name has not signed in."""

    name: str = ""
    roles: frozenset[Role] = field(default_factory=frozenset)
    access_point: AccessPoint = AccessPoint.PUBLIC
    seat: str = ""
    """The terminal, where pages are lent: its network address."""

    @classmethod
    def staff(cls, name: str) -> "Reader":
        """A member of staff on the archive's own server."""
        return cls(name=name, roles=frozenset(Role), access_point=AccessPoint.STAFF)


ANYONE = Reader()
"""A reader on the public web who has not signed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One access rule."""

    id: int
    prefix: str
    """Start of a URL key: `org,example)/private` or `org,example)` for a host."""
    exact: bool = False
    """Applies to the key `prefix` alone, not to keys that begin with it."""
    captured_from: str = "0" * 14
    captured_to: str = "9" * 14
    embargo_days: int = 0
    """If not 0, the rule applies only to captures younger than this number of days."""
    valid_from: date = date.min
    valid_to: date = date.max
    access_point: AccessPoint | None = None
    """None means all."""
    answer: RuleAnswer
    public_text: str = ""
    private_note: str = ""
    reason: str = ""
    """Why it was made, in one word: privacy, copyright, owner, robots, court."""
    created_by: str = ""
    created_at: datetime

    def span(self, today: date) -> tuple[str, str]:
        """First and last timestamp of the captures that the rule applies to on that day; the first is after
        the last if there are none.
        """
        if not self.embargo_days:
            return self.captured_from, self.captured_to
        try:
            youngest = to_timestamp(datetime.combine(today - timedelta(days=self.embargo_days), time(), UTC))
        except OverflowError:
            youngest = "0" * 14
        return max(self.captured_from, youngest), self.captured_to


OPEN = Verdict(answer=Answer.ACCEPT, rule="no rule", reason="No access rule covers it.")
DEFAULT_TEXT = "Access to this page is closed."


def allows(key: str, timestamp: str, rules: Iterable[Rule], reader: Reader, today: date) -> Verdict:
    """The verdict on one capture. `rules` may contain rules for other keys; they are ignored."""
    matching = [rule for rule in rules if _matches(rule, key, timestamp, reader, today)]
    if not matching:
        return OPEN
    warnings = [rule for rule in matching if rule.answer is RuleAnswer.WARN]
    chosen = _chosen(matching)
    if chosen is None:
        return Verdict(answer=Answer.ACCEPT, rule=f"access rule {warnings[-1].id}", reason=_texts(warnings))
    name = f"access rule {chosen.id}"
    match chosen.answer:
        case RuleAnswer.SHOW | RuleAnswer.WARN | RuleAnswer.LEND:
            return Verdict(answer=Answer.ACCEPT, rule=name, reason=_texts([chosen, *warnings]))
        case RuleAnswer.REFUSE:
            return Verdict(answer=Answer.REJECT, rule=name, reason=chosen.public_text or DEFAULT_TEXT)
        case RuleAnswer.HIDE:
            return Verdict(answer=Answer.REJECT, rule=name, reason="")


def decisive(key: str, timestamp: str, rules: Iterable[Rule], reader: Reader, today: date) -> Rule | None:
    """The rule that decides in `allows`; None if none does."""
    return _chosen([rule for rule in rules if _matches(rule, key, timestamp, reader, today)])


def _chosen(matching: Sequence[Rule]) -> Rule | None:
    deciding = [rule for rule in matching if rule.answer is not RuleAnswer.WARN]
    return max(
        deciding,
        key=lambda rule: (len(rule.prefix), rule.exact, rule.access_point is not None, rule.id),
        default=None,
    )


def _texts(rules: Sequence[Rule]) -> str:
    return " ".join(dict.fromkeys(rule.public_text for rule in rules if rule.public_text))


def _matches(rule: Rule, key: str, timestamp: str, reader: Reader, today: date) -> bool:
    first, last = rule.span(today)
    return (
        (key == rule.prefix if rule.exact else key.startswith(rule.prefix))
        and first <= timestamp <= last
        and rule.valid_from <= today <= rule.valid_to
        and rule.access_point in (None, reader.access_point)
    )
