"""`webdepot partner`: other depots, their lists and their objects."""

from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import Output, plain
from webdepot.cli.progress import shown
from webdepot.exchange.partners import OnWithdrawal, UrnCheck
from webdepot.services.depot import unpacked
from webdepot.services.exchange import oai_harvest, partner_admin, takeover
from webdepot.services.exchange.partner_admin import PartnerStatus

commands = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the partner.")]


@commands.command(
    epilog="Example: webdepot partner add nlb https://depot.example.org/oai --set collection:news"
)
def add(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A short name for it: lower-case letters, digits, - and _.")
    ],
    url: Annotated[str, typer.Argument(metavar="URL", help="Base URL of its OAI-PMH.")],
    prefix: Annotated[
        str, typer.Option(help="Format of its records; objects can be taken in with oai_mets_lmer.")
    ] = "oai_mets_lmer",
    set_spec: Annotated[str, typer.Option("--set", help="Only this set.")] = "",
    token: Annotated[str, typer.Option(help="Token that it gave us for its objects.")] = "",
    collection: Annotated[str, typer.Option(help="Collection for its objects. Default: partner-NAME.")] = "",
    urn_check: Annotated[
        UrnCheck, typer.Option(help="A wrong check digit in a URN: warn or refuse.")
    ] = UrnCheck.WARN,
    on_withdrawal: Annotated[
        OnWithdrawal,
        typer.Option(
            help="When it withdraws an object: close our copy for readers and partners, or only note it."
        ),
    ] = OnWithdrawal.CLOSE,
    lmer: Annotated[
        str,
        typer.Option(
            help="Version of LMER it gets from us: 1.2 or 1.0 (names of 1.0 as far as they are known)."
        ),
    ] = "1.2",
    transfer: Annotated[
        str,
        typer.Option(help="What it gets of our harvests: containers or files. Default: exchange.transfer."),
    ] = "",
    json: Json = False,
) -> None:
    """Add a partner. Nothing is asked of it yet."""
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
    url: Annotated[str | None, typer.Option(help="Base URL of its OAI-PMH.")] = None,
    prefix: Annotated[str | None, typer.Option(help="Format of its records.")] = None,
    set_spec: Annotated[str | None, typer.Option("--set", help="Only this set.")] = None,
    token: Annotated[str | None, typer.Option(help="Token that it gave us for its objects.")] = None,
    urn_check: Annotated[
        UrnCheck | None, typer.Option(help="A wrong check digit in a URN: warn or refuse.")
    ] = None,
    on_withdrawal: Annotated[
        OnWithdrawal | None, typer.Option(help="When it withdraws an object: close or note.")
    ] = None,
    lmer: Annotated[str | None, typer.Option(help="Version of LMER it gets from us: 1.2 or 1.0.")] = None,
    transfer: Annotated[
        str | None, typer.Option(help="What it gets of our harvests: containers or files.")
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Collection for its objects from now on.")] = None,
    json: Json = False,
) -> None:
    """Change the settings of a partner; what is not named stays."""
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
        {"name": partner.name, "url": partner.url}, f"{plain(partner.name)} is at {plain(partner.url)}."
    )


@commands.command(name="list", epilog="Example: webdepot partner list --json")
def list_(context: typer.Context, json: Json = False) -> None:
    """All partners with their last harvest and counts."""
    call = call_of(context)
    with call.archive() as archive:
        found = partner_admin.every(archive)
    for status in found:
        _tell(call.output(json), status)


@commands.command(epilog="Example: webdepot partner show nlb")
def show(context: typer.Context, name: Name, json: Json = False) -> None:
    """One partner, with everything that was refused and why."""
    call = call_of(context)
    with call.archive() as archive:
        status = partner_admin.status(archive, name)
    _tell(call.output(json), status)


@commands.command(epilog="Example: webdepot partner harvest nlb")
def harvest(
    context: typer.Context,
    name: Name,
    full: Annotated[
        bool, typer.Option("--full", help="The whole list again, not only what changed.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Harvest its records: what changed since the last complete run. A run that broke off goes on where it
    stood.
    """
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
    words = (
        f"{run.records:,} records in {run.pages:,} pages, {run.deleted:,} deleted, {done.new:,} of them new. "
    )
    output.result(fields, words + f"Next: webdepot partner ingest {plain(name)}")


@commands.command(epilog="Example: webdepot partner ingest nlb --limit 100")
def ingest(
    context: typer.Context,
    name: Name,
    limit: Annotated[int, typer.Option(min=0, help="At most so many records; 0 means all.")] = 0,
    retry: Annotated[bool, typer.Option("--retry", help="Try those again that were refused before.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fetch, verify and take in the objects that wait; apply its deletions. Exits 1 when some were refused."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        if retry:
            partner_admin.retry(archive, name)
        done = takeover.ingest(archive, name, limit=limit, watch=watch)
    for words in done.warnings:
        output.warn(plain(words))
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
    words = f"{len(done.taken):,} taken in, {len(done.updated):,} described anew, {done.known:,} known, {len(done.withdrawn):,} withdrawn, "
    output.result(fields, words + f"{len(done.refused):,} refused.")
    if done.refused:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot partner prepare")
def prepare(context: typer.Context, json: Json = False, quiet: Quiet = False) -> None:
    """Unpack the harvests that are in the depot, for partners that take files. What is harvested later is
    unpacked by itself.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        done = unpacked.prepare(archive, watch=watch)
    for key, reason in done.left.items():
        output.warn(f"{plain(key)} stays in containers: {plain(reason)}")
    output.result(
        {"unpacked": done.made, "left": done.left},
        f"{len(done.made):,} objects unpacked, {len(done.left):,} left in containers.",
    )


@commands.command(epilog="Example: webdepot partner token nlb")
def token(context: typer.Context, name: Name, json: Json = False) -> None:
    """Give a partner a token with which it may fetch restricted objects here. It is shown once; the one
    before it ends.
    """
    call = call_of(context)
    with call.archive() as archive:
        issued = partner_admin.issue_token(archive, name)
    call.output(json).result(
        {"partner": name, "token": issued},
        f"{issued}\nSent as: Authorization: Bearer TOKEN. It is not shown again.",
    )


@commands.command(epilog="Example: webdepot partner remove nlb")
def remove(context: typer.Context, name: Name, json: Json = False) -> None:
    """Forget a partner and its list. What was taken in stays."""
    call = call_of(context)
    with call.archive() as archive:
        partner_admin.remove(archive, name)
    call.output(json).result({"partner": name}, f"{plain(name)} is forgotten.")


def _tell(output: Output, status: PartnerStatus) -> None:
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
            {"identifier": each.identifier, "urn": each.urn, "reason": each.reason}
            for each in status.failures
        ],
    }
    counts = (
        ", ".join(f"{number:,} {state}" for state, number in sorted(status.counts.items()))
        or "no records yet"
    )
    words = f"[bold]{plain(partner.name)}[/bold]  {plain(partner.url)}  {counts}"
    if last is not None:
        words += f"\n  {last.state.value}, {last.started_at:%Y-%m-%d %H:%M}, {last.records:,} records"
    if last is not None and last.error:
        words += f"\n  [red]{plain(last.error)}[/red]"
    words += "".join(
        f"\n  [red]refused[/red] {plain(each.identifier)}: {plain(each.reason)}" for each in status.failures
    )
    output.result(fields, words)
