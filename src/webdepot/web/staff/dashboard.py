"""The dashboard: figures and charts drawn here, and statistics as CSV."""

import time
from threading import Lock, Thread

from starlette.requests import Request
from starlette.responses import Response

from webdepot.archive import Archive
from webdepot.services.admin import dashboard
from webdepot.services.admin.dashboard import MonthCount, Overview
from webdepot.web.sheets import csv_answer
from webdepot.web.site import of_app, render, site_of

FRESH_S = 20.0
"""Figures of a large archive take a second to count; so long they are shown again, with their time."""
MONTHS = 24


class Figures:
    """The last figures. Old ones are shown while they are counted anew behind the answer; only the very first
    have to be waited for.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: tuple[float, Overview, list[MonthCount]] | None = None

    def of(self, archive: Archive) -> tuple[Overview, list[MonthCount]]:
        known = self._known
        if known is None:
            with self._lock:
                known = self._known or self._count(archive)
        elif time.monotonic() - known[0] > FRESH_S and self._lock.acquire(blocking=False):
            Thread(target=self._refresh, args=(archive,), name="figures").start()
        return known[1], known[2]

    def _refresh(self, archive: Archive) -> None:
        try:
            self._count(archive)
        finally:
            self._lock.release()

    def _count(self, archive: Archive) -> tuple[float, Overview, list[MonthCount]]:
        self._known = made = (time.monotonic(), dashboard.overview(archive), dashboard.months(archive))
        return made


def shown(request: Request) -> Response:
    found, months = of_app(request, Figures).of(site_of(request).archive)
    last = months[-MONTHS:]
    return render(
        request,
        "dashboard.html",
        found=found,
        months=last,
        most_a_day=max((day.good + day.waiting + day.bad for day in found.days), default=0) or 1,
        most_bytes=max((month.size_bytes for month in last), default=0) or 1,
        most_targets=max(found.targets.values(), default=0) or 1,
    )


def as_csv(request: Request) -> Response:
    found, _ = of_app(request, Figures).of(site_of(request).archive)
    return csv_answer("statistics", ("section", "name", "value"), dashboard.figures(found))


def months_csv(request: Request) -> Response:
    _, months = of_app(request, Figures).of(site_of(request).archive)
    columns = ("month", "harvests", "documents", "size_bytes", "errors")
    return csv_answer(
        "months", columns, ({name: getattr(month, name) for name in columns} for month in months)
    )
