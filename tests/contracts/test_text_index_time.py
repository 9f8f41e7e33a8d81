"""The contract of `TextIndex` about time, run on every implementation. A model in plain Python says what is
right.
"""

from datetime import UTC, datetime
from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from text_indexes import ENGINES, HISTORY, MAKERS, page, urls
from webdepot import times
from webdepot.model import EVERYTHING
from webdepot.ports.search import ClosedArea, SearchSort, TextQuery
from webdepot.times import Period, from_timestamp, period_of

# --- time ---


def test_one_page_is_one_hit_with_its_captures_by_year(index):
    index.add("a", HISTORY)
    found = index.find(TextQuery(words=("old",)))
    (hit,) = found.hits
    assert found.pages == 1
    assert dict(found.years) == {2010: 1, 2012: 1, 2016: 1}
    assert index.find(TextQuery(words=("words",))).pages == 1
    assert dict(index.find(TextQuery(words=("words",))).years) == {2010: 1, 2012: 1, 2014: 1, 2016: 1}
    assert hit.timestamp in {"20100101000000", "20120101000000", "20160101000000"}


@pytest.mark.parametrize(
    ("moment", "word", "expected"),
    [
        ("20091231235959", "old", None),
        ("20100101000000", "old", "20100101000000"),
        ("20131231235959", "old", "20120101000000"),
        ("20131231235959", "new", None),
        ("20140101000000", "new", "20140101000000"),
        ("20151231235959", "old", None),
        ("20150101000000", "new", "20140101000000"),
        ("20990101000000", "old", "20160101000000"),
        ("20990101000000", "new", None),
    ],
)
def test_as_of_a_moment_the_state_that_stood_then_counts(index, moment, word, expected):
    index.add("a", HISTORY)
    hits = index.find(TextQuery(words=(word,), as_of=from_timestamp(moment))).hits
    assert [hit.timestamp for hit in hits] == ([expected] if expected else [])


def test_a_period_asks_for_captures_in_it(index):
    index.add("a", HISTORY)
    found = index.find(TextQuery(words=("old",), period=period_of("2012")))
    assert ([hit.timestamp for hit in found.hits], dict(found.years)) == (["20120101000000"], {2012: 1})
    assert index.find(TextQuery(words=("old",), period=period_of("2011"))).pages == 0
    between = Period(datetime(2011, 1, 1, tzinfo=UTC), datetime(2014, 6, 1, tzinfo=UTC))
    assert dict(index.find(TextQuery(words=("words",), period=between)).years) == {2012: 1, 2014: 1}


def test_order_by_time(index):
    index.add(
        "a",
        [
            page(f"http://{year}.org/", f"{year}0101000000", text=f"words of {year}")
            for year in (2005, 2001, 2009)
        ],
    )
    assert [
        hit.timestamp[:4] for hit in index.find(TextQuery(words=("words",), sort=SearchSort.OLDEST)).hits
    ] == [
        "2001",
        "2005",
        "2009",
    ]
    assert [
        hit.timestamp[:4] for hit in index.find(TextQuery(words=("words",), sort=SearchSort.NEWEST)).hits
    ] == [
        "2009",
        "2005",
        "2001",
    ]


def test_several_captures_of_one_day_are_all_counted(index):
    index.add(
        "a",
        [page(timestamp=f"20200101{hour:02d}0000") for hour in range(5)] + [page(timestamp="20200301000000")],
    )
    assert dict(index.find(TextQuery(words=("words",))).years) == {2020: 6}


def test_captures_by_month(index):
    index.add(
        "a",
        [page(timestamp=f"202001{day:02d}000000") for day in (1, 1, 1, 20)]
        + [page(timestamp="20200305000000")],
    )
    assert dict(index.find(TextQuery(words=("words",))).months) == {202001: 4, 202003: 1}
    cut = Period(datetime(2020, 1, 2, tzinfo=UTC), datetime(2020, 3, 5, tzinfo=UTC))
    assert dict(index.find(TextQuery(words=("words",), period=cut)).months) == {202001: 1, 202003: 1}
    assert dict(index.find(TextQuery(words=("words",), histogram=False)).months) == {}


def test_a_page_that_is_gone_ends_its_state(index):
    index.add("late", [page(timestamp="20120101000000", text="", gone=True, digest="")])
    index.add("early", [page(timestamp="20100101000000")])
    index.add("later", [page(timestamp="20140101000000")])
    for moment, pages in (("2011", 1), ("2013", 0), ("2015", 1)):
        assert index.find(TextQuery(words=("words",), as_of=from_timestamp(moment))).pages == pages
    assert dict(index.find(TextQuery(words=("words",))).years) == {2010: 1, 2014: 1}
    assert index.find(TextQuery()).pages == 1
    assert index.total() == 2


def test_containers_may_come_in_any_order(index):
    for number, one in enumerate(reversed(HISTORY)):
        index.add(f"container {number}", [one])
    assert [
        hit.timestamp for hit in index.find(TextQuery(words=("new",), as_of=from_timestamp("2015"))).hits
    ] == ["20140101000000"]
    assert index.find(TextQuery(words=("old",), as_of=from_timestamp("2015"))).pages == 0
    assert dict(index.find(TextQuery(words=("old",))).years) == {2010: 1, 2012: 1, 2016: 1}
    assert index.total() == 3


