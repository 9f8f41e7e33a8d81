"""Whether a page has content before scripts run.

It is treated as empty if it has scripts, and either almost no text, or little text together with a mark of a
framework that fills the page in the browser. Only as much of a page is read as is needed to know that.
"""

import re
from itertools import islice

import turbohtml

FEW_LETTERS, SOME_LETTERS = 120, 600
_MARKUP = re.compile(
    r"<(?:!--.*?(?:-->|\Z)"
    r"|(script|style|noscript|template|title|svg)\b.*?(?:</\1\s*>|\Z)"
    r"|[^>]*+(?:>|\Z))"
    r"|&[#\w]{1,10};",
    re.IGNORECASE | re.DOTALL,
)
_FURTHEST_HEAD = 4096
"""A `<head` after this position is text."""
_HEAD_START = re.compile(r"<head\b", re.IGNORECASE)
_HEAD_END = re.compile(r"</head\s*+>|<body\b", re.IGNORECASE)
_SCRIPT = re.compile(r"<script\b", re.IGNORECASE)
_MARKS = re.compile(
    r"""id=["']?(root|app|__next|__nuxt|___gatsby|svelte|ember-app)["'\s>]"""
    r"""|<app-root|ng-app|ng-version|data-reactroot|data-v-app"""
    r"""|(enable|need|activate|requires?|zet|schakel|aktivieren|benötigt)[^<]{0,40}javascript""",
    re.IGNORECASE,
)


_PARAGRAPHS = 40


def is_empty_document(document: turbohtml.Document, html: str) -> bool:
    """As `is_empty`, for a page that has been parsed: most pages show text in their first paragraphs."""
    if document.select_one("script") is None:
        return False
    if document.select_one("noscript") is None and document.select_one("template") is None:
        shown = 0
        for paragraph in islice(document.select("p"), _PARAGRAPHS):
            shown += len(paragraph.text.strip())
            if shown >= 2 * SOME_LETTERS:  # with spaces and punctuation
                return False
    return is_empty(html)


def is_empty(html: str) -> bool:
    """Whether the page is empty until scripts fill it."""
    letters = count_letters(html, enough=SOME_LETTERS)
    if letters >= SOME_LETTERS or not _SCRIPT.search(html):
        return False
    return letters < FEW_LETTERS or _MARKS.search(html) is not None


def count_letters(html: str, *, enough: int) -> int:
    """The number of letters and digits that a reader without scripts sees; counting stops when there are
    `enough`.
    """
    letters, start = 0, _end_of_head(html)
    for markup in _MARKUP.finditer(html, start):
        letters += sum(map(str.isalnum, html[start : markup.start()]))
        if letters >= enough:
            return letters
        start = markup.end()
    return letters + sum(map(str.isalnum, html[start:]))


def _end_of_head(html: str) -> int:
    start = _HEAD_START.search(html, 0, _FURTHEST_HEAD)
    end = _HEAD_END.search(html, start.end()) if start else None
    return end.end() if end else 0
