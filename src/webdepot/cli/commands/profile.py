"""`webdepot profile` and `webdepot scope`: named sets of harvest settings, and which rule decides about an
address.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from webdepot.cli.call import Json, Quiet, call_of, read_limited
from webdepot.cli.output import count_words, plain, size_words
from webdepot.cli.progress import shown
from webdepot.harvest.scope.conditions import CONDITIONS
from webdepot.harvest.scope.software_rules import Take
from webdepot.model import Answer
from webdepot.services.harvest import foreign_profiles, profiles
from webdepot.times import to_iso

if TYPE_CHECKING:
    from webdepot.services.harvest.crawl_test import CrawlTest

commands = typer.Typer(no_args_is_help=True)
scope_commands = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.")]


@commands.command(name="list", epilog="Example: webdepot profile list --json")
def list_(context: typer.Context, json: Json = False) -> None:
    """List the profiles in webdepot.toml and in the folder `profiles`. Exits 1 if one is not valid."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        good, broken = profiles.every(archive)
    for profile in good:
        fields = {
            "name": profile.name,
            "description": profile.description,
            "origin": profile.origin,
            "rules": len(profile.rules),
        }
        output.result(
            fields,
            f"[bold]{plain(profile.name)}[/bold]  {plain(profile.description)}  "
            f"[dim]{plain(profile.origin)}[/dim]",
        )
    for item in broken:
        output.warn(plain(item.problem))
    if broken:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot profile show museum")
def show(context: typer.Context, name: Name, json: Json = False) -> None:
    """Show the settings, seeds and rules of a profile."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        profile = profiles.get(archive, name)
    fields = {
        "name": profile.name,
        "description": profile.description,
        "origin": profile.origin,
        "seeds": list(profile.seeds),
        "values": dict(profile.values),
        "rules": [str(spec) for spec in profile.rules],
        "hosts": {host: dict(values) for host, values in profile.hosts.items()},
    }
    lines = [
        f"[bold]{plain(profile.name)}[/bold]  {plain(profile.description)}  "
        f"[dim]{plain(profile.origin)}[/dim]"
    ]
    lines += [f"  {key} = {plain(repr(value))}" for key, value in profile.values.items()]
    lines += [f"  seed {plain(seed)}" for seed in profile.seeds]
    lines += [f"  rule {number}: {plain(str(spec))}" for number, spec in enumerate(profile.rules, start=1)]
    lines += [f"  host {plain(host)}: {plain(str(dict(values)))}" for host, values in profile.hosts.items()]
    output.result(fields, "\n".join(lines))


@commands.command(epilog="Example: webdepot profile save museum museum.toml")
def save(
    context: typer.Context,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML file with the profile.")],
    json: Json = False,
) -> None:
    """Check a file and save it as a profile."""
    call = call_of(context)
    output = call.output(json)
    text = read_limited(file, profiles.MOST_BYTES).decode("utf-8", "replace")
    with call.archive() as archive:
        profile = profiles.save(archive, name, text)
    output.result(
        {"name": profile.name, "origin": profile.origin}, f"Saved as [bold]{plain(profile.origin)}[/bold]."
    )


@commands.command(
    name="import", epilog="Example: webdepot profile import museum heritrix/jobs/museum --dry-run"
)
def import_(
    context: typer.Context,
    name: Name,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="Folder of a Heritrix job, its crawler-beans.cxml, or a file of seeds and SURT prefixes.",
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the profile; save nothing.")] = False,
    json: Json = False,
) -> None:
    """Save a job of another crawler as a new profile, and list the settings without a counterpart."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        done = foreign_profiles.import_(archive, name, path, dry_run=dry_run)
    for reason in done.unmapped:
        output.warn(f"Not in the profile: {plain(reason)}")
    state = plain(done.text) if dry_run else f"Saved as [bold]profiles/{plain(name)}.toml[/bold]"
    output.result(
        {**asdict(done), "saved": not dry_run},
        f"{state}\n{count_words(done.seeds, 'seeds')}, {count_words(done.rules, 'rules')}; "
        f"settings without a counterpart: {len(done.unmapped):,}.",
    )


@scope_commands.command(
    epilog="Example: webdepot scope explain https://www.example.org/film.avi --target www.example.org"
)
def explain(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="The address to decide about.")],
    target: Annotated[
        str,
        typer.Option(
            metavar="TARGET",
            help="Use the rules of the last harvest of this target (number, name or address).",
        ),
    ] = "",
    profile: Annotated[str, typer.Option(metavar="NAME", help="Use the rules of this profile.")] = "",
    seed: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A seed, if neither target nor profile has one."),
    ] = None,
    path: Annotated[
        str,
        typer.Option(
            metavar="HOPS",
            help="Hop path to the address: L link, E embedded, R redirect, X speculative, M sitemap.",
        ),
    ] = "L",
    via: Annotated[str, typer.Option(metavar="URL", help="Page with the link to it.")] = "",
    software: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Software that the site runs, such as mediawiki. Default: what the last harvest of the "
            "target recognised.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show which rule decides about an address, and why. Exits 1 if the address is rejected."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        explained = profiles.explain(
            archive,
            url,
            target=target,
            profile=profile,
            seeds=seed or [],
            path=path,
            via=via,
            software_ids=software or [],
        )
    output.result(_explained_fields(explained), _explained_text(explained))
    if not explained.verdict:
        raise typer.Exit(1)


