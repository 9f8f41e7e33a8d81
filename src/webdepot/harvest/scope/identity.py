"""What makes two addresses one for a harvest: the exact address, but for session ids and arguments that make
no other page.

The address that was found first goes over the wire untouched; only the question "was it seen?" is put to the
shorter form. Session ids of well-known kinds are always left out; `identity_without` leaves out the arguments
that an operator names as well.
"""

import re
from collections.abc import Callable, Sequence
from fnmatch import translate

_SESSION = re.compile(
    r"(?i)(?:(?<=[?&;])(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}(?:&|\Z)"
    r"|(?<=[?&])aspsessionid[a-z]{8}=[a-z]{24}(?:&|\Z)"
    r"|(?<=[?&])cfid=[^&]+&cftoken=[^&]+(?:&|\Z)"
    r"|;jsessionid=[0-9a-z.!_-]{16,}(?=[?/]|\Z))"
)


def identity(url: str) -> str:
    """What makes two addresses one: the exact address, but for session ids of well-known kinds.

    Not the SURT key: it would take `/news` and `/news/`, or a host with and without `www.`, for one and so
    never follow the redirect between them.
    """
    if "?" not in url and ";" not in url and "&" not in url:  # as most are; the rest is looked at closely
        return url
    lowered = url.lower()
    if "sid=" not in lowered and "sessionid" not in lowered and "cfid=" not in lowered:
        return url
    return _SESSION.sub("", url).rstrip("?&;")


def identity_without(parameters: Sequence[str]) -> Callable[[str], str]:
    """`identity` that also leaves out query arguments of these names; `utm_*` stands for all that begin so."""
    if not parameters:
        return identity
    unwanted = re.compile("|".join(translate(parameter) for parameter in parameters), re.IGNORECASE)

    def without(url: str) -> str:
        shorter = identity(url)
        before, mark, query = shorter.partition("?")
        if not mark:
            return shorter
        kept = [argument for argument in query.split("&") if not unwanted.match(argument.partition("=")[0])]
        return f"{before}?{'&'.join(kept)}" if kept else before

    return without
