"""Crawler traps that can be detected only by comparing many responses: ever new addresses without new
content.

Endless months of a calendar, sort orders and filters of a list, session tokens. Steps:

1. Addresses that a program can make without end are watched: those with a query, or with a date or a session
   token in the path. They are compared with those of the same path, without its numbers and tokens:
   `/cal/#/#`, `/shop`.
2. The content of a page (`page_content`) is compared with that of all pages of its path: its lines of text,
   its images and other parts, its links to other pages. Years and the words of the address do not count:
   such pages repeat them.
3. When the last pages with a parameter, such as `sort`, have all had no new content, further addresses of the
   path with this parameter are rejected; without a query, further addresses of the path. One of `ONE_OF` is
   still accepted, and if it has new content, the others are accepted again.

For a response with a session token that is not a page, the content is its bytes without tokens. Other files
are never compared, because numbered files may all be alike, and an archive wants each of them; nor are parts
of pages, such as a frame on every page. Memory is bounded by `MOST_PATHS` and `MOST_KNOWN`.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import blake2b
from itertools import groupby
from urllib.parse import unquote

from webdepot.harvest.scope.page_text import find_html, visible_text
from webdepot.model import Answer, Hop, Verdict, Visit
from webdepot.url import Url, host_of

MOST_PATHS = 20_000
MOST_PARAMETERS = 1_000
"""Most parameters of one path."""
MOST_KNOWN = 1_000_000
"""Digests of lines and links, for all paths together."""
FIRST_PAGES = 20
"""How many pages of a path are not compared: few sites with fewer pages have a trap."""
SAME_ANSWERS = 100
"""Responses in a row without anything new that make a trap: more than the days between most events."""
SAME_WITH_TOKEN = 40
"""The same for addresses with a session token. Image viewers and print versions repeat less often."""
ONE_OF = 256
_READ_BYTES = 1 << 20
_LONGEST = _READ_BYTES // 4
"""Characters of a page that was certainly read to its end."""
_TOKEN = re.compile(r"(?<=[/=;(])(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[0-9A-Za-z_-]{12,}(?=[/&;?).]|\Z)")
"""A session token: letters and digits mixed, too long for a name."""
_TOKEN_IN_BODY = re.compile(rb"(?<![0-9A-Za-z_-])(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[0-9A-Za-z_-]{12,}")
_NUMBER = re.compile(r"\d+")
_DATE = re.compile(r"[/_-][12]\d{3}[/_-][01]?\d(?![^/_-])")
_YEAR = re.compile(r"[12]\d{3}\Z")
_WORD = re.compile(r"[^\W_]+(?:[.,:][^\W_]+)*")

PageContent = Collection[int]
_NO_QUERY = frozenset({""})


def shape_of(url: str) -> tuple[str, frozenset[str]]:
    """The path with `*` for session tokens and `#` for numbers, and the names of the parameters."""
    path, _, query = url.partition("?")
    names = {_NUMBER.sub("#", part.partition("=")[0]) for part in re.split("[&;]", query) if part}
    return _NUMBER.sub("#", _TOKEN.sub("*", path)), frozenset(names) or _NO_QUERY


def may_be_endless(url: str) -> bool:
    """Whether a program can make addresses such as this one without end."""
    return "?" in url or _TOKEN.search(url) is not None or _DATE.search(url) is not None


class TrapWatch:
    """Detects traps. Its state is in memory only: after a restart it is soon learned again."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, int] = OrderedDict()
        """Path -> its pages so far."""
        self._known: OrderedDict[str, set[int]] = OrderedDict()
        """Path -> digests of the content of its pages."""
        self._known_in_all = 0
        self._rows: dict[str, dict[str, int]] = {}
        """Path -> parameter -> responses in a row without new content."""
        self.trapped: dict[str, dict[str, int]] = {}
        """Path -> parameter that makes it a trap -> the number of such responses."""

    def note(self, url: str, read_content: Callable[[], PageContent | None]) -> None:
        """Learn from a response. `read_content` is called only if it is compared, and returns None if it
        cannot be.
        """
        if not may_be_endless(url):
            return
        path, names = shape_of(url)
        seen = self._seen[path] = self._seen.pop(path, 0) + 1
        if len(self._seen) > MOST_PATHS:
            self._forget(self._seen.popitem(last=False)[0])
        content = read_content() if seen > FIRST_PAGES else None
        if content is None:
            return
        rows = self._rows.setdefault(path, {})
        if len(rows) >= MOST_PARAMETERS:
            rows.clear()
        is_new, needed = self._add(path, content), SAME_WITH_TOKEN if _TOKEN.search(url) else SAME_ANSWERS
        traps = self.trapped.setdefault(path, {})
        for name in names:
            row = rows[name] = 0 if is_new else rows.get(name, 0) + 1
            if row >= needed:
                traps[name] = row
            else:
                traps.pop(name, None)
        if not traps:
            del self.trapped[path]

    def find_rejection(self, url: str) -> Verdict | None:
        """The rejection of an address whose shape is a trap; None if it is not."""
        name = self._find_trap(url)
        if name is None or _digest(url) % ONE_OF == 0:
            return None
        like = f"with {name}" if name else "with addresses like this one"
        return Verdict(
            answer=Answer.REJECT,
            rule="same answers",
            reason=f"the last {self.trapped[shape_of(url)[0]][name]} pages {like} said nothing new",
        )

    def is_trapped(self, url: str) -> bool:
        return self._find_trap(url) is not None

    def _find_trap(self, url: str) -> str | None:
        """The parameter that makes an address a trap; empty for its path, None if there is none."""
        path, names = shape_of(url)
        return min(names & self.trapped[path].keys(), default=None) if path in self.trapped else None

    def _add(self, path: str, content: PageContent) -> bool:
        """Remember the content of a page; return whether some of it is new."""
        known = self._known[path] = self._known.pop(path, set())
        new = [each for each in content if each not in known]
        known.update(new)
        self._known_in_all += len(new)
        while self._known_in_all > MOST_KNOWN and self._known:
            self._known_in_all -= len(self._known.popitem(last=False)[1])
        return bool(new)

    def _forget(self, path: str) -> None:
        self._known_in_all -= len(self._known.pop(path, ()))
        self._rows.pop(path, None)
        self.trapped.pop(path, None)


