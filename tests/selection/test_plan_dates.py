"""Dates of plans: frequencies, months of different lengths, summer time, windows, cron, and that lists and
calendars agree with them.
"""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.errors import ConfigError, InputError
from webdepot.selection import plan_dates
from webdepot.selection.plan_dates import Dates, Frequency, HarvestWindow

ZONE = ZoneInfo("Europe/Amsterdam")
NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


def ahead(dates: Dates, after: datetime, count: int, zone: ZoneInfo = ZONE) -> list[str]:
    found = []
    at: datetime | None = after
    while len(found) < count and (at := plan_dates.next_after(dates, at, zone)) is not None:
        found.append(at.astimezone(zone).strftime("%Y-%m-%d %H:%M"))
    return found


def test_months_keep_their_day_and_never_drift():
    dates = Dates(frequency=Frequency.MONTHLY, first_on=date(2026, 1, 31), at_time=time(22))
    assert ahead(dates, NOON, 5) == [
        "2026-01-31 22:00",
        "2026-02-28 22:00",
        "2026-03-31 22:00",
        "2026-04-30 22:00",
        "2026-05-31 22:00",
    ]
    leap = Dates(frequency=Frequency.YEARLY, first_on=date(2024, 2, 29), at_time=time(1))
    assert ahead(leap, NOON, 3) == ["2026-02-28 01:00", "2027-02-28 01:00", "2028-02-29 01:00"]


def test_the_clock_on_the_wall_counts_in_summer_too():
    dates = Dates(frequency=Frequency.WEEKLY, first_on=date(2026, 3, 22), at_time=time(22))
    assert ahead(dates, datetime(2026, 3, 20, tzinfo=UTC), 2) == ["2026-03-22 22:00", "2026-03-29 22:00"]
    first = plan_dates.next_after(dates, datetime(2026, 3, 20, tzinfo=UTC), ZONE)
    second = plan_dates.next_after(dates, datetime(2026, 3, 23, tzinfo=UTC), ZONE)
    assert first is not None and second is not None and (first.hour, second.hour) == (21, 20)


def test_once_and_the_last_day():
    once = Dates(frequency=Frequency.ONCE, first_on=date(2026, 1, 15), at_time=time(14))
    assert ahead(once, NOON, 3) == ["2026-01-15 14:00"]
    daily = Dates(
        frequency=Frequency.DAILY, first_on=date(2026, 1, 1), at_time=time(3), last_on=date(2026, 1, 17)
    )
    assert ahead(daily, NOON, 9) == ["2026-01-16 03:00", "2026-01-17 03:00"]


def test_cron_not_before_the_first_day():
    dates = plan_dates.read_dates("cron", first_on="2026-02-10", cron="30 4 * * MON")
    assert ahead(dates, NOON, 2) == ["2026-02-16 04:30", "2026-02-23 04:30"]
    assert plan_dates.falls_on(dates, date(2026, 2, 16), ZONE) and not plan_dates.falls_on(
        dates, date(2026, 2, 9), ZONE
    )


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"frequency": "hourly", "first_on": "2026-01-01"}, "is not a frequency"),
        (
            {"frequency": "cron", "first_on": "2026-01-01", "cron": "61 * * * *"},
            "not a valid cron expression",
        ),
        ({"frequency": "cron", "first_on": "2026-01-01", "cron": "* * *"}, "five fields"),
        (
            {"frequency": "cron", "first_on": "2026-01-01", "cron": "0 0 31 2 *"},
            "not a valid cron expression",
        ),
        (
            {"frequency": "daily", "first_on": "2026-01-01", "cron": "0 3 * * *"},
            "needs the frequency cron",
        ),
        ({"frequency": "daily", "first_on": "1 May"}, "not a first day"),
        (
            {"frequency": "daily", "first_on": "2026-01-02", "last_on": "2026-01-01"},
            "is before the first day",
        ),
        ({"frequency": "daily", "first_on": "2026-01-02", "at_time": "24:00"}, "not a time of day"),
    ],
)
def test_what_is_wrong_is_told(given_, words):
    with pytest.raises(InputError, match=words):
        plan_dates.read_dates(**given_)


def test_windows():
    assert plan_dates.read_window("", "") is None
    for opens, closes in (("22:00", ""), ("22:00", "22:00"), ("7", "8")):
        with pytest.raises(InputError):
            plan_dates.read_window(opens, closes)
    night = plan_dates.read_window("22:00", "06:00")
    assert night == HarvestWindow(opens=time(22), closes=time(6))
    noon = datetime(2026, 1, 15, 11, tzinfo=UTC)
    assert plan_dates.opening(night, noon, ZONE) == datetime(2026, 1, 15, 21, tzinfo=UTC)
    inside = datetime(2026, 1, 15, 2, tzinfo=UTC)
    assert plan_dates.opening(night, inside, ZONE) == inside and plan_dates.is_open(night, inside, ZONE)
    day = HarvestWindow(opens=time(8), closes=time(18))
    assert plan_dates.opening(day, datetime(2026, 1, 15, 20, tzinfo=UTC), ZONE) == datetime(
        2026, 1, 16, 7, tzinfo=UTC
    )
    with pytest.raises(ConfigError, match="not a time zone"):
        plan_dates.zone_of("Mars/Olympus")


frequencies = st.sampled_from([each for each in Frequency if each is not Frequency.CRON])


@given(frequencies, st.dates(date(2020, 1, 1), date(2030, 1, 1)), st.times(), st.integers(0, 3000))
def test_dates_rise_and_fall_on_the_days_of_the_calendar(frequency, first_on, at_time, days):
    dates = Dates(frequency=frequency, first_on=first_on, at_time=at_time.replace(second=0, microsecond=0))
    at = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=days)
    for _ in range(4):
        following = plan_dates.next_after(dates, at, ZONE)
        if following is None:
            assert frequency is Frequency.ONCE
            return
        assert following > at and plan_dates.falls_on(dates, following.astimezone(ZONE).date(), ZONE)
        at = following


@given(frequencies, st.dates(date(2026, 1, 1), date(2026, 3, 1)))
def test_a_calendar_shows_every_date_and_no_other(frequency, first_on):
    dates = Dates(frequency=frequency, first_on=first_on, at_time=time(12))
    days = [date(2026, 1, 1) + timedelta(days=number) for number in range(120)]
    shown = [day for day in days if plan_dates.falls_on(dates, day, ZONE)]
    come, at = [], datetime(2025, 12, 31, 23, tzinfo=UTC)
    while (following := plan_dates.next_after(dates, at, ZONE)) is not None and following.date() <= days[-1]:
        come.append(following.date())
        at = following
    assert shown == come
    assert list(plan_dates.days_between(dates, days[20], days[100], ZONE)) == [
        day for day in shown if days[20] <= day <= days[100]
    ]


def test_of_many_missed_dates_the_latest_counts():
    dates = Dates(frequency=Frequency.DAILY, first_on=date(2026, 1, 1), at_time=time(3))
    first = datetime(2026, 1, 2, 2, tzinfo=UTC)
    assert plan_dates.last_before(dates, first, datetime(2026, 1, 12, 12, tzinfo=UTC), ZONE) == (
        datetime(2026, 1, 12, 2, tzinfo=UTC),
        10,
    )
    assert plan_dates.last_before(dates, first, datetime(2026, 1, 2, 2, tzinfo=UTC), ZONE) == (first, 0)
