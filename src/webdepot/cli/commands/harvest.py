"""`webdepot harvest`: the runs so far, what they do now, and what they can be told."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from webdepot import sheets
from webdepot.cli.call import Json, NoDeposit, Quiet, call_of
from webdepot.cli.output import Output, plain, size_words
from webdepot.cli.progress import shown
from webdepot.cli.report import tell
from webdepot.errors import InputError
from webdepot.harvest.control import Order, Verb
from webdepot.harvest.report.reports import ReportKind
from webdepot.model import HarvestState

if TYPE_CHECKING:
    from webdepot.services.harvest import control

WIDEST_COLUMN = 60

commands = typer.Typer(no_args_is_help=True)
Harvest = Annotated[
    str, typer.Argument(help="Identifier of the harvest, as `webdepot harvest list` prints it.")
]


@commands.command(name="list", epilog="Example: webdepot harvest list --json")
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="So many at most.")] = 50,
    json: Json = False,
) -> None:
    """The newest harvests first."""
    from webdepot.services.harvest import harvests

    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        found = harvests.latest(archive, limit)
    for harvest in found:
        fields = {
            "id": harvest.id,
            "kind": harvest.kind.value,
            "state": harvest.state.value,
            "seeds": list(harvest.seeds),
            "started": harvest.started_at,
            "ended": harvest.ended_at,
            "reason": harvest.reason,
            "counts": dict(harvest.counts),
        }
        got = f"{harvest.counts.get('fetched', 0):,} documents, {size_words(harvest.counts.get('bytes', 0))}"
        words = f"[bold]{plain(harvest.id)}[/bold]  {harvest.state.value}  {got}  [dim]{plain(harvest.reason)}[/dim]"
        output.result(fields, words)


@commands.command(epilog="Example: webdepot harvest resume 20261115090251-www-example-org-1f2e3d")
def resume(
    context: typer.Context,
    harvest: Harvest,
    no_deposit: NoDeposit = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a harvest: one that is paused in another process, or one that was stopped or killed; then
    check, keep and index it.
    """
    from webdepot.services import pipeline
    from webdepot.services.harvest import control

    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive:
        watched = control.watch(archive, harvest)
        if watched.is_running:
            _ordered(output, harvest, control.give(archive, harvest, Verb.RESUME))
            return
        if watched.standing.paused:
            control.lift_pause(archive, harvest)
    with call.archive() as archive, shown(output) as watch:
        report = pipeline.resume(archive, harvest, deposit=not no_deposit, watch=watch)
    tell(output, report)


@commands.command(epilog="Example: webdepot harvest keep 20261115090251-www-example-org-1f2e3d")
def keep(context: typer.Context, harvest: Harvest, json: Json = False, quiet: Quiet = False) -> None:
    """Put a finished harvest into the depot (after `archive --no-deposit`)."""
    from webdepot.services.harvest import harvests
    from webdepot.services.intake import ingest

    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        report = ingest.take_in(archive, harvests.get(archive, harvest), deposit=True, watch=watch)
    tell(output, report)


# --- steering ---

Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is recorded.")]


@commands.command(
    epilog="Example: webdepot harvest pause 20261115090251-www-example-org-1f2e3d --reason 'the owner asked'"
)
def pause(context: typer.Context, harvest: Harvest, reason: Reason = "", json: Json = False) -> None:
    """Ask nothing more until it is resumed; the process stays. Works from any other process."""
    _steer(context, harvest, Verb.PAUSE, reason, json)


@commands.command(epilog="Example: webdepot harvest stop 20261115090251-www-example-org-1f2e3d")
def stop(context: typer.Context, harvest: Harvest, reason: Reason = "", json: Json = False) -> None:
    """Stop tidily; it can be resumed later."""
    _steer(context, harvest, Verb.STOP, reason, json)


@commands.command(
    epilog="Example: webdepot harvest abort 20261115090251-www-example-org-1f2e3d --reason 'wrong site'"
)
def abort(context: typer.Context, harvest: Harvest, reason: Reason = "", json: Json = False) -> None:
    """End it for good: what was fetched is kept, what waits is given up."""
    _steer(context, harvest, Verb.ABORT, reason, json)


