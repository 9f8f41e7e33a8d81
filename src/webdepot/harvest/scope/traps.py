"""Traps that only show when many responses are compared: the same page under ever new addresses.

A *shape* is an address without its numbers and session tokens: `/s/*/page?n=#`. If the last responses of a
shape were all the same page, further addresses of that shape are rejected until a different page comes. Two
pages are the same if their bytes are equal without session tokens, because such pages repeat their token and
link to the next one. Only addresses with a token count: numbered files may all be alike, and an archive wants
each of them.

Memory is bounded by `MOST_SHAPES`; addresses without tokens are not stored.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

from webdepot.model import Answer, Verdict

MOST_SHAPES = 20_000
SAME_ANSWERS = 40
"""Equal responses in a row that make a trap. Image viewers and print versions repeat less often."""
_READ_BYTES = 1 << 20
_TOKEN = re.compile(r"(?<=[/=;(])(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[0-9A-Za-z_-]{12,}(?=[/&;?).]|\Z)")
"""A session token: letters and digits mixed, too long for a name."""
_TOKEN_IN_BODY = re.compile(rb"(?<![0-9A-Za-z_-])(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[0-9A-Za-z_-]{12,}")
_NUMBER = re.compile(r"\d+")


def shape_of(url: str) -> str:
    """The address with `*` for session tokens and `#` for numbers."""
    return _NUMBER.sub("#", _TOKEN.sub("*", url))


class TrapWatch:
    """Kept in memory only: after a restart it is soon learned again."""

    def __init__(self, *, same_answers: int = SAME_ANSWERS) -> None:
        self._same_answers = same_answers
        self._rows: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """Shape -> digest of its last response, and how many in a row had it."""
        self.trapped: dict[str, int] = {}
        """Shapes that are traps, with the number of equal responses."""

    def note(self, url: str, body: Callable[[], bytes]) -> None:
        """Take note of a response. `body` reads its bytes, and is called only for an address with a token."""
        if not _TOKEN.search(url):
            return
        shape = shape_of(url)
        digest = blake2b(_TOKEN_IN_BODY.sub(b"", body()[:_READ_BYTES]), digest_size=16).hexdigest()
        last, row = self._rows.pop(shape, ("", 0))
        row = row + 1 if digest == last else 1
        self._rows[shape] = (digest, row)
        if row >= self._same_answers:
            self.trapped[shape] = row
        else:
            self.trapped.pop(shape, None)
        if len(self._rows) > MOST_SHAPES:
            self.trapped.pop(self._rows.popitem(last=False)[0], None)

    def find_rejection(self, url: str) -> Verdict | None:
        """The rejection of an address whose shape is a trap; None if it is not."""
        row = self.trapped.get(shape_of(url))
        if row is None:
            return None
        return Verdict(
            answer=Answer.REJECT,
            rule="same answers",
            reason=f"the last {row} responses for addresses like this were the same page",
        )
