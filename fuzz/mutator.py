"""How inputs are changed, beyond the single bytes that libFuzzer changes itself.

Hostile input is seldom a flipped bit. These changes produce inputs of the kinds that have made parsers hang
or use up memory: a long run of one byte or token, deep nesting, a huge number, a repeated field or line, two
parts in the wrong order, a missing end.
"""

import random
import re
from collections.abc import Callable, Sequence

from fuzz.guard import LONGEST_INPUT

_NUMBER = re.compile(rb"[0-9]+")
_NUMBERS = (
    b"0", b"-1", b"1", b"255", b"65535", b"2147483647", b"4294967296", b"9223372036854775808",
    b"99999999999999999999", b"1e999", b"0x7fffffff", b"\xd9\xa3", b"9" * 400, b"9" * 5000,
)  # fmt: skip
_PAIRS = (
    (b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"<a>", b"</a>"), (b"<!--", b"-->"), (b'"', b'"'),
    (b"'", b"'"), (b'{"a":', b"}"), (b"<<", b">>"), (b"/*", b"*/"), (b"((", b"))"), (b"url(", b")"),
)  # fmt: skip
_BYTES = tuple(
    bytes([number]) for number in (*b" \t\n\r\v\f\0-.,;:/\\*%&=+<>()[]{}\"'#?@!|^$~`_0aA", 0x80, 0xFF)
)
_RUNS = (2, 3, 5, 8, 20, 70, 300, 1100, 5000, 30_000)
_SHORT = 6
"""Most runs are short: thousands of small inputs find more than a few large ones."""
_LARGE = 3000
Change = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


def mutated(data: bytes, most: int, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    """The input with one to three random changes, at most `most` bytes. Large inputs are usually made
    smaller.
    """
    if len(data) > _LARGE and chance.random() < 0.7:
        start = chance.randint(0, len(data))
        data = data[:start] + data[start + chance.randint(1, len(data)) :]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        data = chance.choice(_CHANGES)(data, chance, tokens)[:most]
    return data


def _times(unit: bytes, chance: random.Random) -> int:
    """How often to repeat a unit: usually a few times, and never beyond the largest input."""
    wanted = chance.choice(_RUNS if chance.random() < 0.03 else _RUNS[:_SHORT])
    return min(wanted, LONGEST_INPUT // max(len(unit), 1) + 1)


def _spot(data: bytes, chance: random.Random) -> int:
    """A position to change: anywhere, or next to a character that is not a letter, where the parts of formats
    meet.
    """
    at = chance.randint(0, len(data))
    if chance.random() < 0.5:
        for ahead in range(at, min(at + 64, len(data))):
            if not data[ahead : ahead + 1].isalnum():
                return ahead + chance.randint(0, 1)
    return at


def _piece(data: bytes, chance: random.Random) -> tuple[int, int]:
    one, other = _spot(data, chance), _spot(data, chance)
    return min(one, other), max(one, other)


def _insert(data: bytes, at: int, more: bytes) -> bytes:
    return data[:at] + more + data[at:]


def _add_token(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    return _insert(data, _spot(data, chance), chance.choice(tokens or _BYTES))


def _replace_token(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    """Replace a token by another one."""
    present = [token for token in tokens if token in data]
    if not present:
        return _add_token(data, chance, tokens)
    old = chance.choice(present)
    places = [match.start() for match in re.finditer(re.escape(old), data)][:100]
    at = chance.choice(places)
    return data[:at] + chance.choice(tokens) + data[at + len(old) :]


def _add_run(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    """Insert a long run of one byte: one of the input, or one with a meaning in formats."""
    at = _spot(data, chance)
    unit = data[at : at + 1] if data[at : at + 1] and chance.random() < 0.5 else chance.choice(_BYTES)
    return _insert(data, at, unit * _times(unit, chance))


def _add_run_of_tokens(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    unit = chance.choice(tokens or _BYTES) + (chance.choice(_BYTES) if chance.random() < 0.5 else b"")
    return _insert(data, _spot(data, chance), unit * _times(unit, chance))


def _nest(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    """Put a piece inside many brackets; half of the time they are never closed."""
    start, end = _piece(data, chance)
    opening, closing = chance.choice(_PAIRS)
    depth = _times(opening, chance)
    closed = closing * depth if chance.random() < 0.5 else b""
    return data[:start] + opening * depth + data[start:end] + closed + data[end:]


def _change_number(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    numbers = list(_NUMBER.finditer(data))[:200]
    if not numbers:
        return _insert(data, _spot(data, chance), chance.choice(_NUMBERS))
    number = chance.choice(numbers)
    if chance.random() < 0.5 and len(number[0]) < 20:
        new = str(max(0, int(number[0]) + chance.choice((-2, -1, 1, 2)))).encode()
    else:
        new = chance.choice(_NUMBERS)
    return data[: number.start()] + new + data[number.end() :]


def _repeat_piece(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    start, end = _piece(data, chance)
    return data[:start] + data[start:end] * _times(data[start:end], chance) + data[end:]


def _repeat_line(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = chance.randrange(len(lines))
    lines[at:at] = [lines[at]] * _times(lines[at], chance)
    return b"".join(lines)


def _swap_lines(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def _delete_piece(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    start, end = _piece(data, chance)
    return data[:start] + data[end:]


def _cut(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    return data[: _spot(data, chance)]


def _move_piece(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    start, end = _piece(data, chance)
    piece, rest = data[start:end], data[:start] + data[end:]
    return _insert(rest, _spot(rest, chance), piece)


_CHANGES: tuple[Change, ...] = (
    _add_token, _add_token, _replace_token, _replace_token, _add_run, _add_run, _add_run_of_tokens, _nest,
    _change_number, _change_number, _repeat_piece, _repeat_line, _swap_lines, _delete_piece, _cut,
    _move_piece,
)  # fmt: skip
