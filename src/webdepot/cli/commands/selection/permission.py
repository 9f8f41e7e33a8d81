"""`webdepot permission`: contacts of site owners, letters, their replies, and legal grounds."""

from datetime import date
from typing import Annotated, Any

import typer

from webdepot.cli.call import Json, call_of
from webdepot.cli.commands.rule import day_of
from webdepot.cli.commands.selection.target import fields
from webdepot.cli.output import plain
from webdepot.errors import InputError
from webdepot.selection.contacts import Contact
from webdepot.selection.letter_rows import Letter
from webdepot.selection.permission_basis import WITHOUT_LETTER, Ground
from webdepot.selection.states import LetterState, TargetState
from webdepot.selection.target_list import TargetFilter
from webdepot.services.permission import delivery, owner_answers, periodic_run
from webdepot.services.permission import letters as letters_service
from webdepot.services.permission.owner_answers import Conditions, OwnerReply, Showing
from webdepot.services.selection import contacts
from webdepot.services.selection import targets as targets_service

commands = typer.Typer(no_args_is_help=True)
Which = Annotated[str, typer.Argument(help="Number, name or address of the site.")]


@commands.command(
    epilog="Example: webdepot permission contact www.example.org --mail owner@example.org "
    "--name 'Ms Owner' --language nl"
)
def contact(
    context: typer.Context,
    target: Which,
    mail: Annotated[str, typer.Option(help="Email address.")] = "",
    name: Annotated[str, typer.Option(help="Name for the salutation.")] = "",
    organisation: Annotated[str, typer.Option(help="Organisation.")] = "",
    language: Annotated[str, typer.Option(help="Language of letters: en, nl or de.")] = "en",
    json: Json = False,
) -> None:
    """Add a contact of a site; without options, list its contacts."""
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
        for known in contacts.contacts_of(archive, dossier.id):
            shown = {
                "id": known.id,
                "name": known.name,
                "organisation": known.organisation,
                "mail": known.mail,
                "language": known.language,
            }
            call.output(json).result(
                shown, f"{known.id:5}  {plain(known.salutation)}  {plain(known.mail)}  {known.language}"
            )


