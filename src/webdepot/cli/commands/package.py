"""`webdepot package`: list, export, import, withdraw, hold and migrate packages of the depot."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import Output, plain, size_words
from webdepot.cli.progress import shown
from webdepot.depot.bundle.submission import SubmissionState
from webdepot.depot.holds import Hold, HoldKind, HoldScope
from webdepot.errors import InputError
from webdepot.services.depot import export as export_service
from webdepot.services.depot import format_migration, status, withdrawal
from webdepot.services.depot.export import ExportedPackage, PackageForm
from webdepot.services.intake import submissions

commands = typer.Typer(no_args_is_help=True)
_MOST_WARNINGS = 20
Identifier = Annotated[str, typer.Argument(metavar="ID", help="Identifier or URN of the package.")]


@commands.command(name="list", epilog="Example: webdepot package list --json")
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of packages.")] = 50,
    before: Annotated[str, typer.Option(metavar="ID", help="Start after this package of the list.")] = "",
    json: Json = False,
) -> None:
    """List packages, newest first, with their copies."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        rows = status.list_packages(archive, limit=limit, before=before)
    for row in rows:
        package = row.package
        states = {copy.place: copy.state.value for copy in row.copies}
        fields = {
            "id": package.id,
            "urn": package.urn,
            "title": package.title,
            "version": package.version,
            "size_bytes": package.size_bytes,
            "stored_at": package.stored_at,
            "copies": states,
        }
        copies = ", ".join(f"{place} {state}" for place, state in states.items())
        output.result(
            fields,
            f"[bold]{plain(package.id)}[/bold]  {plain(package.title)}  {size_words(package.size_bytes)}  "
            f"[dim]{plain(copies)}[/dim]",
        )


@commands.command(epilog="Example: webdepot package show urn:uuid:6fa16c6b-5c0a-4f5b-9a3c-5d0b6c0c2f4e")
def show(context: typer.Context, identifier: Identifier, json: Json = False) -> None:
    """Show a package: its copies, files and events."""
    call = call_of(context)
    with call.archive() as archive:
        view = status.view(archive, identifier)
    package = view.package
    fields = {
        "id": package.id,
        "urn": package.urn,
        "title": package.title,
        "harvest": package.harvest,
        "version": package.version,
        "size_bytes": package.size_bytes,
        "stored_at": package.stored_at,
        "copies": [
            {"place": copy.place, "state": copy.state.value, "checked_at": copy.checked_at}
            for copy in view.copies
        ],
        "files": [
            {"path": file.path, "size_bytes": file.size_bytes, "sha256": file.sha256, "version": file.version}
            for file in view.files
        ],
        "events": [
            {"at": event.at, "action": event.action, "agent": event.agent, "message": event.message}
            for event in view.events
        ],
        "holds": [hold.id for hold in view.holds],
    }
    copies = "\n".join(
        f"  {plain(copy.place)}  {copy.state.value}, checked {copy.checked_at:%Y-%m-%d}"
        for copy in view.copies
    )
    files = (
        "\n".join(f"  {size_words(file.size_bytes):>10}  {plain(file.path)}" for file in view.files)
        or f"  {plain(view.trouble)}"
    )
    events = "\n".join(
        f"  {event.at:%Y-%m-%d %H:%M}  {plain(event.action)}  {plain(event.message)}"
        for event in view.events[:20]
    )
    call.output(json).result(
        fields,
        f"[bold]{plain(package.title)}[/bold]\n{plain(package.id)}\n{plain(package.urn)}\n"
        f"Copies\n{copies}\nFiles\n{files}\nEvents\n{events}",
    )


