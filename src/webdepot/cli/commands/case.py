"""`webdepot case`: complaints and their decisions."""

from typing import Annotated, Any

import typer

from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain
from webdepot.selection.cases import Case, CaseState, Decision, Objection, Who
from webdepot.services.permission import complaints, delivery
from webdepot.services.permission.complaints import Area, Audience, Ruling

commands = typer.Typer(no_args_is_help=True)
Which = Annotated[
    str, typer.Argument(help="Reference or number of the case, as `webdepot case list` prints it.")
]
Reason = Annotated[str, typer.Option(help="The reason; recorded with the case.")]


@commands.command(
    epilog="Example: webdepot case add https://www.example.org/page.html "
    "--words 'My photograph, without permission' --ground portrait"
)
def add(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="Address of the page.")],
    words: Annotated[str, typer.Option(help="What the complainant says and wants.")],
    who: Annotated[Who, typer.Option(help="Who objects.")] = Who.OTHER,
    ground: Annotated[Objection, typer.Option(help="Ground of the objection.")] = Objection.OTHER,
    name: Annotated[str, typer.Option(help="Name of the complainant.")] = "",
    mail: Annotated[str, typer.Option(help="Email address for letters.")] = "",
    language: Annotated[str, typer.Option(help="Language of letters: en, nl or de.")] = "en",
    json: Json = False,
) -> None:
    """Record a complaint that came by letter or telephone."""
    call = call_of(context)
    with call.archive() as archive:
        case = complaints.complain(
            archive,
            url=url,
            words=words,
            who=who,
            ground=ground,
            name=name,
            mail=mail,
            language=language,
            origin="staff",
            by=archive.agent,
        )
        delivery.deliver_if_configured(archive)
    call.output(json).result(fields(case), f"Case {case.reference}: {plain(case.url)}")


@commands.command(name="list", epilog="Example: webdepot case list --state received --json")
def list_(
    context: typer.Context,
    state: Annotated[CaseState | None, typer.Option(help="Only cases in this state.")] = None,
    host: Annotated[str, typer.Option(help="Only cases about this host.")] = "",
    page: Annotated[int, typer.Option(min=1, help="Page of the list, with fifty cases each.")] = 1,
    json: Json = False,
) -> None:
    """List complaints, newest first; open ones (`--state received` or `--state "in hand"`) oldest first."""
    call = call_of(context)
    with call.archive() as archive:
        cases, _ = complaints.list_cases(archive, state=state, host=host, page=page)
    for case in cases:
        decision = case.decision.value if case.decision else ""
        since = f"{case.state.value:9}  {case.since:%Y-%m-%d}"
        text = (
            f"[bold]{case.reference}[/bold]  {since}  {case.ground.value}  "
            f"{plain(case.url[:100])}  {decision}"
        )
        call.output(json).result(fields(case), text)


@commands.command(epilog="Example: webdepot case show C-2026-7KXQ2M")
def show(context: typer.Context, case: Which, json: Json = False) -> None:
    """Show a complaint with its history."""
    call = call_of(context)
    with call.archive() as archive:
        complaint = complaints.get(archive, case)
        events = complaints.history(archive, complaint)
    history = [
        {"at": event.at, "agent": event.agent, "action": event.action, "message": event.message}
        for event in events
    ]
    lines = [
        f"{event.at:%Y-%m-%d %H:%M}  {plain(event.action)}  {plain(event.agent)}  {plain(event.message)}"
        for event in events
    ]
    head = (
        f"[bold]{complaint.reference}[/bold] {complaint.state.value}: {plain(complaint.url)}\n"
        f"{plain(complaint.words)}"
    )
    call.output(json).result({**fields(complaint), "history": history}, "\n".join([head, *lines]))


@commands.command(
    epilog="Example: webdepot case decide C-2026-7KXQ2M closed --area host "
    "--text 'Closed after an objection.' --words 'We agree.'"
)
def decide(
    context: typer.Context,
    case: Which,
    decision: Annotated[Decision, typer.Argument(help="The decision.")],
    area: Annotated[
        Area,
        typer.Option(
            help="What it covers: the page, addresses that start with it, its host, or also its subdomains."
        ),
    ] = Area.PAGE,
    address: Annotated[str, typer.Option(help="Address of the area. Default: the page of the case.")] = "",
    audience: Annotated[Audience, typer.Option(help="Who may not see it.")] = Audience.EVERYONE,
    captured_from: Annotated[
        str, typer.Option(help="Only captures from this date on: 2019, 2019-03 or 2019-03-04.")
    ] = "",
    captured_to: Annotated[str, typer.Option(help="Only captures up to this date.")] = "",
    text: Annotated[str, typer.Option(help="The warning, or the text readers see instead of the page.")] = "",
    words: Annotated[str, typer.Option(help="The reason, for the letter to the complainant.")] = "",
    json: Json = False,
) -> None:
    """Decide a complaint. Takes effect at once everywhere; a letter is sent to the complainant."""
    call = call_of(context)
    ruling = Ruling(
        decision=decision,
        words=words,
        area=area,
        address=address,
        audience=audience,
        captured_from=captured_from,
        captured_to=captured_to,
        public_text=text,
    )
    with call.archive() as archive:
        decided = complaints.decide(archive, case, ruling)
        delivery.deliver_if_configured(archive)
    call.output(json).result(fields(decided), f"Case {decided.reference} is decided: {decision.value}.")


@commands.command(epilog="Example: webdepot case lift C-2026-7KXQ2M --reason 'both parties agree again'")
def lift(context: typer.Context, case: Which, reason: Reason, json: Json = False) -> None:
    """Lift a decision: everything it closed is open again at once."""
    call = call_of(context)
    with call.archive() as archive:
        lifted = complaints.lift(archive, case, reason=reason)
    call.output(json).result(fields(lifted), f"The decision on case {lifted.reference} is lifted.")


@commands.command(epilog="Example: webdepot case reopen C-2026-7KXQ2M --reason 'a new letter came'")
def reopen(context: typer.Context, case: Which, reason: Reason, json: Json = False) -> None:
    """Reopen a case. Until the new decision, everything that is closed stays closed."""
    call = call_of(context)
    with call.archive() as archive:
        reopened = complaints.reopen(archive, case, reason=reason)
    call.output(json).result(fields(reopened), f"Case {reopened.reference} is open again.")


@commands.command(epilog="Example: webdepot case drop C-2026-7KXQ2M --reason advertising")
def drop(context: typer.Context, case: Which, reason: Reason, json: Json = False) -> None:
    """Drop a case that is not a complaint, such as spam or a mistake. No letter is sent."""
    call = call_of(context)
    with call.archive() as archive:
        dropped = complaints.drop(archive, case, reason=reason)
    call.output(json).result(fields(dropped), f"Case {dropped.reference} is dropped.")


def fields(case: Case) -> dict[str, Any]:
    """A case as JSON."""
    return {
        "reference": case.reference,
        "state": case.state.value,
        "since": case.since,
        "url": case.url,
        "captured_at": case.captured_at,
        "who": case.who.value,
        "ground": case.ground.value,
        "words": case.words,
        "name": case.name,
        "mail": case.mail,
        "decision": case.decision.value if case.decision else None,
        "decision_words": case.decision_words,
        "detail": dict(case.detail),
        "rules": list(case.rules),
    }