@commands.command(epilog="Example: webdepot permission preview www.example.org --language de")
def preview(
    context: typer.Context,
    target: Which,
    language: Annotated[str, typer.Option(help="Language of the letter: en, nl or de.")] = "",
    json: Json = False,
) -> None:
    """Show the letter as it would be sent today; nothing is sent."""
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
    epilog="Example: webdepot permission ask www.example.org   "
    "or, for all selected sites: webdepot permission ask --all --dry-run"
)
def ask(
    context: typer.Context,
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="TARGET...", help="Numbers, names or addresses of sites.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Ask all selected sites that have a contact and were not asked yet.")
    ] = False,
    term_days: Annotated[
        int, typer.Option(help="Deadline for a refusal, in days after sending; 0 means selection.term_days.")
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show who would get a letter; send nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Send the letter to the owners of sites. Sites that cannot be asked are listed with the reason."""
    call = call_of(context)
    output = call.output(json)
    if bool(targets) == every:
        raise InputError("Give either the sites to ask or --all.")
    with call.archive() as archive:
        if every:
            sites = letters_service.consider_list(archive, TargetFilter(state=TargetState.SELECTED))
        else:
            sites = letters_service.consider(
                archive, [targets_service.find(archive, target).id for target in targets or ()]
            )
        for dossier, why in sites.left_out:
            output.result(
                {"id": dossier.id, "name": dossier.name, "asked": False, "why": why},
                f"not asked: {plain(dossier.name)}, {why}",
            )
        if dry_run:
            for dossier in sites.ready:
                output.result(
                    {"id": dossier.id, "name": dossier.name, "asked": False, "why": "dry run"},
                    f"would ask: {plain(dossier.name)}",
                )
            return
        letters_service.ask(archive, [dossier.id for dossier in sites.ready], term_days=term_days)
        done = delivery.deliver(archive)
    counts = {"sent": done.sent, "undeliverable": done.returned, "failed": done.failed, "error": done.error}
    output.result(
        counts,
        f"{done.sent} sent, {done.returned} undeliverable, {done.failed} failed. "
        f"{plain(done.error)}".rstrip(),
    )
    if done.failed:
        raise typer.Exit(5)


@commands.command(epilog="Example: webdepot permission tend")
def tend(context: typer.Context, json: Json = False) -> None:
    """Process deadlines, reminders and queued letters. `serve` and `scheduler` do it automatically."""
    call = call_of(context)
    with call.archive() as archive:
        done = periodic_run.process_deadlines(archive)
        sent = delivery.deliver_if_configured(archive)
    counts = {"implied": done.implied, "ended": done.ended, "reminders": done.reminders, "sent": sent}
    call.output(json).result(
        counts,
        f"{done.implied} deadlines passed without a reply, {done.ended} grounds expired, "
        f"{done.reminders} reminders, {sent} letters sent.",
    )


@commands.command(
    epilog="Example: webdepot permission reply www.example.org refusal --words 'letter of 1 June'"
)
def reply(
    context: typer.Context,
    target: Which,
    answer: Annotated[OwnerReply, typer.Argument(help="The owner's reply.")],
    words: Annotated[str, typer.Option(help="What the owner wrote, and how it was received.")] = "",
    showing: Annotated[Showing, typer.Option(help="Condition: who may see the site.")] = Showing.OPEN,
    embargo_days: Annotated[
        int, typer.Option(min=0, help="Condition: days before captures may be shown.")
    ] = 0,
    until: Annotated[str, typer.Option(help="Condition: last day of harvesting, such as 2026-12-31.")] = "",
    json: Json = False,
) -> None:
    """Record an owner's reply. A refusal stops running harvests and closes access at once."""
    call = call_of(context)
    conditions = Conditions(showing=showing, embargo_days=embargo_days, until=_day(until), words=words)
    with call.archive() as archive:
        dossier = targets_service.find(archive, target)
        agreed = conditions if answer is OwnerReply.CONDITIONS else None
        moved = owner_answers.reply(archive, dossier.id, answer, words=words, conditions=agreed)
    call.output(json).result(fields(moved), f"{plain(moved.name)} is {moved.state.value}.")


@commands.command(
    epilog="Example: webdepot permission ground www.example.org 'open licence' "
    "--reason 'CC BY 4.0 in the footer'"
)
def ground(
    context: typer.Context,
    target: Which,
    kind: Annotated[Ground, typer.Argument(help=f"The legal ground: {', '.join(WITHOUT_LETTER)}.")],
    reason: Annotated[str, typer.Option(help="The evidence, such as where the licence is stated.")],
    until: Annotated[str, typer.Option(help="Last day on which the ground is valid.")] = "",
    json: Json = False,
) -> None:
    """Record a legal ground for harvesting without a letter to the owner."""
    call = call_of(context)
    with call.archive() as archive:
        dossier = targets_service.find(archive, target)
        moved = owner_answers.record_ground(archive, dossier.id, kind, reason=reason, until=_day(until))
    call.output(json).result(fields(moved), f"{plain(moved.name)} is {moved.state.value}.")


@commands.command(epilog="Example: webdepot permission letters --state sent --json")
def letters(
    context: typer.Context,
    target: Annotated[str, typer.Option(help="Only letters about this site.")] = "",
    state: Annotated[LetterState | None, typer.Option(help="Only letters in this state.")] = None,
    page: Annotated[int, typer.Option(min=1, help="Page of the list, with fifty letters each.")] = 1,
    json: Json = False,
) -> None:
    """List letters, newest first."""
    call = call_of(context)
    with call.archive() as archive:
        if target:
            chosen = [
                letter
                for letter in letters_service.letters_of(archive, targets_service.find(archive, target).id)
                if state in (None, letter.state)
            ]
        else:
            chosen = letters_service.all_letters(archive, state, page)[0]
    for letter in chosen:
        sent = f"{letter.sent_at:%Y-%m-%d}" if letter.sent_at else "-"
        term = f"until {letter.term_ends_on}" if letter.term_ends_on else ""
        call.output(json).result(
            _letter_fields(letter),
            f"{letter.reference:8}  {letter.kind.value:13}  {letter.state.value:13}  {sent}  "
            f"{plain(letter.recipient)}  {term}  {plain(letter.error)}",
        )


def _letter_fields(letter: Letter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "kind": letter.kind.value,
        "target": letter.target,
        "case": letter.case,
        "state": letter.state.value,
        "recipient": letter.recipient,
        "subject": letter.subject,
        "sent": letter.sent_at,
        "term_ends_on": letter.term_ends_on.isoformat() if letter.term_ends_on else "",
        "error": letter.error,
    }


def _day(text: str) -> date | None:
    return day_of(text) if text else None
