"""Usage statistics, and pages that one reader at a time may see."""

import csv
import io
import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from museum import EDITIONS, NOW, PASSWORD, SITE, Served, ask, make_home, serving, sign_in

from databases import needs_file
from webdepot.access.policy import AccessPoint, RuleAnswer
from webdepot.access.usage import Metric
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.services.access import lending, rules, statistics

READER = {"User-Agent": "Mozilla/5.0 (X11) Firefox/140.0", "X-Country": "nl"}
SETTINGS = '[statistics]\ncountry_header = "X-Country"\n[web]\nreading_room_networks = ["127.0.0.0/8"]\n'
FROM_ELSEWHERE = "127.0.0.9"


def frame_of(served: Served, path: str = "/", **headers: str):
    return ask(f"{served.frame}/all/{EDITIONS[1]}/{SITE}{path}", headers={**READER, **headers})


@pytest.fixture
def home(tmp_path: Path, museum: Path) -> Path:
    made = make_home(tmp_path / "home", museum, settings=SETTINGS)
    with Archive.open(made, clock=lambda: NOW) as archive:
        accounts.add(archive.database, "curator", PASSWORD, [Role.CURATOR], NOW)
        rules.add(archive, f"{SITE}/data.json", answer=RuleAnswer.REFUSE, public_text="Closed.")
        rules.add(archive, f"{SITE}/news.html", answer=RuleAnswer.LEND, access_point=AccessPoint.READING_ROOM)
    return made


def test_a_count_is_written_without_a_further_request(archive: Archive):
    counter = statistics.Counter(archive, write_after_s=0.05)
    for _ in range(2):  # also after the first writing
        before = statistics.report(archive).total(Metric.SEARCHES)
        counter.note(Metric.SEARCHES, collection="all", point=AccessPoint.PUBLIC)
        until = time.monotonic() + 30
        while statistics.report(archive).total(Metric.SEARCHES) == before and time.monotonic() < until:
            time.sleep(0.05)
        assert statistics.report(archive).total(Metric.SEARCHES) == before + 1


def test_what_is_read_is_counted_and_nobody_is_known(home: Path):
    with serving(home) as served:
        for _ in range(2):
            assert frame_of(served).status == 200
        assert ask(f"{served.frame}/-/banner/all/{EDITIONS[1]}/{SITE}/", headers=READER).status == 200
        assert ask(f"{served.portal}/museums/*/{SITE}/", headers=READER).status == 200
        assert ask(f"{served.portal}/search?q=clock", headers=READER).status == 200
        assert frame_of(served, "/data.json").status == 451
        assert frame_of(served, "/nowhere").status == 404
        ask(f"{served.portal}/search", headers=READER)
        ask(f"{served.frame}/all/{EDITIONS[1]}/{SITE}/", headers={"User-Agent": "Googlebot/2.1"})
        ask(f"{served.frame}/all/{EDITIONS[1]}/{SITE}/")
    with Archive.open(home) as archive:
        made = statistics.report(archive)
        totals = {metric: made.total(metric) for metric in Metric}
        assert totals == {
            Metric.REQUESTS: 3,
            Metric.INVESTIGATIONS: 4,
            Metric.SEARCHES: 1,
            Metric.REFUSED: 1,
            Metric.IN_USE: 0,
        }
        assert made.by("site", Metric.REQUESTS) == {"example.org": 3}
        assert made.by("collection", Metric.INVESTIGATIONS) == {"all": 3, "museums": 1}
        assert made.by("access_point", Metric.REQUESTS) == {"reading room": 3}
        assert made.by("country", Metric.REQUESTS) == {"NL": 3}
        assert made.pages == [(f"{SITE}/", 3)]
        kept = b"".join(path.read_bytes() for path in home.glob("*.db*"))
    assert b"Firefox" not in kept and b"127.0.0.1" not in kept


