"""Near-duplicate pages: a simhash of 64 bits for each text, and the folding of a ranked list.

The likeness of a text is Charikar's simhash over its words: each word votes for the bits of its hash, so that
texts with nearly the same words get numbers that differ in few bits (Manku and others, Detecting
near-duplicates for web crawling, WWW 2007: at most 3 of 64).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from webdepot import query_budget

FARTHEST_BITS = 3
FEWEST_WORDS = 30
"""Shorter texts have too few words to be compared."""
_MOST_CHARS, _MOST_VOTES = 4000, 4
_MOST_FOLDED = 1000
_CHECK_EVERY = 256
"""How many pages are compared between two checks of the budget: at most some hundredths of a second."""


@dataclass(slots=True)
class Leader:
    """The state that is shown for a group of pages."""

    score: float
    place: Any
    similar: int = 0


def likeness(text: str) -> int:
    """The simhash of a text; 0 if it is too short."""
    import numpy  # takes half a second to import, and only indexing needs it

    letters, pairs = _tables()
    data = letters[numpy.frombuffer(text[:_MOST_CHARS].encode("utf-8", "replace") + b" ", dtype=numpy.uint8)]
    if len(data) < FEWEST_WORDS:
        return 0
    # The hash of a word is the sum of the hashes of its pairs of letters, including the spaces around it.
    starts = numpy.flatnonzero((data[1:] != 0) & (data[:-1] == 0))
    if len(starts) + (data[0] != 0) < FEWEST_WORDS:
        return 0
    sums = numpy.add.reduceat(pairs[(data[:-1].astype(numpy.uint16) << 8) | data[1:]], starts)
    # Like numpy.unique, in half the time for so few values.
    sums.sort()
    firsts = numpy.concatenate(([0], numpy.flatnonzero(sums[1:] != sums[:-1]) + 1, [len(sums)]))
    hashes, counts = sums[firsts[:-1]], firsts[1:] - firsts[:-1]
    # A word that occurs a hundred times does not count a hundred times as much.
    weights = numpy.minimum(counts, _MOST_VOTES).astype(numpy.float32)
    bits = numpy.unpackbits(hashes.view(numpy.uint8).reshape(-1, 8), axis=1).astype(numpy.float32)
    return int.from_bytes(numpy.packbits(weights @ bits > weights.sum() / 2).tobytes(), "big") or 1


@lru_cache(maxsize=1)
def _tables() -> tuple[Any, Any]:
    """Two tables: for each byte the letter in lower case, or zero if it ends a word; and for each pair of
    letters a number of 64 bits, which must never change.
    """
    import numpy

    letters = numpy.zeros(256, dtype=numpy.uint8)
    for code in range(256):
        char = chr(code)
        letters[code] = code if code >= 0x80 else ord(char.lower()) if char.isalnum() else 0
    # SplitMix64, https://prng.di.unimi.it/splitmix64.c
    with numpy.errstate(over="ignore"):
        mixed = numpy.arange(1, 1 << 16 | 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> numpy.uint64(31)
    mixed[0] = 0
    return letters, mixed


def fold_groups(ranked: Sequence[tuple[float, Any, int]]) -> list[Leader]:
    """The leaders of a ranked list of (score, place, likeness): each near-duplicate of a better one is
    counted there and left out.
    """
    leaders: list[Leader] = []
    likenesses: list[int] = []
    for number, (score, place, like) in enumerate(ranked):
        if number % _CHECK_EVERY == 0:
            query_budget.check()
        at = _find_near(like, likenesses) if like and len(leaders) < _MOST_FOLDED else -1
        if at >= 0:
            leaders[at].similar += 1
        else:
            leaders.append(Leader(score, place))
            likenesses.append(like)
    return leaders


def _find_near(like: int, likenesses: Sequence[int]) -> int:
    return next(
        (at for at, other in enumerate(likenesses) if other and (like ^ other).bit_count() <= FARTHEST_BITS),
        -1,
    )
