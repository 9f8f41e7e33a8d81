"""A pass to archived pages that staff alone may see.

The faces that show archived pages know no session, and must not: strangers' scripts run beside them. So the
portal, which knows who is signed in, gives staff a pass to the other faces when they open such a page:

    portal  --/-/pass/{token}/...-->  frame or replay: sets a cookie that no script can read, and leads on to the page

A pass is good for an hour and for reading alone; it is signed with a key that lives as long as the server.
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


def made(now: datetime) -> str:
    """A pass from now on."""
    until = str(int(now.timestamp()) + LASTS_S)
    return f"{until}.{_signed(until)}"


def is_good(token: str, now: datetime) -> bool:
    found = _TOKEN.match(token)
    return (
        found is not None
        and hmac.compare_digest(found[2], _signed(found[1]))
        and now.timestamp() < int(found[1])
    )


def _signed(until: str) -> str:
    return hmac.new(_key(), until.encode(), hashlib.sha256).hexdigest()


@cache
def _key() -> bytes:
    return secrets.token_bytes(32)
