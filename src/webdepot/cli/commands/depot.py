"""`webdepot depot`: the depot as a whole, its copies, audits, and rebuilding an archive from it."""

from pathlib import Path
from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, agent, call_of
from webdepot.cli.output import Output, plain, size_words
from webdepot.cli.progress import shown
from webdepot.errors import CorruptData
from webdepot.model import Severity
from webdepot.services.admin import rebuild as rebuild_service
from webdepot.services.depot import audit as audit_service
from webdepot.services.depot import status as status_service
from webdepot.services.depot import storage_places, withdrawal
from webdepot.services.depot.audit import AuditReport
from webdepot.services.depot.storage_places import FillReport

EXIT_LOST = CorruptData.exit_status

_NEXT_LEVEL = {
    "top": "the highest level",
    "storage-two": "level 1 requires two complete copies",
    "storage-three": "level 2 requires three complete copies, one of them at another site",
    "storage-threats": "level 3 requires sites with different disaster threats, which a person must assess",
    "integrity-viruses": "level 1 requires a virus check of all submissions (depot.virus_scanner)",
    "integrity-separate": "level 2 requires the checksums in a second place",
    "integrity-interval": "level 3 requires every copy to be checked on time: some checks are overdue",
    "integrity-repair": "level 4 requires all damage to be repaired: some is not",
    "control-review": "level 4 requires people to review the log of actions",
    "metadata-backup": "level 1 requires the inventory in a second place",
    "content-identify": "level 1 requires formats to be identified",
    "content-watch": "level 3 requires people to watch formats for obsolescence",
}
"""What is needed for the next level, by the code of `services.depot.status`."""

commands = typer.Typer(no_args_is_help=True)
copy = typer.Typer(help="Places with copies of the depot.", no_args_is_help=True)
commands.add_typer(copy, name="copy")

