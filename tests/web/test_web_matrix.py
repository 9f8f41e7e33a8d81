"""Every surface that has an address gives the same answer as the slow reference (`rule_matrix.py`), asked over HTTP.

A reader's access point is where the request comes from: a network for the reading room and for partners, a session (and, on the faces that
know none, a pass) for staff. The server's clock is a file, so that it can be another day. Lending has tests of its own: `test_web_use.py`.
"""

import csv
import io
import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from urllib.parse import quote, urlsplit

import pytest
from museum import PASSWORD, Answer, Served, Warc, ask, make_home, serving, sign_in

from rule_matrix import DAYS, STAMPS, URLS, random_rules, reference
from webdepot import accounts
from webdepot.access import rules
from webdepot.access.policy import AccessPoint, Reader, Rule, RuleAnswer
from webdepot.accounts import Role
from webdepot.archive import Archive
from webdepot.model import Capture, Location, RecordKind
from webdepot.url import key as key_of

RULE_SETS = 3
STAFF_ONLY = "http://pass.net/"
SOURCES = {AccessPoint.PUBLIC: "127.0.0.1", AccessPoint.READING_ROOM: "127.0.0.2", AccessPoint.PARTNER: "127.0.0.3"}
SETTINGS = '[web]\nreading_room_networks = ["127.0.0.2/32"]\npartner_networks = ["127.0.0.3/32"]\n'
SHOWS = (RuleAnswer.SHOW, RuleAnswer.REFUSE, RuleAnswer.HIDE, RuleAnswer.WARN)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("matrix")
    warc = Warc(folder / "matrix.warc.gz")
    for url in URLS:
        for stamp in STAMPS:
            warc.response(url, stamp, _body(url, stamp))
    warc.response(STAFF_ONLY, STAMPS[0], b"<title>For staff</title>")
    home = make_home(folder / "home", warc.write(), settings=SETTINGS)
    with Archive.open(home) as archive:
        accounts.add(archive.database, "curator", PASSWORD, [Role.CURATOR], _noon(DAYS[0]))
    with serving(home, clock=folder / "clock", now=_noon(DAYS[0])) as running:
        yield running


def _body(url: str, stamp: str) -> bytes:
    return f"<title>Clock</title><p>A clock of {stamp} at {url}</p>".encode()


