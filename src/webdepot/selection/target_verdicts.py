"""Verdicts on targets (selection, permission), each with its author and date."""

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import Connection, insert, select

from webdepot.model import TargetId, Verdict
from webdepot.reasons import to_told
from webdepot.selection.tables import verdicts


def keep_verdict(
    connection: Connection, target: TargetId, question: str, verdict: Verdict, *, agent: str, now: datetime
) -> None:
    """Store a verdict with its author. One that repeats the last on its question is not stored again: every
    package of the target has all its verdicts, and a site is harvested thousands of times on one ground.
    """
    values = {
        "answer": verdict.answer.value,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "agent": agent,
    }
    chosen = select(verdicts).where(verdicts.c.target == target, verdicts.c.question == question)
    last = connection.execute(chosen.order_by(verdicts.c.id.desc()).limit(1)).mappings().one_or_none()
    if last is None or any(last[name] != value for name, value in values.items()):
        connection.execute(insert(verdicts).values(target=target, question=question, at=now, **values))


def iter_verdicts(connection: Connection, target: TargetId) -> Iterator[dict[str, object]]:
    """All verdicts on a target, oldest first, as plain values for its package."""
    for row in connection.execute(
        select(verdicts).where(verdicts.c.target == target).order_by(verdicts.c.id)
    ):
        yield {
            "question": row.question,
            "answer": row.answer,
            "rule": row.rule,
            **to_told(row.reason),
            "agent": row.agent,
            "at": row.at.isoformat(),
        }
