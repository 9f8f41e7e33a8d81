"""`webdepot target`: sites that somebody named, how they are judged, and what is decided about them."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from webdepot.cli.call import Json, call_of
from webdepot.cli.commands.rule import day_of
from webdepot.cli.output import plain
from webdepot.errors import InputError
from webdepot.model import EVERYTHING, Purpose
from webdepot.selection.criteria import SCALE, AnswerKind, Judgement
from webdepot.selection.states import TargetState
from webdepot.selection.targets import Dossier, Origin, Strategy, TargetFilter, TargetSort
from webdepot.services.catalogue import description, records
from webdepot.services.catalogue.description import Form
from webdepot.services.permission import letters
from webdepot.services.selection import criteria as criteria_service
from webdepot.services.selection import csv_lists, targets

commands = typer.Typer(no_args_is_help=True)
Which = Annotated[str, typer.Argument(help="Number, name or address of the site.")]
Reason = Annotated[str, typer.Option(help="Why; kept with the decision.")]


@commands.command(
    epilog="Example: webdepot target add https://www.example.org/ --name 'Example' --collection museums"
)
def add(
    context: typer.Context,
    addresses: Annotated[list[str], typer.Argument(help="Addresses to start from.")],
    name: Annotated[str, typer.Option(help="What it is called.")] = "",
    collection: Annotated[str, typer.Option(help="Collection it belongs to.")] = EVERYTHING,
    purpose: Annotated[Purpose, typer.Option(help="Why it is kept.")] = Purpose.HERITAGE,
    strategy: Annotated[
        Strategy, typer.Option(help="The whole site, or a snapshot with hard limits.")
    ] = Strategy.SELECTIVE,
    note: Annotated[str, typer.Option(help="Anything worth knowing.")] = "",
    json: Json = False,
) -> None:
    """Nominate a site. One that is known already, in any spelling, is shown instead."""
    call = call_of(context)
    with call.archive() as archive:
        nomination = targets.draft(
            addresses, name=name, collection=collection, purpose=purpose, strategy=strategy, note=note
        )
        known = targets.find_known(archive, nomination.seeds[0])
        if known is not None and known.is_same:
            dossier, is_new = known.dossier, False
        else:
            dossier, is_new = targets.enter(archive, nomination)
    words = f"Site {dossier.id}: {plain(dossier.name)}, {dossier.state.value}" + (
        "" if is_new else " (known already)"
    )
    call.output(json).result({**fields(dossier), "new": is_new}, words)


@commands.command(name="list", epilog="Example: webdepot target list --state selected --json")
def list_(
    context: typer.Context,
    words: Annotated[str, typer.Argument(help="Parts of the name or host.")] = "",
    state: Annotated[TargetState | None, typer.Option(help="Only those in this state.")] = None,
    collection: Annotated[str, typer.Option(help="Only those of this collection.")] = "",
    origin: Annotated[
        Origin | None, typer.Option(help="Only those named by the public, staff or partners.")
    ] = None,
    sort: Annotated[TargetSort, typer.Option(help="Order of the list.")] = TargetSort.NAME,
    page: Annotated[int, typer.Option(min=1, help="Fifty a page.")] = 1,
    json: Json = False,
) -> None:
    """Sites with where they stand, fifty a page."""
    call = call_of(context)
    with call.archive() as archive:
        asked = TargetFilter(
            state=state, words=words, collection=collection, origin=origin, sort=sort, page=page
        )
        found = targets.list_targets(archive, asked)
    output = call.output(json)
    for one in found.rows:
        text = f"{one.id:6}  {one.state.value:10}  {one.since:%Y-%m-%d}  [bold]{plain(one.name)}[/bold]  [dim]{plain(one.reason[:80])}[/dim]"
        output.result(fields(one), text)
    if not output.json:
        output.say(f"Page {found.page} of {found.pages}, {found.total} sites.")


@commands.command(epilog="Example: webdepot target show www.example.org")
def show(context: typer.Context, target: Which, json: Json = False) -> None:
    """A site: where it stands, whether it may be harvested and what is missing, and its history."""
    call = call_of(context)
    with call.archive() as archive:
        dossier = targets.find(archive, target)
        verdict = targets.may_harvest(archive, dossier.id)
        events = targets.history(archive, dossier.id)
    told = [
        {"at": event.at, "agent": event.agent, "action": event.action, "message": event.message}
        for event in events
    ]
    lines = [
        f"{event.at:%Y-%m-%d %H:%M}  {plain(event.action)}  {plain(event.agent)}  {plain(event.message)}"
        for event in events
    ]
    may = "[green]may be harvested[/green]" if verdict else "[red]may not be harvested[/red]"
    since = f"{dossier.state.value} since {dossier.since:%Y-%m-%d}"
    head = f"[bold]{plain(dossier.name)}[/bold] ({dossier.id}), {since}. It {may}: {plain(verdict.reason)}"
    shown = {
        **fields(dossier),
        "may_harvest": bool(verdict),
        "rule": verdict.rule,
        "why": verdict.reason,
        "history": told,
    }
    call.output(json).result(shown, "\n".join([head, *lines]))


@commands.command(
    epilog="Example: webdepot target judge 12 national=yes:Dutch cultural=yes:'clocks of the city'"
)
def judge(
    context: typer.Context,
    target: Which,
    answers: Annotated[
        list[str],
        typer.Argument(help="CODE=ANSWER:REASON; an answer is yes, no, 0 to 4 on a scale, or words."),
    ],
    json: Json = False,
) -> None:
    """Answer criteria, each with a reason. When all that is needed is answered the site is judged."""
    call = call_of(context)
    with call.archive() as archive:
        dossier = targets.find(archive, target)
        kinds = {one.code: one.kind for one in criteria_service.criteria_of(archive)}
        result = criteria_service.answer(archive, dossier.id, [_judgement(text, kinds) for text in answers])
        dossier = targets.get(archive, dossier.id)
    shown = {
        **fields(dossier),
        "verdict": result.verdict.answer.value,
        "why": result.verdict.reason,
        "points": result.points,
    }
    call.output(json).result(
        shown,
        f"{plain(dossier.name)} is {dossier.state.value}. {result.verdict.answer.value}: {plain(result.verdict.reason)}",
    )


@commands.command(epilog="Example: webdepot target criteria --json")
def criteria(context: typer.Context, json: Json = False) -> None:
    """The criteria that sites are judged against."""
    call = call_of(context)
    with call.archive() as archive:
        for one in criteria_service.criteria_of(archive):
            shown = {
                "code": one.code,
                "question": one.question,
                "kind": one.kind.value,
                "weight": one.weight,
                "required": one.required,
                "roles": sorted(one.roles),
            }
            call.output(json).result(
                shown,
                f"{one.code:12}  {one.kind.value:6}  x{one.weight:g}{' required' if one.required else ''}  {plain(one.question)}",
            )


@commands.command(epilog="Example: webdepot target decide 12 select")
def decide(
    context: typer.Context,
    target: Which,
    act: Annotated[str, typer.Argument(help=f"One of: {', '.join(targets.DECISIONS)}.")],
    reason: Reason = "",
    look_again_on: Annotated[str, typer.Option(help="When put off: the day to look again, 2026-12-31.")] = "",
    json: Json = False,
) -> None:
    """Take up, select, put off, reject, reopen or end a site. What is not possible now is refused with the
    reason.
    """
    call = call_of(context)
    with call.archive() as archive:
        dossier = targets.find(archive, target)
        day = day_of(look_again_on) if look_again_on else None
        moved = targets.decide(archive, dossier.id, act, reason=reason, look_again_on=day)
    call.output(json).result(fields(moved), f"{plain(moved.name)} is {moved.state.value}.")


@commands.command(
    epilog="Example: webdepot target describe 12 genre=museum creators='J. Uurwerk' keywords=clocks keywords=hours"
)
def describe(
    context: typer.Context,
    target: Which,
    values: Annotated[
        list[str] | None,
        typer.Argument(help=f"FIELD=VALUE, several times for lists: {', '.join(description.FIELDS)}."),
    ] = None,
    from_site: Annotated[
        bool, typer.Option("--from-site", help="Fill it from the site's own words in its newest version.")
    ] = False,
    form: Annotated[Form | None, typer.Option(help="Print the record in this form instead.")] = None,
    json: Json = False,
) -> None:
    """The catalogue record of a site: show it, fill it, write it out. What a person wrote is not written over
    by the site's words.
    """
    call = call_of(context)
    with call.archive() as archive:
        dossier = targets.find(archive, target)
        given = description.given_in(values or ())
        record = (
            description.take_over(archive, dossier.id)
            if from_site
            else records.site_record(archive, dossier.target)
        )
        record = records.write(archive, record.key, given) if given else record
        if form is not None:
            sys.stdout.write(
                description.as_text(archive, record.key, form, portal_url=letters.portal_address(archive, ""))
            )
            return
    told = {name: getattr(record, name) for name in description.FIELDS}
    lines = [
        f"{name:13} {plain('; '.join(value) if isinstance(value, tuple) else value)}"
        for name, value in told.items()
        if value
    ]
    shown = {"key": record.key, "urn": record.urn, **told, "sources": dict(record.sources)}
    call.output(json).result(shown, "\n".join([f"[bold]{plain(record.key)}[/bold]  {record.urn}", *lines]))


@commands.command(name="import", epilog="Example: webdepot target import sites.csv --dry-run")
def import_(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="CSV in UTF-8 with a column `address`.", exists=True, dir_okay=False)
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen; enter nothing.")] = False,
    json: Json = False,
) -> None:
    """Nominate a list of sites: all of it, or nothing when a line is bad. Exits 1 and names each bad line."""
    call = call_of(context)
    output = call.output(json)
    raw = file.read_bytes()
    with call.archive() as archive:
        seen = csv_lists.preview(archive, raw, keep=False)
        for line, wrong in seen.bad:
            output.result({"line": line, "error": wrong}, f"[red]line {line}[/red]  {plain(wrong)}")
        if not seen.bad and not dry_run:
            seen = csv_lists.import_file(archive, raw)
    done = "would be entered" if dry_run else "not entered" if seen.bad else "entered"
    counts = {
        "new": len(seen.new),
        "known": len(seen.known),
        "bad": len(seen.bad),
        "entered": not (dry_run or seen.bad),
    }
    output.result(
        counts,
        f"{len(seen.new)} new sites {done}, {len(seen.known)} known already, {len(seen.bad)} bad lines.",
    )
    if seen.bad:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot target export --state selected > selected.csv")
def export(
    context: typer.Context,
    state: Annotated[TargetState | None, typer.Option(help="Only those in this state.")] = None,
    collection: Annotated[str, typer.Option(help="Only those of this collection.")] = "",
) -> None:
    """The list as CSV on stdout; it can be imported again."""
    with call_of(context).archive() as archive:
        for line in csv_lists.export(archive, TargetFilter(state=state, collection=collection)):
            sys.stdout.write(line)


def fields(dossier: Dossier) -> dict[str, Any]:
    return {
        "id": dossier.id,
        "name": dossier.name,
        "host": dossier.host,
        "seeds": list(dossier.target.seeds),
        "state": dossier.state.value,
        "since": dossier.since,
        "reason": dossier.reason,
        "collection": dossier.target.collection,
        "purpose": dossier.target.purpose.value,
        "strategy": dossier.strategy.value,
        "origin": dossier.origin.value,
        "nominated_by": dossier.nominated_by,
        "look_again_on": dossier.look_again_on.isoformat() if dossier.look_again_on else "",
    }


def _judgement(text: str, kinds: dict[str, AnswerKind]) -> Judgement:
    code, mark, rest = text.partition("=")
    given, colon, reason = rest.partition(":")
    if not mark or not colon:
        raise InputError(f"{text[:60]!r} is no answer. Write it like cultural=yes:'clocks of the city'.")
    kind, word = kinds.get(code), given.strip().lower()
    if kind is AnswerKind.TEXT:
        return Judgement(criterion=code, words=given.strip(), reason=reason)
    if kind is AnswerKind.SCALE and word.isascii() and word.isdigit() and int(word) <= SCALE:
        return Judgement(criterion=code, value=int(word) / SCALE, reason=reason)
    if kind is not AnswerKind.SCALE and word in ("yes", "no"):
        return Judgement(criterion=code, value=float(word == "yes"), reason=reason)
    raise InputError(
        f"{given[:40]!r} is no answer to {code!r}: {f'0 to {SCALE}' if kind is AnswerKind.SCALE else 'yes or no'}."
    )
