"""How long a server is left alone. Pure functions on values; times are seconds.

After an answer: a multiple of what the answer took, not below the institution's shortest pause nor the
server's own Crawl-delay, not above the longest. After 429 and 503: what Retry-After says (RFC 9110, 10.2.3).
After a failure: a distance that grows.
"""

from dataclasses import dataclass
from datetime import datetime

from webdepot.times import from_http

BUSY = frozenset({429, 503})
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers that may be another one next time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    delay_s: float = 1.0
    delay_factor: float = 2.0
    longest_delay_s: float = 30.0
    tries: int = 5
    retry_delay_s: float = 2.0
    """Distance between the first and the second try; each next one is `retry_factor` times as long."""
    retry_factor: float = 2.0
    longest_retry_s: float = 3600.0
    dns_patience_s: float = 0.0
    """So long a name that cannot be looked up is tried beyond the usual tries: no server is bothered by that.
    """


def pause_after(duration_s: float, manners: Manners, *, crawl_delay_s: float | None = None) -> float:
    """The pause after an answer that took `duration_s`. A negative duration (the clock jumped) counts as
    none.
    """
    shortest = max(manners.delay_s, min(crawl_delay_s or 0.0, manners.longest_delay_s))
    proportional = min(max(duration_s, 0.0) * manners.delay_factor, manners.longest_delay_s)
    return max(shortest, proportional)


def after_failure(tries: int, manners: Manners) -> float:
    """The distance to the next try after `tries` failed ones (1 or more)."""
    # The exponent is bounded because a float overflows, not because anybody tries a thousand times.
    return min(
        manners.retry_delay_s * manners.retry_factor ** min(max(tries, 1) - 1, 64), manners.longest_retry_s
    )


def retry_after(value: str | None, now: datetime, manners: Manners) -> float | None:
    """What a Retry-After header asks for: seconds or a date; None when it says nothing readable. Bounded,
    never negative.
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
