"""How long a server is left alone. Pure functions on values; times are seconds.

After a response: a multiple of its duration, at least the configured delay and the server's Crawl-delay, at
most the longest delay. After 429 and 503: what Retry-After asks for (RFC 9110, 10.2.3). After a failure: an
interval that grows with each try.
"""

from dataclasses import dataclass
from datetime import datetime

from webdepot.times import from_http

BUSY = frozenset({429, 503})
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Status codes that may be different next time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    delay_s: float = 1.0
    delay_factor: float = 2.0
    longest_delay_s: float = 30.0
    tries: int = 5
    retry_delay_s: float = 2.0
    """Interval between the first and the second try; each next one is `retry_factor` times as long."""
    retry_factor: float = 2.0
    longest_retry_s: float = 3600.0
    dns_patience_s: float = 0.0
    """How long to retry DNS failures beyond `tries`: this puts no load on the site's server."""


def pause_after(duration_s: float, manners: Manners, *, crawl_delay_s: float | None = None) -> float:
    """The pause after a response that took `duration_s`. A negative duration (clock jump) counts as 0."""
    shortest = max(manners.delay_s, min(crawl_delay_s or 0.0, manners.longest_delay_s))
    proportional = min(max(duration_s, 0.0) * manners.delay_factor, manners.longest_delay_s)
    return max(shortest, proportional)


def after_failure(tries: int, manners: Manners) -> float:
    """The interval before the next try after `tries` failed ones (1 or more)."""
    # The exponent is bounded only because a float overflows.
    return min(
        manners.retry_delay_s * manners.retry_factor ** min(max(tries, 1) - 1, 64), manners.longest_retry_s
    )


def retry_after(value: str | None, now: datetime, manners: Manners) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or a date; None if it is unreadable.

    From 0 to `longest_retry_s`.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:9])
    else:
        try:
            seconds = (from_http(text) - now).total_seconds()
        except ValueError:
            return None
    return min(max(seconds, 0.0), manners.longest_retry_s)
