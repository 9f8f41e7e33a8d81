"""`webdepot organisation`: which domains belong to an organisation, and what people say about it."""

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
        "--organisation", "-o", metavar="DOMAIN", help="The organisation; not needed while there is only one."
    ),
]
Private = Annotated[
    bool, typer.Option("--allow-private", help="Allow sites at private and loopback addresses.")
]
Hosts = Annotated[
    list[str],
    typer.Argument(metavar="HOST...", help="Hosts or domains; what lies below them goes with them."),
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
    """Find the domains of an organisation from one of them. Prints its profile and every host with score,
    case and evidence.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    if setup.found(call.home, agent=agent()):
        output.say(f"Made a new archive at [bold]{plain(str(call.home))}[/bold].")
    with call.archive() as archive, shown(output) as watch:
        found = discovery.discover(archive, domain, allow_private=allow_private, watch=watch)
    if output.json:
        _print_list(found.hosts)
        return
    _tell_profile(output, found.organisation)
    _tell_hosts(output, found.hosts)
    asked = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.asked.items()))
    output.say(f"Questions asked: {asked or 'none, all answers were known'}.")
    if found.left_out:
        output.warn(f"{found.left_out:,} candidates were left out: discovery.limit_hosts is reached.")


@commands.command(name="list", epilog="Example: webdepot organisation list")
def list_(context: typer.Context, json: Json = False) -> None:
    """The organisations known here."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        found = organisations.list_organisations(archive)
    for organisation, counts in found:
        fields = {
            "root": organisation.root,
            "name": organisation.profile.name,
            "surveyed": organisation.surveyed_at,
            **counts,
        }
        words = ", ".join(f"{count:,} {word}" for word, count in sorted(counts.items()))
        output.result(
            fields,
            f"[bold]{plain(organisation.root)}[/bold]  {plain(organisation.profile.name)}  [dim]{words}[/dim]",
        )


@commands.command(epilog="Example: webdepot organisation show uni-example.de --own ask")
def show(
    context: typer.Context,
    domain: Annotated[
        str, typer.Argument(metavar="DOMAIN", help="The organisation; not needed while there is only one.")
    ] = "",
    own: Annotated[str, typer.Option(help="Only hosts of this kind: own, ask, other or wait.")] = "",
    csv: Annotated[bool, typer.Option("--csv", help="The table as CSV.")] = False,
    json: Json = False,
) -> None:
    """The profile and hosts of an organisation as they were found and corrected, without asking anybody."""
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
        _tell_profile(output, organisation)
        _tell_hosts(output, hosts)


@commands.command(
    epilog="Example: webdepot organisation correct uni-example.de --range 192.0.2.0/24 --name 'Uni Example'"
)
def correct(
    context: typer.Context,
    domain: Root,
    name: Annotated[list[str] | None, typer.Option(help="Another name of the organisation.")] = None,
    range_: Annotated[list[str] | None, typer.Option("--range", help="A net range it holds.")] = None,
    name_server: Annotated[list[str] | None, typer.Option(help="A name server of its own.")] = None,
    member: Annotated[list[str] | None, typer.Option(help="A domain that belongs to it.")] = None,
    stranger: Annotated[list[str] | None, typer.Option(help="A domain that does not belong to it.")] = None,
    remove: Annotated[
        list[str] | None, typer.Option(help="A name, range, server or domain that is wrong.")
    ] = None,
) -> None:
    """Add to an organisation's profile, or strike something from it. It counts from the next survey or
    harvest on.
    """
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
    _tell_profile(call.output(), organisation)


@commands.command(
    epilog="Example: webdepot organisation accept institute.example --organisation uni-example.de"
)
def accept(context: typer.Context, hosts: Hosts, organisation: Which = "") -> None:
    """Say that these hosts belong to the organisation; later runs respect it."""
    _decide(context, hosts, organisation, accepted=True)


@commands.command(epilog="Example: webdepot organisation reject shop.example --organisation uni-example.de")
def reject(context: typer.Context, hosts: Hosts, organisation: Which = "") -> None:
    """Say that these hosts do not belong to the organisation; later runs respect it."""
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
    """Read which sites web servers host (case 4), examine them, and add them. Exits 1 when a file could not
    be read.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        known = organisations.get(archive, organisation)
        found, findings = discovery.read_vhosts(
            archive, known, paths, allow_private=allow_private, watch=watch
        )
    if output.json:
        _print_list(found)
    else:
        _tell_hosts(output, found)
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
        typer.Argument(metavar="RANGE...", help="Part of your own ranges; default: all of them."),
    ] = None,
    organisation: Which = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before the start.")] = False,
    allow_private: Private = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look for web servers in the ranges that the configuration declares as your own. Off by default; refuses
    all others.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive:
        chosen = discovery.scan_ranges(archive, ranges or ())
        if not yes:
            typer.confirm(f"Connect to every address of {', '.join(chosen)}?", abort=True, err=True)
        with shown(output) as watch:
            known = organisations.get(archive, organisation)
            found = discovery.scan(archive, known, chosen, allow_private=allow_private, watch=watch)
    if output.json:
        _print_list(found.hosts)
        return
    for answering in found.answering:
        output.say(f"{answering.address} answers on {', '.join(map(str, answering.ports))}")
    _tell_hosts(output, found.hosts)


def _decide(context: typer.Context, hosts: Sequence[str], organisation: str, *, accepted: bool) -> None:
    call: Call = call_of(context)
    with call.archive() as archive:
        known = organisations.get(archive, organisation)
        organisations.decide(archive, known, hosts, accepted=accepted)
    word = "belong" if accepted else "do not belong"
    call.output().result(
        {"hosts": list(hosts), "accepted": accepted},
        f"{plain(', '.join(hosts))}: {word} to {plain(known.profile.name)}.",
    )


def _print_list(hosts: Sequence[KnownHost]) -> None:
    """One list, as other programs read it."""
    sys.stdout.write(json_format.dumps(organisations.as_objects(hosts), ensure_ascii=False, indent=1) + "\n")


def _tell_profile(output: Output, organisation: Organisation) -> None:
    profile = organisation.profile
    parts: list[tuple[str, tuple[SourcedValue, ...]]] = [
        ("Net ranges", profile.ranges),
        ("Ranges of others", profile.other_ranges),
        ("Name servers", profile.name_servers),
        ("Registrant", profile.registrant),
        ("Address", profile.address),
        ("E-mail domains", profile.mail_domains),
        ("Names", profile.names),
        ("VAT ids", profile.vat_ids),
        ("Domains", profile.domains),
        ("Not its own", profile.strangers),
    ]
    lines = [f"[bold]{plain(profile.name)}[/bold]  {plain(profile.root)}"]
    for title, items in parts:
        for number, item in enumerate(items[:20]):
            lines.append(
                f"  {title if not number else '':18}{plain(item.value)}  [dim]{plain(item.source)}, {item.at:%Y-%m-%d}[/dim]"
            )
        if not items and title in ("Net ranges", "Name servers", "Registrant"):
            lines.append(f"  {title:18}[dim]none found[/dim]")
    lines.extend(f"  [dim]{plain(note)}[/dim]" for note in profile.notes)
    output.result({}, "\n".join(lines))


def _tell_hosts(output: Output, hosts: Sequence[KnownHost]) -> None:
    for host in hosts:
        case = f"case {host.case}" if host.case else "      "
        decided = f"  [bold]{host.decision}[/bold] by {plain(host.decided_by)}" if host.decision else ""
        reasons = "\n".join(f"           [dim]{plain(words)}[/dim]" for words in host.evidence[:4])
        output.result(
            {},
            f"  {_OWN[host.own]}  {host.score:.2f}  {case}  [bold]{plain(host.shown)}[/bold]{decided}\n{reasons}",
        )
