"""Findings and verdicts of harvests in the database. A new check of a harvest replaces what the last one said."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice

from sqlalchemy import Connection, RowMapping, case, delete, func, insert, select

from webdepot.model import Answer, Finding, HarvestId, Severity, Verdict
from webdepot.quality.tables import findings, judgements

_BATCH = 1000
_GRAVITY = case({Severity.ERROR.value: 0, Severity.WARNING.value: 1}, value=findings.c.severity, else_=2)


def replace(connection: Connection, harvest: HarvestId, found: Iterable[Finding]) -> Mapping[str, int]:
    """Keep the findings of a harvest in place of its earlier ones; their number by code."""
    connection.execute(delete(findings).where(findings.c.harvest == harvest))
    iterator = iter(found)
    while batch := list(islice(iterator, _BATCH)):
        connection.execute(insert(findings), [_values(harvest, each) for each in batch])
    return counts(connection, harvest)


def judge(connection: Connection, harvest: HarvestId, verdict: Verdict, *, at: datetime) -> None:
    connection.execute(delete(judgements).where(judgements.c.harvest == harvest))
    values = {"harvest": harvest, "answer": verdict.answer.value, "rule": verdict.rule, "reason": verdict.reason, "judged_at": at}
    connection.execute(insert(judgements).values(**values))


def find_verdict(connection: Connection, harvest: HarvestId) -> Verdict | None:
    row = connection.execute(select(judgements).where(judgements.c.harvest == harvest)).mappings().one_or_none()
    return Verdict(answer=Answer(row["answer"]), rule=row["rule"], reason=row["reason"]) if row else None


def gravest(connection: Connection, harvest: HarvestId, limit: int, offset: int = 0) -> list[Finding]:
    """Errors first, then warnings, then notes; within each in the order of checking."""
    chosen = select(findings).where(findings.c.harvest == harvest).order_by(_GRAVITY, findings.c.id).limit(limit).offset(offset)
    return [_finding(row) for row in connection.execute(chosen).mappings()]


def iter_of(connection: Connection, harvest: HarvestId) -> Iterator[Finding]:
    """All findings of a harvest in the order of checking; streams."""
    chosen = select(findings).where(findings.c.harvest == harvest).order_by(findings.c.id)
    return map(_finding, connection.execute(chosen.execution_options(yield_per=_BATCH)).mappings())


def counts(connection: Connection, harvest: HarvestId) -> dict[str, int]:
    """Number of findings by code."""
    chosen = select(findings.c.code, func.count()).where(findings.c.harvest == harvest).group_by(findings.c.code).order_by(findings.c.code)
    return {code: int(count) for code, count in connection.execute(chosen)}


def _values(harvest: HarvestId, each: Finding) -> dict[str, object]:
    return {
        "harvest": harvest,
        "code": each.code,
        "severity": each.severity.value,
        "subject": each.subject,
        "message": each.message,
        "place": each.place,
        "action": each.action[:200],
    }


def _finding(row: RowMapping) -> Finding:
    values = {name: row[name] for name in ("code", "subject", "message", "place", "action")}
    return Finding(severity=Severity(row["severity"]), **values)
