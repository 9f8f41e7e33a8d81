"""A clock that only moves when a test moves it."""

from datetime import UTC, datetime, timedelta


class MovedClock:
    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += timedelta(days=days)
