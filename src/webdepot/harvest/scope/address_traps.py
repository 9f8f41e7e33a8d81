"""Scope rules against crawler traps that an address shows by itself: repeated segments, endless calendars.

Traps that only the answers show are recognised by `trap_watch` and `mazes`.
"""

import re
from collections import Counter

from webdepot.harvest.scope.limits import path_of
from webdepot.harvest.scope.verdicts import PASS, Rule, reject
from webdepot.model import Candidate, Verdict

_DATE = re.compile(
    r"(?i)[/=_-](\d{4})[/_-](?:0?[1-9]|1[0-2])(?=[/_&?-]|\Z)"  # /2031/07/ and =2031-07-01
    r"|[?&](?:\w*year|jahr|jaar|y)=(\d{4})(?=&|\Z)"
    r"|[?&](?:\w*date|datum|month|monat|maand|day|tag|dag|from|start|begin)=(\d{4})-?(?:0[1-9]|1[0-2])"
)
_FIRST_YEAR = 1000
"""Earlier years are treated as an endless calendar: historians link to 1648, but not to the year 200."""
_LAST_YEAR = 2999


def repeating(most: int) -> Rule:
    """Reject `/a/b/a/b/a/b/a/b`, the result of wrong relative links."""

    def rule(candidate: Candidate) -> Verdict:
        path = path_of(candidate.url)
        if path.count("/") <= most:
            return PASS
        segments = Counter(filter(None, path.split("/")))
        segment, times = max(segments.items(), key=lambda item: item[1], default=("", 0))
        if times <= most:
            return PASS
        return reject("repeating", f"the segment {segment!r} occurs {times} times")

    return rule


def endless_dates(year: int, years_ahead: int) -> Rule:
    """Reject dates far ahead, and before the year 1000. Calendars always link to the next and the previous
    month: `/2031/07/`, `year=2044&month=1`.
    """
    latest = year + years_ahead

    def rule(candidate: Candidate) -> Verdict:
        match = _DATE.search(candidate.url)
        if match is None:
            return PASS
        dated = int(match[1] or match[2] or match[3])
        if match[0][0] in "-_" and not _FIRST_YEAR <= dated <= _LAST_YEAR:
            return PASS  # a code, not a date: `iso-8859-1`, `item-0042-7`
        if latest < dated or dated < _FIRST_YEAR:
            return reject("calendar", f"it is about the year {dated}: probably an endless calendar")
        return PASS

    return rule
