"""From references as written to canonical addresses.

Pages of a site repeat their links, and a relative reference means the same on all pages of a folder (unless
it starts with `?`). So results are cached: by the reference alone if it is absolute, otherwise by reference
and folder.
"""

from functools import lru_cache
from urllib.parse import quote

from webdepot.url import Url, find_canonical

_LONGEST_CACHED = 200
_PATH_START = frozenset("/._-~%ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


def resolve(raw: str, base: str, encoding: str) -> Url | None:
    """The address that a reference on the page `base` means; None if it cannot be fetched."""
    if not raw or raw[0] == "#":
        return None
    if not raw.isascii():
        return find_canonical(_with_query_in(raw, encoding), base)
    if len(raw) > _LONGEST_CACHED or raw[0] not in _PATH_START:
        return find_canonical(raw, base)
    if raw.startswith(("http://", "https://")):
        return _resolve_absolute(raw)
    if ":" in raw:  # `http:` and `http:?x` depend on the page itself
        return find_canonical(raw, base)
    return _resolve_in_folder(raw, _folder_of(base))


@lru_cache(maxsize=50_000)
def _resolve_absolute(raw: str) -> Url | None:
    return find_canonical(raw)


@lru_cache(maxsize=100_000)
def _resolve_in_folder(raw: str, folder: str) -> Url | None:
    return find_canonical(raw, folder)


def _folder_of(url: str) -> str:
    path = url.partition("?")[0]
    return path[: path.rfind("/") + 1]


def _with_query_in(raw: str, encoding: str) -> str:
    """Encode the letters of the query in the page's encoding (URL Standard, 5.3); others are in UTF-8."""
    if encoding == "utf-8" or encoding.startswith("utf-16") or "?" not in raw:
        return raw
    path, _, rest = raw.partition("?")
    query, mark, fragment = rest.partition("#")
    quoted = "".join(
        letter if letter.isascii() else quote(letter.encode(encoding, "xmlcharrefreplace"))
        for letter in query
    )
    return f"{path}?{quoted}{mark}{fragment}"
