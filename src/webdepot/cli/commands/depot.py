"""`webdepot depot`: the long-term keeping as a whole, its copies, its audits, and getting everything back
from it.
"""

from pathlib import Path
from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, agent, call_of
from webdepot.cli.output import Output, plain, size_words
from webdepot.cli.progress import shown
from webdepot.depot import places
from webdepot.errors import CorruptData
from webdepot.model import Severity
from webdepot.services.admin import rebuild as rebuild_service
from webdepot.services.depot import audit as audit_service
from webdepot.services.depot import replication, withdrawal
from webdepot.services.depot import status as status_service
from webdepot.services.depot.audit import AuditReport
from webdepot.services.depot.replication import FillReport

EXIT_LOST = CorruptData.exit_status

_LEVEL_WORDS = {
    "top": "the highest level",
    "storage-two": "level 1 asks for two complete copies",
    "storage-three": "level 2 asks for three complete copies, one of them elsewhere",
    "storage-threats": "level 3 asks for places with other threats of disaster, which only people can judge",
    "integrity-viruses": "level 1 asks for a virus check of all that comes in (depot.virus_scanner)",
    "integrity-separate": "level 2 asks for the checksums in a second place",
    "integrity-interval": "level 3 asks that every copy is read in its interval: some are overdue",
    "integrity-repair": "level 4 asks that damage is repaired: some is not",
    "control-review": "level 4 asks people to review the log of actions",
    "metadata-backup": "level 1 asks for the inventory in a second place",
    "content-identify": "level 1 asks that formats are identified",
    "content-watch": "level 3 asks people to watch formats for obsolescence",
}

commands = typer.Typer(no_args_is_help=True)
copy = typer.Typer(help="The places where copies of the depot stand.", no_args_is_help=True)
commands.add_typer(copy, name="copy")

PlaceName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the place.")]
Rate = Annotated[
    float | None,
    typer.Option("--rate", min=0, help="Read at most so many bytes a second; 0 means as fast as possible."),
]


