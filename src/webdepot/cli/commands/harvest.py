"""`webdepot harvest`: list, resume, control and report harvests."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import typer

from webdepot.cli.call import Call, Json, NoDeposit, Quiet, call_of
from webdepot.cli.output import Output, count_words, duration_words, failure_words, plain, size_words
from webdepot.cli.progress import shown
from webdepot.cli.report import print_report
from webdepot.errors import InputError
from webdepot.harvest.order_file import Order, OrderVerb
from webdepot.harvest.report.reports import ReportKind
from webdepot.quality.page_ratings import PageRating
from webdepot.services.harvest import control, harvests, profiles
from webdepot.services.review import ratings
from webdepot.text import csv_text

WIDEST_COLUMN = 60

commands = typer.Typer(no_args_is_help=True)
Harvest = Annotated[
    str, typer.Argument(help="Identifier of the harvest, as `webdepot harvest list` prints it.")
]


@commands.command(name="list", epilog="Example: webdepot harvest list --json")
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of harvests.")] = 50,
    json: Json = False,
) -> None:
    """List harvests, newest first."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        latest = [
            (harvest, control.course_of(archive, harvest)) for harvest in harvests.latest(archive, limit)
        ]
    for harvest, course in latest:
        counts = course.counts
        fields = {
            "id": harvest.id,
            "kind": harvest.kind.value,
            "state": harvest.state.value,
            "course": course.name,
            "seeds": list(harvest.seeds),
            "started": harvest.started_at,
            "ended": harvest.ended_at,
            "reason": course.reason,
            "counts": dict(counts),
        }
        documents = count_words(counts.get("fetched", 0), "documents")
        size = f"{documents}, {size_words(counts.get('bytes', 0))}"
        output.result(
            fields,
            f"[bold]{plain(harvest.id)}[/bold]  {course.name}  {size}  [dim]{plain(course.reason)}[/dim]",
        )


