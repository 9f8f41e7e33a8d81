"""`webdepot partner`: partner depots, their records and their objects."""

from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import Output, plain
from webdepot.cli.progress import shown
from webdepot.exchange.partners import OnWithdrawal, UrnCheck
from webdepot.services.depot import unpacked
from webdepot.services.exchange import oai_harvest, partner_admin, partner_ingest
from webdepot.services.exchange.partner_admin import PartnerStatus

commands = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the partner.")]


@commands.command(
    epilog="Example: webdepot partner add nlb https://depot.example.org/oai --set collection:news"
)
def add(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A short name: lower-case letters, digits, - and _.")
    ],
    url: Annotated[str, typer.Argument(metavar="URL", help="Base URL of its OAI-PMH interface.")],
    prefix: Annotated[
        str, typer.Option(help="Metadata prefix to harvest; objects can be ingested with oai_mets_lmer.")
    ] = "oai_mets_lmer",
    set_spec: Annotated[str, typer.Option("--set", help="Harvest only this set.")] = "",
    token: Annotated[str, typer.Option(help="Token the partner issued for its restricted objects.")] = "",
    collection: Annotated[str, typer.Option(help="Collection for its objects. Default: partner-NAME.")] = "",
    urn_check: Annotated[
        UrnCheck, typer.Option(help="What to do about a wrong check digit in a URN: warn or refuse.")
    ] = UrnCheck.WARN,
    on_withdrawal: Annotated[
        OnWithdrawal,
        typer.Option(
            help="What to do when the partner withdraws an object: close our copy, or only note it."
        ),
    ] = OnWithdrawal.CLOSE,
    lmer: Annotated[
        str,
        typer.Option(
            help="LMER version of the records we provide: 1.2, or 1.0 (some of its names are uncertain)."
        ),
    ] = "1.2",
    transfer: Annotated[
        str,
        typer.Option(help="How it gets our harvests: containers or files. Default: exchange.transfer."),
    ] = "",
    json: Json = False,
) -> None:
    """Add a partner. Nothing is harvested yet."""
    call = call_of(context)
    with call.archive() as archive:
        partner = partner_admin.add(
            archive,
            name,
            url,
            prefix=prefix,
            set_spec=set_spec,
            token=token,
            collection=collection,
            urn_check=urn_check,
            on_withdrawal=on_withdrawal,
            lmer=lmer,
            transfer=transfer,
        )
    fields = {
        "name": partner.name,
        "url": partner.url,
        "prefix": partner.prefix,
        "set": partner.set_spec,
        "collection": partner.collection,
    }
    call.output(json).result(
        fields, f"Added {plain(partner.name)}. Next: webdepot partner harvest {plain(partner.name)}"
    )


