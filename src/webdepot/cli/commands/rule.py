"""`webdepot rule`: access rules, which say what may be seen, where and when."""

from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from webdepot.access.policy import AccessPoint, Rule, RuleAnswer
from webdepot.cli.call import Json, call_of, read_limited
from webdepot.cli.output import plain
from webdepot.errors import InputError
from webdepot.services.access import lending, rules, rules_from_robots

commands = typer.Typer(no_args_is_help=True)


@commands.command(
    epilog="Example: webdepot rule add 'example.org/members/*' --answer refuse "
    "--text 'Closed at the request of the owner.' --reason owner"
)
def add(
    context: typer.Context,
    pattern: Annotated[
        str, typer.Argument(help="Address: example.org, example.org/path/*, *.example.org, or one page.")
    ],
    answer: Annotated[
        RuleAnswer,
        typer.Option(
            help="refuse (status 451 with the text), hide (as if not archived), "
            "show (even if a wider rule closes it), warn (text above the page) or lend (to one reader at a "
            "time).",
        ),
    ],
    text: Annotated[str, typer.Option(help="Text shown to readers.")] = "",
    note: Annotated[str, typer.Option(help="Note for staff only.")] = "",
    reason: Annotated[
        str, typer.Option(help="The reason in one word: privacy, copyright, owner, robots, court.")
    ] = "",
    captured_from: Annotated[
        str, typer.Option(help="Only captures from this date on: 2019, 2019-03 or 2019-03-04.")
    ] = "",
    captured_to: Annotated[str, typer.Option(help="Only captures up to this date.")] = "",
    embargo_days: Annotated[
        int, typer.Option(help="Only captures younger than this many days (moving embargo).")
    ] = 0,
    valid_from: Annotated[str, typer.Option(help="First day the rule applies, such as 2026-01-01.")] = "",
    valid_to: Annotated[str, typer.Option(help="Last day the rule applies.")] = "",
    at: Annotated[
        AccessPoint | None, typer.Option(help="Only for readers at this access point. Default: everywhere.")
    ] = None,
    json: Json = False,
) -> None:
    """Add an access rule. It applies at once to lookup, replay, search and all APIs."""
    call = call_of(context)
    with call.archive() as archive:
        added = rules.add(
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
    for rule in added:
        call.output(json).result(_fields(rule), f"Rule {rule.id}: {rule.answer.value} {plain(_covers(rule))}")


@commands.command(name="list", epilog="Example: webdepot rule list --json")
def list_(context: typer.Context, json: Json = False) -> None:
    """List all access rules."""
    call = call_of(context)
    with call.archive() as archive:
        for rule in rules.every(archive):
            where = f" at {rule.access_point.value}" if rule.access_point else ""
            call.output(json).result(
                _fields(rule),
                f"{rule.id:5}  {rule.answer.value:6}  {plain(_covers(rule))}{where}  {plain(rule.reason)}  "
                f"{plain(rule.public_text[:80])}",
            )


@commands.command(epilog="Example: webdepot rule remove 12")
def remove(
    context: typer.Context,
    number: Annotated[int, typer.Argument(help="Number of the rule.")],
    json: Json = False,
) -> None:
    """Remove a rule. The events keep a record of it."""
    call = call_of(context)
    with call.archive() as archive:
        rule = rules.remove(archive, number)
    call.output(json).result(_fields(rule), f"Removed rule {rule.id}.")


@commands.command(name="import", epilog="Example: webdepot rule import access-rules.aclj --user staff=staff")
def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Access rules of pywb (.aclj).")],
    user: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=POINT",
            help=f"Access point of a user in the file: {', '.join(AccessPoint)}. Repeat for more users.",
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="The reason in one word, for all of them.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the file; add nothing.")] = False,
    json: Json = False,
) -> None:
    """Add the access rules of a file: all, or none if a line cannot be converted (exits 1 and lists them)."""
    call = call_of(context)
    output = call.output(json)
    raw = read_limited(file, rules.LONGEST_FILE_BYTES)
    with call.archive() as archive:
        result = rules.import_file(
            archive, raw, users=dict(map(_user, user or ())), reason=reason, dry_run=dry_run
        )
    for line, problem in result.bad:
        output.result({"line": line, "error": problem}, f"[red]line {line}[/red]  {plain(problem)}")
    is_added = not (dry_run or result.bad)
    counts = {"new": len(result.rules), "known": result.known, "bad": len(result.bad), "added": is_added}
    done = "added" if is_added else "not added" if result.bad else "would be added"
    output.result(
        counts,
        f"{len(result.rules)} new rules {done}, {result.known} already known, "
        f"{len(result.bad)} invalid lines.",
    )
    if result.bad:
        raise typer.Exit(1)


def _user(text: str) -> tuple[str, AccessPoint]:
    name, _, point = text.partition("=")
    if not name or point not in set(AccessPoint):
        raise InputError(f"{text[:60]!r} is not NAME=POINT. The access points are {', '.join(AccessPoint)}.")
    return name, AccessPoint(point)


def _covers(rule: Rule) -> str:
    return rule.prefix if rule.exact else rule.prefix + "*"


def day_of(text: str) -> date:
    """A date typed on the command line."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text[:30]!r} is not a date. Write it like 2026-01-31.") from None


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
    epilog="Example: webdepot rule robots www.example.org --dry-run",
)
def robots_(
    context: typer.Context,
    site: Annotated[str, typer.Argument(help="Host whose latest archived robots.txt is used.")],
    text: Annotated[str, typer.Option(help="Text shown to readers of closed pages.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the rules it would add.")] = False,
    json: Json = False,
) -> None:
    """Add access rules from the robots.txt of a site. They replace those of an earlier run."""
    call = call_of(context)
    with call.archive() as archive:
        result = rules_from_robots.apply(archive, site, text=text, dry_run=dry_run)
    output = call.output(json)
    for answer, pattern in result.patterns:
        output.result(
            {"answer": answer.value, "pattern": pattern, "made": not dry_run},
            f"{answer.value:6}  {plain(pattern)}",
        )
    for value in result.left_out:
        output.say(
            f"Skipped {plain(value)!r}: access rules cannot have * in the middle. "
            "Add a rule by hand if needed."
        )


@commands.command(epilog="Example: webdepot rule lent")
def lent(context: typer.Context, json: Json = False) -> None:
    """List pages on loan: those that only one reader at a time may see, and that are open now."""
    call = call_of(context)
    with call.archive() as archive:
        loans = lending.every(archive)
    for loan in loans:
        fields = {"url": loan.url, "taken_at": loan.taken_at.isoformat(), "until": loan.until.isoformat()}
        call.output(json).result(fields, f"{loan.taken_at:%H:%M} to {loan.until:%H:%M}  {plain(loan.url)}")


@commands.command(epilog="Example: webdepot rule free example.org/paper.html")
def free(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="Address of the page.")],
    json: Json = False,
) -> None:
    """End the loan of a page that a reader has left open."""
    call = call_of(context)
    with call.archive() as archive:
        lending.free(archive, url)
    call.output(json).result({"url": url, "free": True}, f"{plain(url)} can be opened again.")