@commands.command(
    epilog="Example: webdepot package export urn:nbn:de:0000-2026… --form wacz --output museum.wacz"
)
def export(
    context: typer.Context,
    identifier: Identifier,
    target: Annotated[Path, typer.Option("--output", "-o", help="File or folder to create.")],
    form: Annotated[
        PackageForm, typer.Option(help="bagit and ocfl are folders; wacz, zip and uof are files.")
    ] = PackageForm.BAGIT,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Export a package as BagIt, WACZ, ZIP, UOF or its OCFL object. All bytes are checked while copying."""
    call = call_of(context)
    with call.archive() as archive:
        done = export_service.export(archive, identifier, form, target.absolute())
    call.output(json, quiet).result(
        {
            "id": done.package.id,
            "form": done.form.value,
            "path": str(done.path),
            "size_bytes": done.size_bytes,
            "place": done.place,
            "requires": list(done.references.packages),
            "missing": done.references.missing,
        },
        f"Wrote {plain(str(done.path))}, {size_words(done.size_bytes)}.{_requirements(done)}",
    )


def _requirements(done: ExportedPackage) -> str:
    """Sentences about what an export needs of other packages."""
    needed, sentences = done.references, ""
    if needed.revisits and done.form is not PackageForm.WACZ:
        sentences = (
            f" {needed.revisits} captures refer to records in other packages: {', '.join(needed.packages)}. "
            "Export those too, or use --form wacz, which contains these records."
        )
    if needed.missing:
        sentences += f" {needed.missing} captures refer to records that this archive does not have."
    return sentences


@commands.command(
    name="import", epilog="Example: webdepot package import partner-bag/ museum.wacz thesis.pdf"
)
def import_(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Bags, OCFL objects, WACZ, UOF, ZIP and tar files, folders, or single files. "
            "A submission without WARC files becomes one object. A CSV file lists several objects.",
        ),
    ],
    collection: Annotated[
        str, typer.Option(help="Collection of the imported harvests and objects.")
    ] = "imported",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check submissions and ingest them, each completely or not at all: harvests, or objects such as a
    thesis, an article or a copied disc. Refused ones are put into quarantine with the reasons. Exits 1 if
    some were refused.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    refused = 0
    for path in paths:
        with call.archive() as archive, shown(output) as watch:
            for done in submissions.receive_each(
                archive, path.absolute(), collection=collection, watch=watch
            ):
                refused += done.receipt.state is SubmissionState.REFUSED
                _print_received(output, path, done)
    if refused:
        raise typer.Exit(1)


@commands.command(
    epilog="Example: webdepot package withdraw urn:uuid:6fa1… --reason 'Court order 12/34' "
    "--approved-by 'Anna Mol'"
)
def withdraw(
    context: typer.Context,
    identifier: Identifier,
    reason: Annotated[str, typer.Option(help="The reason; recorded in the tombstone.")],
    approved_by: Annotated[str, typer.Option(help="The second person who approved it.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Delete a package permanently in all places; a tombstone remains. Exits 1 if a place still has files."""
    call = call_of(context)
    output = call.output(json, quiet)
    if not yes:
        typer.confirm(f"Delete {identifier} in all places? This cannot be undone.", abort=True, err=True)
    with call.archive() as archive, shown(output) as watch:
        done = withdrawal.withdraw(archive, identifier, reason=reason, approved_by=approved_by, watch=watch)
    left = f" Not deleted yet in: {', '.join(done.waiting)}." if done.waiting else ""
    output.result(
        {"id": done.stone.package, "waiting": list(done.waiting)},
        f"{plain(done.stone.title)} is withdrawn.{plain(left)}",
    )
    if done.waiting:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot package hold --collection news --reason 'Case 12/34'")
def hold(
    context: typer.Context,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Package to hold.")] = "",
    collection: Annotated[str, typer.Option(help="Collection to hold.")] = "",
    reason: Annotated[str, typer.Option(help="The reason; it is recorded.")] = "",
    until: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Day on which the hold ends.")
    ] = None,
    retention_years: Annotated[
        int | None, typer.Option(min=1, help="Retention: years to keep it after the deposit.")
    ] = None,
    release: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Release the hold with this number.")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List all holds.")] = False,
    json: Json = False,
) -> None:
    """Forbid withdrawal of a package or collection (legal hold, retention), release a hold, or list all."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        if list_all:
            holds = withdrawal.list_holds(archive)
        elif release is not None:
            holds = [withdrawal.release_hold(archive, release)]
        else:
            if bool(identifier) == bool(collection):
                raise InputError(
                    "Give either a package or --collection to hold, or --list, or --release NUMBER."
                )
            scope = HoldScope.COLLECTION if collection else HoldScope.PACKAGE
            kind = HoldKind.RETENTION if retention_years else HoldKind.LEGAL
            ends = until.replace(tzinfo=UTC) if until else None
            subject = collection or identifier
            holds = [
                withdrawal.place_hold(
                    archive, kind, scope, subject, reason=reason, until=ends, years=retention_years
                )
            ]
    for each in holds:
        _print_hold(output, each)


@commands.command(epilog="Example: webdepot package migrate urn:uuid:6fa1… --tool xbitmap-to-png")
def migrate(
    context: typer.Context,
    identifier: Identifier,
    tool: Annotated[
        str, typer.Option(help="The conversion tool: a built-in one, or one of depot.migration_tools.")
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Convert files of an old format. The results are stored next to the originals in a new version of the
    package. Exits 1 if some failed.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        done = format_migration.migrate(archive, identifier, tool, watch=watch)
    for url, message in done.failed.items():
        output.warn(f"{plain(url)}: {plain(message)}")
    output.result(
        {
            "id": done.package.id,
            "version": done.package.version,
            "converted": done.converted,
            "known": done.known,
            "failed": len(done.failed),
        },
        f"{done.converted:,} files converted, {done.known:,} already converted, {len(done.failed):,} failed; "
        f"version {done.package.version}.",
    )
    if done.failed:
        raise typer.Exit(1)


def _print_received(output: Output, path: Path, done: submissions.ReceivedSubmission) -> None:
    receipt = done.receipt
    state = "known" if done.is_known else receipt.state.value
    fields = {
        "path": str(path),
        "submission": receipt.id,
        "kind": receipt.kind.value,
        "state": state,
        "package": done.package.id if done.package else None,
        "quarantine": receipt.place or None,
        "reasons": list(receipt.reasons),
        "warnings": list(done.warnings),
    }
    if receipt.state is SubmissionState.REFUSED:
        reasons = "".join(f"\n  {plain(reason)}" for reason in receipt.reasons)
        text = (
            f"[red]Refused[/red] {plain(str(path))}; it is in quarantine at {plain(receipt.place)}:{reasons}"
        )
    elif done.is_known:
        text = f"{plain(str(path))} was ingested before."
    else:
        package = done.package.id if done.package else receipt.harvest
        text = f"Ingested {plain(str(path))} as {plain(package)}."
    for warning in done.warnings[:_MOST_WARNINGS]:
        output.warn(plain(f"{path}: {warning}"))
    output.result(fields, text)


def _print_hold(output: Output, hold: Hold) -> None:
    fields = {
        "number": hold.id,
        "kind": hold.kind.value,
        "scope": hold.scope.value,
        "subject": hold.subject,
        "reason": hold.reason,
        "until": hold.until,
        "years": hold.years,
        "released_at": hold.released_at,
    }
    ended = f", released {hold.released_at:%Y-%m-%d}" if hold.released_at else ""
    output.result(
        fields,
        f"{hold.id}  {hold.kind.value} hold on {hold.scope.value} {plain(hold.subject)}: "
        f"{plain(hold.reason)}{ended}",
    )
