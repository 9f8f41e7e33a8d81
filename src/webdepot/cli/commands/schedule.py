"""`webdepot schedule`: how often targets are harvested, what is due, and what became of it. `webdepot
scheduler` makes it happen.
"""

import signal
import threading
from datetime import date
from types import FrameType
from typing import Annotated

import typer

from webdepot.archive import Archive
from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import Output, plain
from webdepot.model import TargetId
from webdepot.selection import schedule as dates_of
from webdepot.selection.schedule import Frequency, Plan
from webdepot.selection.schedules import PlanFilter
from webdepot.selection.turns import Turn, TurnState
from webdepot.services.harvest import profiles
from webdepot.services.schedule import chores, plans
from webdepot.services.schedule import scheduler as scheduler_service

commands = typer.Typer(no_args_is_help=True)
TargetName = Annotated[str, typer.Argument(metavar="TARGET", help="Number, name or address of the target.")]
TurnNumber = Annotated[
    int, typer.Argument(metavar="TURN", help="Number of the turn, as `webdepot schedule queue` prints it.")
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
        str, typer.Option(metavar="DAY", help="First day, like 2027-01-31; today if not given.")
    ] = "",
    at: Annotated[
        str, typer.Option(metavar="TIME", help="Time of day, like 22:00; not with cron.")
    ] = "03:00",
    last: Annotated[str, typer.Option(metavar="DAY", help="Last day; without an end if not given.")] = "",
    window: Annotated[
        str, typer.Option(metavar="FROM-TO", help="Hours in which it may run, like 22:00-06:00.")
    ] = "",
    profile: Annotated[str, typer.Option(metavar="NAME", help="Profile by which it is harvested.")] = "",
    json: Json = False,
) -> None:
    """Plan the harvests of a target. Times are those of [schedule] timezone."""
    call = call_of(context)
    opens, _, closes = window.partition("-")
    with call.archive() as archive:
        number = _target(archive, target)
        today = archive.clock().astimezone(plans.zone(archive)).date().isoformat()
        dates = dates_of.read_dates(
            "cron" if cron else every.value, first_on=first or today, at_time=at, cron=cron, last_on=last
        )
        plan = plans.set_plan(
            archive,
            number,
            dates,
            window=dates_of.read_window(opens.strip(), closes.strip()),
            profile=profile,
        )
        verdict = plans.of_target(archive, number).verdict
    output = call.output(json)
    _plan(output, target, plan)
    if not verdict:
        output.warn(f"It may not be harvested yet: {plain(verdict.reason)}")


@commands.command(epilog="Example: webdepot schedule show www.example.org --json")
def show(context: typer.Context, target: TargetName, json: Json = False) -> None:
    """The plan of a target, its next dates, whether it may be harvested, and its last turns."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        found = plans.of_target(archive, _target(archive, target))
    if found.plan is None:
        output.say(f"{plain(found.name)} has no plan. Make one: webdepot schedule set {found.target}")
    else:
        _plan(output, found.name, found.plan)
    may = "may be harvested" if found.verdict else f"may not be harvested: {found.verdict.reason}"
    output.say(f"{plain(found.name)} {plain(may)}")
    for at in found.next_dates:
        output.result({"date": at}, f"  next {at:%Y-%m-%d %H:%M} UTC")
    for turn in found.turns:
        _turn(output, found.name, turn)


@commands.command(name="list", epilog="Example: webdepot schedule list --every weekly --json")
def list_(
    context: typer.Context,
    every: Annotated[Frequency | None, typer.Option(help="Only those of this frequency.")] = None,
    words: Annotated[str, typer.Option(help="Only targets whose name has these words.")] = "",
    page: Annotated[int, typer.Option(min=1, help="Fifty are on a page.")] = 1,
    json: Json = False,
) -> None:
    """Plans by their next date."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        found = plans.list_plans(archive, PlanFilter(frequency=every, words=words, page=page))
    for row in found.rows:
        _plan(output, row.name, row.plan)
    output.say("There are more: --page." if found.has_more else "These are all.")


