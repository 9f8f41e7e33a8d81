"""A pass to archived pages that only staff may see.

The origins that show archived pages have no sessions, and must not have any, because archived scripts run on
them. So the portal, where staff are signed in, gives them a pass when they open such a page:

    portal  --/-/pass/{token}/...-->  frame or replay: sets a cookie that scripts cannot read,
                                      and redirects to the page

A pass is valid for an hour and for reading only. It is signed with a key that exists as long as the server
runs.
"""

import hashlib
import hmac
import re
import secrets
from datetime import datetime
from functools import cache

COOKIE = "pass"
LASTS_S = 3600
_TOKEN = re.compile(r"([0-9]{10,12})\.([0-9a-f]{64})\Z", re.ASCII)


def make(now: datetime) -> str:
    """A new pass."""
    until = str(int(now.timestamp()) + LASTS_S)
    return f"{until}.{_sign(until)}"


def is_valid(token: str, now: datetime) -> bool:
    match = _TOKEN.match(token)
    return (
        match is not None
        and hmac.compare_digest(match[2], _sign(match[1]))
        and now.timestamp() < int(match[1])
    )


def _sign(until: str) -> str:
    return hmac.new(_key(), until.encode(), hashlib.sha256).hexdigest()


@cache
def _key() -> bytes:
    return secrets.token_bytes(32)
