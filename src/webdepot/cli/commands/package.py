"""`webdepot package`: packages of the depot, out and in, withdrawn, held, migrated."""

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
from webdepot.services.depot.export import PackageForm
from webdepot.services.intake import submissions

commands = typer.Typer(no_args_is_help=True)
Identifier = Annotated[str, typer.Argument(metavar="ID", help="Identifier or URN of the package.")]


@commands.command(name="list", epilog="Example: webdepot package list --json")
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 50,
    before: Annotated[str, typer.Option(metavar="ID", help="Go on behind this package.")] = "",
    json: Json = False,
) -> None:
    """The packages, newest first, with their copies."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        found = status.list_packages(archive, limit=limit, before=before)
    for row in found:
        held = row.package
        states = {copy.place: copy.state.value for copy in row.copies}
        fields = {
            "id": held.id,
            "urn": held.urn,
            "title": held.title,
            "version": held.version,
            "size_bytes": held.size_bytes,
            "stored_at": held.stored_at,
            "copies": states,
        }
        words = ", ".join(f"{place} {state}" for place, state in states.items())
        output.result(
            fields,
            f"[bold]{plain(held.id)}[/bold]  {plain(held.title)}  {size_words(held.size_bytes)}  [dim]{plain(words)}[/dim]",
        )


@commands.command(epilog="Example: webdepot package show urn:uuid:6fa16c6b-5c0a-4f5b-9a3c-5d0b6c0c2f4e")
def show(context: typer.Context, identifier: Identifier, json: Json = False) -> None:
    """One package: where its copies are, its files and what happened to it."""
    call = call_of(context)
    with call.archive() as archive:
        seen = status.view(archive, identifier)
    held = seen.package
    fields = {
        "id": held.id,
        "urn": held.urn,
        "title": held.title,
        "harvest": held.harvest,
        "version": held.version,
        "size_bytes": held.size_bytes,
        "stored_at": held.stored_at,
        "copies": [
            {"place": each.place, "state": each.state.value, "checked_at": each.checked_at}
            for each in seen.copies
        ],
        "files": [
            {"path": each.path, "size_bytes": each.size_bytes, "sha256": each.sha256, "version": each.version}
            for each in seen.files
        ],
        "events": [
            {"at": each.at, "action": each.action, "agent": each.agent, "message": each.message}
            for each in seen.events
        ],
        "holds": [hold.id for hold in seen.holds],
    }
    copies = "\n".join(
        f"  {plain(each.place)}  {each.state.value}, read {each.checked_at:%Y-%m-%d}" for each in seen.copies
    )
    files = (
        "\n".join(f"  {size_words(each.size_bytes):>10}  {plain(each.path)}" for each in seen.files)
        or f"  {plain(seen.trouble)}"
    )
    events = "\n".join(
        f"  {each.at:%Y-%m-%d %H:%M}  {plain(each.action)}  {plain(each.message)}"
        for each in seen.events[:20]
    )
    words = f"[bold]{plain(held.title)}[/bold]\n{plain(held.id)}\n{plain(held.urn)}\nCopies\n{copies}\nFiles\n{files}\nEvents\n{events}"
    call.output(json).result(fields, words)


@commands.command(
    epilog="Example: webdepot package export urn:nbn:de:0000-2026… --form wacz --output museum.wacz"
)
def export(
    context: typer.Context,
    identifier: Identifier,
    target: Annotated[Path, typer.Option("--output", "-o", help="New file or folder.")],
    form: Annotated[
        PackageForm, typer.Option(help="bagit and ocfl are folders; wacz, zip and uof are files.")
    ] = PackageForm.BAGIT,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Get a package out: as a bag, a WACZ, a ZIP, a UOF or the OCFL object itself. Every byte is checked on
    its way.
    """
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
        },
        f"Wrote {plain(str(done.path))}, {size_words(done.size_bytes)}.",
    )


@commands.command(name="import", epilog="Example: webdepot package import partner-bag/ museum.wacz")
def import_(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", help="Bags, WACZ, UOF, ZIP or tar files, OCFL folders, folders of WARC files."
        ),
    ],
    collection: Annotated[str, typer.Option(help="Collection to put it into.")] = "imported",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check submissions and take them in, each whole or not at all. Refused ones go into the quarantine with
    the reasons; exits 1 then.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    refused = 0
    for path in paths:
        with call.archive() as archive, shown(output) as watch:
            done = submissions.receive(archive, path.absolute(), collection=collection, watch=watch)
        refused += done.receipt.state is SubmissionState.REFUSED
        _tell_received(output, path, done)
    if refused:
        raise typer.Exit(1)


