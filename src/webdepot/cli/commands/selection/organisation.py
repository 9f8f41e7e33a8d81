"""`webdepot organisation`: find the domains of an organisation, and correct the result."""

import json as json_format
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from webdepot.cli.call import Call, Json, Quiet, agent, call_of
from webdepot.cli.output import Output, plain
from webdepot.cli.progress import shown
from webdepot.selection.domains.organisations import KnownHost, Organisation
from webdepot.selection.domains.profile import SourcedValue
from webdepot.services.admin import setup
from webdepot.services.selection import discovery, organisations

commands = typer.Typer(no_args_is_help=True)
Root = Annotated[str, typer.Argument(metavar="DOMAIN", help="A domain of the organisation.")]
Which = Annotated[
    str,
    typer.Option(
        "--organisation", "-o", metavar="DOMAIN", help="The organisation; not needed if there is only one."
    ),
]
Private = Annotated[bool, typer.Option("--allow-private", help="Allow private and loopback addresses.")]
Hosts = Annotated[
    list[str],
    typer.Argument(metavar="HOST...", help="Hosts or domains; their subdomains are included."),
]
_OWN = {True: "[green]belongs[/green]", False: "[dim]no[/dim]     ", None: "[yellow]ask[/yellow]    "}


@commands.command(epilog="Example: webdepot organisation discover uni-example.de --json")
def discover(
    context: typer.Context,
    domain: Root,
    allow_private: Private = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the domains of an organisation, starting from one. Prints the profile of the organisation, and
    each host with its score, sector and evidence.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    if setup.create(call.home, agent=agent()):
        output.say(f"Created a new archive at [bold]{plain(str(call.home))}[/bold].")
    with call.archive() as archive, shown(output) as watch:
        survey = discovery.discover(archive, domain, allow_private=allow_private, watch=watch)
    if output.json:
        _print_list(survey.hosts)
        return
    _print_profile(output, survey.organisation)
    _print_hosts(output, survey.hosts)
    queries = ", ".join(f"{count:,} {kind}" for kind, count in sorted(survey.asked.items()))
    output.say(f"Queries sent: {queries or 'none, all answers were cached'}.")
    if survey.left_out:
        output.warn(
            f"{survey.left_out:,} candidates were skipped: the limit discovery.limit_hosts was reached."
        )


@commands.command(name="list", epilog="Example: webdepot organisation list")
def list_(context: typer.Context, json: Json = False) -> None:
    """List the organisations with their number of hosts."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        known = organisations.list_organisations(archive)
    for organisation, counts in known:
        fields = {
            "root": organisation.root,
            "name": organisation.profile.name,
            "surveyed": organisation.surveyed_at,
            **counts,
        }
        numbers = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
        output.result(
            fields,
            f"[bold]{plain(organisation.root)}[/bold]  {plain(organisation.profile.name)}  "
            f"[dim]{numbers}[/dim]",
        )


@commands.command(epilog="Example: webdepot organisation show uni-example.de --own ask")
def show(
    context: typer.Context,
    domain: Annotated[
        str, typer.Argument(metavar="DOMAIN", help="The organisation; not needed if there is only one.")
    ] = "",
    own: Annotated[str, typer.Option(help="Only hosts of this kind: own, ask, other or wait.")] = "",
    csv: Annotated[bool, typer.Option("--csv", help="Print the hosts as CSV.")] = False,
    json: Json = False,
) -> None:
    """Show the profile and hosts of an organisation as stored. Sends no queries."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        organisation = organisations.get(archive, domain)
        hosts = organisations.hosts_of(archive, organisation, own=own)
    if csv:
        sys.stdout.write(organisations.as_csv(hosts))
    elif output.json:
        _print_list(hosts)
    else:
        _print_profile(output, organisation)
        _print_hosts(output, hosts)


@commands.command(
    epilog="Example: webdepot organisation correct uni-example.de --range 192.0.2.0/24 --name 'Uni Example'"
)
def correct(
    context: typer.Context,
    domain: Root,
    name: Annotated[list[str] | None, typer.Option(help="Another name of the organisation.")] = None,
    range_: Annotated[list[str] | None, typer.Option("--range", help="An IP range it holds.")] = None,
    name_server: Annotated[list[str] | None, typer.Option(help="A name server it runs.")] = None,
    member: Annotated[list[str] | None, typer.Option(help="A domain that belongs to it.")] = None,
    stranger: Annotated[list[str] | None, typer.Option(help="A domain that does not belong to it.")] = None,
    remove: Annotated[
        list[str] | None, typer.Option(help="A name, range, server or domain to remove.")
    ] = None,
) -> None:
    """Add to the profile of an organisation, or remove from it. Used by the next survey or harvest."""
    call = call_of(context)
    with call.archive() as archive:
        organisation = organisations.correct(
            archive,
            organisations.get(archive, domain),
            names=name or (),
            ranges=range_ or (),
            name_servers=name_server or (),
            domains=member or (),
            strangers=stranger or (),
            remove=remove or (),
        )
    _print_profile(call.output(), organisation)


@commands.command(
    epilog="Example: webdepot organisation accept institute.example --organisation uni-example.de"
)
def accept(context: typer.Context, hosts: Hosts, organisation: Which = "") -> None:
    """Record that these hosts belong to the organisation. Later surveys and harvests respect it."""
    _decide(context, hosts, organisation, accepted=True)


@commands.command(epilog="Example: webdepot organisation reject shop.example --organisation uni-example.de")
def reject(context: typer.Context, hosts: Hosts, organisation: Which = "") -> None:
    """Record that these hosts do not belong to the organisation. Later surveys and harvests respect it."""
    _decide(context, hosts, organisation, accepted=False)


@commands.command(
    epilog="Example: webdepot organisation vhosts /etc/nginx/nginx.conf /etc/apache2/sites-enabled"
)
def vhosts(
    context: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Configuration files of Apache or nginx, or folders of them."),
    ],
    organisation: Which = "",
    allow_private: Private = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read the configuration of web servers, and examine and add the sites they host (sector 4). Exits 1 if a
    file could not be read.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        known = organisations.get(archive, organisation)
        hosts, findings = discovery.read_vhosts(
            archive, known, paths, allow_private=allow_private, watch=watch
        )
    if output.json:
        _print_list(hosts)
    else:
        _print_hosts(output, hosts)
    for finding in findings:
        output.warn(
            plain(f"{finding.subject}{', ' if finding.place else ''}{finding.place}: {finding.message}")
        )
    if any(finding.severity == "warning" for finding in findings):
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot organisation scan 192.0.2.0/24 --yes")
def scan(
    context: typer.Context,
    ranges: Annotated[
        list[str] | None,
        typer.Argument(metavar="RANGE...", help="Parts of discovery.own_ranges. Default: all of them."),
    ] = None,
    organisation: Which = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    allow_private: Private = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look for web servers in your own IP ranges (discovery.own_ranges); all others are refused. Off unless
    discovery.scan is set.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive:
        chosen = discovery.scan_ranges(archive, ranges or ())
        if not yes:
            typer.confirm(f"Connect to every address in {', '.join(chosen)}?", abort=True, err=True)
        with shown(output) as watch:
            known = organisations.get(archive, organisation)
            result = discovery.scan(archive, known, chosen, allow_private=allow_private, watch=watch)
    if output.json:
        _print_list(result.hosts)
        return
    for answering in result.answering:
        output.say(f"{answering.address} answers on port {', '.join(map(str, answering.ports))}")
    _print_hosts(output, result.hosts)


def _decide(context: typer.Context, hosts: Sequence[str], organisation: str, *, accepted: bool) -> None:
    call: Call = call_of(context)
    with call.archive() as archive:
        known = organisations.get(archive, organisation)
        organisations.decide(archive, known, hosts, accepted=accepted)
    decision = "part of" if accepted else "not part of"
    call.output().result(
        {"hosts": list(hosts), "accepted": accepted},
        f"{plain(', '.join(hosts))}: {decision} {plain(known.profile.name)}.",
    )


def _print_list(hosts: Sequence[KnownHost]) -> None:
    """Print the hosts as one JSON list."""
    sys.stdout.write(json_format.dumps(organisations.as_objects(hosts), ensure_ascii=False, indent=1) + "\n")


def _print_profile(output: Output, organisation: Organisation) -> None:
    profile = organisation.profile
    parts: list[tuple[str, tuple[SourcedValue, ...]]] = [
        ("IP ranges", profile.ranges),
        ("Ranges of others", profile.other_ranges),
        ("Name servers", profile.name_servers),
        ("Registrant", profile.registrant),
        ("Address", profile.address),
        ("Email domains", profile.mail_domains),
        ("Names", profile.names),
        ("VAT numbers", profile.vat_ids),
        ("Domains", profile.domains),
        ("Other domains", profile.strangers),
    ]
    lines = [f"[bold]{plain(profile.name)}[/bold]  {plain(profile.root)}"]
    for title, items in parts:
        for number, item in enumerate(items[:20]):
            lines.append(
                f"  {title if not number else '':18}{plain(item.value)}  "
                f"[dim]{plain(item.source)}, {item.at:%Y-%m-%d}[/dim]"
            )
        if not items and title in ("IP ranges", "Name servers", "Registrant"):
            lines.append(f"  {title:18}[dim]none found[/dim]")
    lines.extend(f"  [dim]{plain(note)}[/dim]" for note in profile.notes)
    output.result({}, "\n".join(lines))


def _print_hosts(output: Output, hosts: Sequence[KnownHost]) -> None:
    for host in hosts:
        sector = f"sector {host.case}" if host.case else "        "
        decided = f"  [bold]{host.decision}[/bold] by {plain(host.decided_by)}" if host.decision else ""
        evidence = "\n".join(f"           [dim]{plain(text)}[/dim]" for text in host.evidence[:4])
        output.result(
            {},
            f"  {_OWN[host.own]}  {host.score:.2f}  {sector}  [bold]{plain(host.shown)}[/bold]{decided}\n"
            f"{evidence}",
        )
