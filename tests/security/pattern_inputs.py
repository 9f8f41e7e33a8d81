"""Hostile inputs for a regular expression, derived from its own syntax tree, and the time it takes for them.

Run as a program it reads jobs as JSON lines and prints, for each, the input that made it slow, or nothing.
"""

import json
import re
import resource
import signal
import sys
import time
from collections.abc import Iterator
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]

SHORT = 8_000
GROWTH = 4
"""A second, longer input: a linear pattern takes this many times as long."""
QUICK_S = 0.0015
"""What is below this for the short input cannot be quadratic to a degree that matters."""
QUADRATIC = 9
"""Between 4 (linear) and 16 (quadratic)."""
SLOW_S = 0.02
LONGEST_S = 1.0
BOUNDED_S = 0.5
LONGER_S = 0.4
"""For one input. Python's engine looks at signals now and then; where it does not, the budget ends it."""
_SAMPLES = " \t\n\r\x0b\x00aAzZ09_-.:/?#<>()[]{}\"'`\\,;=&%*+!@$|~^\xe9\u0130"
_REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT)


def inputs(pattern: str | bytes, flags: int, size: int) -> list[str]:
    """Runs of each character of the pattern, prefixes of matches followed by runs, repeated prefixes; each
    with and without an end that does not match.
    """
    tree = parser.parse(pattern, flags)
    units = set(_units(list(tree), ""))
    letters = sorted({letter for unit in units for text in unit for letter in text} | set(" <(a0\n"))
    found: dict[str, None] = {}
    for letter in letters:
        found[letter * size] = None
    for prefix, unit in sorted(units):
        for text in (
            prefix + unit * (size // max(len(unit), 1)) if unit else "",
            (prefix + unit) * (size // max(len(prefix + unit), 1)),
            prefix * (size // max(len(prefix), 1)) if prefix else "",
        ):
            for end in ("", "\x01", "\n!", '"'):
                if text:
                    found[text[:size] + end] = None
    return list(found)


def _units(items: list, prefix: str) -> Iterator[tuple[str, str]]:
    """For every repetition in the tree: an example of what precedes it, and an example of its content, once
    for each of its characters.
    """
    for item in items:
        kind, value = item
        if kind in _REPEATS:
            least, _, inner = value
            for letter in _letters(list(inner)):
                yield prefix, letter
            yield prefix, _example(list(inner))
            yield from _units(list(inner), prefix)
            prefix += _example(list(inner)) * max(least, 1 if least else 0)
            # What follows is also tried after one of them.
            continue
        if kind is constants.SUBPATTERN:
            yield from _units(list(value[-1]), prefix)
        elif kind is constants.BRANCH:
            for branch in value[1]:
                yield from _units(list(branch), prefix)
        elif kind in (constants.ASSERT, constants.ASSERT_NOT):
            yield from _units(list(value[1]), prefix)
        elif kind is constants.ATOMIC_GROUP:
            yield from _units(list(value), prefix)
        prefix += _example([item])
    yield prefix, ""


def _letters(items: list) -> list[str]:
    """Characters that a piece of a pattern accepts, a few of each class."""
    found: dict[str, None] = {}
    for kind, value in items:
        if kind in (constants.LITERAL, constants.NOT_LITERAL, constants.IN, constants.ANY):
            for letter in [each for each in _SAMPLES if _accepts(kind, value, each)][:6]:
                found[letter] = None
            if kind is constants.LITERAL:
                found[chr(value)] = None
        elif kind in _REPEATS:
            found.update(dict.fromkeys(_letters(list(value[2]))))
        elif kind is constants.SUBPATTERN:
            found.update(dict.fromkeys(_letters(list(value[-1]))))
        elif kind is constants.BRANCH:
            for branch in value[1]:
                found.update(dict.fromkeys(_letters(list(branch))))
        elif kind is constants.ATOMIC_GROUP:
            found.update(dict.fromkeys(_letters(list(value))))
    return list(found)


def _example(items: list) -> str:
    """A short text that a piece of a pattern accepts."""
    text = ""
    for kind, value in items:
        if kind is constants.LITERAL:
            text += chr(value)
        elif kind in (constants.NOT_LITERAL, constants.IN, constants.ANY):
            text += next((each for each in "a0 -" + _SAMPLES if _accepts(kind, value, each)), "a")
        elif kind in _REPEATS:
            text += _example(list(value[2])) * min(value[0], 300)
        elif kind is constants.SUBPATTERN:
            text += _example(list(value[-1]))
        elif kind is constants.BRANCH:
            text += _example(list(value[1][0]))
        elif kind is constants.ATOMIC_GROUP:
            text += _example(list(value))
    return text


def _accepts(kind: object, value: object, letter: str) -> bool:
    if kind is constants.ANY:
        return letter != "\n"
    if kind is constants.LITERAL:
        return ord(letter) == value
    if kind is constants.NOT_LITERAL:
        return ord(letter) != value
    accepted, negated = False, False
    for part, detail in value:  # type: ignore[attr-defined]
        if part is constants.NEGATE:
            negated = True
        elif part is constants.LITERAL:
            accepted |= ord(letter) == detail
        elif part is constants.RANGE:
            accepted |= detail[0] <= ord(letter) <= detail[1]
        elif part is constants.CATEGORY:
            accepted |= _in_category(str(detail), letter)
    return accepted != negated


def _in_category(name: str, letter: str) -> bool:
    is_in = (
        letter.isspace()
        if "SPACE" in name
        else letter.isdigit()
        if "DIGIT" in name
        else letter.isalnum() or letter == "_"
    )
    return is_in != ("NOT" in name)


def find_slow(pattern: str | bytes, flags: int, methods: list[str], longest: int) -> str:
    """A description of an input whose time grows faster than its length; empty if there is none."""
    compiled = re.compile(pattern, flags)
    is_bytes = isinstance(pattern, bytes)
    size = min(SHORT, max(longest // GROWTH, 8)) if longest else SHORT
    long_ones = inputs(pattern, flags, size * GROWTH)
    for method in methods:
        for number, text in enumerate(inputs(pattern, flags, size)):
            short_s = _time_s(compiled, method, text, is_bytes)
            if short_s > LONGEST_S:
                return f"{method} {text[:40]!r}…{text[-5:]!r}: more than {LONGEST_S} s"
            if short_s < QUICK_S or number >= len(long_ones):
                continue
            long_s = _time_s(compiled, method, long_ones[number], is_bytes)
            if not longest and long_s > SLOW_S and long_s > QUADRATIC * short_s:
                # Once more, much longer: a busy machine must not look like a slow pattern.
                longer_s = _time_s(
                    compiled, method, inputs(pattern, flags, size * GROWTH**2)[number], is_bytes
                )
                if longer_s > LONGER_S:
                    return (
                        f"{method} {text[:40]!r}…{text[-5:]!r}: {short_s:.3f}, {long_s:.3f}, {longer_s:.3f} s"
                    )
            if longest and long_s > BOUNDED_S:
                return f"{method} {text[:40]!r}…{text[-5:]!r}: {long_s:.3f} s for its longest input"
    return ""


def _time_s(compiled: re.Pattern, method: str, text: str, is_bytes: bool) -> float:
    given = text.encode("latin-1", "replace") if is_bytes else text
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
    begun_s = time.process_time()
    try:
        _run(compiled, method, given, is_bytes)
    except TimeoutError:
        return LONGEST_S * 100
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - begun_s


def _run(compiled: re.Pattern, method: str, given: str | bytes, is_bytes: bool) -> None:
    if method in ("sub", "subn"):
        getattr(compiled, method)(b"" if is_bytes else "", given)
    elif method == "finditer":
        for _ in compiled.finditer(given):
            pass
    else:
        getattr(compiled, method)(given)


def _stop(*_: object) -> None:
    raise TimeoutError


def main(budget_s: int) -> None:
    signal.signal(signal.SIGVTALRM, _stop)
    for line in sys.stdin:
        job = json.loads(line)
        # A pattern that never ends is ended by the kernel, and the parent knows which one it was.
        limit = int(time.process_time()) + budget_s
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        pattern = job["pattern"].encode("latin-1") if job["bytes"] else job["pattern"]
        slow = find_slow(pattern, job["flags"], job["methods"], job["longest"])
        print(json.dumps({"name": job["name"], "slow": slow}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
