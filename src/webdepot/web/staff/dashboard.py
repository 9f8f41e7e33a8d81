"""The dashboard: figures and charts, and statistics as CSV."""

import logging
import time
from threading import Lock, Thread

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from webdepot.accounts.roles import CURATORS, REVIEWERS
from webdepot.archive import Archive
from webdepot.services.admin import dashboard, tasks
from webdepot.services.admin.dashboard import MonthCount, Overview
from webdepot.services.admin.tasks import TaskKind, UnderWay
from webdepot.web.csv_response import csv_answer
from webdepot.web.site import may, of_app, render, shared_of, site_of

log = logging.getLogger(__name__)
FRESH_S = 20.0
"""How long figures are shown before they are counted again, which takes seconds in a large archive."""
STALE_S = 60.0
"""A request waits for new figures rather than show older ones than these."""
WAIT_S = 5.0
MONTHS = 24
_DOING = {
    TaskKind.CASES: "/cases",
    TaskKind.DAMAGED: "/depot",
    TaskKind.REVIEW: "/review",
    TaskKind.FAILED: "/schedule/queue?state=failed",
    TaskKind.REFUSED: "/schedule/queue?state=refused",
    TaskKind.STOPPED: "/harvests?state=stopped",
    TaskKind.LETTERS: "/letters",
    TaskKind.SUGGESTED: "/targets?state=suggested&sort=since",
    TaskKind.NOMINATED: "/targets?state=nominated&sort=since",
    TaskKind.JUDGED: "/targets?state=judged&sort=since",
    TaskKind.LOOK_AGAIN: "/targets?state=put+off&sort=since",
    TaskKind.SELECTED: "/targets?state=selected&sort=since",
    TaskKind.UNPLANNED: "/targets?state=cleared&sort=since",
}
"""Where each task is done."""
_UNDER_WAY = {
    UnderWay.RUNNING: "/harvests?state=running",
    UnderWay.CHECKED: "/review#in-check",
    UnderWay.DUE: "/schedule/queue?state=waiting",
    UnderWay.DUE_IN_A_DAY: "/schedule",
    UnderWay.LETTERS_OUT: "/letters?state=sent",
}


class DashboardFigures:
    """The last figures. Those of the last minute are shown while they are counted again in a thread; for
    older ones a request waits a few seconds.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: tuple[float, Overview, list[MonthCount]] | None = None
        self._thread: Thread | None = None

    def get(self, archive: Archive) -> tuple[Overview, list[MonthCount]]:
        known = self._known
        if known is None:
            with self._lock:
                known = self._known or self._count(archive)
        elif (age_s := time.monotonic() - known[0]) > FRESH_S:
            self.start(archive)
            if age_s > STALE_S and self._thread is not None:
                self._thread.join(WAIT_S)
                known = self._known or known
        return known[1], known[2]

    def start(self, archive: Archive) -> None:
        """Count in a thread, unless that is already happening."""
        if self._lock.acquire(blocking=False):
            self._thread = Thread(target=self._count_locked, args=(archive,), name="dashboard figures")
            self._thread.start()

    def start_once(self, archive: Archive) -> None:
        """Count in a thread, unless there are figures already."""
        if self._known is None:
            self.start(archive)

    def wait(self) -> None:
        """Wait for the thread, which uses the archive."""
        if self._thread is not None:
            self._thread.join()

    def _count_locked(self, archive: Archive) -> None:
        try:
            self._count(archive)
        except Exception:  # the page itself reports it
            log.warning("the figures of the dashboard could not be counted", exc_info=True)
        finally:
            self._lock.release()

    def _count(self, archive: Archive) -> tuple[float, Overview, list[MonthCount]]:
        self._known = known = (time.monotonic(), dashboard.overview(archive), dashboard.months(archive))
        return known


def start_counting(request: Request) -> None:
    """Count the figures while a person signs in, so that the first dashboard need not wait for them."""
    of_app(request, DashboardFigures).start_once(site_of(request).archive)


def stop_counting(portal: Starlette) -> None:
    """Wait until the archive is no longer used for figures."""
    shared_of(portal, DashboardFigures).wait()


def show(request: Request) -> Response:
    archive = site_of(request).archive
    overview, months = of_app(request, DashboardFigures).get(archive)
    last = months[-MONTHS:]
    return render(
        request,
        "dashboard.html",
        found=overview,
        work=tasks.open_work(archive),
        now=archive.clock(),
        may_change=may(request, CURATORS),
        may_decide=may(request, REVIEWERS),
        doing=_DOING,
        under_way=_UNDER_WAY,
        months=last,
        most_a_day=max((day.good + day.waiting + day.bad for day in overview.days), default=0),
        most_bytes=max((month.size_bytes for month in last), default=0) or 1,
        most_targets=max(overview.targets.values(), default=0) or 1,
    )


def as_csv(request: Request) -> Response:
    overview, _ = of_app(request, DashboardFigures).get(site_of(request).archive)
    return csv_answer("statistics", ("section", "name", "value"), dashboard.figures(overview))


def months_csv(request: Request) -> Response:
    _, months = of_app(request, DashboardFigures).get(site_of(request).archive)
    columns = ("month", "harvests", "documents", "size_bytes", "errors")
    return csv_answer(
        "months", columns, ({name: getattr(month, name) for name in columns} for month in months)
    )