@scope_commands.command(
    name="test", epilog="Example: webdepot scope test https://www.example.org/ --profile museum"
)
def test_(
    context: typer.Context,
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="Addresses to start from.")],
    profile: Annotated[str, typer.Option(metavar="NAME", help="Use the settings of this profile.")] = "",
    limit_pages: Annotated[
        int, typer.Option(min=1, max=50, metavar="NUMBER", help="Fetch at most this many pages.")
    ] = 50,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Crawl up to 50 pages and show what the scope includes and leaves out, and why. The pages are not kept.
    Exits 1 if no page was received.
    """
    from webdepot.services.harvest import crawl_test  # loads the crawler, which the other commands do without

    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        test = crawl_test.begin(archive, urls, profile=profile, limit_pages=limit_pages)
        done = crawl_test.run(archive, test, watch=watch)
    output.result({**asdict(done), "at": to_iso(done.at)}, _tested_text(done))
    if not done.pages:
        raise typer.Exit(1)


def _tested_text(done: "CrawlTest") -> str:
    lines = [
        f"[bold]{count_words(done.pages, 'pages')}[/bold], {count_words(done.documents, 'documents')}, "
        f"{size_words(done.size_bytes)}. {plain(done.note)}"
    ]
    if done.waiting:
        more = "1 more address is" if done.waiting == 1 else f"{done.waiting:,} more addresses are"
        lines.append(f"  {more} in scope, such as:")
        lines += [f"    [dim]{plain(url)}[/dim]" for url in done.waiting_examples[:5]]
    if done.empty_pages:
        verb = "is" if done.empty_pages == 1 else "are"
        empty = f"{count_words(done.empty_pages, 'pages')} {verb} empty without scripts"
        lines.append(f"  {empty}: set fetch in the profile.")
    groups = (
        ("included because of", done.sample.taken),
        ("left out because of", done.sample.left_out),
        ("not received", done.sample.errors),
        ("robots.txt of", done.sample.robots),
        ("software", done.sample.software),
    )
    for title, rows in groups:
        for row in rows:
            lines.append(f"  {title} [bold]{plain(row.name)}[/bold]: {row.count:,}  {plain(row.reason)}")
            lines += [f"    [dim]{plain(url)}[/dim]" for url in row.examples]
    return "\n".join(lines)


def _explained_fields(explained: profiles.Explanation) -> dict[str, Any]:
    return {
        "url": explained.url,
        "answer": explained.verdict.answer.value,
        "rule": explained.verdict.rule,
        "reason": explained.verdict.reason,
        "basis": explained.basis,
        "seeds": list(explained.seeds),
        "host": explained.host_words,
        "steps": [
            {
                "rule": step.rule,
                "answer": step.verdict.answer.value,
                "reason": step.verdict.reason,
                "decides": step.decides,
            }
            for step in explained.steps
        ],
    }


def _explained_text(explained: profiles.Explanation) -> str:
    lines = [f"[bold]{explained.verdict.answer.value}[/bold] {plain(explained.url)}"]
    lines.append(
        f"  because of [bold]{plain(explained.verdict.rule)}[/bold]: {plain(explained.verdict.reason)}"
    )
    lines.append(
        f"  [dim]rules of {plain(explained.basis)}; seeds {plain(', '.join(explained.seeds[:3]))}[/dim]"
    )
    if explained.host_words:
        lines.append(f"  for this host: {plain(explained.host_words)}")
    for step in explained.steps:
        mark = "→" if step.decides else " "
        text = f"{step.verdict.answer.value:7} {plain(step.verdict.reason)}"
        if step.verdict.answer is Answer.PASS:
            text = "[dim]pass[/dim]"
        lines.append(f" {mark} {plain(step.rule):34} {text}")
    return "\n".join(lines)


@scope_commands.command(epilog="Example: webdepot scope rules --json")
def rules(context: typer.Context, json: Json = False) -> None:
    """List the conditions that scope rules can use."""
    output = call_of(context).output(json)
    for name, condition in CONDITIONS.items():
        takes = {"of": "of = [...]", "over": "over = NUMBER", "": ""}[condition.takes]
        output.result(
            {"condition": name, "takes": condition.takes, "text": condition.doc},
            f"[bold]{name:16}[/bold] {takes:14} {plain(condition.doc)}",
        )


@scope_commands.command(name="software", epilog="Example: webdepot scope software mediawiki")
def software_(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Show the rules of this software.")] = "",
    json: Json = False,
) -> None:
    """List the software that a harvest recognises by its pages, and the kinds of addresses that its rules
    leave out; with NAME, list the rules of that software. Rules in `software.toml` in the home take
    precedence.
    """
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        catalogue = profiles.software_of(archive)
    if name:
        for rule in profiles.get_software(catalogue, name).rules:
            most = f", at most {rule.most} for each site" if rule.most else ""
            output.result(
                {"kind": rule.kind, "take": rule.take.value, "most": rule.most, "rule": rule.reason},
                f"[bold]{rule.kind:12}[/bold] {_TAKES[rule.take]}{most}  [dim]{plain(rule.reason)}[/dim]",
            )
        return
    for software in catalogue.software.values():
        rules = count_words(len(software.rules), "rules")
        output.result(
            {"software": software.id, "name": software.name, "rules": len(software.rules)},
            f"[bold]{plain(software.id):12}[/bold] {plain(software.name)}, {rules}",
        )
    for kind, text in catalogue.kinds.items():
        output.result({"kind": kind, "text": text}, f"--include [bold]{plain(kind):12}[/bold] {plain(text)}")


_TAKES = {Take.FIRST: "content", Take.LAST: "harvested last", Take.NONE: "left out"}
