"""`webdepot scope`: why an address is harvested or not; and the rules there are."""

from typing import Annotated

import typer

from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain
from webdepot.harvest.scope.conditions import CONDITIONS
from webdepot.model import Answer
from webdepot.services.harvest import profiles

commands = typer.Typer(no_args_is_help=True)


@commands.command(
    epilog="Example: webdepot scope explain https://www.example.org/film.avi --target www.example.org"
)
def explain(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="The address in question.")],
    target: Annotated[
        str,
        typer.Option(metavar="TARGET", help="Number, name or address of a target; its last harvest's rules."),
    ] = "",
    profile: Annotated[str, typer.Option(metavar="NAME", help="Ask the rules of this profile.")] = "",
    seed: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Start address, where neither target nor profile has one."),
    ] = None,
    path: Annotated[
        str,
        typer.Option(
            metavar="HOPS",
            help="How it would be found: L link, E part of a page, R redirect, X guess, M sitemap.",
        ),
    ] = "L",
    via: Annotated[str, typer.Option(metavar="URL", help="Page that would lead to it.")] = "",
    json: Json = False,
) -> None:
    """Which rule decides about an address, and why. Exits with 1 when it is rejected."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        found = profiles.explain(
            archive, url, target=target, profile=profile, seeds=seed or [], path=path, via=via
        )
    fields = {
        "url": found.url,
        "answer": found.verdict.answer.value,
        "rule": found.verdict.rule,
        "reason": found.verdict.reason,
        "basis": found.basis,
        "seeds": list(found.seeds),
        "host": found.host_words,
        "steps": [
            {
                "rule": step.rule,
                "answer": step.verdict.answer.value,
                "reason": step.verdict.reason,
                "decides": step.decides,
            }
            for step in found.steps
        ],
    }
    lines = [f"[bold]{found.verdict.answer.value}[/bold] {plain(found.url)}"]
    lines.append(f"  because of [bold]{plain(found.verdict.rule)}[/bold]: {plain(found.verdict.reason)}")
    lines.append(
        f"  [dim]by the rules of {plain(found.basis)}; seeds {plain(', '.join(found.seeds[:3]))}[/dim]"
    )
    if found.host_words:
        lines.append(f"  at this host: {plain(found.host_words)}")
    for step in found.steps:
        mark = "→" if step.decides else " "
        words = f"{step.verdict.answer.value:7} {plain(step.verdict.reason)}"
        lines.append(
            f" {mark} {plain(step.rule):34} {words if step.verdict.answer is not Answer.PASS else '[dim]pass[/dim]'}"
        )
    output.result(fields, "\n".join(lines))
    if not found.verdict:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot scope rules --json")
def rules(context: typer.Context, json: Json = False) -> None:
    """The documented set of conditions for decide rules."""
    output = call_of(context).output(json)
    for name, known in CONDITIONS.items():
        takes = {"of": "of = [...]", "over": "over = NUMBER", "": ""}[known.takes]
        output.result(
            {"condition": name, "takes": known.takes, "text": known.doc},
            f"[bold]{name:16}[/bold] {takes:14} {plain(known.doc)}",
        )