@commands.command(
    epilog="Example: webdepot harvest limits 20261115090251-www-example-org-1f2e3d --limit-pages 5000 --reject '/calendar/'"
)
def limits(
    context: typer.Context,
    harvest: Harvest,
    limit_pages: Annotated[
        int | None, typer.Option(min=0, help="Stop after so many documents; 0 for no limit.")
    ] = None,
    limit_bytes: Annotated[
        int | None, typer.Option(min=0, help="Stop after so many bytes; 0 for no limit.")
    ] = None,
    limit_time: Annotated[
        float | None, typer.Option(min=0, help="Stop after so many seconds; 0 for no limit.")
    ] = None,
    limit_host_pages: Annotated[
        int | None, typer.Option(min=0, help="So many documents of one host; 0 for no limit.")
    ] = None,
    limit_host_bytes: Annotated[
        int | None, typer.Option(min=0, help="So many bytes of one host; 0 for no limit.")
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option(min=0, help="Shortest pause between two requests to one server, in seconds."),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=1000, help="Requests in flight at once.")] = None,
    reject: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="Leave out what matches, from now on.")
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="Rules, limits and hosts of this profile, from now on.")
    ] = "",
    reason: Reason = "",
    json: Json = False,
) -> None:
    """Change limits and rules while it runs, or before it is resumed."""
    from webdepot.services.harvest import control, profiles

    call = call_of(context)
    output = call.output(json)
    given = {
        "limit_pages": limit_pages,
        "limit_bytes": limit_bytes,
        "limit_time_s": limit_time,
        "limit_host_pages": limit_host_pages,
        "limit_host_bytes": limit_host_bytes,
        "delay_s": delay,
        "workers": workers,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes and not reject and not profile:
        raise InputError("Say what shall change, for example --limit-pages 1000.")
    with call.archive() as archive:
        if profile:
            _ordered(
                output,
                harvest,
                control.use_profile(archive, harvest, profiles.options_of(archive, profile), reason=reason),
            )
        if reject:
            _ordered(output, harvest, control.reject(archive, harvest, reject, reason=reason))
        if changes:
            _ordered(output, harvest, control.change(archive, harvest, changes, reason=reason))


@commands.command(
    epilog="Example: webdepot harvest add 20261115090251-www-example-org-1f2e3d https://www.example.org/hidden.html"
)
def add(
    context: typer.Context,
    harvest: Harvest,
    urls: Annotated[
        list[str], typer.Argument(metavar="URL...", help="Addresses to fetch, whatever the scope says.")
    ],
    reason: Reason = "",
    json: Json = False,
) -> None:
    """Add addresses while it runs, or before it is resumed."""
    from webdepot.services.harvest import control

    call = call_of(context)
    with call.archive() as archive:
        order = control.add(archive, harvest, urls, reason=reason)
    _ordered(call.output(json), harvest, order)


@commands.command(
    epilog="Example: webdepot harvest remove 20261115090251-www-example-org-1f2e3d '/calendar/'"
)
def remove(
    context: typer.Context,
    harvest: Harvest,
    patterns: Annotated[
        list[str], typer.Argument(metavar="REGEX...", help="Waiting addresses that match are given up.")
    ],
    reason: Reason = "",
    json: Json = False,
) -> None:
    """Remove waiting addresses; to leave out later ones as well use: webdepot harvest limits HARVEST --reject
    REGEX
    """
    from webdepot.services.harvest import control

    call = call_of(context)
    with call.archive() as archive:
        order = control.remove(archive, harvest, patterns, reason=reason)
    _ordered(call.output(json), harvest, order)


def _steer(context: typer.Context, harvest: str, verb: Verb, reason: str, json: bool) -> None:
    from webdepot.services.harvest import control

    call = call_of(context)
    with call.archive() as archive:
        order = control.give(archive, harvest, verb, reason=reason)
    _ordered(call.output(json), harvest, order)


def _ordered(output: Output, harvest: str, order: Order) -> None:
    fields = {
        "harvest": harvest,
        "order": order.number,
        "verb": order.verb.value,
        "urls": list(order.urls),
        "changes": dict(order.changes),
    }
    output.result(
        fields,
        f"Order {order.number} for {plain(harvest)}: [bold]{order.verb.value}[/bold]. It is obeyed within a moment.",
    )


# --- looking at it ---


@commands.command(epilog="Example: webdepot harvest show 20261115090251-www-example-org-1f2e3d --follow")
def show(
    context: typer.Context,
    harvest: Harvest,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show new numbers each second until it ends.")
    ] = False,
    json: Json = False,
) -> None:
    """Numbers of a harvest, live while it runs: rate, done, waiting, how complete, per host."""
    from webdepot.services.harvest import control

    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        while True:
            watched = control.watch(archive, harvest)
            output.result(_live_fields(watched), _live_words(watched))
            if not follow or not watched.is_running:
                return
            time.sleep(1.0)


