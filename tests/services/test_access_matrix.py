"""Every surface gives the same answer: a generated matrix of rules, addresses, capture dates, days and access points.

The reference is slow and written apart from the gate: it looks at each capture by itself.
"""

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from webdepot.access import cdx, closed, rules
from webdepot.access.cdx import Dialect
from webdepot.access.policy import AccessPoint, Reader, Rule, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import NotFound, NotPermitted
from webdepot.model import Capture, Location, RecordKind
from webdepot.services import founding, listing, replaying
from webdepot.url import key as key_of

URLS = ["http://a.org/", "http://a.org/x", "http://a.org/x/y", "http://a.org/xz", "http://sub.a.org/", "http://b.org/x"]
STAMPS = ["20100101000000", "20150615120000", "20150615120001", "20191231235959", "20260101000000", "20260420000000"]
PREFIXES = ["org,a)", "org,a)/", "org,a)/x", "org,a)/x/", "org,a,", "org,b)/x", "org,"]
DAYS = [date(2026, 5, 1), date(2027, 5, 1)]
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


def random_rules(chance: random.Random) -> list[Rule]:
    made = []
    for _ in range(chance.randint(1, 6)):
        span = sorted(chance.sample(["0" * 14, *STAMPS, "9" * 14], 2))
        days = sorted(chance.sample([date.min, date(2026, 4, 30), date(2026, 12, 31), date.max], 2))
        exact = chance.random() < 0.3
        made.append(
            Rule(
                id=0,
                prefix=key_of(chance.choice(URLS)) if exact else chance.choice(PREFIXES),
                exact=exact,
                captured_from=span[0],
                captured_to=span[1],
                embargo_days=chance.choice([0, 0, 30, 200, 4000]),
                valid_from=days[0],
                valid_to=days[1],
                access_point=chance.choice([None, None, *AccessPoint]),
                answer=chance.choice(list(RuleAnswer)),
                public_text="Closed.",
                created_at=datetime(2026, 1, 1, tzinfo=UTC),
            )
        )
    return made


def reference(capture: Capture, every: list[Rule], reader: Reader, today: date) -> RuleAnswer:
    """By the words of the documentation, one condition after another."""
    speaking = []
    for rule in every:
        if rule.answer is RuleAnswer.WARN:
            continue
        if rule.exact and capture.key != rule.prefix:
            continue
        if not capture.key.startswith(rule.prefix):
            continue
        if capture.timestamp < rule.captured_from or capture.timestamp > rule.captured_to:
            continue
        if rule.embargo_days:
            made = datetime.strptime(capture.timestamp + "Z", "%Y%m%d%H%M%S%z")
            if made < datetime(today.year, today.month, today.day, tzinfo=UTC) - timedelta(days=rule.embargo_days):
                continue
        if today < rule.valid_from or today > rule.valid_to:
            continue
        if rule.access_point is not None and rule.access_point != reader.access_point:
            continue
        speaking.append(rule)
    for longest in sorted({len(rule.prefix) for rule in speaking}, reverse=True):
        nearest = [rule for rule in speaking if len(rule.prefix) == longest]
        nearest = [rule for rule in nearest if rule.exact] or nearest
        nearest = [rule for rule in nearest if rule.access_point is not None] or nearest
        answer = max(nearest, key=lambda rule: rule.id).answer
        # Lent is shown: that another reader has it is no matter of rules, and every list tells of it all the same.
        return RuleAnswer.SHOW if answer is RuleAnswer.LEND else answer
    return RuleAnswer.SHOW


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("matrix") / "home"
    founding.found(made)
    with Archive.open(made) as archive:
        archive.captures.add("a.warc.gz", captures(), collection="c")
    return made


