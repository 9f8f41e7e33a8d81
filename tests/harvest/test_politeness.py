"""Pauses after responses and intervals between tries."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.harvest.politeness.pauses import Manners, after_failure, pause_after, retry_after
from webdepot.times import to_http

MANNERS = Manners(
    delay_s=1.0,
    delay_factor=2.0,
    longest_delay_s=30.0,
    retry_delay_s=2.0,
    retry_factor=2.0,
    longest_retry_s=600.0,
)
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("duration_s", "crawl_delay_s", "pause_s"),
    [
        (0.1, None, 1.0),
        (3.0, None, 6.0),
        (100.0, None, 30.0),
        (0.1, 5.0, 5.0),
        (0.1, 3600.0, 30.0),
        (4.0, 5.0, 8.0),
        (-5.0, None, 1.0),
        (0.0, 0.0, 1.0),
    ],
)
def test_pauses(duration_s: float, crawl_delay_s: float | None, pause_s: float) -> None:
    assert pause_after(duration_s, MANNERS, crawl_delay_s=crawl_delay_s) == pause_s


@given(st.floats(-10, 1e6), st.none() | st.floats(0, 1e6))
def test_a_pause_keeps_its_bounds(duration_s: float, crawl_delay_s: float | None) -> None:
    assert (
        MANNERS.delay_s
        <= pause_after(duration_s, MANNERS, crawl_delay_s=crawl_delay_s)
        <= MANNERS.longest_delay_s
    )


def test_an_operators_pause_above_the_longest_is_kept() -> None:
    assert pause_after(0.1, Manners(delay_s=60.0, longest_delay_s=30.0)) == 60.0


def test_distances_grow_up_to_the_longest() -> None:
    assert [after_failure(tries, MANNERS) for tries in range(1, 6)] == [2.0, 4.0, 8.0, 16.0, 32.0]
    assert after_failure(10_000, MANNERS) == 600.0


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("999999999999999999999", 600.0),
        (to_http(NOW + timedelta(seconds=90)), 90.0),
        (to_http(NOW - timedelta(days=1)), 0.0),
        ("soon", None),
        ("-3", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after(value: str | None, wait_s: float | None) -> None:
    assert retry_after(value, NOW, MANNERS) == wait_s
