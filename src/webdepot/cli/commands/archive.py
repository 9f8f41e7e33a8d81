"""`webdepot archive` and `webdepot import`: from a site or from files to a searchable archive in one step."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from webdepot.archive import Archive
from webdepot.cli.call import Call, Json, NoDeposit, Quiet, agent, call_of
from webdepot.cli.import_report import ImportPrinter
from webdepot.cli.output import Output, plain
from webdepot.cli.progress import shown
from webdepot.cli.report import print_report
from webdepot.errors import InputError
from webdepot.services import pipeline
from webdepot.services.admin import setup
from webdepot.services.harvest import profiles
from webdepot.services.harvest.options import check_include
from webdepot.text.patterns import LinearPattern

Collection = Annotated[str, typer.Option(help="Collection of the harvest.")]


class ScopeOption(StrEnum):
    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"
    ANY = "any"


class FetchOption(StrEnum):
    PLAIN = "plain"
    BROWSER = "browser"
    WHEN_EMPTY = "when-empty"
    AUTO = "auto"


class BrowserOption(StrEnum):
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class NofollowOption(StrEnum):
    ALL = "all"
    PAGE = "page"
    NONE = "none"


class RobotsOption(StrEnum):
    OBEY = "obey"
    OBEY_BUT_EMBEDS = "obey-but-embeds"
    IGNORE = "ignore"


_NOT_OBEYED = frozenset({RobotsOption.OBEY_BUT_EMBEDS, RobotsOption.IGNORE})

# The options of `archive`, in the order of the help text. None means: as the profile or configuration says.
Urls = Annotated[
    list[str] | None,
    typer.Argument(metavar="URL...", help="Seeds. Not needed if the profile has seeds."),
]
Profile = Annotated[
    str, typer.Option(metavar="NAME", help="Harvest with this profile; other options override it.")
]
Scope = Annotated[
    ScopeOption | None,
    typer.Option(help="What belongs to the harvest: the same host, domain or path prefix, or any address."),
]
Delay = Annotated[
    float | None,
    typer.Option(min=0, help="Minimum delay between two requests to one server, in seconds."),
]
Workers = Annotated[
    int | None, typer.Option(min=1, max=1000, help="Maximum number of parallel requests over all servers.")
]
Robots = Annotated[RobotsOption | None, typer.Option(help="Whether to obey robots.txt.")]
RobotsReason = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Why robots.txt is not obeyed; recorded with the harvest."),
]
Fetch = Annotated[
    FetchOption | None,
    typer.Option(
        help="How pages are fetched: plain, browser (each page is also opened in a browser), when-empty "
        "(only pages that are empty without scripts) or auto (when-empty if a browser is installed)."
    ),
]
Browser = Annotated[
    BrowserOption | None,
    typer.Option(
        help="Open pages in a browser: those that are empty without scripts (auto, the default if a browser "
        "is installed), always, or never. --browser alone means always."
    ),
]
Nofollow = Annotated[
    NofollowOption | None,
    typer.Option(
        help="Which nofollow instructions to obey: all, those of pages (but not rel=nofollow of links), or "
        "none."
    ),
]
Reject = Annotated[
    list[str] | None,
    typer.Option(metavar="REGEX", help="Leave out addresses that match; may be given more than once."),
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND",
        help="Also harvest addresses that the software of a site adds to its content: histories, edits, "
        "feeds, …, or all. Listed by `webdepot scope software`. May be given more than once.",
    ),
]
LimitPages = Annotated[
    int | None, typer.Option(min=0, help="Stop after this many pages; their parts are harvested, too.")
]
LimitDocuments = Annotated[
    int | None, typer.Option(min=0, help="Stop after this many pages, parts and files.")
]
LimitBytes = Annotated[int | None, typer.Option(min=0, help="Stop after this many bytes.")]
LimitTime = Annotated[float | None, typer.Option(min=0, help="Stop after this many seconds.")]
AllowPrivate = Annotated[bool, typer.Option("--allow-private", help="Allow private and loopback addresses.")]
OrganisationDomain = Annotated[
    str | None,
    typer.Option(
        metavar="DOMAIN", help="Include all hosts of this organisation; see `webdepot organisation`."
    ),
]
HostRules = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULE",
        help="How hosts are matched: BelongsTo, InNetRange, SameNameServers, SameRegistrant(0.8). "
        "Default: BelongsTo.",
    ),
]
CollectionOrNot = Annotated[str | None, typer.Option(help="Collection of the harvest.")]


def archive(
    context: typer.Context,
    urls: Urls = None,
    profile: Profile = "",
    scope: Scope = None,
    delay: Delay = None,
    workers: Workers = None,
    robots: Robots = None,
    robots_reason: RobotsReason = None,
    fetch: Fetch = None,
    browser: Browser = None,
    nofollow: Nofollow = None,
    reject: Reject = None,
    include: Include = None,
    limit_pages: LimitPages = None,
    limit_documents: LimitDocuments = None,
    limit_bytes: LimitBytes = None,
    limit_time: LimitTime = None,
    allow_private: AllowPrivate = False,
    organisation: OrganisationDomain = None,
    host_rule: HostRules = None,
    no_deposit: NoDeposit = False,
    collection: CollectionOrNot = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    call = call_of(context)
    output = call.output(json, quiet)
    if robots in _NOT_OBEYED and not robots_reason:
        robots_reason = f"asked for on the command line by {agent()}"
    changes: dict[str, Any] = {
        "scope": scope and scope.value,
        "delay_s": delay,
        "workers": workers,
        "robots": robots and robots.value,
        "robots_reason": robots_reason or None,
        "fetch": _fetch(fetch, browser),
        "nofollow": nofollow and nofollow.value,
        "reject": tuple(map(_regex, reject)) if reject else None,
        "include": tuple(include) if include else None,
        "limit_pages": limit_pages,
        "limit_documents": limit_documents,
        "limit_bytes": limit_bytes,
        "limit_time_s": limit_time,
        "allow_private": allow_private or None,
        "collection": collection,
    }
    _create_if_missing(call, output)
    with call.archive() as opened, shown(output) as watch:
        changes |= _organisation(opened, organisation, host_rule)
        options, seeds = profiles.options_of(opened, profile), list(urls or [])
        if profile and not seeds:
            seeds = list(profiles.get(opened, profile).seeds)
        options = replace(options, **{name: value for name, value in changes.items() if value is not None})
        check_include(opened, options.include)
        report = pipeline.archive_site(opened, seeds, options, deposit=not no_deposit, watch=watch)
    print_report(output, report)


_FETCH = {
    BrowserOption.AUTO: FetchOption.AUTO,
    BrowserOption.ALWAYS: FetchOption.BROWSER,
    BrowserOption.NEVER: FetchOption.PLAIN,
}


def _fetch(fetch: FetchOption | None, browser: BrowserOption | None) -> str | None:
    wanted = _FETCH[browser] if browser else fetch
    if browser and fetch not in (None, wanted):
        raise InputError(
            f"--browser {browser.value} and --fetch {fetch.value} contradict each other. "
            "Leave out one of them."
        )
    return wanted and wanted.value


def _organisation(archive: Archive, domain: str | None, rules: list[str] | None) -> dict[str, Any]:
    if not domain and not rules:
        return {}
    from webdepot.services.selection import organisations  # loads dnspython and cryptography

    return {
        "organisation": organisations.get(archive, domain).root if domain else None,
        "host_rules": organisations.parse_rules(rules) if rules else None,
    }


def import_(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="WARC, ARC, WACZ or HAR files, compressed or not, or folders with such files at any depth.",
        ),
    ],
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place",
            help="Index them where they are: WARC, ARC or WACZ in folders, at http(s):// or s3:// addresses.",
        ),
    ] = False,
    no_deposit: NoDeposit = False,
    collection: Collection = "imported",
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the outcome of each file to FILE while the import runs, one JSON object per line.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:

    call = call_of(context)
    output = call.output(json, quiet)
    _create_if_missing(call, output)
    call.give_way()
    with ImportPrinter(output, report) as printer, call.archive() as opened:
        with shown(output) as watch:
            printer.watch = watch
            pipeline.import_files(
                opened,
                paths,
                collection=collection,
                deposit=not no_deposit,
                in_place=in_place,
                watch=watch,
                on_file=printer.add_file,
                on_package=printer.add_package,
            )
        printer.print_summary()
    if printer.is_incomplete:
        raise typer.Exit(1)


def _create_if_missing(call: Call, output: Output) -> None:
    """Create the archive if there is none, so that a newcomer does not need `init`."""
    if setup.create(call.home, agent=agent()):
        output.say(f"Created a new archive at [bold]{plain(str(call.home))}[/bold].")


def _regex(text: str) -> str:
    try:
        LinearPattern(text)
    except ValueError as error:
        raise InputError(f"--reject {text!r} is not a usable regular expression: {error}.") from error
    return text