def test_every_surface_agrees_with_the_reference(home: Path):
    chance = random.Random(4)
    everything = captures()
    compared = 0
    today = DAYS[0]
    with Archive.open(home, clock=lambda: datetime(today.year, today.month, today.day, 12, tzinfo=UTC)) as archive:
        for _ in range(RULE_SETS):
            with archive.database.transaction() as connection:
                for rule in rules.every(connection):
                    rules.remove(connection, rule.id)
                every = [rules.add(connection, rule) for rule in random_rules(chance)]
            for today in DAYS:
                for point in AccessPoint:
                    reader = Reader(access_point=point)
                    answers = {(one.url, one.timestamp): reference(one, every, reader, today) for one in everything}
                    _compare(archive, answers, every, reader, today)
                    compared += len(answers)
    assert compared == RULE_SETS * len(DAYS) * len(AccessPoint) * len(everything)


def _compare(archive: Archive, answers: dict[tuple[str, str], RuleAnswer], every: list[Rule], reader: Reader, today: date) -> None:
    shown = {place for place, answer in answers.items() if answer is RuleAnswer.SHOW}
    for url in URLS:
        mine = [stamp for stamp in STAMPS if (url, stamp) in shown]
        _compare_one(archive, url, mine, {answers[url, stamp] for stamp in STAMPS}, answers[url, STAMPS[-1]], reader)
    # Lists over many addresses, and what search must not tell.
    for prefix in ("a.org/*", "a.org/x*", "*.a.org", "org"):
        query = cdx.parse([("url", prefix), *([("matchType", "domain")] if prefix == "org" else [])], Dialect.PYWB)
        listed = {(one.url, one.timestamp) for one in listing.find(archive, query, reader=reader).captures}
        whole = {"a.org/*": "http://a.org/", "a.org/x*": "http://a.org/x", "*.a.org": "a.org/", "org": ""}[prefix]
        assert listed == {place for place in shown if whole in place[0]}, (prefix, every, reader, today)
        pages = listing.count_pages(archive, query, reader=reader)
        assert pages == (1 if listed else 0)
    areas = closed.areas(every, reader, today)
    for (url, stamp), answer in answers.items():
        assert any((key_of(url), stamp) in area for area in areas) == (answer is not RuleAnswer.SHOW), (url, stamp, every, reader, today)
    addresses = {one.capture.url: one.tally.count for one in replaying.list_addresses(archive, "*.a.org", reader=reader)}
    assert addresses == {url: sum(place[0] == url for place in shown) for url in URLS if "a.org" in url and any(p[0] == url for p in shown)}


def _compare_one(archive: Archive, url: str, mine: list[str], said: set[RuleAnswer], latest: RuleAnswer, reader: Reader) -> None:
    exact = cdx.parse([("url", url)], Dialect.PYWB)
    assert [one.timestamp for one in listing.find(archive, exact, reader=reader).captures] == mine
    backwards = cdx.parse([("url", url), ("sort", "reverse")], Dialect.PYWB)
    assert [one.timestamp for one in listing.find(archive, backwards, reader=reader).captures] == mine[::-1]
    if not mine:
        expected = NotPermitted if latest is RuleAnswer.REFUSE else NotFound
        for ask in (
            lambda: replaying.look_up(archive, url, reader=reader),
            lambda: list(replaying.iter_versions(archive, url, collection="all", reader=reader)),
            lambda: replaying.find_closest(archive, url, STAMPS[2], collection="all", reader=reader),
        ):
            with pytest.raises(expected):
                ask()
        return
    versions = replaying.look_up(archive, url, reader=reader)
    assert (
        versions.timeline.total
        == len(mine)
        == sum(bar.count for bar in versions.bars)
        == sum(day.count for day in versions.timeline.days.values())
    )
    assert [one.timestamp for one in versions.captures] == [stamp for stamp in mine if stamp[:4] == mine[-1][:4]]
    assert [one.timestamp for one in replaying.iter_versions(archive, url, collection="all", reader=reader)] == mine
    assert replaying.count_versions(archive, url, collection="all", reader=reader) == len(mine)
    for stamp in STAMPS:
        nearest = replaying.find_closest(archive, url, stamp, collection="all", reader=reader).timestamp
        assert nearest in mine and (nearest == stamp) == (stamp in mine)