def _noon(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


class Asker:
    """One reader at one access point on one day."""

    def __init__(self, served: Served, point: AccessPoint) -> None:
        self.served = served
        self.source = SOURCES.get(point, "127.0.0.1")
        self.cookies = {"portal": "", "frame": "", "replay": ""}
        if point is AccessPoint.STAFF:
            self.cookies["portal"] = sign_in(served, "curator")
            there = self.get("portal", f"/all/{STAMPS[0]}/{STAFF_ONLY}").headers["Location"]
            entered = self.get("frame", there.removeprefix(served.frame))
            self.cookies["frame"] = self.cookies["replay"] = entered.headers["Set-Cookie"].partition(";")[0]

    def get(self, face: str, path: str, **headers: str) -> Answer:
        base = {"portal": self.served.portal, "frame": self.served.frame, "replay": self.served.replay}[face]
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies[face]:
            given["Cookie"] = self.cookies[face]
        return ask(base + path, headers=given, source=self.source)


def test_every_surface_agrees_with_the_reference_over_http(served: Served):
    chance = random.Random(7)
    compared = 0
    for _ in range(RULE_SETS):
        with served.archive() as archive, archive.database.transaction() as connection:
            for rule in rules.every(connection):
                rules.remove(connection, rule.id)
            every = [rules.add(connection, rule) for rule in random_rules(chance, SHOWS)]
            for point, answer in ((None, RuleAnswer.REFUSE), (AccessPoint.STAFF, RuleAnswer.SHOW)):
                made = Rule(id=0, prefix="net,pass)", answer=answer, access_point=point, created_at=_noon(DAYS[0]))
                rules.add(connection, made)
        for today in DAYS:
            served.set_clock(_noon(today))
            for point in AccessPoint:
                answers = _reference(every, Reader(access_point=point), today)
                _compare(Asker(served, point), answers, f"{point} on {today}: {every}")
                compared += len(answers)
    assert compared == RULE_SETS * len(DAYS) * len(AccessPoint) * len(URLS) * len(STAMPS)


def _reference(every: list[Rule], reader: Reader, today: date) -> dict[tuple[str, str], RuleAnswer]:
    def capture(url: str, stamp: str) -> Capture:
        place = Location(container="", offset=0, length=0)
        return Capture(
            key=key_of(url), timestamp=stamp, url=url, kind=RecordKind.RESPONSE, status=200, mime="text/html", digest="", location=place
        )

    return {(url, stamp): reference(capture(url, stamp), every, reader, today) for url in URLS for stamp in STAMPS}


def _compare(asker: Asker, answers: dict[tuple[str, str], RuleAnswer], case: str) -> None:
    shown = {place for place, answer in answers.items() if answer is RuleAnswer.SHOW}
    for url in URLS:
        mine = [stamp for stamp in STAMPS if (url, stamp) in shown]
        refused = 451 if answers[url, STAMPS[-1]] is RuleAnswer.REFUSE else 404
        _compare_lists(asker, url, mine, 200 if mine else refused, case)
        _compare_pages(asker, url, mine, refused, case)
    for face in ("portal", "replay"):
        for query, whole in (("a.org/x*", "http://a.org/x"), ("*.a.org", "a.org/")):
            lines = asker.get(face, f"/all/cdx?url={query}&output=json").text.splitlines()
            listed = {(said["url"], said["timestamp"]) for said in map(json.loads, lines)}
            assert listed == {place for place in shown if whole in place[0]}, (face, query, case)
    text = asker.get("portal", "/versions?url=*.a.org").text
    below = {url for url, _ in shown if "a.org" in url}
    assert set(re.findall(r'href="/all/\*/(http://[^"]+)"', text)) == below, case
    _compare_search(asker, shown, case)


def _compare_lists(asker: Asker, url: str, mine: list[str], status: int, case: str) -> None:
    for face in ("portal", "replay"):
        lines = asker.get(face, f"/all/cdx?url={url}&output=json").text.splitlines()
        assert [json.loads(line)["timestamp"] for line in lines] == mine, (face, url, case)
    timemap = asker.get("replay", f"/all/timemap/json/{url}")
    assert timemap.status == status, (url, case)
    if mine:
        found = [re.search(r"/(\d{14})id_/", one["uri"]) for one in json.loads(timemap.text)["mementos"]["list"]]
        assert [stamp[1] for stamp in found if stamp] == mine, (url, case)
    page = asker.get("portal", f"/all/*/{url}")
    assert page.status == status, (url, case)
    count = re.search(r"Archived (once|\d+ times)", page.text)
    assert (count[1] if count else "") == ("once" if len(mine) == 1 else f"{len(mine)} times" if mine else ""), (url, case)


def _compare_pages(asker: Asker, url: str, mine: list[str], refused: int, case: str) -> None:
    for stamp in STAMPS:
        raw = asker.get("replay", f"/all/{stamp}id_/{url}")
        if not mine:
            assert raw.status == refused, (url, stamp, case)
            continue
        nearest = [one for one in mine if raw.body == _body(url, one)]
        assert raw.status == 200 and len(nearest) == 1 and (nearest == [stamp]) == (stamp in mine), (url, stamp, case)
    for stamp in (STAMPS[1], STAMPS[-1]):
        frame = asker.get("frame", f"/all/{stamp}/{url}")
        banner = asker.get("frame", f"/-/banner/all/{stamp}/{url}")
        gate = asker.get("replay", f"/all/{url}", Accept_Datetime="Thu, 31 Dec 2026 00:00:00 GMT")
        if not mine:
            assert frame.status == banner.status == gate.status == refused, (url, stamp, case)
            continue
        assert frame.status == (200 if stamp in mine else 302), (url, stamp, case)
        assert banner.headers["X-Archived-Path"][5:19] in mine, (url, stamp, case)
        assert f"/{mine[-1]}" in gate.headers["Location"], (url, case)


def _compare_search(asker: Asker, shown: set[tuple[str, str]], case: str) -> None:
    urls = {url for url, _ in shown}
    found = json.loads(asker.get("portal", "/api/search?q=clock&limit=50").text)
    assert {hit["url"] for hit in found["hits"]} == urls, case
    page = asker.get("portal", "/search?q=clock").text
    assert {url for url in URLS if f">{url}<" in page or quote(url, safe=":/") + '"' in page} == urls, case
    rows = list(csv.DictReader(io.StringIO(asker.get("portal", "/search/export?q=clock&form=csv").text)))
    assert {(row["url"], row["timestamp"]) for row in rows} == shown, case
    feed = asker.get("portal", "/search.atom?q=clock").text
    assert {urlsplit(url).path for url in URLS if url in urls} <= {urlsplit(url).path for url in URLS if url in feed}, case
