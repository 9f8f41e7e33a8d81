"""Pages of the depot for staff: its status, its packages, one package with its copies, events and files, and
the signed report.
"""

from itertools import accumulate

from starlette.requests import Request
from starlette.responses import Response

from webdepot.services.depot import status
from webdepot.services.depot.status import DepotStatus
from webdepot.web.charts import DrawnBar
from webdepot.web.language import Language
from webdepot.web.site import language_of, render, site_of

PER_PAGE = 50
MOST_BARS = 36
MOST_VALUES = 6
"""How many sizes are shown above the bars, the last one always; more would not fit on a phone."""


def show_overview(request: Request) -> Response:
    report = status.status(site_of(request).archive)
    return render(request, "depot.html", report=report, bars=_growth(report, language_of(request)))


def show_packages(request: Request) -> Response:
    before = request.query_params.get("before", "")[:200]
    rows = status.list_packages(site_of(request).archive, limit=PER_PAGE + 1, before=before)
    following = rows[PER_PAGE - 1].package.id if len(rows) > PER_PAGE else ""
    return render(request, "packages.html", rows=rows[:PER_PAGE], following=following, is_first=not before)


def show_package(request: Request) -> Response:
    seen = status.view(site_of(request).archive, request.path_params["identifier"])
    return render(request, "package.html", seen=seen)


def send_report(request: Request) -> Response:
    """The signed fixity report, to download and to pass on to anyone who wants to check it."""
    data = status.fixity_report(site_of(request).archive)
    headers = {
        "Content-Disposition": 'attachment; filename="fixity-report.json"',
        "Cache-Control": "no-store",
    }
    return Response(data, media_type="application/json", headers=headers)


def _growth(report: DepotStatus, spoken: Language) -> list[DrawnBar]:
    """The size of the depot at the end of each month, from the first to the last, including months without
    new packages.
    """
    added = {month: size_bytes for month, _, size_bytes in report.growth}
    if not added:
        return []
    months = _months(min(added), max(added))
    sums = list(accumulate(added.get(month, 0) for month in months))
    shown = list(zip(months, sums, strict=True))[-MOST_BARS:]
    highest = max(size for _, size in shown) or 1
    every = -(-len(shown) // MOST_VALUES)
    return [
        DrawnBar(
            label=month[:4] if month.endswith("-01") or at == 0 else "",
            words=spoken.say(
                "depot.growth_bar",
                month=f"{spoken.months[int(month[5:]) - 1]} {month[:4]}",
                size=spoken.size(size),
            ),
            height=size / highest,
            href="",
            is_current=False,
            value=spoken.size(size) if (len(shown) - 1 - at) % every == 0 else "",
        )
        for at, (month, size) in enumerate(shown)
    ]


def _months(first: str, last: str) -> list[str]:
    start, stop = (int(month[:4]) * 12 + int(month[5:]) - 1 for month in (first, last))
    return [f"{number // 12:04d}-{number % 12 + 1:02d}" for number in range(start, stop + 1)]
