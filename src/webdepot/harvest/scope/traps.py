"""Traps that show only when many answers are seen together: one page under ever new addresses.

A *shape* is an address with its numbers and its session-like words taken out: `/s/*/page?n=#`. When the last
answers of a shape were all the same page, the next address of that shape brings nothing new either: it is
rejected until something else comes of it. Two pages are the same when their bytes are, but for all
session-like words in them, because such pages repeat it and name the next one. Only addresses with such a
word count: numbered files that are all alike are a site's own affair, and an archive wants every one.

Only what repeats is remembered, for so many shapes; a long harvest of ordinary pages costs nothing.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

from webdepot.model import Answer, Verdict

MOST_SHAPES = 20_000
SAME_ANSWERS = 40
"""So many answers in a row must be the same. Picture viewers and print versions repeat themselves, too, but
not so often.
"""
_READ_BYTES = 1 << 20
_TOKEN = re.compile(r"(?<=[/=;(])(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[0-9A-Za-z_-]{12,}(?=[/&;?).]|\Z)")
"""A word of letters and digits mixed, long enough to be no name."""
_TOKEN_IN_BODY = re.compile(rb"(?<![0-9A-Za-z_-])(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[0-9A-Za-z_-]{12,}")
_NUMBER = re.compile(r"\d+")


def shape_of(url: str) -> str:
    return _NUMBER.sub("#", _TOKEN.sub("*", url))


class TrapWatch:
    """Bounded memory; forgotten with the process, and soon learned again."""

    def __init__(self, *, same_answers: int = SAME_ANSWERS) -> None:
        self._same_answers = same_answers
        self._rows: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """Shape -> digest of its last answer, and how many in a row were so."""
        self.trapped: dict[str, int] = {}
        """Those in which they were too many: mostly none, and then nothing is computed for a link."""

    def note(self, url: str, body: Callable[[], bytes]) -> None:
        """An answer came. `body` reads its bytes, and is called only for an address with a session-like word."""
        if not _TOKEN.search(url):
            return
        shape = shape_of(url)
        alike = blake2b(_TOKEN_IN_BODY.sub(b"", body()[:_READ_BYTES]), digest_size=16).hexdigest()
        last, row = self._rows.pop(shape, ("", 0))
        row = row + 1 if alike == last else 1
        self._rows[shape] = (alike, row)
        if row >= self._same_answers:
            self.trapped[shape] = row
        else:
            self.trapped.pop(shape, None)
        if len(self._rows) > MOST_SHAPES:
            self.trapped.pop(self._rows.popitem(last=False)[0], None)

    def of(self, url: str) -> Verdict | None:
        """The verdict against an address of a shape that repeats itself; None when nothing is known against
        it.
        """
        row = self.trapped.get(shape_of(url))
        if row is None:
            return None
        return Verdict(
            answer=Answer.REJECT,
            rule="same answers",
            reason=f"the last {row} answers of its kind were one page",
        )
