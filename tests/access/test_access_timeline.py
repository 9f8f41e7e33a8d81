"""Calendar and sparkline, compared with counting by hand."""

from collections import Counter
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from webdepot.access import timeline
from webdepot.ports.captures import Tally

stamps = st.lists(
    st.datetimes().map(
        lambda at: f"{at.year:04d}{at.month:02d}{at.day:02d}{at.hour:02d}{at.minute:02d}{at.second:02d}"
    ),
    max_size=40,
)


def counted(ordered: list[str]) -> list[Tally]:
    """As the index counts: by day."""
    return [
        Tally(label=day, count=len(of_day), first=of_day[0], last=of_day[-1])
        for day, group in groupby(ordered, key=lambda stamp: stamp[:8])
        if (of_day := list(group))
    ]


@given(stamps)
def test_days_months_and_years_add_up(given_stamps):
    ordered = sorted(given_stamps)
    made = timeline.of(counted(ordered))
    assert made.total == len(ordered)
    assert {date: day.count for date, day in made.days.items()} == Counter(stamp[:8] for stamp in ordered)
    assert sum(year.count for year in made.years) == len(ordered)
    if not ordered:
        assert made.years == () and timeline.bars(made) == ()
        return
    assert (made.first, made.last) == (ordered[0], ordered[-1])
    for year in {int(stamp[:4]) for stamp in ordered}:
        months = timeline.months(made, year)
        assert [month.count for month in months] == [
            sum(stamp[:6] == f"{year:04d}{number:02d}" for stamp in ordered) for number in range(1, 13)
        ]
        assert all(len(week) == 7 for month in months for week in month.weeks)


@given(stamps.filter(bool))
def test_bars_cover_the_whole_time_and_hold_every_capture(given_stamps):
    ordered = sorted(given_stamps)
    bars = timeline.bars(timeline.of(counted(ordered)))
    assert sum(bar.count for bar in bars) == len(ordered)
    assert max(bar.height for bar in bars) == 1
    assert ordered[0].startswith(bars[0].label.replace("-", "")) and ordered[-1].startswith(
        bars[-1].label.replace("-", "")
    )
    assert all(bool(bar.timestamp) is bool(bar.count) for bar in bars)
    labels = [bar.label for bar in bars]
    assert labels == sorted(labels) and len(set(labels)) == len(labels)
