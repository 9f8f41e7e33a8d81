"""The nearest version and its neighbours on the real index, compared with sorting everything."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webdepot.access import fuzzy, lookup
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.model import Capture, Location, RecordKind
from webdepot.ports.captures import ANY_TIME
from webdepot.times import from_timestamp, moment_of
from webdepot.url import key as key_of

URL = "http://www.example.org/"
stamps = st.dates().map(lambda day: f"{day.year:04d}{day.month:02d}{day.day:02d}000000")


def capture(
    stamp: str,
    url: str = URL,
    *,
    status: int = 200,
    redirect: str = "",
    mime: str = "text/html",
    offset: int = 0,
) -> Capture:
    return Capture(
        key=key_of(url),
        timestamp=stamp,
        url=url,
        kind=RecordKind.RESPONSE,
        status=status,
        mime=mime,
        digest="",
        location=Location(container="a.warc.gz", offset=offset, length=10),
        redirect=redirect,
    )


@pytest.fixture
def index(tmp_path: Path):
    made = SqliteCaptureIndex(tmp_path / "captures.db")
    yield made
    made.close()


@given(st.sets(stamps, min_size=1, max_size=12), stamps)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
def test_captures_come_in_order_of_distance(index, given_stamps, wanted):
    index.add(
        "a.warc.gz",
        [capture(stamp, offset=at) for at, stamp in enumerate(sorted(given_stamps))],
        collection="c",
    )
    found = [one.timestamp for one in lookup.iter_by_distance(index, key_of(URL), wanted)]

    def distance(stamp: str) -> tuple[float, str]:
        return abs((from_timestamp(stamp) - from_timestamp(wanted)).total_seconds()), stamp

    assert found == sorted(given_stamps, key=distance)


def test_what_a_reader_may_not_see_is_stepped_over(index):
    index.add("a.warc.gz", [capture(f"20{year}0101000000") for year in (10, 11, 12, 13, 14)], collection="c")

    spans = (("20110101000000", "20111231235959"), ("20130101000000", "20131231235959"))
    key = key_of(URL)
    found = lookup.find_closest(index, key, "20120101000000", spans=spans)
    assert found is not None and found.timestamp[:4] == "2011"
    steps = lookup.neighbours(index, found, spans=spans)
    assert [
        step and step.timestamp[:4] for step in (steps.first, steps.previous, steps.next, steps.last)
    ] == ["2011", None, "2013", "2013"]
    assert lookup.find_closest(index, key, "2012", spans=()) is None


def test_redirects_to_the_same_page_lead_to_the_next_nearest(index):
    turning = capture("20120101000000", status=301, redirect="https://example.org/")
    index.add("a.warc.gz", [turning, capture("20130101000000")], collection="c")
    found = lookup.find_closest(index, key_of(URL), "20120101000000")
    assert found is not None and found.timestamp == "20130101000000"
    assert not lookup.redirects_to_itself(capture("2012", status=301, redirect="https://example.org/other"))
    assert not lookup.redirects_to_itself(capture("2012", status=200, redirect="https://example.org/"))


def test_pages_of_the_same_host_are_near_by(index):
    pages = [capture("20120101000000", f"http://www.example.org/{name}") for name in "abc"]
    picture = capture("20120101000000", "http://www.example.org/b.png", mime="image/png")
    other = capture("20120101000000", "http://www.examples.org/b")
    index.add("a.warc.gz", [*pages, picture, other], collection="c")
    segments = [("org,example)/bb", "org,example*", ANY_TIME), ("org,example)", "org,example)/bb", ANY_TIME)]
    assert [one.url for one in lookup.near_by(index, segments)] == [
        f"http://www.example.org/{name}" for name in "cab"
    ]
    assert len(lookup.near_by(index, segments, limit=1)) == 1
    listed = lookup.addresses(index, segments[:1], limit=10)
    assert [(one.capture.url, one.tally.count) for one in listed] == [("http://www.example.org/c", 1)]


def test_timestamps_that_are_no_dates_count_as_the_earliest():
    assert moment_of("99999999999999").year == 1


def test_an_address_is_shortened_from_its_end():
    assert list(fuzzy.shorter_queries("http://a.example/doku.php?id=elbe&do=diff&rev=7")) == [
        "http://a.example/doku.php?id=elbe&do=diff",
        "http://a.example/doku.php?id=elbe&rev=7",
        "http://a.example/doku.php?do=diff&rev=7",
        "http://a.example/doku.php?id=elbe",
        "http://a.example/doku.php?do=diff",
        "http://a.example/doku.php?rev=7",
        "http://a.example/doku.php",
    ]
    assert list(fuzzy.shorter_queries("http://a.example/?p=sea;a=log")) == [
        "http://a.example/?p=sea",
        "http://a.example/?a=log",
        "http://a.example/",
    ]
    assert list(fuzzy.shorter_queries("http://a.example/x?" + "a&" * 20)) == ["http://a.example/x"]
    assert list(fuzzy.shorter_queries("http://a.example/x")) == []
