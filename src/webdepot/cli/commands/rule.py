"""`webdepot rule`: what may be seen, where and when."""

from datetime import date
from typing import Annotated, Any

import typer

from webdepot.access.policy import AccessPoint, Rule, RuleAnswer
from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain
from webdepot.errors import InputError
from webdepot.services.access import lending, robots_rules, rules

commands = typer.Typer(no_args_is_help=True)


@commands.command(
    epilog="Example: webdepot rule add 'example.org/members/*' --answer refuse --text 'Closed at the owner's wish.' --reason owner"
)
def add(
    context: typer.Context,
    pattern: Annotated[
        str, typer.Argument(help="Address: example.org, example.org/path/*, *.example.org, or one page.")
    ],
    answer: Annotated[
        RuleAnswer,
        typer.Option(
            help="refuse (451 with the text), hide (as if it were not there), show (though a wider rule closes it) or warn (text above).",
        ),
    ],
    text: Annotated[str, typer.Option(help="Shown to readers.")] = "",
    note: Annotated[str, typer.Option(help="For staff alone.")] = "",
    reason: Annotated[
        str, typer.Option(help="Why, in a word: privacy, copyright, owner, robots, court.")
    ] = "",
    captured_from: Annotated[
        str, typer.Option(help="Only captures from this date on: 2019, 2019-03, 2019-03-04.")
    ] = "",
    captured_to: Annotated[str, typer.Option(help="Only captures up to this date.")] = "",
    embargo_days: Annotated[
        int, typer.Option(help="Only captures younger than so many days, whichever day it is.")
    ] = 0,
    valid_from: Annotated[str, typer.Option(help="First day on which the rule holds: 2026-01-01.")] = "",
    valid_to: Annotated[str, typer.Option(help="Last day on which the rule holds.")] = "",
    at: Annotated[
        AccessPoint | None, typer.Option(help="Only for readers at this access point; all without it.")
    ] = None,
    json: Json = False,
) -> None:
    """Make a rule. It holds at once, in look-up, replay, search and every machine interface alike."""
    call = call_of(context)
    with call.archive() as archive:
        made = rules.add(
            archive,
            pattern,
            answer=answer,
            captured_from=captured_from,
            captured_to=captured_to,
            embargo_days=embargo_days,
            valid_from=day_of(valid_from) if valid_from else date.min,
            valid_to=day_of(valid_to) if valid_to else date.max,
            access_point=at,
            public_text=text,
            private_note=note,
            reason=reason,
        )
    for rule in made:
        call.output(json).result(_fields(rule), f"Rule {rule.id}: {rule.answer.value} {plain(_covers(rule))}")


@commands.command(name="list", epilog="Example: webdepot rule list --json")
def list_(context: typer.Context, json: Json = False) -> None:
    """All rules of access."""
    call = call_of(context)
    with call.archive() as archive:
        for rule in rules.every(archive):
            where = f" at {rule.access_point.value}" if rule.access_point else ""
            words = f"{rule.id:5}  {rule.answer.value:6}  {plain(_covers(rule))}{where}  {plain(rule.reason)}  {plain(rule.public_text[:80])}"
            call.output(json).result(_fields(rule), words)


@commands.command(epilog="Example: webdepot rule remove 12")
def remove(
    context: typer.Context,
    number: Annotated[int, typer.Argument(help="Number of the rule.")],
    json: Json = False,
) -> None:
    """Take a rule back. What it said stays in the events."""
    call = call_of(context)
    with call.archive() as archive:
        rule = rules.remove(archive, number)
    call.output(json).result(_fields(rule), f"Rule {rule.id} is taken back.")


def _covers(rule: Rule) -> str:
    return rule.prefix if rule.exact else rule.prefix + "*"


def day_of(text: str) -> date:
    """A day as people write it on the command line."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text[:30]!r} is no day. Write it like 2026-01-31.") from None


def _fields(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "prefix": rule.prefix,
        "exact": rule.exact,
        "answer": rule.answer.value,
        "captured_from": rule.captured_from,
        "captured_to": rule.captured_to,
        "embargo_days": rule.embargo_days,
        "valid_from": rule.valid_from.isoformat(),
        "valid_to": rule.valid_to.isoformat(),
        "access_point": rule.access_point.value if rule.access_point else None,
        "public_text": rule.public_text,
        "private_note": rule.private_note,
        "reason": rule.reason,
        "created_by": rule.created_by,
        "created_at": rule.created_at,
    }


@commands.command(
    name="robots",
    epilog="Example: webdepot rule robots www.example.org --text 'Closed by the site's robots.txt.' --dry-run",
)
def robots_(
    context: typer.Context,
    site: Annotated[str, typer.Argument(help="Host whose newest archived robots.txt shall be heeded.")],
    text: Annotated[str, typer.Option(help="Shown to readers where it shuts them out.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which rules it would make.")] = False,
    json: Json = False,
) -> None:
    """Make rules of what a site's robots.txt shuts out. Those that it made last time are taken back first."""
    call = call_of(context)
    with call.archive() as archive:
        heeded = robots_rules.heed(archive, site, text=text, dry_run=dry_run)
    output = call.output(json)
    for answer, pattern in heeded.patterns:
        output.result(
            {"answer": answer.value, "pattern": pattern, "made": not dry_run},
            f"{answer.value:6}  {plain(pattern)}",
        )
    for value in heeded.left_out:
        output.say(
            f"No rule can say {plain(value)!r}: a star stands in its middle. Add rules by hand where it matters."
        )


@commands.command(epilog="Example: webdepot rule lent")
def lent(context: typer.Context, json: Json = False) -> None:
    """Pages that readers have open now, where one reader at a time may see them."""
    call = call_of(context)
    with call.archive() as archive:
        held = lending.every(archive)
    for one in held:
        fields = {"url": one.url, "taken_at": one.taken_at.isoformat(), "until": one.until.isoformat()}
        call.output(json).result(fields, f"{one.taken_at:%H:%M} to {one.until:%H:%M}  {plain(one.url)}")


@commands.command(epilog="Example: webdepot rule free example.org/paper.html")
def free(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="Address of the page.")],
    json: Json = False,
) -> None:
    """Take a lent page from a reader who left it open."""
    call = call_of(context)
    with call.archive() as archive:
        lending.free(archive, url)
    call.output(json).result({"url": url, "free": True}, f"{plain(url)} is free.")
