"""`webdepot statistics`: how the archive is used."""

import sys
from typing import Annotated

import typer

from webdepot.access.usage import Metric
from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain
from webdepot.services.access import statistics as statistics_service
from webdepot.text.csv_text import written


def statistics(
    context: typer.Context,
    first: Annotated[
        str,
        typer.Option("--from", metavar="MONTH", help="First month, such as 2026-01. Default: a year ago."),
    ] = "",
    last: Annotated[str, typer.Option("--to", metavar="MONTH", help="Last month. Default: this month.")] = "",
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print a title report in the style of COUNTER 5.")
    ] = False,
    json: Json = False,
) -> None:
    call = call_of(context)
    with call.archive() as archive:
        report = statistics_service.report(archive, first=first, last=last)
        rows = statistics_service.table(
            report, archive_name=archive.config.archive.name, today=archive.clock().date()
        )
        if as_csv:
            sys.stdout.writelines(written(rows, end="\n"))
            return
    output = call.output(json)
    for metric in Metric:
        by_month, sites = report.by("month", metric), list(report.by("site", metric).items())
        fields = {
            "metric": metric.value,
            "total": report.total(metric),
            "months": {month: by_month.get(month, 0) for month in report.months},
            "sites": dict(sites[:20]),
            "collections": dict(report.by("collection", metric)),
        }
        named = ", ".join(f"{plain(site or '-')} {count}" for site, count in sites[:5])
        output.result(fields, f"{metric.value}: {fields['total']}" + (f" ({named})" if named else ""))
