"""Lists that continue after a row, as the API reads them: every row once, also if times are equal."""

from datetime import UTC, datetime

from webdepot.access.policy import RuleAnswer
from webdepot.archive import Archive
from webdepot.depot import holdings
from webdepot.harvest import harvest_rows
from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.model import (
    Finding,
    Harvest,
    HarvestId,
    HarvestKind,
    HarvestState,
    Package,
    PackageId,
    Severity,
)
from webdepot.quality import finding_rows
from webdepot.selection.target_list import TargetFilter
from webdepot.services.access import rules
from webdepot.services.depot import status
from webdepot.services.harvest import harvests
from webdepot.services.quality import harvest_check
from webdepot.services.review import reviews
from webdepot.services.selection import targets

MOMENTS = [datetime(2026, 5, day, 12, tzinfo=UTC) for day in (1, 2, 2, 2, 3)]


def fill(archive: Archive) -> list[str]:
    """Five harvests, three of them of the same moment, each with a package."""
    dossier, _ = targets.enter(archive, targets.draft(["http://example.org/"]))
    names = [f"H-{number}" for number in range(len(MOMENTS))]
    with archive.database.transaction() as connection:
        for name, moment in zip(names, MOMENTS, strict=True):
            harvest = Harvest(
                id=HarvestId(name), target=dossier.id, kind=HarvestKind.HARVEST, state=HarvestState.KEPT,
                seeds=dossier.target.seeds, collection="all", settings={}, started_at=moment,
            )  # fmt: skip
            harvest_rows.begin(connection, harvest)
            package = Package(
                id=PackageId(f"P-{name}"), harvest=harvest.id, urn=f"urn:x:{name}", title=name, version=1,
                size_bytes=1, stored_at=moment,
            )  # fmt: skip
            holdings.record(connection, package, "")
    return names


def test_harvests_and_packages_continue_after_a_row(archive: Archive):
    names = fill(archive)
    for oldest_first in (False, True):
        seen, past = [], None
        while rows := reviews.list_harvests(
            archive, HarvestFilter(limit=2, past=past, oldest_first=oldest_first)
        ).rows:
            seen += [row.id for row in rows]
            past = rows[-1].started_at, rows[-1].id
        assert seen == (names if oldest_first else names[::-1])
    packages, past = [], None
    while rows := status.list_packages(archive, limit=2, past=past):
        packages += [row.package.id for row in rows]
        past = rows[-1].package.stored_at, rows[-1].package.id
    assert packages == [f"P-{name}" for name in names[::-1]]


def test_findings_continue_after_a_row_in_the_order_of_severity(archive: Archive):
    names = fill(archive)
    severities = [Severity.NOTE, Severity.ERROR, Severity.WARNING, Severity.ERROR, Severity.NOTE]
    with archive.database.transaction() as connection:
        finding_rows.replace(
            connection,
            HarvestId(names[0]),
            [
                Finding(code="x", severity=severity, subject=str(number), message="")
                for number, severity in enumerate(severities)
            ],
        )
    harvest, seen, past = harvests.get(archive, names[0]), [], None
    while rows := harvest_check.findings_page(archive, harvest, limit=2, past=past):
        seen += [finding.subject for _, finding in rows]
        past = rows[-1][1].severity, rows[-1][0]
    assert seen == ["1", "3", "2", "0", "4"]


def test_targets_and_rules_continue_after_a_row(archive: Archive):
    numbers = [
        targets.enter(archive, targets.draft([f"http://site{number}.example/"]))[0].id for number in range(5)
    ]
    seen, last = [], 0
    while rows := targets.list_past(archive, TargetFilter(words="site"), last=last, limit=2):
        seen += [row.id for row in rows]
        last = rows[-1].id
    assert seen == numbers
    added = [
        rules.add(archive, f"site{number}.example", answer=RuleAnswer.HIDE, reason="court")[0].id
        for number in range(5)
    ]
    found, before = [], None
    while listed := rules.list_past(archive, words="court", last=before, limit=2):
        found += [rule.id for rule in listed]
        before = listed[-1].id
    assert found == added[::-1]
