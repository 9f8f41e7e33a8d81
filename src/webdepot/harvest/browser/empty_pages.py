"""Whether a page has content before scripts run.

It is treated as empty if it has scripts, and either almost no text, or little text together with a mark of a
framework that fills the page in the browser.
"""

import re

FEW_LETTERS, SOME_LETTERS = 120, 600
_HIDDEN = re.compile(
    r"<(script|style|noscript|template|title|svg)\b.*?(</\1\s*>|\Z)|<!--.*?(-->|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_HEAD_START = re.compile(r"<head\b", re.IGNORECASE)
_HEAD_END = re.compile(r"</head\s*+>|<body\b", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*+(?:>|\Z)")
_ENTITY = re.compile(r"&[#\w]{1,10};")
_SCRIPT = re.compile(r"<script\b", re.IGNORECASE)
_MARKS = re.compile(
    r"""id=["']?(root|app|__next|__nuxt|___gatsby|svelte|ember-app)["'\s>]"""
    r"""|<app-root|ng-app|ng-version|data-reactroot|data-v-app"""
    r"""|(enable|need|activate|requires?|zet|schakel|aktivieren|benötigt)[^<]{0,40}javascript""",
    re.IGNORECASE,
)


def is_empty(html: str) -> bool:
    """Whether scripts must fill the page before it can be read."""
    if not _SCRIPT.search(html):
        return False
    letters = count_letters(html)
    return letters < FEW_LETTERS or (letters < SOME_LETTERS and _MARKS.search(html) is not None)


def count_letters(html: str) -> int:
    """The number of letters and digits that a reader without scripts sees."""
    shown = _ENTITY.sub(" ", _TAG.sub(" ", _HIDDEN.sub(" ", _without_head(html))))
    return sum(map(str.isalnum, shown))


def _without_head(html: str) -> str:
    start = _HEAD_START.search(html)
    end = _HEAD_END.search(html, start.end()) if start else None
    return f"{html[: start.start()]} {html[end.end() :]}" if start and end else html
