"""What is read, for staff: a chart, tables, and the whole as CSV."""

from starlette.requests import Request
from starlette.responses import Response

from webdepot.access.usage import Metric
from webdepot.services.access import statistics as statistics_service
from webdepot.sheets import written
from webdepot.web.charts import DrawnBar
from webdepot.web.sheets import csv_file
from webdepot.web.site import language_of, render, site_of

TABLES = ("site", "collection", "access_point", "country")


def statistics(request: Request) -> Response:
    made = _report(request)
    config = site_of(request).archive.config.statistics
    by = {
        name: list(made.by(name, Metric.REQUESTS).items())[:25]
        for name in TABLES
        if name != "country" or config.country_header
    }
    totals = [(metric, made.total(metric)) for metric in Metric]
    return render(
        request, "statistics.html", report=made, totals=totals, tables=by, usage_bars=_bars(request, made)
    )


def as_csv(request: Request) -> Response:
    """A title report in the manner of COUNTER 5."""
    archive = site_of(request).archive
    made = _report(request)
    rows = statistics_service.table(
        made, archive_name=archive.config.archive.name, today=archive.clock().date()
    )
    return csv_file(f"usage-{made.first}-{made.last}", written(rows, end="\n"))


def _report(request: Request) -> statistics_service.UsageReport:
    asked = request.query_params
    return statistics_service.report(
        site_of(request).archive, first=asked.get("from", ""), last=asked.get("to", "")
    )


def _bars(request: Request, made: statistics_service.UsageReport) -> list[DrawnBar]:
    spoken = language_of(request)
    counts = made.by("month", Metric.REQUESTS)
    highest = max(counts.values(), default=0) or 1
    every = len(made.months) // 12 + 1
    return [
        DrawnBar(
            label=month if at % every == 0 else "",
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
        for at, month in enumerate(made.months)
    ]
