"""`webdepot archive` and `webdepot import`: the whole way in one line."""

import re
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from webdepot.archive import Archive
from webdepot.cli.call import Call, Json, NoDeposit, Quiet, agent, call_of
from webdepot.cli.output import Output, plain
from webdepot.cli.progress import shown
from webdepot.cli.report import tell
from webdepot.errors import InputError
from webdepot.services import pipeline
from webdepot.services.admin import setup
from webdepot.services.harvest import profiles

Collection = Annotated[str, typer.Option(help="Collection to put it into.")]
CollectionOrNot = Annotated[str | None, typer.Option(help="Collection to put it into.")]


class Scope(StrEnum):
    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"
    ANY = "any"


class Fetch(StrEnum):
    PLAIN = "plain"
    BROWSER = "browser"
    WHEN_EMPTY = "when-empty"


class Robots(StrEnum):
    OBEY = "obey"
    OBEY_BUT_EMBEDS = "obey-but-embeds"
    IGNORE = "ignore"


def archive(
    context: typer.Context,
    urls: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL...", help="Addresses to start from; a profile may have its own."),
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="Harvest by this profile; other options go before it.")
    ] = "",
    scope: Annotated[
        Scope | None,
        typer.Option(help="What belongs to it: same host, same domain, below the path, or anything."),
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option(min=0, help="Shortest pause between two requests to one server, in seconds."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Requests in flight at once over all servers.")
    ] = None,
    robots: Annotated[Robots | None, typer.Option(help="What to do about robots.txt.")] = None,
    robots_reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why robots.txt is not obeyed; it is recorded.")
    ] = None,
    fetch: Annotated[
        Fetch | None,
        typer.Option(
            help="How pages are fetched: plain, opened in a browser, too, or only those that are empty without."
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser", help="The same as --fetch browser.")] = False,
    reject: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Leave out addresses that match; may be given more than once."),
    ] = None,
    limit_pages: Annotated[int | None, typer.Option(min=0, help="Stop after so many documents.")] = None,
    limit_bytes: Annotated[int | None, typer.Option(min=0, help="Stop after so many bytes.")] = None,
    limit_time: Annotated[float | None, typer.Option(min=0, help="Stop after so many seconds.")] = None,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Allow private and loopback addresses.")
    ] = False,
    organisation: Annotated[
        str | None,
        typer.Option(
            metavar="DOMAIN", help="All hosts of this organisation belong to it; see `webdepot organisation`."
        ),
    ] = None,
    host_rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="How its hosts are told: BelongsTo, InNetRange, SameNameServers, SameRegistrant(0.8). Default: BelongsTo.",
        ),
    ] = None,
    no_deposit: NoDeposit = False,
    collection: CollectionOrNot = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Archive web sites: harvest, check, identify, put into the depot and index them. Goes on where it was
    stopped.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    if browser and fetch not in (None, Fetch.BROWSER):
        raise InputError(f"--browser and --fetch {fetch.value} contradict each other. Leave out one of them.")
    _found(call, output)
    with call.archive() as opened:
        given: dict[str, Any] = {
            "scope": scope and scope.value,
            "delay_s": delay,
            "workers": workers,
            "robots": robots and robots.value,
            "robots_reason": robots_reason
            or (f"asked for on the command line by {agent()}" if robots in _AGAINST else None),
            "fetch": Fetch.BROWSER.value if browser else fetch and fetch.value,
            "reject": tuple(map(_regex, reject)) if reject else None,
            "limit_pages": limit_pages,
            "limit_bytes": limit_bytes,
            "limit_time_s": limit_time,
            "allow_private": allow_private or None,
            **_organisation(opened, organisation, host_rule),
            "collection": collection,
        }
        options, seeds = profiles.options_of(opened, profile), list(urls or [])
        if profile and not seeds:
            seeds = list(profiles.get(opened, profile).seeds)
        options = replace(options, **{name: value for name, value in given.items() if value is not None})
        with shown(output) as watch:
            report = pipeline.archive_site(opened, seeds, options, deposit=not no_deposit, watch=watch)
    tell(output, report)


def _organisation(archive: Archive, domain: str | None, rules: list[str] | None) -> dict[str, Any]:
    if not domain and not rules:
        return {}
    from webdepot.services.selection import organisations  # with all that looks domains up

    return {
        "organisation": organisations.get(archive, domain).root if domain else None,
        "host_rules": organisations.parse_rules(rules) if rules else None,
    }


_AGAINST = frozenset({Robots.OBEY_BUT_EMBEDS, Robots.IGNORE})


def import_(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="WARC or ARC files, compressed or not, or folders of them."),
    ],
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place",
            help="Leave them where they are: WARC, ARC or WACZ in folders, at http(s):// or s3:// addresses.",
        ),
    ] = False,
    no_deposit: NoDeposit = False,
    collection: Collection = "imported",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take in existing WARC and ARC files. Your files are not changed; the same file twice is recognised."""
    call = call_of(context)
    output = call.output(json, quiet)
    _found(call, output)
    with call.archive() as opened, shown(output) as watch:
        report = pipeline.import_files(
            opened, paths, collection=collection, deposit=not no_deposit, in_place=in_place, watch=watch
        )
    for skipped in report.skipped:
        output.warn(plain(skipped))
    if report.taken is not None:
        tell(output, report.taken)
    elif not report.known:
        raise typer.Exit(1)
    else:
        output.result(
            {"state": "known", "files": len(report.known)},
            f"Nothing new: {len(report.known)} files are in the archive already.",
        )
    if report.skipped:
        raise typer.Exit(1)


def _found(call: Call, output: Output) -> None:
    """A newcomer needs no `init`: the first harvest makes the archive."""
    if setup.found(call.home, agent=agent()):
        output.say(f"Made a new archive at [bold]{plain(str(call.home))}[/bold].")


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise InputError(f"--reject {text!r} is no regular expression: {error}.") from error
    return text
