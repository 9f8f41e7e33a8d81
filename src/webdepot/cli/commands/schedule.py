"""`webdepot schedule` and `webdepot scheduler`: how often targets are harvested, and running what is due."""

import signal
import threading
from datetime import date
from types import FrameType
from typing import Annotated

import typer

from webdepot.archive import Archive
from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import Output, plain
from webdepot.engine.process_rows import WorkerRole
from webdepot.errors import InputError
from webdepot.model import TargetId
from webdepot.selection.plan_dates import Frequency, Plan
from webdepot.selection.plans import PlanFilter
from webdepot.selection.scheduled_harvests import Turn, TurnState
from webdepot.services.cluster import heartbeat
from webdepot.services.exchange import webhooks
from webdepot.services.harvest import profiles
from webdepot.services.schedule import chores, plans
from webdepot.services.schedule import scheduler as scheduler_service

commands = typer.Typer(no_args_is_help=True)
TargetName = Annotated[str, typer.Argument(metavar="TARGET", help="Number, name or address of the target.")]
TurnNumber = Annotated[
    int, typer.Argument(metavar="TURN", help="Number in the queue, as `webdepot schedule queue` prints it.")
]


@commands.command(
    name="set",
    epilog="Example: webdepot schedule set www.example.org --every monthly --first 2027-01-31 --at 22:00",
)
def set_(
    context: typer.Context,
    target: TargetName,
    every: Annotated[Frequency, typer.Option(help="How often.")] = Frequency.MONTHLY,
    cron: Annotated[
        str, typer.Option(metavar="EXPRESSION", help="With --every cron: minute hour day month weekday.")
    ] = "",
    first: Annotated[
        str, typer.Option(metavar="DAY", help="First day, such as 2027-01-31. Default: today.")
    ] = "",
    at: Annotated[
        str, typer.Option(metavar="TIME", help="Time of day, such as 22:00; not with cron.")
    ] = "03:00",
    last: Annotated[str, typer.Option(metavar="DAY", help="Last day. Default: no end.")] = "",
    window: Annotated[
        str, typer.Option(metavar="FROM-TO", help="Hours in which it may run, such as 22:00-06:00.")
    ] = "",
    profile: Annotated[str, typer.Option(metavar="NAME", help="Profile to harvest with.")] = "",
    json: Json = False,
) -> None:
    """Set the schedule of a target. Times are in the time zone schedule.timezone."""
    call = call_of(context)
    opens, _, closes = window.partition("-")
    with call.archive() as archive:
        number = _target(archive, target)
        plan = plans.set_typed_plan(
            archive,
            number,
            frequency="cron" if cron else every.value,
            first_on=first,
            at_time=at,
            cron=cron,
            last_on=last,
            opens=opens.strip(),
            closes=closes.strip(),
            profile=profile,
        )
        verdict = plans.of_target(archive, number).verdict
    output = call.output(json)
    _print_plan(output, target, plan)
    if not verdict:
        output.warn(f"It may not be harvested yet: {plain(verdict.reason)}")


@commands.command(epilog="Example: webdepot schedule show www.example.org --json")
def show(context: typer.Context, target: TargetName, json: Json = False) -> None:
    """Show the schedule of a target, its next dates, whether it may be harvested, and the last results."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        planned = plans.of_target(archive, _target(archive, target))
    if planned.plan is None:
        output.say(f"{plain(planned.name)} has no schedule. Set one: webdepot schedule set {planned.target}")
    else:
        _print_plan(output, planned.name, planned.plan)
    may = "may be harvested" if planned.verdict else f"may not be harvested: {planned.verdict.reason}"
    output.say(f"{plain(planned.name)} {plain(may)}")
    for at in planned.next_dates:
        output.result({"date": at}, f"  next {at:%Y-%m-%d %H:%M} UTC")
    for turn in planned.turns:
        _print_turn(output, planned.name, turn)


@commands.command(name="list", epilog="Example: webdepot schedule list --every weekly --json")
def list_(
    context: typer.Context,
    every: Annotated[Frequency | None, typer.Option(help="Only schedules of this frequency.")] = None,
    words: Annotated[str, typer.Option(help="Only targets with these words in their name.")] = "",
    page: Annotated[int, typer.Option(min=1, help="Page of the list, with fifty schedules each.")] = 1,
    json: Json = False,
) -> None:
    """List schedules by their next date."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        listed = plans.list_plans(archive, PlanFilter(frequency=every, words=words, page=page))
    for row in listed.rows:
        _print_plan(output, row.name, row.plan)
    output.say(_page_note(listed.has_more, page))


@commands.command(epilog="Example: webdepot schedule calendar 2027-01")
def calendar(
    context: typer.Context,
    month: Annotated[
        str, typer.Argument(metavar="MONTH", help="A month, such as 2027-01. Default: this month.")
    ] = "",
    json: Json = False,
) -> None:
    """Show the number of harvests on each day of a month, and the results of past ones."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        first = _first_day(month) if month else archive.clock().date()
        for day in plans.month(archive, first.year, first.month):
            fields = {
                "day": day.on,
                "planned": day.planned,
                **{state.value: count for state, count in day.turns.items()},
            }
            results = ", ".join(f"{count} {state.value}" for state, count in day.turns.items())
            if day.planned or results or output.json:
                output.result(fields, f"{day.on}  {day.planned} planned  [dim]{results}[/dim]")


def _first_day(month: str) -> date:
    try:
        return date.fromisoformat(f"{month}-01")
    except ValueError:
        raise InputError(f"{month!r} is not a month. Write it like 2027-01.") from None


@commands.command(epilog="Example: webdepot schedule queue --state waiting")
def queue(
    context: typer.Context,
    state: Annotated[TurnState | None, typer.Option(help="Only harvests in this state.")] = None,
    page: Annotated[int, typer.Option(min=1, help="Page of the list, with fifty harvests each.")] = 1,
    json: Json = False,
) -> None:
    """List the queue: scheduled harvests that are or were due, with their results."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        listed = plans.queue(archive, state, page=page)
    for row in listed.rows:
        _print_turn(output, row.name, row.turn)
    output.say(_page_note(listed.has_more, page))


