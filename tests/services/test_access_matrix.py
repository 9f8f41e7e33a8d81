"""Every service gives the same answer as the slow reference (`rule_matrix.py`); `web/test_web_access_matrix.py` checks
the same over HTTP.
"""

import random
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from rule_matrix import DAYS, STAMPS, URLS, random_rules, reference
from webdepot.access import cdx, rule_rows
from webdepot.access.cdx import Dialect
from webdepot.access.policy import AccessPoint, Reader, Rule, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import NotFound, NotPermitted
from webdepot.model import Capture, Location, RecordKind
from webdepot.services.access import gate, lookup, works
from webdepot.services.access.cdx import cdx_server
from webdepot.services.admin import setup
from webdepot.url import key as key_of

RULE_SETS = 16


def captures() -> list[Capture]:
    return [
        Capture(
            key=key_of(url),
            timestamp=stamp,
            url=url,
            kind=RecordKind.RESPONSE,
            status=200,
            mime="text/html",
            digest=f"sha1:{'A' * 31}B",
            location=Location(container="a.warc.gz", offset=number * 100 + at, length=1),
        )
        for number, url in enumerate(URLS)
        for at, stamp in enumerate(STAMPS)
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("matrix") / "home"
    setup.create(made)
    with Archive.open(made) as archive:
        archive.captures.add("a.warc.gz", captures(), collection="c")
    return made


def test_every_surface_agrees_with_the_reference(home: Path):
    chance = random.Random(4)
    everything = captures()
    compared = 0
    today = DAYS[0]
    with Archive.open(
        home, clock=lambda: datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    ) as archive:
        for _ in range(RULE_SETS):
            with archive.database.transaction() as connection:
                for rule in rule_rows.every(connection):
                    rule_rows.remove(connection, rule.id)
                every = [rule_rows.add(connection, rule) for rule in random_rules(chance)]
            for today in DAYS:
                for point in AccessPoint:
                    reader = Reader(access_point=point)
                    answers = {
                        (one.url, one.timestamp): reference(one, every, reader, today) for one in everything
                    }
                    _compare(archive, answers, every, reader, today)
                    compared += len(answers)
    assert compared == RULE_SETS * len(DAYS) * len(AccessPoint) * len(everything)


def _compare(
    archive: Archive,
    answers: dict[tuple[str, str], RuleAnswer],
    every: list[Rule],
    reader: Reader,
    today: date,
) -> None:
    shown = {place for place, answer in answers.items() if answer is RuleAnswer.SHOW}
    for url in URLS:
        mine = [stamp for stamp in STAMPS if (url, stamp) in shown]
        _compare_one(
            archive, url, mine, {answers[url, stamp] for stamp in STAMPS}, answers[url, STAMPS[-1]], reader
        )
    # Lists of many addresses, and what search must not reveal.
    for prefix in ("a.org/*", "a.org/x*", "*.a.org", "org"):
        query = cdx.parse(
            [("url", prefix), *([("matchType", "domain")] if prefix == "org" else [])], Dialect.PYWB
        )
        listed = {(one.url, one.timestamp) for one in cdx_server.find(archive, query, reader=reader).captures}
        whole = {"a.org/*": "http://a.org/", "a.org/x*": "http://a.org/x", "*.a.org": "a.org/", "org": ""}[
            prefix
        ]
        assert listed == {place for place in shown if whole in place[0]}, (prefix, every, reader, today)
        pages = cdx_server.count_pages(archive, query, reader=reader)
        assert pages == (1 if listed else 0)
    not_shown = {place for place, answer in answers.items() if answer is not RuleAnswer.SHOW}
    hidden = {place for place, answer in answers.items() if answer is RuleAnswer.HIDE}
    assert {(one.url, one.timestamp) for one in gate.iter_closed(archive, reader)} == not_shown
    assert {(one.url, one.timestamp) for one in gate.iter_closed(archive, reader, hidden_only=True)} == hidden
    assert {(one.url, one.timestamp) for one in gate.filter_open(archive, captures(), reader)} == shown
    areas = gate.closed_areas(archive, reader)
    for (url, stamp), answer in answers.items():
        assert any((key_of(url), stamp) in area for area in areas) == (answer is not RuleAnswer.SHOW), (
            url,
            stamp,
            every,
            reader,
            today,
        )
    addresses = {
        one.capture.url: one.tally.count for one in lookup.list_addresses(archive, "*.a.org", reader=reader)
    }
    assert addresses == {
        url: sum(place[0] == url for place in shown)
        for url in URLS
        if "a.org" in url and any(p[0] == url for p in shown)
    }


def _compare_one(
    archive: Archive, url: str, mine: list[str], said: set[RuleAnswer], latest: RuleAnswer, reader: Reader
) -> None:
    exact = cdx.parse([("url", url)], Dialect.PYWB)
    assert [one.timestamp for one in cdx_server.find(archive, exact, reader=reader).captures] == mine
    backwards = cdx.parse([("url", url), ("sort", "reverse")], Dialect.PYWB)
    assert [one.timestamp for one in cdx_server.find(archive, backwards, reader=reader).captures] == mine[
        ::-1
    ]
    if not mine:
        expected = NotPermitted if latest is RuleAnswer.REFUSE else NotFound
        for ask in (
            lambda: lookup.look_up(archive, url, reader=reader),
            lambda: list(lookup.iter_versions(archive, url, collection="all", reader=reader)),
            lambda: lookup.find_closest(archive, url, STAMPS[2], collection="all", reader=reader),
        ):
            with pytest.raises(expected):
                ask()
        return
    versions = lookup.look_up(archive, url, reader=reader)
    assert (
        versions.timeline.total
        == len(mine)
        == sum(bar.count for bar in versions.bars)
        == sum(day.count for day in versions.timeline.days.values())
    )
    assert [one.timestamp for one in versions.captures] == [
        stamp for stamp in mine if stamp[:4] == mine[-1][:4]
    ]
    assert [
        one.timestamp for one in lookup.iter_versions(archive, url, collection="all", reader=reader)
    ] == mine
    assert works.count_versions(archive, key_of(url), "all", reader).count == len(mine)
    for stamp in STAMPS:
        nearest = lookup.find_closest(archive, url, stamp, collection="all", reader=reader).timestamp
        assert nearest in mine and (nearest == stamp) == (stamp in mine)