PlaceName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the place.")]
Rate = Annotated[
    float | None,
    typer.Option("--rate", min=0, help="Maximum bytes per second to read; 0 means no limit."),
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
            help="Check copies whose last check is older than this. Default: depot.audit_days.",
        ),
    ] = None,
    limit_bytes: Annotated[
        int, typer.Option(min=0, help="Stop after this many bytes; the next audit continues.")
    ] = 0,
    rate: Rate = None,
    no_repair: Annotated[bool, typer.Option("--no-repair", help="Only check; write nothing.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check copies that are due against their checksums (fixity check), and repair them.

    Exits 0 if everything is intact or repaired, 1 if something is left to do (a place cannot be reached,
    damage was not repaired), 6 if something cannot be repaired.
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
    _print_audit(output, report)
    if report.lost:
        raise typer.Exit(EXIT_LOST)
    if report.alarms:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot depot verify /mnt/copy-of-the-depot")
def verify(
    context: typer.Context,
    place: Annotated[
        str,
        typer.Argument(metavar="PLACE", help="Folder or s3:// address. Default: the depot of the archive."),
    ] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check a whole depot using only its files, without a database. Exits 1 on findings, 6 on damage."""
    call = call_of(context)
    output = call.output(json, quiet)
    if place:
        store, address = audit_service.open_place(place), place
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
    summary = "intact" if not counted else f"{counted} findings, {grave} of them damage"
    output.result(
        {"place": address, "findings": counted, "damaged": grave},
        f"[bold]{plain(address)}[/bold]: {summary}.",
    )
    if counted:
        raise typer.Exit(EXIT_LOST if grave else 1)


@commands.command(epilog="Example: webdepot --home /srv/new depot rebuild --from /mnt/copy-of-the-depot")
def rebuild(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Option("--from", help="Folder or s3:// address of the depot. Default: the configured one."),
    ] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rebuild database, catalogue and indexes from the depot, on an empty machine."""
    call = call_of(context)
    output = call.output(json, quiet)
    with shown(output) as watch:
        call.give_way()
        done = rebuild_service.rebuild(call.home, source, agent=agent(), watch=watch)
    for message in done.failed:
        output.warn(plain(message))
    output.result(
        {
            "packages": done.packages,
            "captures": done.captures,
            "pages": done.pages,
            "rows": done.rows,
            "failed": list(done.failed),
        },
        f"Rebuilt: {done.packages:,} packages, {done.captures:,} captures, {done.pages:,} pages, "
        f"{done.rows:,} other rows.",
    )
    if done.failed:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot depot status")
def status(context: typer.Context, json: Json = False) -> None:
    """Show what is in the depot, and the NDSA Levels of Digital Preservation it reaches."""
    call = call_of(context)
    with call.archive() as archive:
        depot = status_service.status(archive)
    output = call.output(json)
    fields = {
        "packages": depot.packages,
        "size_bytes": depot.size_bytes,
        "tombstones": depot.tombstones,
        "alarms": len(depot.alarms),
        "ndsa": {level.area: level.level for level in depot.levels},
    }
    levels = "\n".join(
        f"  {level.area:<12} {level.level}  {_NEXT_LEVEL[level.reason]}" for level in depot.levels
    )
    output.result(
        fields,
        f"{depot.packages:,} packages, {size_words(depot.size_bytes)}; {len(depot.alarms)} alarms\n"
        f"NDSA levels\n{levels}",
    )


@commands.command(epilog="Example: webdepot depot report --output fixity.json")
def report(
    context: typer.Context,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. Default: standard output.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", help="Check the signature of this report instead.")
    ] = None,
    key: Annotated[
        str, typer.Option("--key", help="With --check: the public key it must be signed with.")
    ] = "",
    json: Json = False,
) -> None:
    """Write a signed fixity report, or check the signature of one."""
    call = call_of(context)
    printed = call.output(json)
    if check is not None:
        signer = status_service.check_report(check.read_bytes(), key=key)
        printed.result({"valid": True, "key": signer}, f"The signature is valid. Key: {signer}")
        return
    with call.archive() as archive:
        data = status_service.fixity_report(archive)
        public = status_service.public_key(archive)
    if output is None:
        typer.echo(data.decode())
    else:
        output.write_bytes(data)
        printed.result(
            {"file": str(output), "key": public}, f"Wrote {plain(str(output))}, signed with {public}."
        )


@copy.command(epilog="Example: webdepot depot copy add vault 's3://depot?endpoint=https://s3.example.org'")
def add(
    context: typer.Context,
    name: PlaceName,
    address: Annotated[str, typer.Argument(help="Folder, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME.")],
    write_once: Annotated[
        bool, typer.Option("--write-once", help="The credentials cannot delete there; never try to delete.")
    ] = False,
    no_fill: Annotated[
        bool,
        typer.Option(
            "--no-fill", help="Only register it; the next audit or `copy fill` copies the packages."
        ),
    ] = False,
    rate: Rate = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add a place and copy every package to it. If stopped, continue with: webdepot depot copy fill"""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        place = storage_places.add_place(archive, name, address, write_once=write_once)
        if not place.refuses_overwriting:
            output.warn(
                "This server allows objects to be overwritten. Copies there are still checked, "
                "but two writers at the same time are not detected."
            )
        filled = (
            FillReport(copied=0, size_bytes=0, waiting=0)
            if no_fill
            else storage_places.fill(archive, place=name, rate_bytes_s=rate, watch=watch)
        )
    _print_fill(output, filled)


@copy.command(epilog="Example: webdepot depot copy fill vault")
def fill(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the place. Default: all places.")] = "",
    rate: Rate = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Copy the packages that are not copied yet. Continues where it was stopped."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        filled = storage_places.fill(archive, place=name, rate_bytes_s=rate, watch=watch)
    _print_fill(output, filled)


@copy.command(epilog="Example: webdepot depot copy remove vault")
def remove(context: typer.Context, name: PlaceName, json: Json = False) -> None:
    """Remove a place from the depot. Its files are not deleted."""
    call = call_of(context)
    with call.archive() as archive:
        place = storage_places.remove_place(archive, name)
    message = f"Removed {plain(name)}. Its files are still at {plain(place.address)}."
    call.output(json).result({"place": name, "address": place.address}, message)


@copy.command(name="status", epilog="Example: webdepot depot copy status --json")
def copy_status(context: typer.Context, json: Json = False) -> None:
    """Show each place with its copies, their state and the oldest check. Exits 1 if something is damaged or
    lost, or if a place cannot be reached.
    """
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        depot = status_service.status(archive)
    for place in depot.places:
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
        away = f"  [red]unreachable since {place.away_since:%Y-%m-%d}[/red]" if place.away_since else ""
        oldest = f"oldest check {place.oldest_check:%Y-%m-%d}" if place.oldest_check else "never checked"
        output.result(
            fields,
            f"[bold]{plain(place.name)}[/bold]  {plain(place.address)}  {states}, "
            f"{size_words(place.size_bytes)}, {oldest}{away}",
        )
    if depot.alarms:
        raise typer.Exit(1)


def _print_audit(output: Output, report: AuditReport) -> None:
    for problem in report.problems:
        fields = {
            "package": problem.package,
            "place": problem.place,
            "outcome": problem.outcome.value,
            "message": problem.message,
        }
        output.result(
            fields,
            f"[bold]{problem.outcome.value}[/bold]  {plain(problem.package)} in {plain(problem.place)}: "
            f"{plain(problem.message)}",
        )
    counts = {outcome.value: count for outcome, count in report.counts.items()}
    outcomes = ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "nothing was due"
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
        f"{copied}{outcomes}; {size_words(report.size_bytes)} read{left}.",
    )


def _print_fill(output: Output, filled: FillReport) -> None:
    for name, message in {**filled.away, **filled.failed}.items():
        output.warn(f"{plain(name)}: {plain(message)}")
    output.result(
        {"copied": filled.copied, "size_bytes": filled.size_bytes, "waiting": filled.waiting},
        f"{filled.copied:,} packages copied, {size_words(filled.size_bytes)}; "
        f"{filled.waiting:,} still to copy.",
    )
    if filled.away or filled.failed:
        raise typer.Exit(1)
