"""`webdepot permission`: owners, letters, answers and grounds."""

from datetime import date
from typing import Annotated, Any

import typer

from webdepot.cli.call import Json, call_of
from webdepot.cli.commands.rule import day_of
from webdepot.cli.commands.target import fields
from webdepot.cli.output import plain
from webdepot.errors import InputError
from webdepot.selection.contacts import Contact
from webdepot.selection.letters import Letter
from webdepot.selection.permission import WITHOUT_LETTER, Ground
from webdepot.selection.states import LetterState, TargetState
from webdepot.selection.targets import TargetFilter
from webdepot.services.permission import consent, deadlines, delivery
from webdepot.services.permission import letters as letters_service
from webdepot.services.permission.consent import Conditions, OwnerReply, Showing
from webdepot.services.selection import contacts
from webdepot.services.selection import targets as targets_service

commands = typer.Typer(no_args_is_help=True)
Which = Annotated[str, typer.Argument(help="Number, name or address of the site.")]


@commands.command(
    epilog="Example: webdepot permission contact www.example.org --mail owner@example.org --name 'Ms Owner' --language nl"
)
def contact(
    context: typer.Context,
    target: Which,
    mail: Annotated[str, typer.Option(help="Mail address.")] = "",
    name: Annotated[str, typer.Option(help="Name for the salutation.")] = "",
    organisation: Annotated[str, typer.Option(help="Organisation.")] = "",
    language: Annotated[str, typer.Option(help="Language of letters: en, nl or de.")] = "en",
    json: Json = False,
) -> None:
    """Add whom to write to about a site; without options, list them."""
    call = call_of(context)
    with call.archive() as archive:
        dossier = targets_service.find(archive, target)
        if mail or name or organisation:
            contacts.add_contact(
                archive,
                Contact(
                    target=dossier.id, mail=mail, name=name, organisation=organisation, language=language
                ),
            )
        for one in contacts.contacts_of(archive, dossier.id):
            shown = {
                "id": one.id,
                "name": one.name,
                "organisation": one.organisation,
                "mail": one.mail,
                "language": one.language,
            }
            call.output(json).result(
                shown, f"{one.id:5}  {plain(one.salutation)}  {plain(one.mail)}  {one.language}"
            )


@commands.command(epilog="Example: webdepot permission preview www.example.org --language de")
def preview(
    context: typer.Context,
    target: Which,
    language: Annotated[str, typer.Option(help="en, nl or de.")] = "",
    json: Json = False,
) -> None:
    """The letter as it would go out today; nothing is sent."""
    call = call_of(context)
    with call.archive() as archive:
        rendered = letters_service.preview(
            archive, targets_service.find(archive, target).id, language=language
        )
    call.output(json).result(
        {"subject": rendered.subject, "body": rendered.body},
        f"[bold]{plain(rendered.subject)}[/bold]\n{plain(rendered.body)}",
    )