@commands.command(epilog="Example: webdepot harvest resume 20261115090251-www-example-org-1f2e3d")
def resume(
    context: typer.Context,
    harvest: Harvest,
    no_deposit: NoDeposit = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Resume a harvest that is paused, was stopped or was killed; then check it. A planned harvest waits
    for its review; others are deposited and indexed.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive:
        watched = control.watch(archive, harvest)
        if watched.is_running:
            _print_order(output, harvest, control.give(archive, harvest, OrderVerb.RESUME))
            return
        if watched.standing.paused:
            control.lift_pause(archive, harvest)
    _run_again(call, harvest, output, deposit=not no_deposit)


def _run_again(call: Call, harvest: str, output: Output, *, deposit: bool) -> None:
    from webdepot.services import pipeline  # loads the indexer, which `harvest list` does without

    with call.archive() as archive, shown(output) as watch:
        report = pipeline.resume(archive, harvest, deposit=deposit, watch=watch)
    print_report(output, report)


@commands.command(epilog="Example: webdepot harvest keep 20261115090251-www-example-org-1f2e3d")
def keep(context: typer.Context, harvest: Harvest, json: Json = False, quiet: Quiet = False) -> None:
    """Deposit a finished harvest (after `archive --no-deposit`). One that waits for its review is accepted
    with `webdepot review accept` instead.
    """
    from webdepot.services import pipeline  # loads the indexer, which `harvest list` does without

    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        report = pipeline.keep(archive, harvest, watch=watch)
    print_report(output, report)


# --- control ---

Reason = Annotated[str, typer.Option(metavar="TEXT", help="The reason; it is recorded.")]


@commands.command(
    epilog="Example: webdepot harvest pause 20261115090251-www-example-org-1f2e3d --reason 'the owner asked'"
)
def pause(context: typer.Context, harvest: Harvest, reason: Reason = "", json: Json = False) -> None:
    """Pause a running harvest until it is resumed; its process keeps running."""
    _steer(context, harvest, OrderVerb.PAUSE, reason, json)


@commands.command(epilog="Example: webdepot harvest stop 20261115090251-www-example-org-1f2e3d")
def stop(context: typer.Context, harvest: Harvest, reason: Reason = "", json: Json = False) -> None:
    """Stop a harvest cleanly; it can be resumed later."""
    _steer(context, harvest, OrderVerb.STOP, reason, json)


@commands.command(
    epilog="Example: webdepot harvest abort 20261115090251-www-example-org-1f2e3d --reason 'wrong site'"
)
def abort(context: typer.Context, harvest: Harvest, reason: Reason = "", json: Json = False) -> None:
    """End a harvest for good: fetched documents are kept, the queue is discarded. A harvest that was stopped
    or interrupted is checked, deposited and indexed here.
    """
    call = call_of(context)
    with call.archive() as archive:
        is_running = control.watch(archive, harvest).is_running
        if not is_running:
            control.give_up(archive, harvest, reason=reason)
    if is_running:
        _steer(context, harvest, OrderVerb.ABORT, reason, json)
    else:
        _run_again(call, harvest, call.output(json), deposit=True)


# The options of `limits`; 0 means no limit.
LimitPages = Annotated[
    int | None, typer.Option(min=0, help="Stop after this many pages and their parts; 0 means no limit.")
]
LimitDocuments = Annotated[
    int | None, typer.Option(min=0, help="Stop after this many pages, parts and files; 0 means no limit.")
]
LimitBytes = Annotated[int | None, typer.Option(min=0, help="Stop after this many bytes; 0 means no limit.")]
LimitTime = Annotated[
    float | None, typer.Option(min=0, help="Stop after this many seconds; 0 means no limit.")
]
LimitHostPages = Annotated[
    int | None, typer.Option(min=0, help="Maximum pages from one host; 0 means no limit.")
]
LimitHostDocuments = Annotated[
    int | None, typer.Option(min=0, help="Maximum pages, parts and files from one host; 0 means no limit.")
]
LimitHostBytes = Annotated[
    int | None, typer.Option(min=0, help="Maximum bytes from one host; 0 means no limit.")
]


@commands.command(
    epilog="Example: webdepot harvest limits 20261115090251-www-example-org-1f2e3d --limit-pages 5000 "
    "--reject '/calendar/'"
)
def limits(
    context: typer.Context,
    harvest: Harvest,
    limit_pages: LimitPages = None,
    limit_documents: LimitDocuments = None,
    limit_bytes: LimitBytes = None,
    limit_time: LimitTime = None,
    limit_host_pages: LimitHostPages = None,
    limit_host_documents: LimitHostDocuments = None,
    limit_host_bytes: LimitHostBytes = None,
    delay: Annotated[
        float | None,
        typer.Option(min=0, help="Minimum delay between two requests to one server, in seconds."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Maximum number of parallel requests.")
    ] = None,
    reject: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Leave out addresses that match, from now on."),
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="Use rules, limits and hosts of this profile, from now on.")
    ] = "",
    reason: Reason = "",
    json: Json = False,
) -> None:
    """Change limits and rules of a harvest while it is running, or before it is resumed."""
    call = call_of(context)
    output = call.output(json)
    values = {
        "limit_pages": limit_pages,
        "limit_documents": limit_documents,
        "limit_bytes": limit_bytes,
        "limit_time_s": limit_time,
        "limit_host_pages": limit_host_pages,
        "limit_host_documents": limit_host_documents,
        "limit_host_bytes": limit_host_bytes,
        "delay_s": delay,
        "workers": workers,
    }
    changes = {name: value for name, value in values.items() if value is not None}
    if not changes and not reject and not profile:
        raise InputError("Nothing to change. Give at least one option, for example --limit-pages 1000.")
    with call.archive() as archive:
        if profile:
            options = profiles.options_of(archive, profile)
            _print_order(output, harvest, control.use_profile(archive, harvest, options, reason=reason))
        if reject:
            _print_order(output, harvest, control.reject(archive, harvest, reject, reason=reason))
        if changes:
            _print_order(output, harvest, control.change(archive, harvest, changes, reason=reason))


@commands.command(
    epilog="Example: webdepot harvest add 20261115090251-www-example-org-1f2e3d "
    "https://www.example.org/hidden.html"
)
def add(
    context: typer.Context,
    harvest: Harvest,
    urls: Annotated[
        list[str], typer.Argument(metavar="URL...", help="Addresses to fetch, even outside the scope.")
    ],
    reason: Reason = "",
    json: Json = False,
) -> None:
    """Add addresses to a harvest while it is running, or before it is resumed."""
    call = call_of(context)
    with call.archive() as archive:
        order = control.add(archive, harvest, urls, reason=reason)
    _print_order(call.output(json), harvest, order)


