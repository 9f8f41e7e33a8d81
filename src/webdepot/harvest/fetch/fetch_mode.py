"""How pages are fetched: the values in profiles, configuration and command line."""

from enum import StrEnum


class Fetching(StrEnum):
    PLAIN = "plain"
    BROWSER = "browser"
    """Every page is also opened in a browser."""
    WHEN_EMPTY = "when-empty"
    """Only pages without content before scripts run are opened in a browser."""
    AUTO = "auto"
    """As `WHEN_EMPTY` if there is a browser that can be used, otherwise `PLAIN`. Start pages are opened for
    their picture too.
    """

    @property
    def is_when_empty(self) -> bool:
        return self in (Fetching.WHEN_EMPTY, Fetching.AUTO)


class Screenshots(StrEnum):
    """Which pages opened in the browser get a screenshot."""

    NONE = "none"
    SEEDS = "seeds"
    PAGES = "pages"


BEHAVIOURS = ("consent", "scroll", "play", "click")
"""What can be done in an open page; all of it is done by default."""