def _live_fields(watched: "control.Watched") -> dict[str, object]:
    found, numbers = watched.harvest, watched.live
    fields: dict[str, object] = {
        "harvest": found.id,
        "state": found.state.value,
        "running": watched.is_running,
    }
    if numbers is None:
        return fields | {"counts": dict(found.counts), "reason": found.reason}
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


def _live_words(watched: "control.Watched") -> str:
    found, numbers = watched.harvest, watched.live
    state, reason = found.state.value, found.reason
    if watched.is_running:
        state = "paused" if watched.standing.paused else "running"
    elif found.state is HarvestState.RUNNING:
        state, reason = (
            "interrupted",
            f"Its process is gone. Go on with it: webdepot harvest resume {found.id}",
        )
    lines = [f"[bold]{plain(found.id)}[/bold]  {state}  [dim]{plain(reason)}[/dim]"]
    if numbers is None:
        return lines[0]
    lines.append(
        f"  {numbers.fetched:,} documents, {size_words(numbers.size_bytes)}, {numbers.rate:.1f} a second; "
        f"{numbers.waiting:,} waiting, {numbers.in_flight} in flight, {numbers.errors:,} errors"
    )
    lines.append(f"  {plain(str(numbers.estimate))}")
    lines += [
        f"  {plain(host.host):40} {host.fetched:>9,} documents  {size_words(host.size_bytes):>10}  {host.waiting:>9,} waiting"
        f"  {host.errors:,} errors"
        for host in numbers.hosts
    ]
    lines += [
        f"  rejected by {plain(rule)}: {number:,}"
        for rule, number in sorted(numbers.refusals.items(), key=lambda item: -item[1])
    ]
    return "\n".join(lines)


@commands.command(
    epilog="Example: webdepot harvest report 20261115090251-www-example-org-1f2e3d --kind hosts --csv"
)
def report(
    context: typer.Context,
    harvest: Harvest,
    kind: Annotated[ReportKind, typer.Option(help="Which report.")] = ReportKind.HOSTS,
    limit: Annotated[int, typer.Option(min=0, help="So many rows at most; 0 for all.")] = 0,
    as_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values with a head line.")] = False,
    json: Json = False,
) -> None:
    """A report from the crawl log: hosts, mime, status, seeds, rejected (by rule) or traps. Also while it
    runs.
    """
    from webdepot.services.harvest import control

    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        made = control.report(archive, harvest, kind, limit=limit)
    if as_csv:
        sys.stdout.writelines(sheets.lines(made.columns, made.rows, end="\n"))
        return
    if output.json:
        for row in made.rows:
            output.result(row, "")
        return
    for line in _aligned(
        [made.columns, *([_cell(name, row[name]) for name in made.columns] for row in made.rows)]
    ):
        output.result({}, line)


def _cell(name: str, value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and name != "status" else str(value)


def _aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines with columns below each other: numbers to the right, words to the left; the head in bold."""
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
