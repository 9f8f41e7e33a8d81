"""Timestamps, ISO dates, HTTP dates: known values, round trips, order, anything else is a ValueError."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot import times
from webdepot.times import Period

moments = st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(microsecond=0))
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("digits", "start", "end"),
    [
        ("2019", utc(2019, 1, 1), utc(2019, 12, 31, 23, 59, 59)),
        ("20190", utc(2019, 1, 1), utc(2019, 12, 31, 23, 59, 59)),
        ("202002", utc(2020, 2, 1), utc(2020, 2, 29, 23, 59, 59)),
        ("20210228", utc(2021, 2, 28), utc(2021, 2, 28, 23, 59, 59)),
        ("2021022823", utc(2021, 2, 28, 23), utc(2021, 2, 28, 23, 59, 59)),
        ("202102282359", utc(2021, 2, 28, 23, 59), utc(2021, 2, 28, 23, 59, 59)),
        ("20210228235958", utc(2021, 2, 28, 23, 59, 58), utc(2021, 2, 28, 23, 59, 58)),
        ("20161231235960", utc(2016, 12, 31, 23, 59, 59), utc(2016, 12, 31, 23, 59, 59)),
        ("00010101000000", utc(1, 1, 1), utc(1, 1, 1)),
        ("9999", utc(9999, 1, 1), utc(9999, 12, 31, 23, 59, 59)),
    ],
)
def test_digits_name_a_period(digits, start, end):
    assert times.period_of(digits) == Period(start, end)
    assert times.from_timestamp(digits) == start


@pytest.mark.parametrize(
    "digits",
    [
        "",
        "2",
        "201",
        "2019x",
        "201913",
        "20190230",
        "2019010124",
        "20190101000061",
        "0000",
        "2" * 15,
        "２０１９",
        "2019\n",
        " 2019",
    ],
)
def test_a_text_that_is_not_a_timestamp_is_refused(digits):
    with pytest.raises(ValueError):
        times.period_of(digits)


@given(moments, zones)
def test_a_timestamp_names_its_moment_whatever_the_zone(moment, zone):
    digits = times.to_timestamp(moment)
    assert len(digits) == 14
    assert times.from_timestamp(digits) == moment
    if datetime(2, 1, 1, tzinfo=UTC) < moment < datetime(9998, 1, 1, tzinfo=UTC):
        assert times.to_timestamp(moment.astimezone(zone)) == digits
        assert times.from_iso(moment.astimezone(zone).isoformat()) == moment


@given(moments, moments)
def test_order_and_distance_of_timestamps_are_those_of_moments(one, other):
    first, second = times.to_timestamp(one), times.to_timestamp(other)
    assert (first < second) == (one < other)
    assert times.gap_s(first, second) == times.gap_s(second, first) == abs((one - other).total_seconds())


@given(st.text("0123456789", min_size=4, max_size=14), st.text("0123456789", min_size=4, max_size=14))
def test_distance_takes_any_digits(one, other):
    assert times.gap_s(one, other) >= 0


def test_fractions_are_cut_never_rounded_into_the_future():
    assert times.to_timestamp(datetime(2020, 1, 1, 0, 0, 0, 999_999, UTC)) == "20200101000000"
    assert times.to_iso(datetime(2020, 1, 1, 0, 0, 0, 999_999, UTC)) == "2020-01-01T00:00:00Z"


@given(moments)
def test_iso_and_http_dates_round_trip(moment):
    assert times.from_iso(times.to_iso(moment)) == moment
    if moment.year >= 1970:
        assert times.from_http(times.to_http(moment)) == moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2007", utc(2007, 1, 1)),
        ("2007-05", utc(2007, 5, 1)),
        ("2007-05-06", utc(2007, 5, 6)),
        ("2007-05-06T07:08", utc(2007, 5, 6, 7, 8)),
        ("2007-05-06T07:08:09Z", utc(2007, 5, 6, 7, 8, 9)),
        ("2007-05-06t07:08:09z", utc(2007, 5, 6, 7, 8, 9)),
        (" 2007-05-06 07:08:09 ", utc(2007, 5, 6, 7, 8, 9)),
        ("2007-05-06T07:08:09.123456789Z", utc(2007, 5, 6, 7, 8, 9, 123456)),
        ("2007-05-06T07:08:09.5+02:00", utc(2007, 5, 6, 5, 8, 9, 500000)),
        ("2007-05-06T07:08:09-0130", utc(2007, 5, 6, 8, 38, 9)),
        ("2016-12-31T23:59:60Z", utc(2016, 12, 31, 23, 59, 59)),
    ],
)
def test_iso_forms(text, moment):
    assert times.from_iso(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "20070506",
        "2007-13-01",
        "2007-02-30",
        "2007-05-06T25:00",
        "2007-05-06T07:08:61Z",
        "0000-01-01",
        "0001-01-01T00:00:00+01:00",
        "2007-05-06T07:08:09+24:00",
        "2007-05-06T07:08:09+00:60",
        "x2007",
    ],
)
def test_a_text_that_is_not_an_iso_date_is_refused(text):
    with pytest.raises(ValueError):
        times.from_iso(text)


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 09:49:37 +0100",
    ],
)
def test_the_three_forms_of_an_http_date(text):
    assert times.from_http(text) == utc(1994, 11, 6, 8, 49, 37)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "Sun, 99 Nov 1994 08:49:37 GMT",
        "Fri, 31 Dec 9999 23:59:59 -0500",
        "Sun, 06 Nov 1994 08:49:37 +9999999999",
    ],
)
def test_a_text_that_is_not_an_http_date_is_refused(text):
    with pytest.raises(ValueError):
        times.from_http(text)


@given(st.text())
def test_any_text_is_a_date_or_a_value_error(text):
    for read in (times.from_http, times.from_iso, times.period_of):
        try:
            read(text)
        except ValueError:
            continue


@pytest.mark.parametrize("write", [times.to_timestamp, times.to_iso, times.to_http])
def test_a_moment_without_zone_is_refused(write):
    with pytest.raises(ValueError, match="no time zone"):
        write(datetime(2020, 1, 1))  # noqa: DTZ001


def test_a_period_includes_both_ends():
    period = times.period_of("2019")
    assert period.start in period
    assert period.end in period
    assert period.end + timedelta(seconds=1) not in period


@pytest.mark.parametrize(
    "typed, digits",
    [
        ("2010", "2010"),
        ("2010-01", "201001"),
        ("2010-1", "201001"),
        ("201001", "201001"),
        ("2010-01-31", "20100131"),
        ("20100131", "20100131"),
        ("31.1.2010", "20100131"),
        (" 31. 1. 2010 ", "20100131"),
        ("1-1-2010", "20100101"),
        ("31/01/2010", "20100131"),
        ("1/2010", "201001"),
    ],
)
def test_a_date_is_read_as_people_type_it(typed: str, digits: str):
    assert times.read_date(typed) == digits


@pytest.mark.parametrize(
    "typed",
    ["", "abc", "10", "2010-13", "31-2-2010", "2010-1-1-1", "0000", "1.1.10", "²010", "20100132", "1 2010"],
)
def test_what_is_not_a_date_is_refused(typed: str):
    with pytest.raises(ValueError, match=r"not a date|must be|out of range"):
        times.read_date(typed)
