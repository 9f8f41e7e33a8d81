"""Traps that show only when many answers are seen together: one page under ever new addresses.

A *shape* is an address with its numbers and its session-like words taken out: `/s/*/page?n=#`. When the last answers of a shape
were all the same page, the next address of that shape brings nothing new either: it is rejected until something else comes of it.
Two pages are the same when their bytes are, but for the session-like words of their own addresses, which such pages repeat.

Only what repeats is remembered, for so many shapes; a long harvest of ordinary pages costs nothing.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

from webdepot.model import Answer, Verdict

MOST_SHAPES = 20_000
SAME_ANSWERS = 40
"""So many answers in a row must be the same. Picture viewers and print versions repeat themselves, too, but not so often."""
_READ_BYTES = 1 << 20
_TOKEN = re.compile(r"(?<=[/=;(])(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[0-9A-Za-z_-]{12,}(?=[/&;?).]|\Z)")
"""A word of letters and digits mixed, long enough to be no name."""
_NUMBER = re.compile(r"\d+")


def shape_of(url: str) -> str:
    return _NUMBER.sub("#", _TOKEN.sub("*", url))


class TrapWatch:
    """Bounded memory; forgotten with the process, and soon learned again."""

    def __init__(self, *, same_answers: int = SAME_ANSWERS) -> None:
        self._same_answers = same_answers
        self._rows: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """Shape -> digest of its last answer, and how many in a row were so."""

    def note(self, url: str, digest: str, body: Callable[[], bytes]) -> None:
        """An answer came. `body` reads its bytes, and is called only for an address with a session-like word."""
        shape = shape_of(url)
        if shape == url:
            return
        tokens = _TOKEN.findall(url)
        if tokens:
            digest = _digest_without(tokens, body()[:_READ_BYTES])
        last, row = self._rows.pop(shape, ("", 0))
        self._rows[shape] = (digest, row + 1 if digest == last else 1)
        if len(self._rows) > MOST_SHAPES:
            self._rows.popitem(last=False)

    def of(self, url: str) -> Verdict | None:
        """The verdict against an address of a shape that repeats itself; None when nothing is known against it."""
        if not self._rows:
            return None
        row = self._rows.get(shape_of(url), ("", 0))[1]
        if row < self._same_answers:
            return None
        return Verdict(answer=Answer.REJECT, rule="same answers", reason=f"the last {row} answers of its kind were one page")


def _digest_without(tokens: list[str], body: bytes) -> str:
    for token in tokens:
        body = body.replace(token.encode(), b"")
    return blake2b(body, digest_size=16).hexdigest()
