"""Usage statistics for staff: a chart, tables, and all figures as CSV."""

from starlette.requests import Request
from starlette.responses import Response

from webdepot.access.usage import Metric
from webdepot.services.access import statistics as statistics_service
from webdepot.text.csv_text import written
from webdepot.web.charts import DrawnBar
from webdepot.web.csv_response import csv_file
from webdepot.web.site import language_of, render, site_of

TABLES = ("site", "collection", "access_point", "country")


def show(request: Request) -> Response:
    report = _report(request)
    config = site_of(request).archive.config.statistics
    by = {
        name: list(report.by(name, Metric.REQUESTS).items())[:25]
        for name in TABLES
        if name != "country" or config.country_header
    }
    totals = [(metric, report.total(metric)) for metric in Metric]
    return render(
        request,
        "statistics.html",
        report=report,
        totals=totals,
        tables=by,
        usage_bars=_bars(request, report),
    )


def as_csv(request: Request) -> Response:
    """A title report as in COUNTER 5."""
    archive = site_of(request).archive
    report = _report(request)
    rows = statistics_service.table(
        report, archive_name=archive.config.archive.name, today=archive.clock().date()
    )
    return csv_file(f"usage-{report.first}-{report.last}", written(rows, end="\n"))


def _report(request: Request) -> statistics_service.UsageReport:
    query = request.query_params
    return statistics_service.report(
        site_of(request).archive, first=query.get("from", ""), last=query.get("to", "")
    )


def _bars(request: Request, report: statistics_service.UsageReport) -> list[DrawnBar]:
    spoken = language_of(request)
    counts = report.by("month", Metric.REQUESTS)
    highest = max(counts.values(), default=0) or 1
    every = len(report.months) // 12 + 1
    return [
        DrawnBar(
            label=spoken.short_month(month) if at % every == 0 else "",
            words=spoken.count(
                "statistics.bar",
                counts.get(month, 0),
                month=f"{spoken.months[int(month[5:]) - 1]} {month[:4]}",
            ),
            height=counts.get(month, 0) / highest,
            href="",
            is_current=False,
            moment=month,
        )
        for at, month in enumerate(report.months)
    ]
