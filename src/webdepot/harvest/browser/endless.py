"""Pages that never come to an end: how often a page may do what a script can repeat for ever, and why it is
stopped then.

    addresses that it sets for itself   none of them counts, and the page is not clicked, because nobody can
                                        tell what a click has set
    windows that it opens               further ones are closed at once; if they were opened without a click,
                                        none of their addresses counts
    dialogs                             its scripts are stopped

What the page shows is kept in any case. Requests and reloads are limited in `tab`, memory in `supervisor`,
and pages that lead to ever new pages in `scope/mazes`.
"""

from dataclasses import dataclass

MOST_ROUTES = 50
"""More addresses without a click are set on a timer."""
MOST_WINDOWS = 50
MOST_DIALOGS = 20


@dataclass(slots=True)
class EndlessWatch:
    """Counts what one page does. Each method returns whether the page may still do it."""

    routes: int = 0
    dialogs: int = 0
    reason: str = ""
    """Why the page is read, but not clicked; empty if it may be clicked."""

    def note_route(self) -> bool:
        """Note an address that the page set for itself without a click."""
        self.routes += 1
        if self.routes > MOST_ROUTES:
            self.reason = f"it sets ever new addresses for itself: {MOST_ROUTES} without a click"
        return self.routes <= MOST_ROUTES

    def note_windows(self) -> None:
        """Note that the page opened the most windows it may open."""
        self.reason = f"it opened {MOST_WINDOWS} windows"

    def note_dialog(self) -> bool:
        self.dialogs += 1
        if self.dialogs > MOST_DIALOGS:
            self.reason = f"its scripts were stopped after {MOST_DIALOGS} dialogs"
        return self.dialogs <= MOST_DIALOGS
