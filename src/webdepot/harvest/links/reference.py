"""A reference: a link as written in a page, with its hop."""

from webdepot.model import Hop

Reference = tuple[str, Hop]

HOP_RANK = {
    hop: rank
    for rank, hop in enumerate(
        (Hop.REDIRECT, Hop.EMBED, Hop.LINK, Hop.MANIFEST, Hop.PREREQUISITE, Hop.SPECULATIVE)
    )
}
"""If an address is found by several hops, the one with the lowest rank counts."""