@commands.command(
    epilog="Example: webdepot harvest remove 20261115090251-www-example-org-1f2e3d '/calendar/'"
)
def remove(
    context: typer.Context,
    harvest: Harvest,
    patterns: Annotated[
        list[str], typer.Argument(metavar="REGEX...", help="Queued addresses that match are removed.")
    ],
    reason: Reason = "",
    json: Json = False,
) -> None:
    """Remove queued addresses. To leave out later ones as well: webdepot harvest limits --reject REGEX"""
    call = call_of(context)
    with call.archive() as archive:
        order = control.remove(archive, harvest, patterns, reason=reason)
    _print_order(call.output(json), harvest, order)


def _steer(context: typer.Context, harvest: str, verb: OrderVerb, reason: str, json: bool) -> None:
    call = call_of(context)
    with call.archive() as archive:
        order = control.give(archive, harvest, verb, reason=reason)
    _print_order(call.output(json), harvest, order)


def _print_order(output: Output, harvest: str, order: Order) -> None:
    fields = {
        "harvest": harvest,
        "order": order.number,
        "verb": order.verb.value,
        "urls": list(order.urls),
        "changes": dict(order.changes),
    }
    output.result(
        fields,
        f"Order {order.number} for {plain(harvest)}: [bold]{order.verb.value}[/bold]. "
        "It takes effect within a few seconds.",
    )


# --- figures and reports ---


