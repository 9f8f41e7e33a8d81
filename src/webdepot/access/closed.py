"""Rules of access as plain areas of closed captures, for indexes that cannot ask the gate about every capture.

`policy.allows` is the truth: of all rules that match a capture one decides, the closest first. Here the same answer is worked out once for
all captures: for each prefix that a rule names, and each stretch of time between the ends of its rules, the gate is asked about one
capture; what it refuses becomes an area. Below a prefix with rules of its own these count, so its parent's areas leave it out.
"""

from collections.abc import Sequence
from datetime import date

from webdepot.access.policy import Reader, Rule, allows
from webdepot.ports import Closed

_FIRST, _LAST = "0" * 14, "9" * 14


def areas(rules: Sequence[Rule], reader: Reader, today: date) -> tuple[Closed, ...]:
    """What this reader must not see today. A capture lies in one of the areas exactly when the gate refuses it."""
    prefixes = sorted({rule.prefix for rule in rules})
    found: list[Closed] = []
    for prefix in prefixes:
        speaking = [rule for rule in rules if prefix.startswith(rule.prefix)]
        below = tuple(other for other in prefixes if other != prefix and other.startswith(prefix))
        stretches = [(first, last) for first, last in _stretches(speaking) if not allows(prefix, first, speaking, reader, today)]
        found += [Closed(prefix=prefix, but=_outermost(below), first=first, last=last) for first, last in _joined(stretches)]
    return tuple(found)


def _stretches(rules: Sequence[Rule]) -> list[tuple[str, str]]:
    """Time cut at every end of a rule: within a stretch all captures have the same answer."""
    cuts = {_FIRST} | {rule.captured_from for rule in rules} | {_next(rule.captured_to) for rule in rules if rule.captured_to < _LAST}
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
