"""A model in plain Python defines the right results of `CaptureIndex`."""

from datetime import UTC, datetime

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capture_indexes import capture, empty
from webdepot import times
from webdepot.index.sqlite_captures import SqliteCaptureIndex
from webdepot.model import EVERYTHING
from webdepot.times import Period
from webdepot.url import key as key_of

KEYS = ["http://a.org/", "http://a.org/b", "http://a.org:81/", "http://b.a.org/", "http://b.org/"]
COLLECTIONS = ["one", "two"]
seconds = st.integers(0, 12).map(lambda second: f"202001010000{second:02d}")
contents = st.lists(st.tuples(st.sampled_from(KEYS), seconds), max_size=8)
holdings = st.lists(
    st.tuples(st.sampled_from(["x", "y", "z"]), st.sampled_from(COLLECTIONS), contents),
    min_size=1,
    max_size=5,
)


questions = {
    "held": holdings,
    "url": st.sampled_from(KEYS),
    "asked": seconds,
    "collection": st.sampled_from([EVERYTHING, *COLLECTIONS, "none"]),
    "limit": st.one_of(st.none(), st.integers(0, 6)),
}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(**questions)
def test_every_answer_is_that_of_the_model(tmp_path_factory, **question):
    check_answers(SqliteCaptureIndex(tmp_path_factory.mktemp("model") / "captures.db"), **question)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(**questions)
def test_every_answer_of_postgresql_is_that_of_the_model(request, tmp_path, **question):
    check_answers(empty("postgresql", request, tmp_path), **question)


def check_answers(index, held, url, asked, collection, limit):
    model: dict = {}
    for container, kept_in, found in held:
        captures = [
            capture(one, when, container=container, offset=offset) for offset, (one, when) in enumerate(found)
        ]
        assert index.add(container, captures, collection=kept_in) == len(captures)
        # First added keeps its place in the order.
        model[container] = (kept_in, captures)
    numbers = {container: number for number, container in enumerate(model)}
    rows = sorted(
        (
            found
            for kept_in, captures in model.values()
            for found in captures
            if collection in (EVERYTHING, kept_in)
        ),
        key=lambda found: (
            found.key,
            found.timestamp,
            numbers[found.location.container],
            found.location.offset,
        ),
    )
    key = key_of(url)
    own = [found for found in rows if found.key == key]

    assert list(index.versions(key, collection=collection, limit=limit)) == own[:limit]
    period = Period(datetime(2020, 1, 1, 0, 0, 3, tzinfo=UTC), datetime(2020, 1, 1, 0, 0, 8, tzinfo=UTC))
    assert list(index.versions(key, period=period, collection=collection)) == [
        one for one in own if times.from_timestamp(one.timestamp) in period
    ]
    assert index.count(key, collection=collection) == len(own)
    assert (
        list(index.scan("org,a)", "org,a-", collection=collection, limit=limit))
        == [one for one in rows if "org,a)" <= one.key < "org,a-"][:limit]
    )
    assert list(index.scan(key, key + " ", collection=collection)) == own
    last_of = {one.timestamp: one for one in own}
    stamps = sorted(last_of)
    earlier, later = [one for one in stamps if one < asked], [one for one in stamps if one > asked]
    assert index.before(key, asked, collection=collection) == (last_of[earlier[-1]] if earlier else None)
    assert index.after(key, asked, collection=collection) == (last_of[later[0]] if later else None)
    assert index.first(key, collection=collection) == (last_of[stamps[0]] if stamps else None)
    assert index.last(key, collection=collection) == (last_of[stamps[-1]] if stamps else None)
    nearest = min(stamps, key=lambda one: (times.gap_s(one, asked), one), default=None)
    assert index.closest(key, asked, collection=collection) == (last_of[nearest] if nearest else None)
    assert index.total() == sum(len(captures) for _, captures in model.values())
    index.close()