@commands.command(
    epilog="Example: webdepot permission ask www.example.org   or, for a whole list: webdepot permission ask --all --dry-run"
)
def ask(
    context: typer.Context,
    targets: Annotated[list[str] | None, typer.Argument(help="Numbers, names or addresses of sites.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every selected site that has a contact and was not asked.")
    ] = False,
    term_days: Annotated[
        int, typer.Option(help="Days to refuse, from the sending; 0 means as configured.")
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say who would get a letter; send nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Send the letter to the owners of these sites. Sites that cannot be asked are named with the reason."""
    call = call_of(context)
    output = call.output(json)
    if bool(targets) == every:
        raise InputError("Name sites, or say --all.")
    with call.archive() as archive:
        if every:
            seen = letters_service.consider_list(archive, TargetFilter(state=TargetState.SELECTED))
        else:
            seen = letters_service.consider(
                archive, [targets_service.find(archive, one).id for one in targets or ()]
            )
        for dossier, why in seen.left_out:
            output.result(
                {"id": dossier.id, "name": dossier.name, "asked": False, "why": why},
                f"left out: {plain(dossier.name)}, {why}",
            )
        if dry_run:
            for dossier in seen.ready:
                output.result(
                    {"id": dossier.id, "name": dossier.name, "asked": False, "why": "dry run"},
                    f"would ask: {plain(dossier.name)}",
                )
            return
        letters_service.ask(archive, [dossier.id for dossier in seen.ready], term_days=term_days)
        done = delivery.deliver(archive)
    counts = {"sent": done.sent, "undeliverable": done.returned, "failed": done.failed, "error": done.error}
    output.result(
        counts,
        f"{done.sent} sent, {done.returned} undeliverable, {done.failed} failed. {plain(done.error)}".rstrip(),
    )
    if done.failed:
        raise typer.Exit(5)


@commands.command(epilog="Example: webdepot permission tend")
def tend(context: typer.Context, json: Json = False) -> None:
    """Do what time asks for: terms that are over, reminders, letters that wait. `serve` and `scheduler` do it
    by themselves.
    """
    call = call_of(context)
    with call.archive() as archive:
        done = deadlines.process_deadlines(archive)
        sent = delivery.deliver(archive).sent if archive.config.mail.host else 0
    counts = {"implied": done.implied, "ended": done.ended, "reminders": done.reminders, "sent": sent}
    call.output(json).result(
        counts,
        f"{done.implied} terms passed in silence, {done.ended} grounds ended, {done.reminders} reminders, {sent} letters sent.",
    )


@commands.command(
    epilog="Example: webdepot permission reply www.example.org refusal --words 'letter of 1 June'"
)
def reply(
    context: typer.Context,
    target: Which,
    answer: Annotated[OwnerReply, typer.Argument(help="What the owner answered.")],
    words: Annotated[str, typer.Option(help="In which words, and how.")] = "",
    showing: Annotated[Showing, typer.Option(help="Condition: who may read it.")] = Showing.OPEN,
    embargo_days: Annotated[int, typer.Option(min=0, help="Condition: shown only after so many days.")] = 0,
    until: Annotated[str, typer.Option(help="Condition: harvested until this day, 2026-12-31.")] = "",
    json: Json = False,
) -> None:
    """Record an owner's answer. A refusal stops running harvests and closes access at once."""
    call = call_of(context)
    conditions = Conditions(showing=showing, embargo_days=embargo_days, until=_day(until), words=words)
    with call.archive() as archive:
        dossier = targets_service.find(archive, target)
        given = conditions if answer is OwnerReply.CONDITIONS else None
        moved = consent.reply(archive, dossier.id, answer, words=words, conditions=given)
    call.output(json).result(fields(moved), f"{plain(moved.name)} is {moved.state.value}.")


@commands.command(
    epilog="Example: webdepot permission ground www.example.org 'open licence' --reason 'CC BY 4.0 in the footer'"
)
def ground(
    context: typer.Context,
    target: Which,
    kind: Annotated[Ground, typer.Argument(help=f"One that needs no letter: {', '.join(WITHOUT_LETTER)}.")],
    reason: Annotated[str, typer.Option(help="Where it is found.")],
    until: Annotated[str, typer.Option(help="Last day on which it holds.")] = "",
    json: Json = False,
) -> None:
    """Record a ground that needs no letter."""
    call = call_of(context)
    with call.archive() as archive:
        dossier = targets_service.find(archive, target)
        moved = consent.record_ground(archive, dossier.id, kind, reason=reason, until=_day(until))
    call.output(json).result(fields(moved), f"{plain(moved.name)} is {moved.state.value}.")


@commands.command(epilog="Example: webdepot permission letters --state sent --json")
def letters(
    context: typer.Context,
    target: Annotated[str, typer.Option(help="Only those about this site.")] = "",
    state: Annotated[LetterState | None, typer.Option(help="Only those in this state.")] = None,
    page: Annotated[int, typer.Option(min=1, help="Fifty a page.")] = 1,
    json: Json = False,
) -> None:
    """Letters, the newest first."""
    call = call_of(context)
    with call.archive() as archive:
        if target:
            found = [
                one
                for one in letters_service.letters_of(archive, targets_service.find(archive, target).id)
                if state in (None, one.state)
            ]
        else:
            found = letters_service.all_letters(archive, state, page)[0]
    for one in found:
        sent = f"{one.sent_at:%Y-%m-%d}" if one.sent_at else "-"
        term = f"until {one.term_ends_on}" if one.term_ends_on else ""
        words = f"{one.reference:8}  {one.kind.value:13}  {one.state.value:13}  {sent}  {plain(one.recipient)}  {term}  {plain(one.error)}"
        call.output(json).result(_letter(one), words)


def _letter(one: Letter) -> dict[str, Any]:
    return {
        "id": one.id,
        "kind": one.kind.value,
        "target": one.target,
        "case": one.case,
        "state": one.state.value,
        "recipient": one.recipient,
        "subject": one.subject,
        "sent": one.sent_at,
        "term_ends_on": one.term_ends_on.isoformat() if one.term_ends_on else "",
        "error": one.error,
    }


def _day(text: str) -> date | None:
    return day_of(text) if text else None
