"""How much each part of a page counts when hits are ranked.

All engines of the text index rank by these numbers, and "Why this hit" shows them.
"""

from enum import StrEnum


class RankedPart(StrEnum):
    """A part of a page that a word may be found in. `ports.PagePart` has those that a query can name."""

    TITLE = "title"
    ANCHOR = "anchor"
    """Texts of links from other sites."""
    OWN_ANCHOR = "anchor_own"
    """Texts of links from the same site."""
    HEADINGS = "headings"
    ADDRESS = "address"
    HOME = "home"
    """Title, headings and address of a site's home page, counted once more, except in SQLite."""
    IMAGE = "image"
    """File names and descriptions of images."""
    TEXT = "text"


WEIGHTS = {
    RankedPart.TITLE: 5.0,
    RankedPart.ANCHOR: 5.0,
    RankedPart.OWN_ANCHOR: 2.0,
    RankedPart.HEADINGS: 2.0,
    RankedPart.ADDRESS: 2.0,
    RankedPart.HOME: 1.0,
    RankedPart.IMAGE: 0.5,
    RankedPart.TEXT: 1.0,
}
STEM_WEIGHT = 0.5
"""Weight of another form of the word, found by its stem; SQLite has no stems."""
