"""Soft 404: hosts that answer 200 for pages that do not exist.

The links of such a response are relative to an address that does not exist, so they lead to more and more of
them. Order of steps:

1. A host is asked once for an address that cannot exist (`ask`): before its first guessed address, or when
   the harvest has `FIRST_DOCUMENTS` of it, so that hosts with few pages are not asked. `/name` and
   `/name.html` are asked separately, because many servers treat them differently. The request is logged; the
   response is not a page of the site and is not kept.
2. If the response is a page, its visible words are stored with the frontier.
3. A later page with the same words (`is_missing_page`) is kept like any other, but its links are not
   followed, and a guess that led to it counts as wrong. Words of the two addresses do not count, however they
   are written, nor words with digits: such pages repeat their address. This never applies to seeds: many
   hosts return their front page instead.

A guessed page is also treated as missing if it has the same words as an earlier guessed page of its host:
parts of a host may have their own page for what does not exist.

If a page was opened in the browser, the words that the browser shows decide: the routes of a single-page
application all have the same HTML, but show different words.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from urllib.parse import unquote

from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.politeness.server_turns import ServerTurns
from webdepot.harvest.scope.hop_path import embed_depth, is_seed_path
from webdepot.harvest.scope.limits import path_of
from webdepot.harvest.scope.page_text import find_html, visible_text
from webdepot.model import Candidate, Hop, Visit
from webdepot.ports.harvest import Frontier
from webdepot.url import Url, origin_of

FIRST_DOCUMENTS = 10
MOST_HOSTS = 1_000
MOST_GUESSED = 100_000
_WORD = re.compile(r"[^\W_]+")
_FEWEST_WORDS = 3
"""With fewer words the HTML itself is compared: the page is a shell that scripts fill, or only images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageWords:
    """The words of a page, and the letters of its address, which it may repeat."""

    words: Mapping[str, int]
    is_source: bool
    """The words are those of its HTML, because it shows too few."""
    address: str


class MissingPages:
    def __init__(self, turns: ServerTurns, frontier: Frontier) -> None:
        self._turns = turns
        self._frontier = frontier
        self._by_place: dict[str, _PageWords | None] = {}
        """By origin and form, for the hosts that were asked; None if the host correctly returns 404."""
        self._guessed: dict[bytes, Url] = {}
        """Digests of the words of guessed pages, without their addresses, each with the first page that had
        them.
        """

    def must_ask(self, candidate: Candidate, documents: int) -> bool:
        """Whether the host must be asked before this candidate is fetched. `documents` is the number of
        documents that the harvest has from it.
        """
        if candidate.path.endswith(Hop.SPECULATIVE):
            return not self._is_known(_place(candidate.url))
        is_page = candidate.path.endswith(Hop.LINK) and not embed_depth(candidate.path)
        return is_page and documents >= FIRST_DOCUMENTS and not self._is_known(_place(candidate.url))

    def address(self, url: str) -> Url:
        """An address of the host that cannot exist, of the same form."""
        origin = origin_of(url)
        name = blake2b(origin.encode(), digest_size=12, person=b"no such page").hexdigest()
        return Url(f"{origin}/{name}{_form(url)}")

    async def ask(
        self, candidate: Candidate, *, crawl_delay_s: float | None, manners: Manners | None
    ) -> Visit:
        """Fetch a candidate with the `address` and remember the words of the response. The caller logs and
        closes the visit.
        """
        visit = await self._turns.ask(candidate, crawl_delay_s=crawl_delay_s, manners=manners)
        self._remember(_place(candidate.url), _find_page_words(visit))
        return visit

    def spare(self, url: str) -> None:
        """Remember that this host is not asked; none of its pages of this form is treated as missing."""
        self._remember(_place(url), None)

    def is_missing_page(self, visit: Visit, shown: str = "") -> bool:
        """Whether a response is the page that its host gives for addresses that do not exist. `shown` is the
        text of the page in the browser, if it was opened there.
        """
        candidate = visit.candidate
        if is_seed_path(candidate.path) or not self._is_known(place := _place(candidate.url)):
            return False
        missing, is_guess = self._by_place.get(place), candidate.path.endswith(Hop.SPECULATIVE)
        page = _find_page_words(visit) if missing is not None or is_guess else None
        if page is None:
            return False
        if shown_words := _words(shown):
            page = replace(page, words=shown_words, is_source=False)
        if missing is not None and page.is_source is missing.is_source:
            addresses = missing.address + page.address
            if _is_same(page.words, missing.words, addresses):
                return True
        return is_guess and self._was_guessed(candidate.url, page)

    def _was_guessed(self, url: Url, page: _PageWords) -> bool:
        """Whether an earlier guess at the host returned a page with the same words."""
        counted_words = sorted(
            (word, count) for word, count in page.words.items() if word not in page.address
        )
        digest = blake2b(
            f"{origin_of(url)} {counted_words}".encode("utf-8", "replace"), digest_size=16
        ).digest()
        if len(self._guessed) >= MOST_GUESSED:
            self._guessed.clear()
        return self._guessed.setdefault(digest, url) != url

    def _is_known(self, place: str) -> bool:
        if place in self._by_place:
            return True
        stored = self._frontier.recall(f"absent:{place}")
        if stored is None:
            return False
        self._hold(place, _PageWords(**json.loads(stored)) if stored != b"null" else None)
        return True

    def _remember(self, place: str, page: _PageWords | None) -> None:
        self._hold(place, page)
        self._frontier.remember(f"absent:{place}", json.dumps(page and asdict(page)).encode())

    def _hold(self, place: str, page: _PageWords | None) -> None:
        if len(self._by_place) >= MOST_HOSTS:
            self._by_place.clear()
        self._by_place[place] = page


def _place(url: str) -> str:
    return f"{origin_of(url)} {_form(url)}"


def _form(url: str) -> str:
    """`.html` for an address whose last segment has an extension; empty for others."""
    return ".html" if "." in path_of(url).rpartition("/")[2] else ""


def _find_page_words(visit: Visit) -> _PageWords | None:
    """The words of a page; None if the response is not a page."""
    html = find_html(visit)
    if html is None:
        return None
    path = visit.candidate.url[len(origin_of(visit.candidate.url)) :]
    address = "".join(_WORD.findall(f"{unquote(path)} {path}".lower()))
    words = _words(visible_text(html))
    is_source = words.total() < _FEWEST_WORDS
    return _PageWords(words=dict(_words(html) if is_source else words), is_source=is_source, address=address)


def _words(text: str) -> Counter[str]:
    """The words of a text, without those with digits, each with its number."""
    return Counter(word for word in _WORD.findall(text.lower()) if word.isalpha())


def _is_same(words: Mapping[str, int], others: Mapping[str, int], addresses: str) -> bool:
    """Whether two pages have the same words, apart from those that occur in one of the addresses."""
    return all(
        words.get(word, 0) == others.get(word, 0) or word in addresses
        for word in words.keys() | others.keys()
    )
