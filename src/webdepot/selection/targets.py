"""Targets: sites we decided about. One target per site, however its address is spelled."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection, RowMapping, insert, select

from webdepot.errors import NotFound
from webdepot.model import Purpose, Target, TargetId, Verdict
from webdepot.selection.tables import targets, verdicts
from webdepot.url import Url, key


def register(
    connection: Connection, seeds: Sequence[Url], *, name: str, collection: str, purpose: Purpose, now: datetime
) -> tuple[Target, bool]:
    """The target of these seeds, and whether it is new. Seeds are compared by their keys: spelling does not matter."""
    identity = json.dumps(sorted({key(seed) for seed in seeds}))[:2000]
    row = connection.execute(select(targets).where(targets.c.key == identity)).mappings().one_or_none()
    if row is not None:
        return _target(row), False
    inserted = connection.execute(
        insert(targets)
        .values(key=identity, name=name, seeds=list(seeds), collection=collection, purpose=purpose.value, created_at=now)
        .returning(targets)
    )
    return _target(inserted.mappings().one()), True


def get(connection: Connection, target: TargetId) -> Target:
    row = connection.execute(select(targets).where(targets.c.id == target)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no target {target}.")
    return _target(row)


def find_named(connection: Connection, text: str) -> Target | None:
    """The target a person means: by its number, its name or one of its seeds."""
    if text.isascii() and text.isdigit():
        chosen = select(targets).where(targets.c.id == int(text))
    else:
        chosen = select(targets).where(targets.c.name == text).order_by(targets.c.id.desc())
    row = connection.execute(chosen.limit(1)).mappings().one_or_none()
    if row is None and "." in text:
        identity = json.dumps([key(text if "://" in text else f"http://{text}")])
        row = connection.execute(select(targets).where(targets.c.key == identity)).mappings().one_or_none()
    return _target(row) if row is not None else None


def named(connection: Connection, words: Sequence[str], *, limit: int) -> Iterator[Target]:
    """Targets whose name or seeds have all of these words, by name."""
    asked = select(targets).order_by(targets.c.name).limit(limit)
    for word in words:
        asked = asked.where(targets.c.name.icontains(word, autoescape=True) | targets.c.key.icontains(word, autoescape=True))
    yield from map(_target, connection.execute(asked).mappings())


def keep_verdict(connection: Connection, target: TargetId, question: str, verdict: Verdict, *, agent: str, now: datetime) -> None:
    """Decisions are kept, with who took them."""
    connection.execute(
        insert(verdicts).values(
            target=target, question=question, answer=verdict.answer.value, rule=verdict.rule, reason=verdict.reason, agent=agent, at=now
        )
    )


def iter_verdicts(connection: Connection, target: TargetId) -> Iterator[dict[str, str]]:
    """Everything decided about a target, oldest first, as plain values for its package."""
    for row in connection.execute(select(verdicts).where(verdicts.c.target == target).order_by(verdicts.c.id)):
        yield {
            "question": row.question,
            "answer": row.answer,
            "rule": row.rule,
            "reason": row.reason,
            "agent": row.agent,
            "at": row.at.isoformat(),
        }


def _target(row: RowMapping) -> Target:
    return Target(
        id=TargetId(row["id"]),
        name=row["name"],
        seeds=tuple(map(Url, row["seeds"])),
        collection=row["collection"],
        purpose=Purpose(row["purpose"]),
        created_at=row["created_at"],
    )
