"""Questions about a hop path: the letters of `model.Hop` from the seed to an address, such as `LLE`."""

from webdepot.model import Hop

_NOT_LINKS = dict.fromkeys(map(ord, (Hop.EMBED, Hop.SPECULATIVE, Hop.REDIRECT, Hop.PREREQUISITE)))
_PART_HOPS = "".join((Hop.EMBED, Hop.REDIRECT, Hop.SPECULATIVE))


def is_seed_path(path: str) -> bool:
    """Whether only redirects lead from the seed to the address."""
    return not path.strip(Hop.REDIRECT)


def count_links(path: str) -> int:
    """The hops that a person would have to click."""
    return len(path.translate(_NOT_LINKS))


def embed_depth(path: str) -> int:
    """How deep the address is embedded in pages: the trailing embeds, with redirects and guesses between.

    0 if it is not part of a page.
    """
    return path[len(path.rstrip(_PART_HOPS)) :].count(Hop.EMBED)


def count_redirects(path: str) -> int:
    """The redirects in a row at the end of the path."""
    return len(path) - len(path.rstrip(Hop.REDIRECT))