@commands.command(epilog="Example: webdepot schedule pause www.example.org")
def pause(context: typer.Context, target: TargetName) -> None:
    """Pause the schedule of a target. Harvests waiting in the queue are skipped."""
    call = call_of(context)
    with call.archive() as archive:
        _print_plan(call.output(), target, plans.pause(archive, _target(archive, target)))


@commands.command(epilog="Example: webdepot schedule resume www.example.org")
def resume(context: typer.Context, target: TargetName) -> None:
    """Resume a paused schedule."""
    call = call_of(context)
    with call.archive() as archive:
        _print_plan(call.output(), target, plans.resume(archive, _target(archive, target)))


@commands.command(epilog="Example: webdepot schedule remove www.example.org")
def remove(context: typer.Context, target: TargetName) -> None:
    """Remove the schedule of a target; its harvests stay."""
    call = call_of(context)
    with call.archive() as archive:
        plans.remove(archive, _target(archive, target))
    call.output().say("The schedule is removed.")


@commands.command(epilog="Example: webdepot schedule run www.example.org")
def run(context: typer.Context, target: TargetName, json: Json = False) -> None:
    """Queue a harvest now, in addition to the schedule; a running scheduler starts it."""
    call = call_of(context)
    with call.archive() as archive:
        number = _target(archive, target)
        _print_turn(call.output(json), target, plans.run_now(archive, number))


@commands.command(epilog="Example: webdepot schedule retry 17")
def retry(context: typer.Context, turn: TurnNumber) -> None:
    """Retry a scheduled harvest that failed, was refused or was skipped."""
    call = call_of(context)
    with call.archive() as archive:
        _print_turn(call.output(), "", plans.retry(archive, turn))


@commands.command(epilog="Example: webdepot schedule skip 17")
def skip(context: typer.Context, turn: TurnNumber) -> None:
    """Skip a waiting harvest; the next date stays as scheduled."""
    call = call_of(context)
    with call.archive() as archive:
        _print_turn(call.output(), "", plans.skip(archive, turn))


def scheduler(
    context: typer.Context,
    once: Annotated[
        bool, typer.Option("--once", help="Run what is due now, one harvest after the other, then exit.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive:
        if once:
            for turn in scheduler_service.run_due(archive):
                _print_turn(output, "", turn)
            webhooks.deliver(archive)
            return
        stop = threading.Event()

        def request_stop(number: int, frame: FrameType | None) -> None:
            stop.set()

        signal.signal(signal.SIGINT, request_stop)
        signal.signal(signal.SIGTERM, request_stop)
        output.result({"state": "running"}, "The scheduler is running. Stop with Ctrl-C.")
        with heartbeat.shown(archive, WorkerRole.SCHEDULER), webhooks.sending(archive):
            scheduler_service.Scheduler(archive, chores=chores.CHORES).run(stop)


def _target(archive: Archive, text: str) -> TargetId:
    return profiles.get_target(archive, text).id


def _page_note(has_more: bool, page: int) -> str:
    return f"There are more. Next: --page {page + 1}" if has_more else "End of the list."


def _print_plan(output: Output, name: str, plan: Plan) -> None:
    window = f"{plan.window.opens:%H:%M}-{plan.window.closes:%H:%M}" if plan.window else ""
    fields = {
        "target": plan.target,
        "name": name,
        "frequency": plan.dates.frequency.value,
        "cron": plan.dates.cron,
        "first": plan.dates.first_on,
        "at": f"{plan.dates.at_time:%H:%M}",
        "last": plan.dates.last_on,
        "window": window,
        "profile": plan.profile,
        "active": plan.is_active,
        "next": plan.next_at,
    }
    when = f"next {plan.next_at:%Y-%m-%d %H:%M} UTC" if plan.next_at else "no next date"
    kind = plan.dates.cron or plan.dates.frequency.value
    hours = f", {window}" if window else ""
    paused = "" if plan.is_active else "  paused"
    output.result(fields, f"[bold]{plain(name)}[/bold]  {plain(kind)}{hours}  {when}{paused}")


def _print_turn(output: Output, name: str, turn: Turn) -> None:
    fields = {
        "id": turn.id,
        "target": turn.target,
        "state": turn.state.value,
        "due": turn.due_at,
        "not_before": turn.not_before,
        "harvest": turn.harvest,
        "tries": turn.tries,
        "reason": turn.reason,
    }
    output.result(
        fields,
        f"{turn.id}  {plain(name)}  {turn.state.value}  due {turn.due_at:%Y-%m-%d %H:%M}  "
        f"[dim]{plain(turn.reason)}[/dim]",
    )
