"""Does a page, as the server sends it, say anything? Where scripts make the page, a reader of its HTML sees
next to nothing.

It is taken as empty when it has scripts, and either so few letters to read that no page could do with them,
or few letters together with a mark of the frameworks that fill a page in the browser.
"""

import re

FEW_LETTERS, SOME_LETTERS = 120, 600
_HIDDEN = re.compile(
    r"<(script|style|noscript|template|title|svg)\b.*?(</\1\s*>|\Z)|<!--.*?(-->|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_HEAD = re.compile(r"<head\b.*?(</head\s*>|<body\b)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_ENTITY = re.compile(r"&[#\w]{1,10};")
_SCRIPT = re.compile(r"<script\b", re.IGNORECASE)
_MARKS = re.compile(
    r"""id=["']?(root|app|__next|__nuxt|___gatsby|svelte|ember-app)["'\s>]|<app-root|ng-app|ng-version|data-reactroot|data-v-app"""
    r"""|(enable|need|activate|requires?|zet|schakel|aktivieren|benötigt)[^<]{0,40}javascript""",
    re.IGNORECASE,
)


def is_empty(html: str) -> bool:
    """Whether scripts must fill the page before anybody could read it."""
    if not _SCRIPT.search(html):
        return False
    letters = letters_of(html)
    return letters < FEW_LETTERS or (letters < SOME_LETTERS and _MARKS.search(html) is not None)


def letters_of(html: str) -> int:
    """Letters and digits that a reader without scripts sees."""
    shown = _ENTITY.sub(" ", _TAG.sub(" ", _HIDDEN.sub(" ", _HEAD.sub(" ", html, count=1))))
    return sum(map(str.isalnum, shown))