@commands.command(epilog="Example: webdepot depot audit --limit-bytes 500000000000")
def audit(
    context: typer.Context,
    package: Annotated[
        list[str] | None, typer.Option("--package", help="Only these packages, due or not.")
    ] = None,
    place: Annotated[str, typer.Option(help="Only the copies in this place.")] = "",
    older_than: Annotated[
        float | None,
        typer.Option(
            "--older-than",
            metavar="DAYS",
            min=0,
            help="Copies not read for so many days. Default: depot.audit_days.",
        ),
    ] = None,
    limit_bytes: Annotated[
        int, typer.Option(min=0, help="Stop after so many bytes; the next audit goes on.")
    ] = 0,
    rate: Rate = None,
    no_repair: Annotated[bool, typer.Option("--no-repair", help="Only look; write nothing.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read the copies that are due, compare them with their checksums and mend them.

    Exits 0 when all is whole or mended, 1 when something waits (a place is away, damage was left), 6 when
    something cannot be mended.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        withdrawal.finish_waiting(archive)
        report = audit_service.audit(
            archive,
            place=place,
            packages=package or (),
            older_than_days=older_than,
            limit_bytes=limit_bytes,
            rate_bytes_s=rate,
            repair=not no_repair,
            watch=watch,
        )
    _tell_audit(output, report)
    if report.lost:
        raise typer.Exit(EXIT_LOST)
    if report.alarms:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot depot verify /mnt/copy-of-the-depot")
def verify(
    context: typer.Context,
    place: Annotated[
        str,
        typer.Argument(metavar="[PLACE]", help="Folder or s3:// address. Default: the depot of the archive."),
    ] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read a whole depot from its files alone, without a database, and say what is wrong. Exits 1 on
    findings, 6 on damage.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    if place:
        store = places.open_store(places.MAIN, places.normal_address(place))
        address = place
    else:
        with call.archive() as archive:
            store, address = archive.store, archive.depot_address
    grave = counted = 0
    with shown(output) as watch:
        for subject, finding in audit_service.verify_place(store, watch=watch):
            counted += 1
            grave += finding.severity is Severity.ERROR
            fields = {
                "object": subject,
                "code": finding.code,
                "severity": finding.severity.value,
                "message": finding.message,
            }
            output.result(fields, f"{finding.severity.value}  {plain(finding.message)}")
    words = "is whole" if not counted else f"{counted} findings, {grave} of them damage"
    output.result(
        {"place": address, "findings": counted, "damaged": grave}, f"[bold]{plain(address)}[/bold]: {words}."
    )
    if counted:
        raise typer.Exit(EXIT_LOST if grave else 1)


@commands.command(epilog="Example: webdepot --home /srv/new depot rebuild --from /mnt/copy-of-the-depot")
def rebuild(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Option(
            "--from", help="Folder or s3:// address of the depot. Default: the one of the configuration."
        ),
    ] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make database, catalogue and indexes again from the depot alone, on an empty machine."""
    call = call_of(context)
    output = call.output(json, quiet)
    with shown(output) as watch:
        done = rebuild_service.rebuild(call.home, source, agent=agent(), watch=watch)
    for words in done.failed:
        output.warn(plain(words))
    output.result(
        {
            "packages": done.packages,
            "captures": done.captures,
            "pages": done.pages,
            "rows": done.rows,
            "failed": list(done.failed),
        },
        f"{done.packages:,} packages, {done.captures:,} captures and {done.pages:,} pages came back; {done.rows:,} other rows.",
    )
    if done.failed:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot depot status")
def status(context: typer.Context, json: Json = False) -> None:
    """What is in the depot, in how many places, and how the institution stands by the NDSA levels."""
    call = call_of(context)
    with call.archive() as archive:
        seen = status_service.status(archive)
    output = call.output(json)
    fields = {
        "packages": seen.packages,
        "size_bytes": seen.size_bytes,
        "tombstones": seen.tombstones,
        "alarms": len(seen.alarms),
        "ndsa": {level.area: level.level for level in seen.levels},
    }
    levels = "\n".join(
        f"  {level.area:<12} {level.level}  {_LEVEL_WORDS[level.reason]}" for level in seen.levels
    )
    output.result(
        fields,
        f"{seen.packages:,} packages, {size_words(seen.size_bytes)}; {len(seen.alarms)} alarms\nNDSA levels\n{levels}",
    )


@commands.command(epilog="Example: webdepot depot report --output fixity.json")
def report(
    context: typer.Context,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: the terminal.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", help="Check the signature of such a report instead.")
    ] = None,
    key: Annotated[
        str, typer.Option("--key", help="Public key the report must be signed with, as its sender told you.")
    ] = "",
    json: Json = False,
) -> None:
    """Write the fixity report, signed, or check one that somebody gave you."""
    call = call_of(context)
    told = call.output(json)
    if check is not None:
        signer = status_service.check_report(check.read_bytes(), key=key)
        told.result({"valid": True, "key": signer}, f"The signature is right. Key: {signer}")
        return
    with call.archive() as archive:
        data = status_service.fixity_report(archive)
        public = status_service.public_key(archive)
    if output is None:
        typer.echo(data.decode())
    else:
        output.write_bytes(data)
        told.result(
            {"file": str(output), "key": public}, f"Wrote {plain(str(output))}, signed with {public}."
        )


@copy.command(epilog="Example: webdepot depot copy add vault 's3://depot?endpoint=https://s3.example.org'")
def add(
    context: typer.Context,
    name: PlaceName,
    address: Annotated[str, typer.Argument(help="Folder, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME.")],
    write_once: Annotated[
        bool, typer.Option("--write-once", help="The place's keys cannot delete; nothing is tried there.")
    ] = False,
    no_fill: Annotated[
        bool,
        typer.Option("--no-fill", help="Only register it; the next audit or `copy fill` copies everything."),
    ] = False,
    rate: Rate = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add a place and copy every package to it. Stopped, it goes on with: webdepot depot copy fill."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        place = replication.add_place(archive, name, address, write_once=write_once)
        if not place.refuses_overwriting:
            output.warn(
                "This server does not refuse to overwrite. Copies there are still checked, but two writers would not be kept apart."
            )
        filled = (
            FillReport(copied=0, size_bytes=0, waiting=0)
            if no_fill
            else replication.fill(archive, place=name, rate_bytes_s=rate, watch=watch)
        )
    _tell_fill(output, filled)


@copy.command(epilog="Example: webdepot depot copy fill vault")
def fill(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Name of the place; default: all that wait.")
    ] = "",
    rate: Rate = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy what waits to be copied. Goes on where it was stopped."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        filled = replication.fill(archive, place=name, rate_bytes_s=rate, watch=watch)
    _tell_fill(output, filled)


@copy.command(epilog="Example: webdepot depot copy remove vault")
def remove(context: typer.Context, name: PlaceName, json: Json = False) -> None:
    """Forget a place. Its files stay where they are."""
    call = call_of(context)
    with call.archive() as archive:
        place = replication.remove_place(archive, name)
    words = f"{plain(name)} is no place of the depot any more. Its files stay at {plain(place.address)}."
    call.output(json).result({"place": name, "address": place.address}, words)


@copy.command(name="status", epilog="Example: webdepot depot copy status --json")
def copy_status(context: typer.Context, json: Json = False) -> None:
    """Each place with its copies, their state and the oldest audit. Exits 1 while something is damaged, lost
    or away.
    """
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        seen = status_service.status(archive)
    for place in seen.places:
        fields = {
            "place": place.name,
            "address": place.address,
            "state": place.state,
            "copies": dict(place.copies),
            "size_bytes": place.size_bytes,
            "oldest_audit": place.oldest_check,
            "away_since": place.away_since,
        }
        states = ", ".join(f"{count:,} {state}" for state, count in place.copies.items()) or "no copies"
        away = f"  [red]away since {place.away_since:%Y-%m-%d}[/red]" if place.away_since else ""
        oldest = f"oldest audit {place.oldest_check:%Y-%m-%d}" if place.oldest_check else "never read"
        output.result(
            fields,
            f"[bold]{plain(place.name)}[/bold]  {plain(place.address)}  {states}, {size_words(place.size_bytes)}, {oldest}{away}",
        )
    if seen.alarms:
        raise typer.Exit(1)


def _tell_audit(output: Output, report: AuditReport) -> None:
    for problem in report.problems:
        fields = {
            "package": problem.package,
            "place": problem.place,
            "outcome": problem.outcome.value,
            "message": problem.message,
        }
        output.result(
            fields,
            f"[bold]{problem.outcome.value}[/bold]  {plain(problem.package)} in {plain(problem.place)}: {plain(problem.message)}",
        )
    counts = {outcome.value: count for outcome, count in report.counts.items()}
    words = ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "nothing was due"
    copied = f"{report.filled.copied:,} copies made; " if report.filled.copied else ""
    left = f"; {report.left:,} are still due" if report.left else ""
    output.result(
        {
            "counts": counts,
            "size_bytes": report.size_bytes,
            "copied": report.filled.copied,
            "left": report.left,
            "alarms": len(report.alarms),
        },
        f"{copied}{words}; {size_words(report.size_bytes)} read{left}.",
    )


def _tell_fill(output: Output, filled: FillReport) -> None:
    for name, words in {**filled.away, **filled.failed}.items():
        output.warn(f"{plain(name)}: {plain(words)}")
    output.result(
        {"copied": filled.copied, "size_bytes": filled.size_bytes, "waiting": filled.waiting},
        f"{filled.copied:,} packages copied, {size_words(filled.size_bytes)}; {filled.waiting:,} wait.",
    )
    if filled.away or filled.failed:
        raise typer.Exit(1)