def test_the_same_page_in_two_collections(index):
    index.add("a", [page(timestamp="20100101000000")])
    index.add("b", [page(timestamp="20110101000000", collection="other"), page(timestamp="20120101000000")])
    found = index.find(TextQuery(words=("words",)))
    assert (found.pages, dict(found.years)) == (1, {2010: 1, 2011: 1, 2012: 1})
    assert dict(index.find(TextQuery(words=("words",), collection="other")).years) == {2011: 1}
    (hit,) = index.find(TextQuery(words=("words",), collection="other", as_of=from_timestamp("2015"))).hits
    assert hit.timestamp == "20110101000000"
    assert (
        index.find(TextQuery(words=("words",), collection="other", as_of=from_timestamp("20100601"))).pages
        == 0
    )


# --- revisits ---


def test_a_revisit_counts_as_a_capture_of_the_same_words(index):
    index.add("a", [page(timestamp="20100101000000", digest="d")])
    index.add("b", [page(timestamp="20110101000000", text="", digest="d", repeats=True)])
    found = index.find(TextQuery(words=("words",)))
    assert dict(found.years) == {2010: 1, 2011: 1}
    assert index.total() == 1


def test_a_revisit_of_another_address_takes_its_words(index):
    index.add("a", [page("http://a.org/", digest="d", title="Title")])
    index.add("b", [page("http://b.org/", "20110101000000", text="", digest="d", repeats=True)])
    assert set(urls(index, "words", "title")) == {"http://a.org/", "http://b.org/"}


def test_a_revisit_that_comes_before_its_original_waits_for_it(index):
    index.add(
        "later",
        [
            page("http://b.org/", "20110101000000", text="", digest="d", repeats=True),
            page("http://c.org/", text="other"),
        ],
    )
    assert urls(index, "words") == []
    index.add("unrelated", [page("http://x.org/", text="unrelated")])
    index.add("earlier", [page("http://a.org/", "20100101000000", digest="d")])
    assert set(urls(index, "words")) == {"http://a.org/", "http://b.org/"}
    index.add("more", [page("http://z.org/", "20120101000000", digest="d")])
    assert dict(index.find(TextQuery(words=("words",))).years) == {2010: 1, 2011: 1, 2012: 1}


# --- against a model ---

WORDS = ["alpha", "beta", "gamma"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
stamps = st.integers(0, 40).map(lambda month: f"20{10 + month // 12}{1 + month % 12:02d}15120000")
captures = st.builds(
    page,
    st.sampled_from(["http://a.org/", "http://a.org/x", "http://b.org/"]),
    stamps,
    texts,
    collection=st.sampled_from(["c", "d"]),
)
containers = st.lists(st.lists(captures, max_size=6), min_size=1, max_size=4)
bounds = st.tuples(stamps, stamps).map(sorted)


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    held=containers,
    word=st.sampled_from(WORDS),
    excluded=st.sampled_from([(), ("beta",)]),
    collection=st.sampled_from([EVERYTHING, "c"]),
    period=st.one_of(st.none(), bounds),
    as_of=st.one_of(st.none(), stamps),
    shut=st.one_of(st.none(), st.tuples(st.sampled_from(["org,a)", "org,a)/x", "org,"]), bounds)),
)
def test_every_answer_is_that_of_the_model(
    name, tmp_path_factory, held, word, excluded, collection, period, as_of, shut
):
    index = MAKERS[name](tmp_path_factory.mktemp("model") / "text")
    for number, pages in enumerate(held):
        assert index.add(str(number), pages) == len(pages)
    closed = (ClosedArea(prefix=shut[0], first=shut[1][0], last=shut[1][1]),) if shut else ()
    query = TextQuery(
        words=(word,),
        excluded=excluded,
        collection=collection,
        period=Period(from_timestamp(period[0]), from_timestamp(period[1])) if period else None,
        as_of=from_timestamp(as_of) if as_of else None,
        closed=closed,
        limit=100,
    )
    found = index.find(query)
    expected = model_of([one for pages in held for one in pages], query)
    assert {hit.key for hit in found.hits} == {one.key for one in expected}
    assert found.pages == len({one.key for one in expected})
    years: dict = {}
    for one in expected:
        years[int(one.timestamp[:4])] = years.get(int(one.timestamp[:4]), 0) + 1
    assert dict(found.years) == years
    for hit in found.hits:
        assert hit.timestamp in {one.timestamp for one in expected if one.key == hit.key}
    index.close()


def model_of(pages, query):
    """The captures that answer a query, worked out one by one."""
    answer = []
    for _, of_page in groupby(
        sorted(pages, key=lambda one: (one.key, one.timestamp)), key=lambda one: one.key
    ):
        runs = [list(run) for _, run in groupby(of_page, key=lambda one: one.text)]
        for number, run in enumerate(runs):
            ends = runs[number + 1][0].timestamp if number + 1 < len(runs) else "9" * 14
            words = run[0].text.split()
            if query.words[0] not in words or any(word in words for word in query.excluded):
                continue
            if query.as_of is not None and not times.to_timestamp(query.as_of) < ends:
                continue
            answer += [one for one in run if is_answer(one, query)]
    return answer


def is_answer(one, query):
    moment = from_timestamp(one.timestamp)
    return (
        query.collection in (EVERYTHING, one.collection)
        and (query.period is None or moment in query.period)
        and (query.as_of is None or moment <= query.as_of)
        and not any((one.key, one.timestamp) in closed for closed in query.closed)
    )
