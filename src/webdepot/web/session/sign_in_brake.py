"""The brake on guessing passwords: failed attempts to sign in are counted, and further ones are refused for
a while. The names under which they are counted are in `sign_in.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from webdepot.accounts import rate_limits
from webdepot.database import Database
from webdepot.times import Clock, utc_now

WINDOW = timedelta(minutes=1)
MOST_FAILURES = 10
"""Failed attempts for one name from one network, or from one known browser, within the window."""
MOST_FAILURES_OF_NETWORK = 30
"""Failed attempts from one network for any names."""
MOST_FAILURES_NEAR_BY = 100
"""Failed attempts from a network that a provider gives to one customer (the /48 of an IPv6 address)."""


@dataclass(frozen=True, slots=True)
class SignInBrake:
    """Counts failed attempts by names within a minute, over all portals."""

    database: Database
    clock: Clock = utc_now
    """Real time, also in a demonstration with other dates."""

    def is_on(self, limits: Mapping[str, int]) -> bool:
        """Whether one of the names has reached its limit."""
        return rate_limits.is_limited(self.database, limits, since=self.clock() - WINDOW)

    def note_failure(self, limits: Mapping[str, int]) -> None:
        rate_limits.note(self.database, limits, self.clock())
