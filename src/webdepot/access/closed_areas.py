"""Access rules as areas of closed captures, for indexes that cannot ask about every capture.

`policy.allows` is the reference. Here the same answer is computed once for all captures: for each prefix or
single key that a rule names, and each stretch of time between the ends of its rules, it is asked about one
capture; if it refuses, the stretch becomes an area. A longer prefix and a single key have their own areas, so
those of the shorter prefix leave them out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise

from webdepot.access.policy import Reader, Rule, RuleAnswer, allows
from webdepot.ports.captures import ANY_TIME, Span
from webdepot.ports.search import ClosedArea

_FIRST, _LAST = "0" * 14, "9" * 14


@dataclass(slots=True, kw_only=True)
class _Place:
    """Keys to which the same rules apply: those with a prefix, or one key."""

    prefix: str
    exact: bool
    outer: tuple[str, ...]
    """Prefixes that contain it."""
    inner: list[str] = field(default_factory=list)
    """Longer prefixes in it, which are places of their own."""
    keys: set[str] = field(default_factory=set)
    """Single keys in it, which are places of their own."""


def areas(rules: Sequence[Rule], reader: Reader, today: date) -> tuple[ClosedArea, ...]:
    """What this reader must not see today: a capture is in an area exactly if `allows` refuses it."""
    below: dict[str, list[Rule]] = {}
    of_one_key: dict[str, list[Rule]] = {}
    for rule in rules:
        if rule.answer is not RuleAnswer.WARN:
            (of_one_key if rule.exact else below).setdefault(rule.prefix, []).append(rule)
    areas: list[ClosedArea] = []
    for place in _places(below, of_one_key):
        own = (of_one_key if place.exact else below)[place.prefix]
        covering = [*own, *(rule for prefix in place.outer for rule in below[prefix])]
        stretches = [
            (first, last)
            for first, last in _stretches(covering, today)
            if not allows(place.prefix, first, covering, reader, today)
        ]
        areas += [
            ClosedArea(
                prefix=place.prefix,
                exact=place.exact,
                but=tuple(place.inner),
                but_keys=frozenset(place.keys),
                first=first,
                last=last,
            )
            for first, last in _joined(stretches)
        ]
    return tuple(areas)


def _places(prefixes: Iterable[str], keys: Iterable[str]) -> Iterator[_Place]:
    """The places with their own rules. One pass over the sorted texts, because all that begin with a prefix
    follow it directly.
    """
    outer: list[_Place] = []
    texts = [(prefix, False) for prefix in prefixes] + [(key, True) for key in keys]
    for text, exact in sorted(texts):
        while outer and not text.startswith(outer[-1].prefix):
            yield outer.pop()
        place = _Place(prefix=text, exact=exact, outer=tuple(each.prefix for each in outer))
        if exact:
            if outer:
                outer[-1].keys.add(text)
            yield place
        else:
            if outer:
                outer[-1].inner.append(text)
            outer.append(place)
    yield from reversed(outer)


def open_spans(rules: Sequence[Rule], key: str, reader: Reader, today: date) -> tuple[Span, ...]:
    """The stretches of time whose captures of one key this reader may see today. `rules` may contain rules
    for other keys.
    """
    covering = [rule for rule in rules if key.startswith(rule.prefix)]
    if not covering:
        return ANY_TIME
    return tuple(
        _joined(
            [
                stretch
                for stretch in _stretches(covering, today)
                if allows(key, stretch[0], covering, reader, today)
            ]
        )
    )


def open_segments(
    rules: Sequence[Rule], start: str, stop: str, reader: Reader, today: date
) -> Iterator[tuple[str, str, tuple[Span, ...]]]:
    """Keys from `start` to before `stop`, cut where the answer changes: bounds and open spans of each piece.
    Closed pieces are left out.

    All keys between two neighbouring bounds of prefixes have the same prefixes, so the answer for one of them
    holds for all.
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
    """The first key that sorts after all keys with this prefix. Keys are ASCII."""
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


def _next(timestamp: str) -> str:
    return f"{int(timestamp) + 1:014d}"


def _previous(timestamp: str) -> str:
    return f"{int(timestamp) - 1:014d}" if timestamp else _LAST
