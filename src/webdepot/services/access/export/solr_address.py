"""Addresses in the form in which SolrWayback looks them up (`url_norm`).

Follows the behaviour of its standard normaliser (https://github.com/netarchivesuite/solrwayback): lower case,
http instead of https, without `www.` and default port, without slashes at the end except after the host, and
without escapes that are not needed.
"""

import re

_START = re.compile(r"https?://(?:(?:www[0-9]*|ww2|ww)\.)?([^/?#]*)")
_PORT = re.compile(r":(?:80|443)?\Z")
_ESCAPES = re.compile(r"(?:%[0-9a-f]{2})+")
_NEEDED = frozenset('"#%<>?[\\]^`{|}')


def normalised(url: str) -> str:
    """The address as SolrWayback has it in `url_norm`."""
    lower = url.lower()
    start = _START.match(lower)
    if not start:
        return lower
    host, rest = _PORT.sub("", start[1]), lower[start.end() :].rstrip("?&").rstrip("/")
    return f"http://{host}{_ESCAPES.sub(_unescaped, rest) or '/'}"


def _unescaped(escapes: re.Match[str]) -> str:
    """Escaped characters as they are, except those that an address may not contain."""
    try:
        text = bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8")
    except UnicodeDecodeError:
        return escapes[0]
    return "".join(
        character
        if character > "\x7f" or (character.isprintable() and character != " " and character not in _NEEDED)
        else f"%{ord(character):02x}"
        for character in text
    )
