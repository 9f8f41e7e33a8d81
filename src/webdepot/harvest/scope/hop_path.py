"""Questions about a hop path: the letters of `model.Hop` from the seed to an address, such as `LLE`."""

from functools import lru_cache

from webdepot.model import Candidate, Hop
from webdepot.url import Url

_NOT_LINKS = dict.fromkeys(map(ord, (Hop.EMBED, Hop.SPECULATIVE, Hop.REDIRECT, Hop.PREREQUISITE)))
_PART_HOPS = "".join((Hop.EMBED, Hop.REDIRECT, Hop.SPECULATIVE))
_for_each_path = lru_cache(maxsize=4096)
"""Caches results by path: the addresses of a harvest share few paths, and each is examined often."""


def is_seed_path(path: str) -> bool:
    """Whether only redirects lead from the seed to the address."""
    return not path.strip(Hop.REDIRECT)


def count_links(path: str) -> int:
    """The number of hops that a person would have to click."""
    return len(path.translate(_NOT_LINKS))


@_for_each_path
def is_guess(path: str) -> bool:
    """Whether no link, only a guess and its redirects, leads to the address, so that it may not exist."""
    return path.rstrip(Hop.REDIRECT).endswith(Hop.SPECULATIVE)


def is_unreferenced(candidate: Candidate) -> bool:
    """Whether no page names the address: it was guessed, or it is the usual address of a sitemap."""
    is_sitemap = candidate.path.endswith(Hop.MANIFEST) and (candidate.via or "").endswith("/robots.txt")
    return is_guess(candidate.path) or (is_sitemap and candidate.url.endswith("/sitemap.xml"))


@_for_each_path
def is_part(path: str) -> bool:
    """Whether the address was found as a part of a page, or guessed; everything else is a page or a file that
    people open.
    """
    return is_guess(path) or embed_depth(path) > 0


@_for_each_path
def embed_depth(path: str) -> int:
    """How deep the address is embedded in pages: the number of embeds at the end of the path, with redirects
    and guesses between them. 0 if it is not part of a page. A guess itself is not a part; parts of it can be.
    """
    return 0 if is_guess(path) else path[len(path.rstrip(_PART_HOPS)) :].count(Hop.EMBED)


def find_page(candidate: Candidate) -> Url | None:
    """The page that contains the address as a part; None if it is not a part, or a part of a part."""
    return candidate.via if candidate.path[-1:] == Hop.EMBED and embed_depth(candidate.path) == 1 else None


def count_redirects(path: str) -> int:
    """The redirects in a row at the end of the path."""
    return len(path) - len(path.rstrip(Hop.REDIRECT))
