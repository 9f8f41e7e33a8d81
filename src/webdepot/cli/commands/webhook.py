"""`webdepot webhook`: messages to other programs."""

from typing import Annotated

import typer

from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain
from webdepot.errors import InputError
from webdepot.exchange.webhooks import HookEvent, MessageState
from webdepot.services.exchange import webhooks
from webdepot.times import to_iso

commands = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the web hook.")]
_EVENTS = [event for event in HookEvent if event is not HookEvent.TEST]


@commands.command(
    epilog="Example: webdepot webhook add catalogue https://lib.example.org/hook --event harvest.finished"
)
def add(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A short name: lower-case letters, digits, - and _.")
    ],
    url: Annotated[str, typer.Argument(metavar="URL", help="Address that messages are sent to.")],
    event: Annotated[
        list[str] | None,
        typer.Option(help=f"Send only these: {', '.join(_EVENTS)}. May be repeated. Default: all."),
    ] = None,
    json: Json = False,
) -> None:
    """Add a web hook. Prints the secret with which the receiver checks signatures."""
    unknown = [each for each in event or () if each not in _EVENTS]
    if unknown:
        raise InputError(f"{unknown[0][:50]!r} is not an event. Known events: {', '.join(_EVENTS)}.")
    call = call_of(context)
    with call.archive() as archive:
        hook, secret = webhooks.add(archive, name, url, [HookEvent(each) for each in event or ()])
    fields = {
        "name": hook.name,
        "url": hook.url,
        "events": [each.value for each in hook.events],
        "secret": secret,
    }
    call.output(json).result(
        fields,
        f"Added {plain(hook.name)}. Secret: {secret}\nTry it: webdepot webhook test {plain(hook.name)}",
    )


@commands.command(name="list", epilog="Example: webdepot webhook list --json")
def list_(context: typer.Context, json: Json = False) -> None:
    """List web hooks with their newest messages."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        rows = webhooks.every(archive)
    for row in rows:
        counts = {state: sum(each.state is state for each in row.messages) for state in MessageState}
        failed = next((each for each in row.messages if each.error), None)
        fields = {
            "name": row.hook.name,
            "url": row.hook.url,
            "events": [each.value for each in row.hook.events],
            **{state.value: count for state, count in counts.items()},
            "last_error": failed.error if failed else "",
            "last_error_at": to_iso(failed.queued_at) if failed else "",
        }
        text = f"{plain(row.hook.name)}  {plain(row.hook.url)}  " + ", ".join(
            f"{count} {state.value}" for state, count in counts.items()
        )
        output.result(fields, text + (f"\n  {plain(failed.error)}" if failed else ""))


@commands.command(epilog="Example: webdepot webhook remove catalogue")
def remove(context: typer.Context, name: Name) -> None:
    """Remove a web hook and the messages that wait for it."""
    call = call_of(context)
    with call.archive() as archive:
        hook = webhooks.remove(archive, name)
    call.output().result({"name": hook.name}, f"Removed {plain(hook.name)}.")


@commands.command(epilog="Example: webdepot webhook test catalogue")
def test(context: typer.Context, name: Name, json: Json = False) -> None:
    """Send a test message now; exits 1 if the receiver does not accept it."""
    call = call_of(context)
    with call.archive() as archive:
        message = webhooks.test(archive, name)
    is_sent = message.state is MessageState.SENT
    fields = {"name": name, "message": message.name, "state": message.state.value, "error": message.error}
    text = "The receiver accepted the test message." if is_sent else plain(message.error)
    call.output(json).result(fields, text)
    if not is_sent:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot webhook send")
def send(context: typer.Context, json: Json = False) -> None:
    """Send the messages that are due, as the scheduler does; exits 1 if one could not be sent."""
    call = call_of(context)
    with call.archive() as archive:
        done = webhooks.deliver(archive)
    call.output(json).result(
        {"sent": done.sent, "failed": done.failed}, f"{done.sent} sent, {done.failed} failed."
    )
    if done.failed:
        raise typer.Exit(1)
