"""Access rules as areas of closed captures, for indexes that cannot ask about every capture.

`policy.allows` is the reference. Here the same answer is computed once for all captures: for each prefix that
a rule names, and each stretch of time between the ends of its rules, it is asked about one capture; if it
refuses, the stretch becomes an area. A longer prefix has its own areas, so those of the shorter one leave it
out.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import pairwise

from webdepot.access.policy import Reader, Rule, RuleAnswer, allows
from webdepot.ports.captures import ANY_TIME, Span
from webdepot.ports.search import ClosedArea

_FIRST, _LAST = "0" * 14, "9" * 14
_SIGNS = tuple(map(chr, range(0x21, 0x7F)))
"""Characters with which a key can continue."""


def areas(rules: Sequence[Rule], reader: Reader, today: date) -> tuple[ClosedArea, ...]:
    """What this reader must not see today: a capture is in an area exactly if `allows` refuses it."""
    rules = [rule for rule in rules if rule.answer is not RuleAnswer.WARN]
    # A rule for one key alone: longer keys get their own prefixes, so that the rule does not apply to them.
    beside = {rule.prefix + sign for rule in rules if rule.exact for sign in _SIGNS}
    nested = _nested({rule.prefix for rule in rules} | beside)
    own: dict[str, list[tuple[int, Rule]]] = {prefix: [] for prefix in nested}
    for number, rule in enumerate(rules):
        own[rule.prefix].append((number, rule))
    areas: list[ClosedArea] = []
    for prefix, (outer, inner) in nested.items():
        # In the order of `rules`, which decides between equals.
        covering = [rule for _, rule in sorted((pair for each in outer for pair in own[each]), key=_number)]
        stretches = [
            (first, last)
            for first, last in _stretches(covering, today)
            if not allows(prefix, first, covering, reader, today)
        ]
        areas += [
            ClosedArea(prefix=prefix, but=tuple(inner), first=first, last=last)
            for first, last in _joined(stretches)
        ]
    return tuple(areas)


def _nested(prefixes: Iterable[str]) -> dict[str, tuple[tuple[str, ...], list[str]]]:
    """For each prefix, in order: those that it begins with, itself included, and the longer ones next to it.

    One pass over the sorted prefixes, because all that begin with one of them follow it at once: a thousand
    rules for single pages are a hundred thousand prefixes.
    """
    nested: dict[str, tuple[tuple[str, ...], list[str]]] = {}
    outer: tuple[str, ...] = ()
    for prefix in sorted(prefixes):
        while outer and not prefix.startswith(outer[-1]):
            outer = outer[:-1]
        if outer:
            nested[outer[-1]][1].append(prefix)
        outer = (*outer, prefix)
        nested[prefix] = (outer, [])
    return nested


def _number(numbered: tuple[int, Rule]) -> int:
    return numbered[0]


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