@commands.command(epilog="Example: webdepot partner change nlb --url https://new.example.org/oai")
def change(
    context: typer.Context,
    name: Name,
    url: Annotated[str | None, typer.Option(help="Base URL of its OAI-PMH interface.")] = None,
    prefix: Annotated[str | None, typer.Option(help="Metadata prefix to harvest.")] = None,
    set_spec: Annotated[str | None, typer.Option("--set", help="Harvest only this set.")] = None,
    token: Annotated[
        str | None, typer.Option(help="Token the partner issued for its restricted objects.")
    ] = None,
    urn_check: Annotated[
        UrnCheck | None,
        typer.Option(help="What to do about a wrong check digit in a URN: warn or refuse."),
    ] = None,
    on_withdrawal: Annotated[
        OnWithdrawal | None,
        typer.Option(help="What to do when the partner withdraws an object: close or note."),
    ] = None,
    lmer: Annotated[
        str | None, typer.Option(help="LMER version of the records we provide: 1.2 or 1.0.")
    ] = None,
    transfer: Annotated[
        str | None, typer.Option(help="How it gets our harvests: containers or files.")
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Collection for its future objects.")] = None,
    json: Json = False,
) -> None:
    """Change the settings of a partner; options not given stay as they are."""
    call = call_of(context)
    with call.archive() as archive:
        partner = partner_admin.change(
            archive,
            name,
            url=url,
            prefix=prefix,
            set_spec=set_spec,
            token=token,
            urn_check=urn_check,
            on_withdrawal=on_withdrawal,
            lmer=lmer,
            transfer=transfer,
            collection=collection,
        )
    call.output(json).result(
        {"name": partner.name, "url": partner.url}, f"Changed {plain(partner.name)} at {plain(partner.url)}."
    )


@commands.command(name="list", epilog="Example: webdepot partner list --json")
def list_(context: typer.Context, json: Json = False) -> None:
    """List partners with their last harvest and number of records."""
    call = call_of(context)
    with call.archive() as archive:
        partners = partner_admin.every(archive)
    for status in partners:
        _print_status(call.output(json), status)


@commands.command(epilog="Example: webdepot partner show nlb")
def show(context: typer.Context, name: Name, json: Json = False) -> None:
    """Show a partner, with all refused records and the reasons."""
    call = call_of(context)
    with call.archive() as archive:
        status = partner_admin.status(archive, name)
    _print_status(call.output(json), status)


@commands.command(epilog="Example: webdepot partner harvest nlb")
def harvest(
    context: typer.Context,
    name: Name,
    full: Annotated[
        bool, typer.Option("--full", help="Harvest all records again, not only changed ones.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Harvest the records that changed since the last complete run. An interrupted run is resumed."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        done = oai_harvest.harvest(archive, name, from_the_beginning=full, watch=watch)
    run = done.run
    fields = {
        "partner": name,
        "pages": run.pages,
        "records": run.records,
        "deleted": run.deleted,
        "new": done.new,
        "since": run.since,
    }
    output.result(
        fields,
        f"{run.records:,} records in {run.pages:,} pages, {run.deleted:,} deleted, "
        f"{done.new:,} new or changed. "
        f"Next: webdepot partner ingest {plain(name)}",
    )


@commands.command(epilog="Example: webdepot partner ingest nlb --limit 100")
def ingest(
    context: typer.Context,
    name: Name,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of records; 0 means all.")] = 0,
    retry: Annotated[bool, typer.Option("--retry", help="Also retry records that were refused.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fetch, verify and ingest new objects, and apply deletions. Exits 1 if some were refused."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        if retry:
            partner_admin.retry(archive, name)
        done = partner_ingest.ingest(archive, name, limit=limit, watch=watch)
    for message in done.warnings:
        output.warn(plain(message))
    for identifier, reason in done.refused.items():
        output.warn(f"{plain(identifier)}: {plain(reason)}")
    fields = {
        "partner": name,
        "taken": done.taken,
        "updated": done.updated,
        "known": done.known,
        "withdrawn": done.withdrawn,
        "described": done.described,
        "refused": done.refused,
        "warnings": done.warnings,
    }
    output.result(
        fields,
        f"{len(done.taken):,} ingested, {len(done.updated):,} with new metadata, {done.known:,} unchanged, "
        f"{len(done.withdrawn):,} withdrawn, {len(done.refused):,} refused.",
    )
    if done.refused:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot partner prepare")
def prepare(context: typer.Context, json: Json = False, quiet: Quiet = False) -> None:
    """Unpack harvests that are already in the depot, for partners that take files. Later harvests are
    unpacked automatically.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        done = unpacked.prepare(archive, watch=watch)
    for key, reason in done.left.items():
        output.warn(f"{plain(key)} is not unpacked: {plain(reason)}")
    output.result(
        {"unpacked": done.made, "left": done.left},
        f"{len(done.made):,} objects unpacked, {len(done.left):,} not unpacked.",
    )


@commands.command(epilog="Example: webdepot partner token nlb")
def token(context: typer.Context, name: Name, json: Json = False) -> None:
    """Issue a token with which a partner may fetch restricted objects here. It is shown only once, and
    replaces the previous one.
    """
    call = call_of(context)
    with call.archive() as archive:
        issued = partner_admin.issue_token(archive, name)
    call.output(json).result(
        {"partner": name, "token": issued},
        f"{issued}\nThe partner sends it as: Authorization: Bearer TOKEN. It is not shown again.",
    )


@commands.command(epilog="Example: webdepot partner remove nlb")
def remove(context: typer.Context, name: Name, json: Json = False) -> None:
    """Remove a partner and its records. Ingested objects stay."""
    call = call_of(context)
    with call.archive() as archive:
        partner_admin.remove(archive, name)
    call.output(json).result({"partner": name}, f"Removed {plain(name)}.")


def _print_status(output: Output, status: PartnerStatus) -> None:
    partner, last = status.partner, status.last
    fields = {
        "name": partner.name,
        "url": partner.url,
        "prefix": partner.prefix,
        "set": partner.set_spec,
        "collection": partner.collection,
        "state": last.state.value if last else None,
        "last_run": last.started_at if last else None,
        "last_complete": status.complete.ended_at if status.complete else None,
        "error": last.error if last else "",
        "counts": status.counts,
        "refused": [
            {"identifier": record.identifier, "urn": record.urn, "reason": record.reason}
            for record in status.failures
        ],
    }
    counts = (
        ", ".join(f"{number:,} {state}" for state, number in sorted(status.counts.items()))
        or "no records yet"
    )
    lines = [f"[bold]{plain(partner.name)}[/bold]  {plain(partner.url)}  {counts}"]
    if last is not None:
        lines.append(f"  {last.state.value}, {last.started_at:%Y-%m-%d %H:%M}, {last.records:,} records")
    if last is not None and last.error:
        lines.append(f"  [red]{plain(last.error)}[/red]")
    lines += [
        f"  [red]refused[/red] {plain(record.identifier)}: {plain(record.reason)}"
        for record in status.failures
    ]
    output.result(fields, "\n".join(lines))
