"""Findings and verdicts of harvests in the database. A new check replaces the results of the last one."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    tuple_,
)

from webdepot.model import Answer, Finding, HarvestId, Severity, TargetId, Verdict
from webdepot.quality.tables import findings, ignored_findings, judgements
from webdepot.quality.texts import Action
from webdepot.reasons import from_plain, to_plain

_BATCH = 1000
_RANKS = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
_SEVERITY = case(
    {Severity.ERROR.value: 0, Severity.WARNING.value: 1},
    value=findings.c.severity,
    else_=_RANKS[Severity.NOTE],
)


def replace(connection: Connection, harvest: HarvestId, new: Iterable[Finding]) -> Mapping[str, int]:
    """Replace the findings of a harvest; return their number by code."""
    connection.execute(delete(findings).where(findings.c.harvest == harvest))
    iterator = iter(new)
    while batch := list(islice(iterator, _BATCH)):
        connection.execute(insert(findings), [_values(harvest, each) for each in batch])
    return counts(connection, harvest)


def judge(connection: Connection, harvest: HarvestId, verdict: Verdict, *, at: datetime) -> None:
    connection.execute(delete(judgements).where(judgements.c.harvest == harvest))
    values = {
        "harvest": harvest,
        "answer": verdict.answer.value,
        "rule": verdict.rule,
        "reason": verdict.reason,
        "judged_at": at,
    }
    connection.execute(insert(judgements).values(**values))


def find_judged_at(connection: Connection, harvest: HarvestId) -> datetime | None:
    return connection.execute(
        select(judgements.c.judged_at).where(judgements.c.harvest == harvest)
    ).scalar_one_or_none()


def is_checked(harvest: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether the check of a harvest is done, as a condition of a query."""
    return exists().where(judgements.c.harvest == harvest)


def find_verdict(connection: Connection, harvest: HarvestId) -> Verdict | None:
    row = (
        connection.execute(select(judgements).where(judgements.c.harvest == harvest)).mappings().one_or_none()
    )
    return Verdict(answer=Answer(row["answer"]), rule=row["rule"], reason=row["reason"]) if row else None


def most_severe(connection: Connection, harvest: HarvestId, limit: int) -> list[Finding]:
    """Up to `limit` findings: errors, then warnings, then notes; each group in the order of checking."""
    return [finding for _, finding in by_code(connection, harvest, limit=limit)]


def iter_by_severity(connection: Connection, harvest: HarvestId) -> Iterator[Finding]:
    """All findings, in the order of `most_severe`; streams."""
    chosen = select(findings).where(findings.c.harvest == harvest).order_by(_SEVERITY, findings.c.id)
    return map(_finding, connection.execute(chosen.execution_options(yield_per=_BATCH)).mappings())


def counts(connection: Connection, harvest: HarvestId) -> dict[str, int]:
    """The number of findings by code, without those that are ignored for the target."""
    counted = (findings.c.harvest == harvest, findings.c.action != Action.IGNORED.value)
    chosen = (
        select(findings.c.code, func.count())
        .where(*counted)
        .group_by(findings.c.code)
        .order_by(findings.c.code)
    )
    return {code: int(count) for code, count in connection.execute(chosen)}


def ignored_counts(connection: Connection, harvest: HarvestId) -> dict[str, int]:
    """The number of findings by code that are ignored for the target."""
    counted = (findings.c.harvest == harvest, findings.c.action == Action.IGNORED.value)
    chosen = select(findings.c.code, func.count()).where(*counted).group_by(findings.c.code)
    return {code: int(count) for code, count in connection.execute(chosen)}


def missing(connection: Connection, harvest: HarvestId, codes: Iterable[str], limit: int) -> list[str]:
    """The addresses that findings of these codes are about, each once, sorted; without ignored ones."""
    chosen = (
        select(findings.c.subject)
        .where(
            findings.c.harvest == harvest,
            findings.c.code.in_(sorted(codes)),
            findings.c.action != Action.IGNORED.value,
        )
        .distinct()
        .order_by(findings.c.subject)
        .limit(limit)
    )
    return list(connection.execute(chosen).scalars())


def by_code(
    connection: Connection,
    harvest: HarvestId,
    *,
    code: str = "",
    limit: int = 100,
    offset: int = 0,
    past: tuple[Severity, int] | None = None,
) -> list[tuple[int, Finding]]:
    """Findings with their numbers, the most severe first; only those of `code` if given, and those after the
    finding with the severity and number `past`.
    """
    wanted = [findings.c.harvest == harvest, *([findings.c.code == code] if code else [])]
    if past is not None:
        wanted.append(tuple_(_SEVERITY, findings.c.id) > tuple_(literal(_RANKS[past[0]]), literal(past[1])))
    chosen = select(findings).where(*wanted).order_by(_SEVERITY, findings.c.id).limit(limit).offset(offset)
    return [(row["id"], _finding(row)) for row in connection.execute(chosen).mappings()]


def ignored(connection: Connection, target: TargetId) -> frozenset[tuple[str, str]]:
    """Code and subject of the findings that staff ignore for a target; an empty subject means all of the
    code.
    """
    rows = connection.execute(
        select(ignored_findings.c.code, ignored_findings.c.subject).where(ignored_findings.c.target == target)
    )
    return frozenset((row.code, row.subject) for row in rows)


def ignore(
    connection: Connection, target: TargetId, code: str, subject: str, *, reason: str, by: str, at: datetime
) -> None:
    """Ignore a finding for every later check of the target; repeating it only replaces the reason."""
    values = {"target": target, "code": code, "subject": subject[:500]}
    connection.execute(delete(ignored_findings).filter_by(**values))
    connection.execute(insert(ignored_findings).values(**values, reason=reason, ignored_by=by, ignored_at=at))


def _values(harvest: HarvestId, each: Finding) -> dict[str, object]:
    return {
        "harvest": harvest,
        "code": each.code,
        "severity": each.severity.value,
        "subject": each.subject,
        "message": each.message,
        "place": each.place,
        "action": each.action[:200],
        "facts": to_plain(each.facts),
    }


def _finding(row: RowMapping) -> Finding:
    values = {name: row[name] for name in ("code", "subject", "message", "place", "action")}
    return Finding(severity=Severity(row["severity"]), facts=from_plain(row["facts"] or {}), **values)
