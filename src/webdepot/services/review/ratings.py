"""Reviewers rate single pages of a harvest, with a note. Ratings stay with the harvest: they are rows of the
database, and events, which are in its package.
"""

from collections.abc import Mapping, Sequence

from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.model import HarvestId
from webdepot.provenance import Outcome, append, difference
from webdepot.quality import page_ratings
from webdepot.quality.page_ratings import PageRating, Rating
from webdepot.reasons import cut, said
from webdepot.services.harvest import harvests
from webdepot.url import canonicalise

LONGEST_URL = 2000
LONGEST_TEXT = 2000
MOST_SHOWN = 500


def rate(
    archive: Archive, number: str, *, url: str, rating: str, words: str = "", by: str = ""
) -> PageRating:
    """Rate a page of a harvest, in any state of the harvest; a second rating of a page replaces the first.

    InputError if it is not an address of a web page, or not a rating.
    """
    harvest = harvests.get(archive, number)
    address = canonicalise(url.strip()[:LONGEST_URL])
    if rating not in tuple(Rating):
        raise InputError(said("no_rating", "Choose a rating: good, needs work or broken."))
    text = cut(words.strip(), LONGEST_TEXT)
    with archive.database.transaction() as connection:
        before = page_ratings.find(connection, harvest.id, address)
        event = archive.event(
            "rated",
            "harvest",
            harvest.id,
            by=by,
            outcome=Outcome.WARNING if rating == Rating.BROKEN else Outcome.SUCCESS,
            message=f"{address}: {rating}" + (f" – {text}" if text else ""),
            detail=difference(_detail(before), {"page": address, "rating": rating, "note": text}),
        )
        rated = PageRating(
            harvest=harvest.id, url=address, rating=Rating(rating), words=text, by=event.agent, at=event.at
        )
        page_ratings.add(connection, rated)
        append(connection, event)
    return rated


def of_harvest(archive: Archive, number: str) -> list[PageRating]:
    """The rating of each rated page of a harvest, the newest first, at most `MOST_SHOWN`; NotFound."""
    harvest = harvests.get(archive, number)
    with archive.database.reading() as connection:
        return page_ratings.of_harvest(connection, harvest.id, MOST_SHOWN)


def tallies(archive: Archive, harvests: Sequence[HarvestId]) -> Mapping[HarvestId, Mapping[Rating, int]]:
    """How many pages of each of these harvests have each rating."""
    with archive.database.reading() as connection:
        return page_ratings.tallies(connection, harvests)


def _detail(before: PageRating | None) -> dict[str, object]:
    if before is None:
        return {}
    return {"page": before.url, "rating": before.rating.value, "note": before.words}
