"""What browsers showed of pages, if it is not in the container of the page: in the list of pages of a WACZ,
or in a container of its own (Browsertrix: `text-….warc.gz`).

The texts of one harvest are in a temporary SQLite file, because there may be more of them than memory. They
are added to pages that were read already (`page_files`), so the markup is no longer known:

* A title is used if the page has none.
* A text is used if the page has less than a third of its words: then scripts have built the page. Only lines
  with a word that the page does not have are added, so to add them twice changes nothing.
* It belongs to the capture of the same address that is nearest in time, at most an hour away: other captures
  of the page may have shown something else.
"""

import sqlite3
from dataclasses import replace
from pathlib import Path

from webdepot.index.content.html import added_lines
from webdepot.index.content.language import SAMPLE_CHARS, language_of
from webdepot.index.content.text import HTML_MIMES, LONGEST_TITLE, tidy
from webdepot.index.text.near_duplicates import likeness
from webdepot.ports.search import PageText
from webdepot.times import gap_s
from webdepot.url import key as key_of

SAME_VISIT_S = 3600
_MOST_CANDIDATES = 100
"""Most texts of one address; further visits of it in one harvest are not considered."""


class ListedTexts:
    """The texts of one harvest. Use it in one thread, and close it."""

    def __init__(self, path: Path, *, languages: tuple[str, ...], limit_chars: int) -> None:
        self._languages = languages
        self._limit_chars = limit_chars
        self._database = sqlite3.connect(path)
        self._database.executescript(
            "pragma journal_mode = off; pragma synchronous = off;"
            "create table shown (key text, url text, timestamp text, title text, text text);"
            "create index shown_key on shown (key)"
        )
        self._count = 0

    def close(self) -> None:
        self._database.close()

    def __bool__(self) -> bool:
        return bool(self._count)

    def add(self, url: str, timestamp: str, *, title: str, text: str) -> None:
        """Remember a text; one without a date or without anything to add is ignored."""
        if timestamp and (title or text):
            values = (key_of(url), url, timestamp, title, text[: self._limit_chars])
            self._database.execute("insert into shown values (?, ?, ?, ?, ?)", values)
            self._count += 1

    def complete(self, page: PageText) -> PageText:
        """The page with the title and the text that a browser showed, where it has none itself."""
        if page.repeats or page.gone or page.mime not in HTML_MIMES:
            return page
        near = self._near(page)
        title = page.title or next((_title(each[0]) for each in near if each[0]), "")
        text = next((each[1] for each in near if each[1]), "")
        added = ""
        if 3 * len(page.text.split()) < len(text.split()):
            added = added_lines(f"{page.title}\n{page.headings}\n{page.text}\n{page.images}", text)
        if not added:
            return page if title == page.title else replace(page, title=title)
        text = tidy(f"{page.text}\n{added}")
        language = language_of(f"{title} {text[:SAMPLE_CHARS]}", self._languages)
        return replace(page, title=title, text=text, language=language, likeness=likeness(text))

    def _near(self, page: PageText) -> list[tuple[str, str]]:
        """Titles and texts of the same visit; first those with exactly this address, then by time."""
        rows = self._database.execute(
            "select url, timestamp, title, text from shown where key = ? limit ?",
            (page.key, _MOST_CANDIDATES),
        )
        near = [
            (url != page.url, gap, title, text)
            for url, timestamp, title, text in rows
            if (gap := gap_s(timestamp, page.timestamp)) <= SAME_VISIT_S
        ]
        return [(title, text) for _, _, title, text in sorted(near)]


def _title(text: str) -> str:
    return tidy(text).replace("\n", " ")[:LONGEST_TITLE]