@commands.command(
    epilog="Example: webdepot package withdraw urn:uuid:6fa1… --reason 'Court order 12/34' --approved-by 'Anna Mol'"
)
def withdraw(
    context: typer.Context,
    identifier: Identifier,
    reason: Annotated[str, typer.Option(help="Why; it stays with the tombstone.")],
    approved_by: Annotated[str, typer.Option(help="The other person who agreed.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Delete a package for ever, in every place. A tombstone stays. Exits 1 while a place still has the
    bytes.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    if not yes:
        typer.confirm(f"Delete {identifier} in every place? This cannot be undone.", abort=True, err=True)
    with call.archive() as archive, shown(output) as watch:
        done = withdrawal.withdraw(archive, identifier, reason=reason, approved_by=approved_by, watch=watch)
    left = f" Bytes are left in: {', '.join(done.waiting)}." if done.waiting else ""
    output.result(
        {"id": done.stone.package, "waiting": list(done.waiting)},
        f"{plain(done.stone.title)} is withdrawn.{plain(left)}",
    )
    if done.waiting:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot package hold --collection news --reason 'Case 12/34'")
def hold(
    context: typer.Context,
    identifier: Annotated[str, typer.Argument(metavar="[ID]", help="Package to hold.")] = "",
    collection: Annotated[str, typer.Option(help="Hold a whole collection.")] = "",
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    until: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Ends by itself on that day.")
    ] = None,
    retention_years: Annotated[
        int | None, typer.Option(min=1, help="Keep at least so many years after the deposit.")
    ] = None,
    release: Annotated[int | None, typer.Option(metavar="NUMBER", help="Release a hold.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List all holds.")] = False,
    json: Json = False,
) -> None:
    """Forbid the withdrawal of a package or a collection (legal hold, retention), release a hold, or list
    them.
    """
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        if list_all:
            found = withdrawal.list_holds(archive)
        elif release is not None:
            found = [withdrawal.release_hold(archive, release)]
        else:
            if bool(identifier) == bool(collection):
                raise InputError(
                    "Name a package or a collection to hold, or give --list or --release NUMBER."
                )
            scope = HoldScope.COLLECTION if collection else HoldScope.PACKAGE
            kind = HoldKind.RETENTION if retention_years else HoldKind.LEGAL
            ends = until.replace(tzinfo=UTC) if until else None
            subject = collection or identifier
            found = [
                withdrawal.place_hold(
                    archive, kind, scope, subject, reason=reason, until=ends, years=retention_years
                )
            ]
    for each in found:
        _tell_hold(output, each)


@commands.command(epilog="Example: webdepot package migrate urn:uuid:6fa1… --tool xbitmap-to-png")
def migrate(
    context: typer.Context,
    identifier: Identifier,
    tool: Annotated[
        str, typer.Option(help="Name of the tool: a built-in one, or one of depot.migration_tools.")
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Convert the files of an old format, and keep the results beside the originals in a new version. Exits 1
    when some failed.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        done = format_migration.migrate(archive, identifier, tool, watch=watch)
    for url, words in done.failed.items():
        output.warn(f"{plain(url)}: {plain(words)}")
    output.result(
        {
            "id": done.package.id,
            "version": done.package.version,
            "converted": done.converted,
            "known": done.known,
            "failed": len(done.failed),
        },
        f"{done.converted:,} files converted, {done.known:,} were before, {len(done.failed):,} failed; version {done.package.version}.",
    )
    if done.failed:
        raise typer.Exit(1)


def _tell_received(output: Output, path: Path, done: submissions.ReceivedSubmission) -> None:
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
    }
    if receipt.state is SubmissionState.REFUSED:
        words = f"[red]Refused[/red] {plain(str(path))}; it lies in {plain(receipt.place)}:" + "".join(
            f"\n  {plain(r)}" for r in receipt.reasons
        )
    elif done.is_known:
        words = f"{plain(str(path))} was taken before."
    else:
        words = f"Took {plain(str(path))} as {plain(done.package.id if done.package else receipt.harvest)}."
    output.result(fields, words)


def _tell_hold(output: Output, each: Hold) -> None:
    fields = {
        "number": each.id,
        "kind": each.kind.value,
        "scope": each.scope.value,
        "subject": each.subject,
        "reason": each.reason,
        "until": each.until,
        "years": each.years,
        "released_at": each.released_at,
    }
    ended = f", released {each.released_at:%Y-%m-%d}" if each.released_at else ""
    output.result(
        fields,
        f"{each.id}  {each.kind.value} hold on {each.scope.value} {plain(each.subject)}: {plain(each.reason)}{ended}",
    )
