"""How reviewers rate single pages of a harvest. Rows are only added; the last one about a page counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, func, insert, select

from webdepot.model import HarvestId
from webdepot.quality.tables import page_ratings


class Rating(StrEnum):
    GOOD = "good"
    NEEDS_WORK = "needs work"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRating:
    harvest: HarvestId
    url: str
    rating: Rating
    words: str
    by: str
    at: datetime


def add(connection: Connection, rated: PageRating) -> None:
    values = {"url": rated.url, "rating": rated.rating.value, "words": rated.words, "at": rated.at}
    connection.execute(insert(page_ratings).values(harvest=rated.harvest, by=rated.by[:200], **values))


def of_harvest(connection: Connection, harvest: HarvestId, limit: int) -> list[PageRating]:
    """The rating of each rated page, the newest first."""
    last = select(func.max(page_ratings.c.id)).where(page_ratings.c.harvest == harvest)
    chosen = (
        select(page_ratings)
        .where(page_ratings.c.id.in_(last.group_by(page_ratings.c.url)))
        .order_by(page_ratings.c.id.desc())
        .limit(limit)
    )
    names = ("url", "words", "by", "at")
    return [
        PageRating(harvest=harvest, rating=Rating(row["rating"]), **{name: row[name] for name in names})
        for row in connection.execute(chosen).mappings()
    ]


def tallies(connection: Connection, harvests: Sequence[HarvestId]) -> dict[HarvestId, Mapping[Rating, int]]:
    """The `tally` of each of these harvests that has rated pages."""
    last = select(func.max(page_ratings.c.id)).where(page_ratings.c.harvest.in_(harvests))
    chosen = (
        select(page_ratings.c.harvest, page_ratings.c.rating, func.count())
        .where(page_ratings.c.id.in_(last.group_by(page_ratings.c.harvest, page_ratings.c.url)))
        .group_by(page_ratings.c.harvest, page_ratings.c.rating)
    )
    counts = {(harvest, rating): count for harvest, rating, count in connection.execute(chosen)}
    return {
        harvest: {each: counts[harvest, each] for each in reversed(Rating) if (harvest, each) in counts}
        for harvest in dict.fromkeys(harvest for harvest, _ in counts)
    }


def find(connection: Connection, harvest: HarvestId, url: str) -> PageRating | None:
    """The last rating of a page; None if there is none."""
    chosen = (
        select(page_ratings)
        .where(page_ratings.c.harvest == harvest, page_ratings.c.url == url)
        .order_by(page_ratings.c.id.desc())
        .limit(1)
    )
    row = connection.execute(chosen).mappings().one_or_none()
    if row is None:
        return None
    names = ("url", "words", "by", "at")
    return PageRating(harvest=harvest, rating=Rating(row["rating"]), **{name: row[name] for name in names})


def tally(ratings: Sequence[PageRating]) -> Mapping[Rating, int]:
    """How many pages have each rating, the worst first; without those that no page has."""
    counts = {each: sum(rated.rating is each for rated in ratings) for each in reversed(Rating)}
    return {each: count for each, count in counts.items() if count}
