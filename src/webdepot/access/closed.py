"""Rules of access as plain areas of closed captures, for indexes that cannot ask the gate about every
capture.

`policy.allows` is the truth: of all rules that match a capture one decides, the closest first. Here the same
answer is worked out once for all captures: for each prefix that a rule names, and each stretch of time
between the ends of its rules, the gate is asked about one capture; what it refuses becomes an area. Below a
prefix with rules of its own these count, so its parent's areas leave it out.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise

from webdepot.access.policy import Reader, Rule, RuleAnswer, allows
from webdepot.ports import ANY_TIME, ClosedArea, Span

_FIRST, _LAST = "0" * 14, "9" * 14
_SIGNS = tuple(map(chr, range(0x21, 0x7F)))
"""What a key can go on with."""


def areas(rules: Sequence[Rule], reader: Reader, today: date) -> tuple[ClosedArea, ...]:
    """What this reader must not see today. A capture lies in one of the areas exactly when the gate refuses
    it.
    """
    rules = [rule for rule in rules if rule.answer is not RuleAnswer.WARN]
    # A rule for one key alone: what begins like it gets places of its own, so that the rule is not heard
    # there.
    beside = {rule.prefix + sign for rule in rules if rule.exact for sign in _SIGNS}
    prefixes = sorted({rule.prefix for rule in rules} | beside)
    found: list[ClosedArea] = []
    for prefix in prefixes:
        speaking = [rule for rule in rules if prefix.startswith(rule.prefix)]
        below = tuple(other for other in prefixes if other != prefix and other.startswith(prefix))
        stretches = [
            (first, last)
            for first, last in _stretches(speaking, today)
            if not allows(prefix, first, speaking, reader, today)
        ]
        found += [
            ClosedArea(prefix=prefix, but=_outermost(below), first=first, last=last)
            for first, last in _joined(stretches)
        ]
    return tuple(found)


def open_spans(rules: Sequence[Rule], key: str, reader: Reader, today: date) -> tuple[Span, ...]:
    """When captures of one key were made that this reader may see today. `rules` may hold others than those
    of this key.
    """
    speaking = [rule for rule in rules if key.startswith(rule.prefix)]
    if not speaking:
        return ANY_TIME
    return tuple(
        _joined(
            [
                stretch
                for stretch in _stretches(speaking, today)
                if allows(key, stretch[0], speaking, reader, today)
            ]
        )
    )


def open_segments(
    rules: Sequence[Rule], start: str, stop: str, reader: Reader, today: date
) -> Iterator[tuple[str, str, tuple[Span, ...]]]:
    """Keys from `start` to before `stop`, cut where the answer changes: bounds and open spans of each piece;
    closed pieces are left out.

    All keys between two neighbouring ends of prefixes are below the same prefixes, so one of them speaks for
    all.
    """
    ends = {start, stop}
    for rule in rules:
        ends |= {rule.prefix, rule.prefix + " " if rule.exact else after_prefix(rule.prefix)}
    inside = sorted(end for end in ends if start <= end <= stop)
    waiting: tuple[str, str, tuple[Span, ...]] | None = None
    for first, after in pairwise(inside):
        spans = open_spans(rules, first, reader, today)
        if waiting and waiting[2] == spans and waiting[1] == first:
            waiting = (waiting[0], after, spans)
            continue
        if waiting and waiting[2]:
            yield waiting
        waiting = (first, after, spans)
    if waiting and waiting[2]:
        yield waiting


def after_prefix(prefix: str) -> str:
    """The first text after_prefix all that begin so. Keys are ASCII."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _stretches(rules: Sequence[Rule], today: date) -> list[tuple[str, str]]:
    """Time cut at every end of a rule: within a stretch all captures have the same answer."""
    spans = [span for rule in rules if (span := rule.span(today)) and span[0] <= span[1]]
    cuts = {_FIRST} | {first for first, _ in spans} | {_next(last) for _, last in spans if last < _LAST}
    starts = sorted(cuts)
    return [(start, _previous(after)) for start, after in zip(starts, [*starts[1:], ""], strict=True)]


def _joined(stretches: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    joined: list[tuple[str, str]] = []
    for first, last in stretches:
        if joined and _next(joined[-1][1]) == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


def _outermost(prefixes: Sequence[str]) -> tuple[str, ...]:
    """Of nested prefixes only the shortest: it leaves the others out too."""
    kept: list[str] = []
    for prefix in prefixes:
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return tuple(kept)


def _next(timestamp: str) -> str:
    return f"{int(timestamp) + 1:014d}"


def _previous(timestamp: str) -> str:
    return f"{int(timestamp) - 1:014d}" if timestamp else _LAST
