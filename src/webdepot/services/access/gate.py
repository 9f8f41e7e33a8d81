"""The access gate: what a reader may see, decided in one place for every interface.

Replay, lists of versions, CDX, search, works, lending, export, images, pictures of pages, the home page and
the OAI provider all ask here; nothing else reads the access rules to decide. `access/policy.py` has the
decision itself.

    of_key        one key: a verdict on each capture, and the stretches of time that are open
    segments      a range of keys, cut where the answer changes
    closed_areas  everything that is closed, for an index that cannot ask about each capture
    is_open, filter_open, iter_closed, iter_closed_at   single captures
    is_lent       whether a capture is shown to one reader at a time

The rules are cached until any process commits anything to the database, so a new rule holds with the next
request.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from webdepot.access import closed_areas as access_closed_areas
from webdepot.access import policy, rule_rows
from webdepot.access.lookup import Segment
from webdepot.access.policy import ANYONE, Reader, Rule, RuleAnswer
from webdepot.access.rule_rows import RulesByPrefix
from webdepot.archive import Archive
from webdepot.model import Capture, Verdict
from webdepot.ports.captures import ANY_TIME, Span
from webdepot.ports.search import ClosedArea

MOST_EXAMINED = 200_000
"""Captures below one rule that `iter_closed` examines before it gives up."""


class TooManyCaptures(Exception):
    """A rule covers more captures than can be examined within a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAccess:
    """What one reader may see of one key today. Without arguments: everything."""

    spans: tuple[Span, ...] = ANY_TIME
    """Stretches of time whose captures are open: the same answer as `verdict`, for the index."""
    rules: tuple[Rule, ...] = ()
    reader: Reader = ANYONE
    today: date = date.min

    def verdict(self, capture: Capture) -> Verdict:
        """The decision on one capture of the key, with the text that the reader may read."""
        return policy.allows(capture.key, capture.timestamp, self.rules, self.reader, self.today)


_ALL_OPEN = KeyAccess()
"""For keys that no rule covers."""


def of_key(archive: Archive, key: str, reader: Reader) -> KeyAccess:
    """What this reader may see of one key."""
    covering = _rules(archive).covering(key)
    if not covering:
        return _ALL_OPEN
    today = archive.clock().date()
    return KeyAccess(
        spans=access_closed_areas.open_spans(covering, key, reader, today),
        rules=tuple(covering),
        reader=reader,
        today=today,
    )


def segments(archive: Archive, start: str, stop: str, reader: Reader) -> Iterator[Segment]:
    """Keys from `start` to before `stop`, cut where the rules change: the bounds of each piece and the
    stretches of time that are open there. Closed pieces are left out.
    """
    covering = _rules(archive).covering_between(start, stop)
    return access_closed_areas.open_segments(covering, start, stop, reader, archive.clock().date())


def closed_areas(archive: Archive, reader: Reader) -> tuple[ClosedArea, ...]:
    """Everything that is closed to this reader, as areas that an index leaves out."""
    return access_closed_areas.areas(_rules(archive).every, reader, archive.clock().date())


def is_open(archive: Archive, capture: Capture, reader: Reader) -> bool:
    """Whether this reader may see this capture."""
    return next(filter_open(archive, [capture], reader), None) is not None


def filter_open(archive: Archive, captures: Iterable[Capture], reader: Reader) -> Iterator[Capture]:
    """Those of the captures that this reader may see."""
    known, today = _rules(archive), archive.clock().date()
    for capture in captures:
        if policy.allows(capture.key, capture.timestamp, known.covering(capture.key), reader, today):
            yield capture


def has_rules(archive: Archive) -> bool:
    """Whether there is any rule: without one, everything is open."""
    return bool(_rules(archive).every)


def iter_closed(
    archive: Archive, reader: Reader, *, containers: Container[str] | None = None, hidden_only: bool = False
) -> Iterator[Capture]:
    """Captures that are closed to this reader; with `containers`, only those in these containers; with
    `hidden_only`, only those that the reader must not learn about.

    TooManyCaptures when a rule covers more than MOST_EXAMINED captures.
    """
    hiding = [rule for rule in _rules(archive).every if not hidden_only or rule.answer is RuleAnswer.HIDE]
    for capture, verdict in _iter_closed(archive, hiding, reader, MOST_EXAMINED):
        is_wanted = containers is None or capture.location.container in containers
        if is_wanted and not (hidden_only and verdict.reason):
            yield capture


def iter_closed_at(
    archive: Archive, start: str, stop: str, timestamp: str, reader: Reader, *, most: int
) -> Iterator[Capture]:
    """Captures with keys from `start` to before `stop` that are closed to this reader by rules about captures
    of that moment.

    TooManyCaptures when a rule covers more than `most` captures.
    """
    today = archive.clock().date()
    covering = _rules(archive).covering_between(start, stop)
    then = [rule for rule in covering if rule.span(today)[0] <= timestamp <= rule.span(today)[1]]
    return (capture for capture, _ in _iter_closed(archive, then, reader, most, start, stop))


def _iter_closed(
    archive: Archive, closing: Iterable[Rule], reader: Reader, most: int, start: str = "", stop: str = "\x7f"
) -> Iterator[tuple[Capture, Verdict]]:
    known, today = _rules(archive), archive.clock().date()
    for rule in closing:
        if rule.answer not in (RuleAnswer.HIDE, RuleAnswer.REFUSE):
            continue
        end = rule.prefix + " " if rule.exact else access_closed_areas.after_prefix(rule.prefix)
        below = archive.captures.scan(max(rule.prefix, start), min(end, stop))
        for number, capture in enumerate(below):
            if number >= most:
                raise TooManyCaptures
            verdict = policy.allows(
                capture.key, capture.timestamp, known.covering(capture.key), reader, today
            )
            if not verdict:
                yield capture, verdict


def has_lending_rules(archive: Archive) -> bool:
    """Whether any rule lends pages: without one, it does not matter which terminal asks."""
    return _rules(archive).lends


def is_lent(archive: Archive, capture: Capture, reader: Reader) -> bool:
    """Whether the rule that decides about this capture shows it to one reader at a time."""
    known = _rules(archive)
    if not known.lends:
        return False
    decisive = policy.decisive(
        capture.key, capture.timestamp, known.covering(capture.key), reader, archive.clock().date()
    )
    return decisive is not None and decisive.answer is RuleAnswer.LEND


def _rules(archive: Archive) -> RulesByPrefix:
    return archive.database.remembered("access rules", rule_rows.by_prefix)
