"""Pages that are nearly the same: a likeness of 64 bits for each text, and the folding of a ranked list.

The likeness is Charikar's simhash over the words of a text: each word votes for the bits of its hash, so that texts with nearly the same
words get numbers that differ in few bits (Manku and others, Detecting near-duplicates for web crawling, WWW 2007: at most 3 of 64).
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

FARTHEST_BITS = 3
FEWEST_WORDS = 30
"""Shorter texts say too little to be called alike."""
_MOST_CHARS = 8000
_MOST_FOLDED = 1000


@dataclass(slots=True)
class Leader:
    """The state that is shown for a group of pages."""

    score: float
    place: Any
    similar: int = 0


def likeness(text: str) -> int:
    """The simhash of a text; 0 where it is too short."""
    import numpy  # brings half a second of start-up that only indexing needs

    words = Counter(text[:_MOST_CHARS].lower().split())
    if words.total() < FEWEST_WORDS:
        return 0
    hashes = numpy.frombuffer(b"".join(map(_hashed, words)), dtype=numpy.uint8).reshape(-1, 8)
    # A word that stands there a hundred times does not say a hundred times as much.
    weights = numpy.minimum(numpy.fromiter(words.values(), dtype=numpy.int32, count=len(words)), 4)
    votes = weights @ (numpy.unpackbits(hashes, axis=1).astype(numpy.int32) * 2 - 1)
    return int.from_bytes(numpy.packbits(votes > 0).tobytes(), "big") or 1


def folded_groups(ranked: Sequence[tuple[float, Any, int]]) -> list[Leader]:
    """(score, place, likeness) in order: each one that is nearly the same as a better one is counted there and left out."""
    leaders: list[Leader] = []
    likenesses: list[int] = []
    for score, place, like in ranked:
        found = _near(like, likenesses) if like and len(leaders) < _MOST_FOLDED else -1
        if found >= 0:
            leaders[found].similar += 1
        else:
            leaders.append(Leader(score, place))
            likenesses.append(like)
    return leaders


def _near(like: int, likenesses: Sequence[int]) -> int:
    return next((at for at, other in enumerate(likenesses) if other and (like ^ other).bit_count() <= FARTHEST_BITS), -1)


@lru_cache(maxsize=200_000)
def _hashed(word: str) -> bytes:
    return hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
