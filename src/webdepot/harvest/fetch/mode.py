"""How pages are fetched: the words of profiles, configuration and command line."""

from enum import StrEnum


class Fetching(StrEnum):
    PLAIN = "plain"
    BROWSER = "browser"
    """Every page is opened in a browser, too."""
    WHEN_EMPTY = "when-empty"
    """Those pages are that say nothing before scripts have run."""


class Screenshots(StrEnum):
    """Of which pages opened in the browser a screenshot is kept."""

    NONE = "none"
    SEEDS = "seeds"
    PAGES = "pages"


BEHAVIOURS = ("scroll", "play", "click")
"""What can be done in a page that is open."""
