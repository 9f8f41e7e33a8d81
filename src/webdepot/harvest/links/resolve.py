"""From references as written to canonical addresses.

Pages of a site repeat their links, and a reference means the same on all pages of a folder, unless it starts
with `?` or has letters outside ASCII, which depend on the encoding of the page. So results are cached by
folder (`resolved_in`): a page of 150 links costs 150 lookups.
"""

from functools import lru_cache

from webdepot.text.encoding import with_query_in
from webdepot.url import Url, find_canonical

_LONGEST_CACHED = 200
_MOST_CACHED = 500
"""Most references of one folder that are cached."""
Resolved = dict[str, Url | None]
_PATH_START = frozenset("/._-~%ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


def resolved_in(base: str) -> Resolved:
    """The references on pages in the folder of `base` that have been resolved; `resolve` adds to them."""
    return _resolved_in_folder(_folder_of(base))


def resolve(raw: str, base: str, encoding: str, known: Resolved) -> Url | None:
    """The address that a reference on the page `base` means; None if it cannot be fetched."""
    if not raw or raw[0] == "#":
        return None
    if not raw.isascii():
        return find_canonical(with_query_in(raw, encoding), base)
    address = find_canonical(raw, base)
    if _is_same_in_folder(raw) and len(known) < _MOST_CACHED:
        known[raw] = address
    return address


@lru_cache(maxsize=256)
def _resolved_in_folder(folder: str) -> Resolved:
    return {}


def _is_same_in_folder(raw: str) -> bool:
    """Whether an ASCII reference means the same on all pages of a folder."""
    if len(raw) > _LONGEST_CACHED or raw[0] not in _PATH_START:
        return False
    # `http:` and `http:?x` depend on the page itself.
    return ":" not in raw or raw.startswith(("http://", "https://"))


def _folder_of(url: str) -> str:
    path = url.partition("?")[0]
    return path[: path.rfind("/") + 1]
