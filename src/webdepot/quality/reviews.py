"""The decisions of reviewers, or of rules in their place, about harvests. Rows are only added."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, insert, select

from webdepot.model import HarvestId
from webdepot.quality.tables import reviews


class ReviewDecision(StrEnum):
    ACCEPT = "accept"
    REJECT = "reject"
    REOPEN = "reopen"
    ANNOTATE = "annotate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    harvest: HarvestId
    decision: ReviewDecision
    words: str
    by: str
    at: datetime
    is_automatic: bool = False


def add(connection: Connection, review: Review) -> None:
    values = {
        "words": review.words,
        "by": review.by[:200],
        "at": review.at,
        "is_automatic": review.is_automatic,
    }
    connection.execute(
        insert(reviews).values(harvest=review.harvest, decision=review.decision.value, **values)
    )


def of_harvest(connection: Connection, harvest: HarvestId) -> list[Review]:
    """The reviews of a harvest, the newest first."""
    rows = connection.execute(
        select(reviews).where(reviews.c.harvest == harvest).order_by(reviews.c.id.desc())
    ).mappings()
    names = ("words", "by", "at", "is_automatic")
    return [
        Review(
            harvest=harvest, decision=ReviewDecision(row["decision"]), **{name: row[name] for name in names}
        )
        for row in rows
    ]
