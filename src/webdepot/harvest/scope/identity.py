"""When two addresses count as one in a harvest: if they are equal without session ids and ignored arguments.

The address that was found first is requested unchanged; only the check "already seen?" uses the shorter form.
Session ids of well-known kinds are always left out; `identity_without` also leaves out the arguments that an
operator names.
"""

import re
from collections.abc import Callable, Sequence

from webdepot.text.patterns import wildcard

_SESSION = re.compile(
    r"(?i)(?:(?<=[?&;])(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}(?:&|\Z)"
    r"|(?<=[?&])aspsessionid[a-z]{8}=[a-z]{24}(?:&|\Z)"
    r"|(?<=[?&])cfid=[^&]+&cftoken=[^&]+(?:&|\Z)"
    r"|;jsessionid=[0-9a-z.!_-]{16,}(?=[?/]|\Z))"
)


def identity(url: str) -> str:
    """The address without session ids of well-known kinds.

    This is not the SURT key: that makes `/news` equal to `/news/`, and a host with `www.` equal to one
    without, so the redirect between them would never be followed.
    """
    lowered = url.lower()
    if "sid=" not in lowered and "sessionid" not in lowered and "cfid=" not in lowered:
        return url
    return _SESSION.sub("", url).rstrip("?&;")


def identity_without(parameters: Sequence[str]) -> Callable[[str], str]:
    """`identity` that also leaves out query arguments with these names; `utm_*` matches all that start with
    `utm_`.
    """
    if not parameters:
        return identity
    ignored = [wildcard(parameter) for parameter in parameters]

    def without(url: str) -> str:
        shorter = identity(url)
        before, mark, query = shorter.partition("?")
        if not mark:
            return shorter
        kept = [
            argument
            for argument in query.split("&")
            if not any(name.fullmatch(argument.partition("=")[0]) for name in ignored)
        ]
        return f"{before}?{'&'.join(kept)}" if kept else before

    return without