@commands.command(epilog="Example: webdepot schedule calendar 2027-01")
def calendar(
    context: typer.Context,
    month: Annotated[
        str, typer.Argument(metavar="[MONTH]", help="Like 2027-01; this month if not given.")
    ] = "",
    json: Json = False,
) -> None:
    """How many harvests fall on each day of a month, and what became of those that have come."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        first = date.fromisoformat(f"{month}-01") if month else archive.clock().date()
        for day in plans.month(archive, first.year, first.month):
            fields = {
                "day": day.on,
                "planned": day.planned,
                **{state.value: count for state, count in day.turns.items()},
            }
            come = ", ".join(f"{count} {state.value}" for state, count in day.turns.items())
            if day.planned or come or output.json:
                output.result(fields, f"{day.on}  {day.planned} planned  [dim]{come}[/dim]")


@commands.command(epilog="Example: webdepot schedule queue --state waiting")
def queue(
    context: typer.Context,
    state: Annotated[TurnState | None, typer.Option(help="Only those in this state.")] = None,
    page: Annotated[int, typer.Option(min=1, help="Fifty are on a page.")] = 1,
    json: Json = False,
) -> None:
    """Turns: dates that have come, and what became of them."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        found = plans.queue(archive, state, page=page)
    for row in found.rows:
        _turn(output, row.name, row.turn)
    output.say("There are more: --page." if found.has_more else "These are all.")


@commands.command(epilog="Example: webdepot schedule pause www.example.org")
def pause(context: typer.Context, target: TargetName) -> None:
    """Let no date come true until it is resumed."""
    call = call_of(context)
    with call.archive() as archive:
        _plan(call.output(), target, plans.pause(archive, _target(archive, target)))


@commands.command(epilog="Example: webdepot schedule resume www.example.org")
def resume(context: typer.Context, target: TargetName) -> None:
    """Let dates come true again."""
    call = call_of(context)
    with call.archive() as archive:
        _plan(call.output(), target, plans.resume(archive, _target(archive, target)))


@commands.command(epilog="Example: webdepot schedule remove www.example.org")
def remove(context: typer.Context, target: TargetName) -> None:
    """Take the plan of a target away; what was harvested stays."""
    call = call_of(context)
    with call.archive() as archive:
        plans.remove(archive, _target(archive, target))
    call.output().say("The plan is gone.")


@commands.command(epilog="Example: webdepot schedule run www.example.org")
def run(context: typer.Context, target: TargetName, json: Json = False) -> None:
    """Ask for a harvest now, besides the plan; a running scheduler takes it."""
    call = call_of(context)
    with call.archive() as archive:
        number = _target(archive, target)
        _turn(call.output(json), target, plans.run_now(archive, number))


@commands.command(epilog="Example: webdepot schedule retry 17")
def retry(context: typer.Context, turn: TurnNumber) -> None:
    """Try a turn again that failed, was refused or was taken out."""
    call = call_of(context)
    with call.archive() as archive:
        _turn(call.output(), "", plans.retry(archive, turn))


@commands.command(epilog="Example: webdepot schedule skip 17")
def skip(context: typer.Context, turn: TurnNumber) -> None:
    """Take a waiting turn out; the next date comes as planned."""
    call = call_of(context)
    with call.archive() as archive:
        _turn(call.output(), "", plans.skip(archive, turn))


def scheduler(
    context: typer.Context,
    once: Annotated[
        bool, typer.Option("--once", help="Run what is due now, one after the other, then end.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Harvest what is due, check it, and accept it by rules where these may, as `webdepot serve` does. Stops
    tidily on Ctrl-C.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive:
        if once:
            for turn in scheduler_service.run_due(archive):
                _turn(output, "", turn)
            return
        stop = threading.Event()

        def heard(number: int, frame: FrameType | None) -> None:
            stop.set()

        signal.signal(signal.SIGINT, heard)
        signal.signal(signal.SIGTERM, heard)
        output.result({"state": "running"}, "The scheduler runs. Stop with Ctrl-C.")
        scheduler_service.Scheduler(archive, chores=chores.CHORES).run(stop)


def _target(archive: Archive, text: str) -> TargetId:
    return profiles.get_target(archive, text).id


def _plan(output: Output, name: str, plan: Plan) -> None:
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
    words = f"[bold]{plain(name)}[/bold]  {plain(kind)}{f', {window}' if window else ''}  {when}{'' if plan.is_active else '  paused'}"
    output.result(fields, words)


def _turn(output: Output, name: str, turn: Turn) -> None:
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
        f"{turn.id}  {plain(name)}  {turn.state.value}  due {turn.due_at:%Y-%m-%d %H:%M}  [dim]{plain(turn.reason)}[/dim]",
    )