def page_content(
    visit: Visit, links: Iterable[tuple[Url, Hop]], shown: str, is_trapped: Callable[[str], bool]
) -> PageContent | None:
    """The content of a response for comparison. `shown` is its text in the browser, if it was opened
    there.
    """
    url = visit.candidate.url
    html = find_html(visit, limit_bytes=_READ_BYTES)
    if html is None:
        return [_digest(_TOKEN_IN_BODY.sub(b"", _body_of(visit)))] if _TOKEN.search(url) else None
    if len(html) >= _LONGEST:
        return None
    digests = _line_digests(url, shown or visible_text(html))
    return digests | {_digest(_TOKEN.sub("*", link)) for link in _telling(url, links, is_trapped)}


def page_lines(visit: Visit, shown: str) -> PageContent:
    """The lines of a page as in `page_content`; none if the response is not a page."""
    html = find_html(visit, limit_bytes=_READ_BYTES)
    return _line_digests(visit.candidate.url, shown or visible_text(html)) if html is not None else ()


def _line_digests(url: Url, text: str) -> set[int]:
    own = {_plain(word) for word in _WORD.findall(unquote(url).lower())}
    own |= {_plain(word) for word in re.findall(r"\d+|[^\W\d_]+", unquote(url).lower())}
    return {_digest(line) for line in _lines(text, own)}


def _lines(text: str, own: Collection[str]) -> Iterator[str]:
    """Lines without years and the words of the address. Numbers that follow each other are one line: the grid
    of a month is always alike, the table of a measurement is not.
    """
    lines = (
        [word for word in map(_plain, _WORD.findall(line)) if word not in own and not _YEAR.match(word)]
        for line in text.lower().splitlines()
    )
    for is_number, run in groupby(
        filter(None, lines), lambda words: all(word[0].isdecimal() for word in words)
    ):
        if is_number:
            yield " ".join(word for words in run for word in words)
        else:
            yield from (" ".join(words) for words in run)


def _telling(url: Url, links: Iterable[tuple[Url, Hop]], is_trapped: Callable[[str], bool]) -> Iterator[str]:
    """Parts of a page, and its links to other paths of its host, without those to traps."""
    host, path = host_of(url), shape_of(url)[0]
    for link, hop in links:
        if hop is Hop.EMBED or (
            hop is Hop.LINK
            and host_of(link) == host
            and shape_of(link)[0] != path
            and "%2f" not in link.lower()  # `/login?return=%2Fcal…` contains where the reader came from
            and not is_trapped(link)
        ):
            yield link


def _plain(word: str) -> str:
    """A number without zeros at its start: `05` in an address is `5` in the page."""
    return word.lstrip("0") or "0" if word.isdecimal() else word


def _body_of(visit: Visit) -> bytes:
    visit.body.seek(0)
    return visit.body.read(_READ_BYTES)


def _digest(content: str | bytes) -> int:
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")