def test_staff_see_a_chart_and_take_a_table(home: Path):
    with serving(home) as served:
        frame_of(served)
    done = subprocess.run(
        [Path(sys.executable).with_name("webdepot"), "--home", home, "statistics", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["metric"]: line["total"] for line in lines}["Total_Item_Requests"] == 1
    with serving(home) as served:
        assert ask(f"{served.portal}/statistics").status == 303
        cookie = {"Cookie": sign_in(served, "curator")}
        text = ask(f"{served.portal}/statistics", headers=cookie).text
        assert "1 page opened" in text and "example.org" in text and f"{SITE}/" in text
        table = ask(f"{served.portal}/statistics.csv", headers=cookie)
        assert table.headers["Content-Type"].startswith("text/csv")
        rows = list(csv.reader(io.StringIO(table.text)))
        head = next(row for row in rows if row[:1] == ["Title"])
        assert ["example.org", "all", "reading room", "NL", "Total_Item_Requests", "1"] in [
            row[:6] for row in rows
        ]
        assert len(head) == 6 + 12
        for wrong in ("from=soon", "from=2026-13", "from=2027-01&to=2026-01"):
            assert ask(f"{served.portal}/statistics?{wrong}", headers=cookie).status == 400


def test_statistics_can_be_switched_off(tmp_path: Path, museum: Path):
    home = make_home(tmp_path / "home", museum, settings="[statistics]\ncount = false\n")
    with serving(home) as served:
        frame_of(served)
    with Archive.open(home) as archive:
        assert not statistics.report(archive).counts


def test_one_reader_at_a_time(home: Path):
    with serving(home) as served:
        first = frame_of(served, "/news.html")
        assert (
            first.status == 200
            and "data-lent" in first.text
            and "This page is reserved for you" in first.text
        )
        raw = f"{served.replay}/all/{EDITIONS[1]}id_/{SITE}/news.html"
        assert ask(raw).status == 200, "the same terminal"
        second = ask(raw, source=FROM_ELSEWHERE)
        assert second.status == 423 and "one reader at a time" in second.text
        framed = ask(
            f"{served.frame}/all/{EDITIONS[1]}/{SITE}/news.html", headers=READER, source=FROM_ELSEWHERE
        )
        assert framed.status == 423 and f'<p class="address">{SITE}/news.html</p>' in framed.text
        banner = ask(f"{served.frame}/-/banner/all/{EDITIONS[1]}/{SITE}/news.html", source=FROM_ELSEWHERE)
        assert (
            banner.status == 423 and 'class="banner-inner missing"' in banner.text and "In use" in banner.text
        )
        assert (
            ask(f"{served.frame}/all/{EDITIONS[1]}/{SITE}/", headers=READER, source=FROM_ELSEWHERE).status
            == 200
        ), "other pages are free"
        assert (
            ask(f"{served.replay}/all/{EDITIONS[1]}id_/{SITE}/picture.png", source=FROM_ELSEWHERE).status
            == 200
        )
        seat = f"/all/{EDITIONS[1]}/{SITE}/news.html"
        own = {"Sec-Fetch-Site": "same-origin"}
        assert ask(f"{served.frame}/-/seat{seat}", "POST", headers=own).status == 204
        assert ask(f"{served.frame}/-/seat{seat}", "POST", headers=own, source=FROM_ELSEWHERE).status == 423
        assert (
            ask(f"{served.frame}/-/left{seat}", "POST", headers=own, source=FROM_ELSEWHERE).status == 204
        ), "another's seat stays"
        assert ask(raw, source=FROM_ELSEWHERE).status == 423
        assert (
            ask(f"{served.frame}/-/left{seat}", "POST", headers={"Sec-Fetch-Site": "cross-site"}).status
            == 403
        )
        assert ask(f"{served.frame}/-/left{seat}", "POST", headers=own).status == 204
        assert ask(raw, source=FROM_ELSEWHERE).status == 200
    with Archive.open(home) as archive:
        assert statistics.report(archive).total(Metric.IN_USE) == 1


def test_a_page_that_was_left_open_is_free_after_a_while_or_by_staff(home: Path):
    now = NOW
    with Archive.open(home, clock=lambda: now) as archive:
        capture = archive.captures.closest("org,example)/news.html", EDITIONS[1])
        assert capture is not None
        one, other = (
            lending.Reader(access_point=AccessPoint.READING_ROOM, seat=seat) for seat in ("one", "other")
        )
        assert lending.hold(archive, capture, one)
        with pytest.raises(lending.InUse):
            lending.hold(archive, capture, other)
        assert [held.url for held in lending.every(archive)] == [f"{SITE}/news.html"]
        now = NOW + timedelta(minutes=6)
        assert lending.hold(archive, capture, other), "it has run out"
        with pytest.raises(lending.InUse):
            lending.hold(archive, capture, one)
        lending.free(archive, f"{SITE}/news.html")
        assert lending.hold(archive, capture, one)
        for reader in (lending.Reader.staff("x"), lending.Reader(seat="public")):
            assert not lending.hold(archive, capture, reader), "lent in the reading room alone"


@needs_file
def test_who_has_a_page_is_written_once_and_again_when_a_quarter_of_the_time_has_passed(home: Path):
    now = NOW
    with (
        closing(sqlite3.connect(home / "webdepot.db")) as watching,
        Archive.open(home, clock=lambda: now) as archive,
    ):

        def commits() -> int:
            return int(watching.execute("PRAGMA data_version").fetchone()[0])

        capture = archive.captures.closest("org,example)/news.html", EDITIONS[1])
        assert capture is not None
        reader, other = (
            lending.Reader(access_point=AccessPoint.READING_ROOM, seat=seat) for seat in ("one", "other")
        )
        assert not lending.needs_no_writing(archive, capture, reader)
        assert lending.hold(archive, capture, reader)
        begun = commits()
        for passed_s in (0, 1, 30, 74):
            now = NOW + timedelta(seconds=passed_s)
            assert lending.needs_no_writing(archive, capture, reader)
            assert lending.hold(archive, capture, reader)
            with pytest.raises(lending.InUse, match="5 minutes" if passed_s < 30 else "4 minutes"):
                lending.hold(archive, capture, other)
            assert not lending.needs_no_writing(archive, capture, other)
        assert commits() == begun and [held.until for held in lending.every(archive)] == [
            NOW + timedelta(minutes=5)
        ]
        now = NOW + timedelta(seconds=75)
        assert not lending.needs_no_writing(archive, capture, reader)
        assert lending.hold(archive, capture, reader)
        (held,) = lending.every(archive)
        assert commits() != begun and (held.taken_at, held.until) == (NOW, now + timedelta(minutes=5))
        now = held.until
        assert not lending.needs_no_writing(archive, capture, reader), "it has run out"
        assert lending.hold(archive, capture, other)


def test_several_servers_agree_on_who_has_a_page(home: Path):
    with Archive.open(home, clock=lambda: NOW) as archive, Archive.open(home, clock=lambda: NOW) as beside:
        capture = archive.captures.closest("org,example)/news.html", EDITIONS[1])
        assert capture is not None
        one, other = (
            lending.Reader(access_point=AccessPoint.READING_ROOM, seat=seat) for seat in ("one", "other")
        )
        for give_back in (
            lambda: lending.leave(beside, capture.url, one),
            lambda: lending.free(beside, capture.url),
        ):
            for server in (archive, beside, archive):
                assert lending.hold(server, capture, one)
                with pytest.raises(lending.InUse):
                    lending.hold(server, capture, other)
            give_back()
            deadline = time.monotonic() + 20  # a commit of another server is noticed within a moment
            while lending.needs_no_writing(archive, capture, one):
                assert time.monotonic() < deadline, "the first server does not believe its memory"
                time.sleep(0.01)
            assert lending.hold(beside, capture, other)
            with pytest.raises(lending.InUse):
                lending.hold(archive, capture, one)
            lending.leave(archive, capture.url, other)