@commands.command(epilog="Example: webdepot harvest show 20261115090251-www-example-org-1f2e3d --follow")
def show(
    context: typer.Context,
    harvest: Harvest,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Update every second until the harvest ends.")
    ] = False,
    json: Json = False,
) -> None:
    """Show a harvest, live while it is running: rate, fetched, queued, estimated completeness, by host."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        while True:
            watched = control.watch(archive, harvest)
            rated = ratings.of_harvest(archive, harvest)
            output.result(
                {**_live_fields(watched), "ratings": [_rating_fields(each) for each in rated]},
                "\n".join((_live_text(watched), *map(_rating_text, rated))),
            )
            if not follow or not watched.is_running:
                return
            time.sleep(1.0)


def _rating_fields(rated: PageRating) -> dict[str, object]:
    values = {"url": rated.url, "rating": rated.rating.value, "note": rated.words}
    return values | {"by": rated.by, "at": rated.at}


def _rating_text(rated: PageRating) -> str:
    note = f"  {plain(rated.words)}" if rated.words else ""
    return f"  {rated.rating.value}: {plain(rated.url)}{note} [dim]({plain(rated.by)})[/dim]"


def _live_fields(watched: control.WatchedHarvest) -> dict[str, object]:
    harvest, numbers = watched.harvest, watched.live
    fields: dict[str, object] = {
        "harvest": harvest.id,
        "state": harvest.state.value,
        "running": watched.is_running,
    }
    if numbers is None:
        return fields | {"counts": dict(harvest.counts), "reason": harvest.reason}
    estimate = numbers.estimate
    return fields | {
        "paused": numbers.paused,
        "at": numbers.at,
        "fetched": numbers.fetched,
        "waiting": numbers.waiting,
        "in_flight": numbers.in_flight,
        "bytes": numbers.size_bytes,
        "rate": round(numbers.rate, 2),
        "errors": numbers.errors,
        "robots_refused": numbers.robots_refused,
        "elapsed_s": round(numbers.elapsed_s, 1),
        "complete": {
            "share": round(estimate.share, 4),
            "basis": estimate.basis.value,
            "to_come": estimate.to_come,
            "words": str(estimate),
        },
        "rejected": dict(numbers.refusals),
        "hosts": [
            {
                "host": host.host,
                "fetched": host.fetched,
                "waiting": host.waiting,
                "bytes": host.size_bytes,
                "errors": host.errors,
                "refused": host.refused,
            }
            for host in numbers.hosts
        ],
    }


def _live_text(watched: control.WatchedHarvest) -> str:
    harvest, numbers = watched.harvest, watched.live
    course = watched.course
    lines = [f"[bold]{plain(harvest.id)}[/bold]  {course.name}  [dim]{plain(course.reason)}[/dim]"]
    if numbers is None:
        by_host = f"  [dim]By host: webdepot harvest report {plain(harvest.id)} --kind hosts[/dim]"
        return "\n".join([*lines, *_counted_lines(harvest.counts), by_host])
    lines.append(
        f"  {count_words(numbers.pages, 'pages')}, {count_words(numbers.fetched, 'documents')}, "
        f"{size_words(numbers.size_bytes)} in "
        f"{duration_words(numbers.elapsed_s)}, {numbers.rate:.1f} documents per second; "
        f"{numbers.waiting:,} queued, {numbers.in_flight} in progress"
    )
    if failed := failure_words(numbers.errors, numbers.failed_parts):
        lines.append(f"  {failed}")
    if watched.is_running and (numbers.opened or numbers.asked):
        where = "in the browser: " if numbers.opened else ""
        lines.append(f"  [dim]{where}{plain(numbers.opened or numbers.asked)}[/dim]")
    lines.append(f"  {plain(str(numbers.estimate))}")
    lines += [
        f"  {plain(host.host):40} {host.fetched:>9,} documents  {size_words(host.size_bytes):>10}  "
        f"{host.waiting:>9,} queued  {host.errors:,} failed"
        for host in numbers.hosts
    ]
    lines += [
        f"  left out by the rule {plain(rule)}: {number:,}"
        for rule, number in sorted(numbers.refusals.items(), key=lambda item: -item[1])
    ]
    if numbers.refusals:
        lines.append(
            f"  [dim]Reasons and examples: webdepot harvest report {plain(harvest.id)} --kind rejected[/dim]"
        )
    return "\n".join(lines)


def _counted_lines(counts: Mapping[str, int]) -> list[str]:
    """The counts of a harvest that has ended."""
    pages = f"{count_words(counts['pages'], 'pages')}, " if "pages" in counts else ""
    documents = count_words(counts.get("fetched", 0), "documents")
    lines = [f"  {pages}{documents}, {size_words(counts.get('bytes', 0))}"]
    if failed := failure_words(counts.get("errors", 0), counts.get("failed_parts", 0)):
        lines.append(f"  {failed}")
    return lines + [
        f"  {label}: {counts[name]:,}" for name, label in _COUNT_WORDS.items() if counts.get(name)
    ]


_COUNT_WORDS = {
    "waiting": "left waiting",
    "nofollow": "left out because of nofollow",
    "robots_refused": "left out because of robots.txt",
    "rejected": "left out by all rules together",
    "outside": "links to addresses outside the scope",
    "duplicates": "duplicates of other addresses or earlier harvests",
    "empty_pages": "pages that are empty without scripts",
    "noindex_pages": "pages marked noindex, harvested anyway",
    "opened": "pages opened in the browser",
    "unopened": "pages that the browser could not show",
    "screenshots": "screenshots",
    "program_errors": "internal errors, listed in the crawl log; please report them",
}
"""In the order in which they are shown."""


@commands.command(
    epilog="Example: webdepot harvest report 20261115090251-www-example-org-1f2e3d --kind hosts --csv"
)
def report(
    context: typer.Context,
    harvest: Harvest,
    kind: Annotated[ReportKind, typer.Option(help="Which report.")] = ReportKind.HOSTS,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of rows; 0 means all.")] = 0,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header line.")] = False,
    json: Json = False,
) -> None:
    """Print a report from the crawl log: hosts, mime, status, seeds, rejected (by rule), traps or software
    (recognised by its pages). Works while the harvest is running, too.
    """
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        table = control.report(archive, harvest, kind, limit=limit)
    if as_csv:
        sys.stdout.writelines(csv_text.lines(table.columns, table.rows, end="\n"))
        return
    if output.json:
        for row in table.rows:
            output.result(row, "")
        return
    for line in _aligned(
        [table.columns, *([_cell(name, row[name]) for name in table.columns] for row in table.rows)]
    ):
        output.result({}, line)


def _cell(name: str, value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and name != "status" else str(value)


def _aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines with aligned columns: numbers to the right, text to the left; the header in bold."""
    widths = [min(max(map(len, column)), WIDEST_COLUMN) for column in zip(*table)]
    are_numbers = [
        all(cell.replace(",", "").isdigit() for cell in column[1:]) and len(column) > 1
        for column in zip(*table)
    ]
    for number, row in enumerate(table):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, are_numbers)
        ]
        line = plain("  ".join(cells).rstrip())
        yield f"[bold]{line}[/bold]" if number == 0 else line
