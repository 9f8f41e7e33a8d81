"""Verdicts, and findings in the database."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import create_engine, insert

import webdepot.selection.tables  # noqa: F401 - harvests refer to targets
from webdepot.database import metadata
from webdepot.harvest.tables import harvests
from webdepot.model import Answer, Finding, HarvestId, Severity
from webdepot.quality import finding_rows, verdict
from webdepot.quality.verdict import VerdictLimits

WHEN = datetime(2024, 5, 17, tzinfo=UTC)


@pytest.mark.parametrize(
    ("codes", "counts", "answer", "rule"),
    [
        ({}, {"fetched": 10}, Answer.ACCEPT, "within-limits"),
        ({"quality.part-error": 5}, {"fetched": 100}, Answer.ACCEPT, "within-limits"),
        ({"quality.part-error": 6}, {"fetched": 100}, Answer.PASS, "missing-parts"),
        ({"quality.part-error": 3, "quality.part-robots": 3}, {"fetched": 100}, Answer.PASS, "missing-parts"),
        ({"quality.link-broken": 11}, {"fetched": 100}, Answer.PASS, "broken-links"),
        ({"quality.body-truncated": 2}, {"captures": 100}, Answer.PASS, "truncated"),
        ({"quality.queue-left": 1}, {"fetched": 100}, Answer.PASS, "queue-left"),
        ({"quality.seed-failed": 1}, {"fetched": 100}, Answer.PASS, "failed-seeds"),
        ({"quality.nothing-harvested": 1, "quality.seed-failed": 1}, {}, Answer.REJECT, "nothing-harvested"),
    ],
)
def test_rules(codes, counts, answer, rule):
    judged = verdict.of(codes, counts)
    assert (judged.answer, judged.rule) == (answer, rule)
    assert judged.reason


def test_limits_are_arguments_and_all_reasons_are_told():
    codes = {"quality.part-error": 50, "quality.queue-left": 1}
    assert (
        verdict.of(
            codes, {"fetched": 100}, limits=VerdictLimits(missing_parts=0.5, queue_may_be_left=True)
        ).answer
        is Answer.ACCEPT
    )
    reason = verdict.of(codes, {"fetched": 100}).reason
    assert "queue" in reason
    assert "50 parts" in reason


def test_findings_in_the_database(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path}/x.db")
    metadata.create_all(engine)
    harvest = HarvestId("h1")
    found = [
        Finding(
            code=f"c{number % 3}",
            severity=list(Severity)[number % 3],
            subject=f"s{number}",
            message="m",
            place="p",
            action="a",
        )
        for number in range(2500)
    ]
    with engine.begin() as connection:
        values = {
            "kind": "harvest",
            "state": "x",
            "seeds": [],
            "collection": "",
            "settings": {},
            "reason": "",
            "counts": {},
        }
        connection.execute(insert(harvests).values(id="h1", target=1, started_at=WHEN, **values))
        assert finding_rows.replace(connection, harvest, found) == {"c0": 834, "c1": 833, "c2": 833}
        by_severity = list(finding_rows.iter_by_severity(connection, harvest))
        assert sorted(by_severity, key=found.index) == found
        most_severe = finding_rows.most_severe(connection, harvest, 900)
        assert most_severe == by_severity[:900]
        assert [each.severity for each in most_severe] == [Severity.ERROR] * 834 + [Severity.WARNING] * 66
        assert finding_rows.replace(connection, harvest, found[:1]) == {"c0": 1}
        assert finding_rows.find_verdict(connection, harvest) is None
        judged = verdict.of({}, {"fetched": 1})
        finding_rows.judge(connection, harvest, judged, at=WHEN)
        finding_rows.judge(connection, harvest, judged, at=WHEN)
        assert finding_rows.find_verdict(connection, harvest) == judged
    engine.dispose()
