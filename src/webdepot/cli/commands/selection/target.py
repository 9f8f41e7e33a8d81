"""`webdepot target`: nominated sites, their assessment against criteria, and decisions about them."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from webdepot.cli.call import Json, call_of, read_limited
from webdepot.cli.commands.rule import day_of
from webdepot.cli.output import plain
from webdepot.errors import InputError
from webdepot.model import EVERYTHING, Purpose
from webdepot.selection.criteria import SCALE, AnswerKind, Judgement
from webdepot.selection.states import TargetState
from webdepot.selection.target_list import TargetFilter, TargetSort
from webdepot.selection.targets import Dossier, Origin, Strategy
from webdepot.services.catalogue import described_lists, description, records
from webdepot.services.catalogue.description import RecordForm
from webdepot.services.permission import letters
from webdepot.services.selection import criteria as criteria_service
from webdepot.services.selection import csv_lists, targets

commands = typer.Typer(no_args_is_help=True)
Which = Annotated[str, typer.Argument(help="Number, name or address of the site.")]
Reason = Annotated[str, typer.Option(help="The reason; recorded with the decision.")]


@commands.command(
    epilog="Example: webdepot target add https://www.example.org/ --name 'Example' --collection museums"
)
def add(
    context: typer.Context,
    addresses: Annotated[list[str], typer.Argument(metavar="URL...", help="Seeds of the site.")],
    name: Annotated[str, typer.Option(help="Name of the site.")] = "",
    collection: Annotated[str, typer.Option(help="Collection it belongs to.")] = EVERYTHING,
    purpose: Annotated[Purpose, typer.Option(help="Why it is archived.")] = Purpose.HERITAGE,
    strategy: Annotated[
        Strategy, typer.Option(help="The whole site, or a snapshot with strict limits.")
    ] = Strategy.SELECTIVE,
    note: Annotated[str, typer.Option(help="A note for staff.")] = "",
    json: Json = False,
) -> None:
    """Nominate a site. If its address is already known, in any spelling, that site is shown instead."""
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
    known_before = "" if is_new else " (already known)"
    call.output(json).result(
        {**fields(dossier), "new": is_new},
        f"Site {dossier.id}: {plain(dossier.name)}, {dossier.state.value}{known_before}",
    )


@commands.command(name="list", epilog="Example: webdepot target list --state selected --json")
def list_(
    context: typer.Context,
    words: Annotated[str, typer.Argument(help="Parts of the name or host.")] = "",
    state: Annotated[TargetState | None, typer.Option(help="Only sites in this state.")] = None,
    collection: Annotated[str, typer.Option(help="Only sites of this collection.")] = "",
    origin: Annotated[
        Origin | None, typer.Option(help="Only sites nominated by the public, staff or partners.")
    ] = None,
    sort: Annotated[TargetSort, typer.Option(help="Order of the list.")] = TargetSort.NAME,
    page: Annotated[int, typer.Option(min=1, help="Page of the list, with fifty sites each.")] = 1,
    json: Json = False,
) -> None:
    """List sites with their state."""
    call = call_of(context)
    with call.archive() as archive:
        chosen = TargetFilter(
            state=state, words=words, collection=collection, origin=origin, sort=sort, page=page
        )
        listed = targets.list_targets(archive, chosen)
    output = call.output(json)
    for site in listed.rows:
        output.result(
            fields(site),
            f"{site.id:6}  {site.state.value:10}  {site.since:%Y-%m-%d}  [bold]{plain(site.name)}[/bold]  "
            f"[dim]{plain(site.reason[:80])}[/dim]",
        )
    if not output.json:
        output.say(f"Page {listed.page} of {listed.pages}, {listed.total} sites.")


@commands.command(epilog="Example: webdepot target show www.example.org")
def show(context: typer.Context, target: Which, json: Json = False) -> None:
    """Show a site: its state, whether it may be harvested and if not why, and its history."""
    call = call_of(context)
    with call.archive() as archive:
        dossier = targets.find(archive, target)
        verdict = targets.may_harvest(archive, dossier.id)
        events = targets.history(archive, dossier.id)
    history = [
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
        "history": history,
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
        typer.Argument(
            metavar="ANSWER...", help="CODE=ANSWER:REASON; an answer is yes, no, 0 to 4 on a scale, or text."
        ),
    ],
    json: Json = False,
) -> None:
    """Answer selection criteria, each with a reason. A site is judged when all required ones are answered."""
    call = call_of(context)
    with call.archive() as archive:
        dossier = targets.find(archive, target)
        kinds = {criterion.code: criterion.kind for criterion in criteria_service.criteria_of(archive)}
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
        f"{plain(dossier.name)} is {dossier.state.value}. {result.verdict.answer.value}: "
        f"{plain(result.verdict.reason)}",
    )


@commands.command(epilog="Example: webdepot target criteria --json")
def criteria(context: typer.Context, json: Json = False) -> None:
    """List the selection criteria."""
    call = call_of(context)
    with call.archive() as archive:
        for criterion in criteria_service.criteria_of(archive):
            shown = {
                "code": criterion.code,
                "question": criterion.question,
                "kind": criterion.kind.value,
                "weight": criterion.weight,
                "required": criterion.required,
                "roles": sorted(criterion.roles),
            }
            required = " required" if criterion.required else ""
            call.output(json).result(
                shown,
                f"{criterion.code:12}  {criterion.kind.value:6}  x{criterion.weight:g}{required}  "
                f"{plain(criterion.question)}",
            )


@commands.command(epilog="Example: webdepot target decide 12 select")
def decide(
    context: typer.Context,
    target: Which,
    act: Annotated[str, typer.Argument(help=f"One of: {', '.join(targets.DECISIONS)}.")],
    reason: Reason = "",
    look_again_on: Annotated[
        str, typer.Option(help="With `put off`: the day to look at it again, such as 2026-12-31.")
    ] = "",
    json: Json = False,
) -> None:
    """Nominate, select, put off, reject, reopen or end a site. Fails if its state does not allow the step."""
    call = call_of(context)
    with call.archive() as archive:
        dossier = targets.find(archive, target)
        day = day_of(look_again_on) if look_again_on else None
        moved = targets.decide(archive, dossier.id, act, reason=reason, look_again_on=day)
    call.output(json).result(fields(moved), f"{plain(moved.name)} is {moved.state.value}.")


@commands.command(
    epilog="Example: webdepot target describe 12 genre=museum creators='J. Uurwerk' "
    "keywords=clocks keywords=hours"
)
def describe(
    context: typer.Context,
    target: Which,
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VALUE...", help=f"FIELD=VALUE, repeated for lists: {', '.join(description.FIELDS)}."
        ),
    ] = None,
    from_site: Annotated[
        bool,
        typer.Option("--from-site", help="Fill the record from the metadata of the latest archived version."),
    ] = False,
    form: Annotated[RecordForm | None, typer.Option(help="Print the record in this format.")] = None,
    json: Json = False,
) -> None:
    """Show, edit or export the catalogue record of a site. Values entered by people are not overwritten by
    metadata from the site.
    """
    call = call_of(context)
    with call.archive() as archive:
        dossier = targets.find(archive, target)
        changes = description.parse_fields(values or ())
        record = (
            description.take_over(archive, dossier.id)
            if from_site
            else records.site_record(archive, dossier.target)
        )
        record = records.write(archive, record.key, changes) if changes else record
        if form is not None:
            sys.stdout.write(
                description.as_text(archive, record.key, form, portal_url=letters.portal_address(archive, ""))
            )
            return
    described = {name: getattr(record, name) for name in description.FIELDS}
    lines = [
        f"{name:13} {plain('; '.join(value) if isinstance(value, tuple) else value)}"
        for name, value in described.items()
        if value
    ]
    shown = {"key": record.key, "urn": record.urn, **described, "sources": dict(record.sources)}
    call.output(json).result(shown, "\n".join([f"[bold]{plain(record.key)}[/bold]  {record.urn}", *lines]))


@commands.command(name="import", epilog="Example: webdepot target import sites.csv --dry-run")
def import_(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="CSV in UTF-8 with a column `address`, or a list of Archive-It.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the file; import nothing.")] = False,
    json: Json = False,
) -> None:
    """Nominate the sites of a CSV file: all, or none if a line is invalid (exits 1 and lists them)."""
    call = call_of(context)
    output = call.output(json)
    raw = read_limited(file, csv_lists.LONGEST_BYTES)
    with call.archive() as archive:
        preview = csv_lists.preview(archive, raw, keep=False)
        for line, error in preview.bad:
            output.result({"line": line, "error": error}, f"[red]line {line}[/red]  {plain(error)}")
        remarks: list[described_lists.Remark] = []
        if not preview.bad and not dry_run:
            preview = csv_lists.import_file(archive, raw)
            remarks = described_lists.describe(archive, preview.rows)
    for line, remark in remarks:
        output.warn(f"Line {line}: {plain(remark)}")
    if preview.ignored:
        output.warn(f"Columns without a counterpart: {plain(', '.join(preview.ignored))}.")
    done = "would be imported" if dry_run else "not imported" if preview.bad else "imported"
    counts = {
        "new": len(preview.new),
        "known": len(preview.known),
        "bad": len(preview.bad),
        "entered": not (dry_run or preview.bad),
        **({"ignored_columns": list(preview.ignored)} if preview.ignored else {}),
    }
    output.result(
        counts,
        f"{len(preview.new)} new sites {done}, {len(preview.known)} already known, "
        f"{len(preview.bad)} invalid lines.",
    )
    if preview.bad:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot target export --state selected > selected.csv")
def export(
    context: typer.Context,
    state: Annotated[TargetState | None, typer.Option(help="Only sites in this state.")] = None,
    collection: Annotated[str, typer.Option(help="Only sites of this collection.")] = "",
) -> None:
    """Print the sites as CSV; the file can be imported again."""
    with call_of(context).archive() as archive:
        for line in csv_lists.export(archive, TargetFilter(state=state, collection=collection)):
            sys.stdout.write(line)


def fields(dossier: Dossier) -> dict[str, Any]:
    """A site as JSON."""
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
    code, equals, rest = text.partition("=")
    answer, colon, reason = rest.partition(":")
    if not equals or not colon:
        raise InputError(f"{text[:60]!r} is not an answer. Write it like cultural=yes:'clocks of the city'.")
    kind, word = kinds.get(code), answer.strip().lower()
    if kind is AnswerKind.TEXT:
        return Judgement(criterion=code, words=answer.strip(), reason=reason)
    if kind is AnswerKind.SCALE and word.isascii() and word.isdigit() and int(word) <= SCALE:
        return Judgement(criterion=code, value=int(word) / SCALE, reason=reason)
    if kind is not AnswerKind.SCALE and word in ("yes", "no"):
        return Judgement(criterion=code, value=float(word == "yes"), reason=reason)
    possible = f"0 to {SCALE}" if kind is AnswerKind.SCALE else "yes or no"
    raise InputError(f"{answer[:40]!r} is not an answer to {code!r}. Write {possible}.")
